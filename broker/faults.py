"""Faults on purpose: an embedded broker that cuts the line, is late, or refuses, at the frame a test chooses.

    fault = broker.faults.drop_after("COMMIT", nth=2)
    ...                                  # the second COMMIT is executed, its answer never comes
    assert fault.wait(5)                 # it has happened

Commands are STOMP's: CONNECT, SUBSCRIBE, UNSUBSCRIBE, SEND, ACK, NACK, BEGIN, COMMIT, ABORT, DISCONNECT. Over
``vm://`` an acknowledgement is an ACK, a poison a NACK, a rollback an ABORT; there `delay`, `swallow` and `silence`
have no effect, as a call within the process has no answer that could be late or missing.

Over AMQP each is what does the same:

| CONNECT | open |
| SUBSCRIBE, UNSUBSCRIBE | attach and detach of a link that messages are received by |
| SEND | a message |
| ACK | the outcome accepted of one message, in a transaction or not |
| NACK | the outcome rejected, or modified with undeliverable-here |
| BEGIN, COMMIT, ABORT | declare, discharge, discharge with fail |
| DISCONNECT | close |
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import Enum
from typing import Final

from redelivery.model.errors import ConfigError

COMMANDS: Final = frozenset(
    ("CONNECT", "SUBSCRIBE", "UNSUBSCRIBE", "SEND", "ACK", "NACK", "BEGIN", "COMMIT", "ABORT", "DISCONNECT")
)


class Action(Enum):
    """What happens to the chosen frame."""

    DROP = "the connection is cut, the frame is not executed"
    DROP_AFTER = "the frame is executed, then the connection is cut without an answer"
    SWALLOW = "the frame is neither executed nor answered, the connection stays"
    DELAY = "the frame, and those behind it on its connection, wait"
    ERROR = "the frame is answered with an error and not executed"


class Fault:
    """One planned fault. ``hits`` counts how often it has happened."""

    def __init__(self, action: Action, command: str, nth: int, times: int | None, seconds: float, text: str) -> None:
        self.action = action
        self.command = command
        self.seconds = seconds
        self.text = text
        self.hits = 0
        self._before = nth - 1
        self._times = times
        self._happened = threading.Event()

    def wait(self, timeout: float) -> bool:
        """Wait up to ``timeout`` seconds until it has happened; whether it has."""
        return self._happened.wait(timeout)

    def meets(self) -> bool:
        """Whether a frame of its command, which has just come, is a chosen one."""
        if self._before:
            self._before -= 1
            return False
        if self._times is not None and self.hits >= self._times:
            return False
        self.hits += 1
        self._happened.set()
        return True

    def __repr__(self) -> str:
        return f"<Fault {self.command}: {self.action.value}; {self.hits} hits>"


class Faults:
    """The faults of one broker; thread-safe. Each applies to its ``nth`` frame from now on, and ``times`` in a row.

    ``times=None`` is every one from the nth on. Where several are planned for a command, the oldest applies first; a
    frame that it strikes is not counted by the others. A bad argument raises ConfigError.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._planned: list[Fault] = []
        self._silent = False
        self._listeners: list[Callable[[], None]] = []

    def drop(self, command: str, *, nth: int = 1, times: int | None = 1) -> Fault:
        """Cut the connection when the frame comes; it is not executed."""
        return self._plan(Action.DROP, command, nth, times)

    def drop_after(self, command: str, *, nth: int = 1, times: int | None = 1) -> Fault:
        """Execute the frame, then cut the connection without an answer."""
        return self._plan(Action.DROP_AFTER, command, nth, times)

    def swallow(self, command: str, *, nth: int = 1, times: int | None = 1) -> Fault:
        """Neither execute nor answer the frame; the connection stays open."""
        return self._plan(Action.SWALLOW, command, nth, times)

    def delay(self, command: str, seconds: float, *, nth: int = 1, times: int | None = 1) -> Fault:
        """Let the frame, and all behind it on its connection, wait for so many seconds."""
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds < float("inf"):
            raise ConfigError(f"seconds={seconds!r} is no delay; give a number from 0")
        return self._plan(Action.DELAY, command, nth, times, seconds=seconds)

    def error(self, command: str, text: str, *, nth: int = 1, times: int | None = 1) -> Fault:
        """Answer the frame with an error of this text and do not execute it; the connection stays open."""
        return self._plan(Action.ERROR, command, nth, times, text=text)

    def silence(self) -> None:
        """Say nothing more on any socket, not even a heart-beat, until `clear`; what was to be said is kept."""
        self._silent = True
        self._changed()

    def clear(self) -> None:
        """Forget all faults and speak again."""
        with self._lock:
            self._planned.clear()
            self._silent = False
        self._changed()

    @property
    def silent(self) -> bool:
        """Whether `silence` is on."""
        return self._silent

    def tell(self, listener: Callable[[], None]) -> None:
        """For the doors: call this when silence has begun or ended."""
        self._listeners.append(listener)

    def strike(self, command: str) -> Fault | None:
        """For the doors: the fault that applies to a frame which has just come, None for none."""
        if not self._planned:
            return None
        struck: Fault | None = None
        with self._lock:
            for fault in self._planned:
                if fault.command == command and struck is None and fault.meets():
                    struck = fault
        return struck

    def _plan(
        self, action: Action, command: str, nth: int, times: int | None, seconds: float = 0.0, text: str = ""
    ) -> Fault:
        if command not in COMMANDS:
            raise ConfigError(
                f"command={command!r} is none that a client sends; choose of {', '.join(sorted(COMMANDS))}"
            )
        for name, value in (("nth", nth), ("times", times)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise ConfigError(f"{name}={value!r} is no count; give a whole number from 1")
        fault = Fault(action, command, nth, times, seconds, text)
        with self._lock:
            self._planned.append(fault)
        return fault

    def _changed(self) -> None:
        for listener in self._listeners:
            listener()
