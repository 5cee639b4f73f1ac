"""The hooks of an observer that follows a piece of work from its begin to its end, beside being given events.

`Tracing.tracer` is asked once for each session and connection. What it gives is called in the caller's thread or task,
so that context variables are the caller's; what it raises is logged once, as what the observer raises.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from redelivery.model.events import Delivered
from redelivery.model.messages import Message


@dataclass(frozen=True, slots=True)
class Server:
    """The broker of a connection.

    Attributes:
        system: what OpenTelemetry calls it (``messaging.system``).
        address: its host, or the name of an embedded broker.
        port: None of an embedded broker, or where the URL has none.
        client_id: the JMS client id, if one was given.
    """

    system: str
    address: str
    port: int | None
    client_id: str | None


class Step(Protocol):
    """A piece of work that has begun."""

    def ended(self, error: BaseException | None) -> None:
        """The step is done, or has failed with ``error``."""


class Work(Step, Protocol):
    """The application's own work on a message; what it does meanwhile belongs to it."""

    def left(self) -> None:
        """After `ended`, and after the message has been settled: what follows does not belong to it."""


class Tracer(Protocol):
    """The observer of one session's work."""

    def sending(self, message: Message) -> Step:
        """A message is about to be sent; its properties may be changed here."""

    def received(self, delivered: Delivered, began: int, *, held: bool) -> None:
        """A call that began at ``began`` (epoch nanoseconds) returns it. ``held``: it is not acknowledged yet."""

    def processing(self, delivered: Delivered) -> Work:
        """A listener or a container's handler is about to be called with it."""

    def settling(self, action: str, delivered: Sequence[Delivered], sent: int) -> Step:
        """``commit``, ``rollback``, ``recover`` or ``acknowledge`` of these, and of so many sends, begins."""


@runtime_checkable
class Tracing(Protocol):
    """An observer that follows work too."""

    def tracer(self, session: int, server: Server) -> Tracer:
        """For one session (as in events), while it is connected to that broker."""
