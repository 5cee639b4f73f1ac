"""Planned faults: an embedded broker that cuts the connection, delays or refuses, at the frame that a test chooses.

    fault = broker.faults.drop_after("COMMIT", nth=2)
    ...                                  # the second COMMIT is executed, its answer never comes
    assert fault.wait(5)                 # it has happened

Commands are STOMP's: CONNECT, SUBSCRIBE, UNSUBSCRIBE, SEND, ACK, NACK, BEGIN, COMMIT, ABORT, DISCONNECT. Over
``vm://`` an acknowledgement is an ACK, a poison a NACK, a rollback an ABORT. There a call has its answer when it
returns, so what leaves an answer out, `swallow` and `silence`, needs a socket: UnsupportedError where the broker has
none, and where a swallowed frame comes over ``vm://``.

Over AMQP each is what does the same:

| CONNECT | open |
| SUBSCRIBE, UNSUBSCRIBE | attach and detach of a link that messages are received by |
| SEND | a message |
| ACK | the outcome accepted of one message, in a transaction or not |
| NACK | the outcome rejected, or modified with undeliverable-here |
| BEGIN, COMMIT, ABORT | declare, discharge, discharge with fail |
| DISCONNECT | close |

A broker with a store can have a slow one (`delay_sync`), one that fails (`fail_sync`) and a full disk (`fill_disk`);
without a store these raise UnsupportedError.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import Enum
from typing import Final, Protocol

from redelivery.model.errors import ConfigError, JMSError, ResourceAllocationError, UnsupportedError

COMMANDS: Final = frozenset(
    ("CONNECT", "SUBSCRIBE", "UNSUBSCRIBE", "SEND", "ACK", "NACK", "BEGIN", "COMMIT", "ABORT", "DISCONNECT")
)
_SYNC: Final = "SYNC"  # no client sends it


class Action(Enum):
    """The effect of a fault on the chosen frame."""

    DROP = "the connection is cut, the frame is not executed"
    DROP_AFTER = "the frame is executed, then the connection is cut without an answer"
    SWALLOW = "the frame is neither executed nor answered, the connection stays"
    DELAY = "the frame, and those behind it on its connection, wait"
    ERROR = "the frame is answered with an error and not executed"


class ClientStep(Protocol):
    """One thing that a client asks for, and what a fault may do to it; each server and ``vm://`` has its own."""

    def execute_step(self) -> None:
        """Do it, and answer."""

    def refuse_step(self, error: JMSError) -> None:
        """Answer with an error, and do not execute it."""

    def skip_step(self) -> None:
        """Neither execute nor answer it."""

    def delay_step(self, seconds: float) -> None:
        """Execute it so much later, and what is behind it on its connection after it."""

    def write_answers(self) -> bool:
        """Write what was answered before; whether the connection still exists."""

    def cut(self, *, executed: bool) -> None:
        """Cut the connection; ``executed``: whether the step was executed."""


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

    @property
    def struck(self) -> bool:
        """True: it has happened at least once."""
        return self._happened.is_set()

    def meets(self, *, sockets: bool) -> bool:
        """Check whether a frame of its command, which has just come, is a chosen one.

        Raises:
            UnsupportedError: it is, but came over no socket, and the fault needs one.
        """
        if self._before:
            self._before -= 1
            return False
        if self._times is not None and self.hits >= self._times:
            return False
        if not sockets and self.action is Action.SWALLOW:
            raise _no_sockets("swallow")
        self.hits += 1
        self._happened.set()
        return True

    def __repr__(self) -> str:
        return f"<Fault {self.command}: {self.action.value}; {self.hits} hits>"

    def __str__(self) -> str:
        return f"{self.action.name.lower()} {self.command}"


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
        self._cleared = threading.Event()  # ends the delay of a sync
        self._disk_full = False
        self.sockets = True  # whether the broker listens on any
        self.stored = False  # whether it has a store

    def drop(self, command: str, *, nth: int = 1, times: int | None = 1) -> Fault:
        """Cut the connection when the frame comes; it is not executed."""
        return self._plan(Action.DROP, command, nth, times)

    def drop_after(self, command: str, *, nth: int = 1, times: int | None = 1) -> Fault:
        """Execute the frame, then cut the connection without an answer."""
        return self._plan(Action.DROP_AFTER, command, nth, times)

    def swallow(self, command: str, *, nth: int = 1, times: int | None = 1) -> Fault:
        """Neither execute nor answer the frame; the connection stays open.

        Raises:
            UnsupportedError: the broker has only its ``vm://``; likewise a call over that which meets the fault.
        """
        self._need_sockets("swallow")
        return self._plan(Action.SWALLOW, command, nth, times)

    def delay(self, command: str, seconds: float, *, nth: int = 1, times: int | None = 1) -> Fault:
        """Let the frame, and all behind it on its connection, wait for so many seconds."""
        return self._plan(Action.DELAY, command, nth, times, seconds=_seconds(seconds))

    def error(self, command: str, text: str, *, nth: int = 1, times: int | None = 1) -> Fault:
        """Answer the frame with an error of this text and do not execute it; the connection stays open."""
        return self._plan(Action.ERROR, command, nth, times, text=text)

    def silence(self) -> None:
        """Write nothing more to any socket, not even a heart-beat, until `clear`; what is to be written is kept.

        Raises:
            UnsupportedError: the broker has only its ``vm://``.
        """
        self._need_sockets("silence")
        self._silent = True
        self._changed()

    def delay_sync(self, seconds: float, *, nth: int = 1, times: int | None = 1) -> Fault:
        """Let the store take so many seconds longer to write; what waits for it is not answered before."""
        self._need_store("delay_sync")
        return self._plan(Action.DELAY, _SYNC, nth, times, seconds=_seconds(seconds))

    def fail_sync(self, *, nth: int = 1) -> Fault:
        """Let the store fail to write: the broker ends, as what it has not answered may be lost."""
        self._need_store("fail_sync")
        return self._plan(Action.ERROR, _SYNC, nth, 1, text="the store cannot be written (a planned fault)")

    def fill_disk(self) -> None:
        """Let the store's disk be full until `clear`: sends raise ResourceAllocationError, the rest goes on."""
        self._need_store("fill_disk")
        self._disk_full = True

    def clear(self) -> None:
        """Remove all faults and write again."""
        with self._lock:
            self._planned.clear()
            self._silent = False
            self._disk_full = False
            self._cleared.set()
            self._cleared = threading.Event()
        self._changed()

    @property
    def silent(self) -> bool:
        """True: `silence` is on."""
        return self._silent

    @property
    def disk_full(self) -> bool:
        """True: `fill_disk` is on."""
        return self._disk_full

    def before_sync(self) -> None:
        """For the core: its store is about to be written. Raises ResourceAllocationError: a planned failure."""
        cleared = self._cleared
        fault = self._strike(_SYNC, sockets=True) if self._planned else None
        if fault is not None and fault.action is Action.ERROR:
            raise ResourceAllocationError(fault.text)
        if fault is not None:
            cleared.wait(fault.seconds)

    def on_change(self, listener: Callable[[], None]) -> None:
        """For the servers: call this when silence has begun or ended."""
        self._listeners.append(listener)

    @property
    def never_struck(self) -> tuple[Fault, ...]:
        """The planned faults that have not happened, without those that were cleared."""
        with self._lock:
            return tuple(fault for fault in self._planned if not fault.struck)

    def run(self, command: str | None, step: ClientStep, *, sockets: bool = True) -> None:
        """For the servers: execute a step that has just come, under the fault that applies to it, if any.

        ``command``: None for a step that no fault can strike. ``sockets``: it came over a socket; UnsupportedError is
        raised where it did not, and the fault needs one.
        """
        fault = self._strike(command, sockets=sockets) if self._planned and command is not None else None
        if fault is None:
            step.execute_step()
            return
        match fault.action:
            case Action.DELAY:
                step.delay_step(fault.seconds)
            case Action.SWALLOW:
                step.skip_step()
            case Action.ERROR:
                step.refuse_step(JMSError(fault.text))
            case Action.DROP:
                step.write_answers()
                step.cut(executed=False)
            case Action.DROP_AFTER:
                if step.write_answers():
                    step.execute_step()
                    step.cut(executed=True)

    def _strike(self, command: str, *, sockets: bool) -> Fault | None:
        struck: Fault | None = None
        with self._lock:
            for fault in self._planned:
                if fault.command == command and struck is None and fault.meets(sockets=sockets):
                    struck = fault
        return struck

    def _need_store(self, name: str) -> None:
        if not self.stored:
            raise UnsupportedError(f"faults.{name} needs a broker with a store: EmbeddedBroker(store=…)")

    def _need_sockets(self, name: str) -> None:
        if not self.sockets:
            raise _no_sockets(name)

    def _plan(
        self, action: Action, command: str, nth: int, times: int | None, seconds: float = 0.0, text: str = ""
    ) -> Fault:
        if command not in COMMANDS and command != _SYNC:
            raise ConfigError(
                f"command={command!r} is not one that a client sends: pass one of {', '.join(sorted(COMMANDS))}"
            )
        for name, value in (("nth", nth), ("times", times)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise ConfigError(f"{name}={value!r} is not a count: pass an int ≥ 1")
        fault = Fault(action, command, nth, times, seconds, text)
        with self._lock:
            self._planned.append(fault)
        return fault

    def _changed(self) -> None:
        for listener in self._listeners:
            listener()


def _seconds(seconds: object) -> float:
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds < float("inf"):
        raise ConfigError(f"seconds={seconds!r} is not a delay: pass a number ≥ 0")
    return seconds


def _no_sockets(name: str) -> UnsupportedError:
    return UnsupportedError(
        f"faults.{name} needs a socket: use broker.stomp_url or broker.amqp_url (made with stomp_port=0, amqp_port=0); "
        "a call over vm:// has its answer when it returns"
    )
