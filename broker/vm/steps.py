"""Calls over ``vm://`` as planned faults treat them (`redelivery.broker.faults.ClientStep`)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, NoReturn, Protocol, TypeVar

from redelivery.broker.engine.engine import Engine
from redelivery.model.errors import ConnectError, ConnectionLostError, JMSError

T = TypeVar("T")


class Caller(Protocol):
    """The connection that a call is made on; ``hung_up`` ends a planned delay."""

    hung_up: threading.Event

    def call(self, function: Callable[[Engine, int], T]) -> T:
        """Do something at the broker."""

    def lose(self, reason: str) -> ConnectionLostError:
        """Break the connection; returns the error for a call that is under way."""


class _Answered:
    """The answer is there when the call returns, so `Faults` lets no fault leave it out."""

    def skip_step(self) -> None:
        """Unreachable: see `redelivery.broker.faults.Fault.meets`."""
        raise AssertionError("a call over vm:// cannot be swallowed")

    def write_answers(self) -> bool:
        """Nothing is to be written."""
        return True


class Call(_Answered, Generic[T]):
    """One call."""

    result: T

    def __init__(self, caller: Caller, command: str, function: Callable[[Engine, int], T]) -> None:
        self._caller = caller
        self._command = command
        self._function = function

    def execute_step(self) -> None:
        """Make the call."""
        self.result = self._caller.call(self._function)

    def refuse_step(self, error: JMSError) -> None:
        """The planned error is the answer."""
        raise error

    def delay_step(self, seconds: float) -> None:
        """Wait, unless the connection ends."""
        self._caller.hung_up.wait(seconds)
        self.execute_step()

    def cut(self, *, executed: bool) -> None:
        """Lose the connection."""
        when = "after" if executed else "before"
        raise self._caller.lose(f"the connection was cut {when} {self._command} (a planned fault)")


class Connect(_Answered):
    """The connecting itself: what breaks it is a ConnectError."""

    def __init__(self, name: str, hung_up: threading.Event) -> None:
        self._name = name
        self._hung_up = hung_up

    def execute_step(self) -> None:
        """Nothing is left to do."""

    def refuse_step(self, error: JMSError) -> NoReturn:
        """The planned error is the reason."""
        raise ConnectError(f"vm://{self._name}: {error} (a planned fault)")

    def delay_step(self, seconds: float) -> None:
        """Wait, unless the connection ends."""
        self._hung_up.wait(seconds)

    def cut(self, *, executed: bool) -> None:  # noqa: ARG002 - the same either way
        """The connection never was."""
        raise ConnectError(f"vm://{self._name}: the connection was cut (a planned fault)")
