"""Flows: what can wait, as generators that yield what they wait for. A driver of threads or of an event loop waits."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol, TypeAlias, TypeVar

from redelivery.model.errors import ConnectionLostError, JMSError, RequestTimeoutError

T = TypeVar("T")


class Waiter(Protocol):
    """The place where one thread (or task) of a session parks; see wire/threads/waiter.py."""

    place: object  # the transport's own; None for another transport
    awaits: bool  # an answer, by the one who waits

    def wake(self) -> None:
        """Let the one who waits check again; harmless when nobody waits. May be called from any thread."""


class Pending:
    """The answer to one request: done once, by the transport, or never. Another attempt has another one.

    ``patience``: seconds without an answer after which the one who waits calls `ask_again`; None for never.
    """

    __slots__ = ("also", "done", "error", "on_done", "value", "waiter")
    patience: ClassVar[float | None] = None

    def __init__(self, waiter: Waiter | None = None, on_done: Callable[[Pending], None] | None = None) -> None:
        self.waiter = waiter
        self.also: Waiter | None = None  # a second one: the session's close waits beside the one who asked
        self.on_done = on_done
        self.done = False
        self.value: object = None
        self.error: JMSError | None = None

    def complete(self, value: object = None, error: JMSError | None = None) -> None:
        """The broker said yes; with an ``error`` it said no, or will never answer."""
        if not self.done:
            self.value, self.error, self.done = value, error, True
            if (on_done := self.on_done) is not None:
                self.on_done = None  # it may hold us: no cycle is left for the garbage collector
                on_done(self)
        # a second time too: the first may have been interrupted before it came here
        if self.waiter is not None:
            self.waiter.wake()
        if self.also is not None:
            self.also.wake()

    def fail(self, error: JMSError) -> None:
        """`complete` with an error."""
        self.complete(None, error)

    def ask_again(self) -> None:
        """The request may have been missed: make it once more. Raises ConnectionLostError."""

    def another(self) -> Pending:
        """One for another attempt of the same request, by the same one who waits."""
        return Pending(self.waiter)

    def pass_on(self, answered: Pending) -> None:
        """The same answer as another's; for its ``on_done``."""
        self.complete(answered.value, answered.error)


class InterruptedWait(RequestTimeoutError):
    """No time-out of the broker's: the one who waits was interrupted, or cancelled, and waits no longer."""


class NotSent(ConnectionLostError):
    """The connection was lost before anything of the request had left: it is in no doubt."""


NO_ANSWER: Final = (ConnectionLostError, RequestTimeoutError)  # what is thrown into a flow whose answer did not come


@dataclass(frozen=True, slots=True)
class Until:
    """The wish for an answer, which may take so long, instead of as long as answers take otherwise."""

    answer: Pending
    deadline: float  # monotonic seconds


@dataclass(frozen=True, slots=True)
class Arrival:
    """The wish to go on when the session's waiter is woken, since something is in its inbox."""

    deadline: float | None = None  # monotonic seconds: then at the latest
    poll: bool = False  # at once, when what the wire has is taken in


@dataclass(frozen=True, slots=True)
class Parked:
    """The wish to go on when the waiter is woken, where there is no connection that could be read meanwhile."""

    deadline: float | None = None  # monotonic seconds: then at the latest


class Descriptor(Protocol):
    """A socket, or what owns one."""

    def fileno(self) -> int:
        """The system's number for it; -1 once closed."""


@dataclass(frozen=True, slots=True)
class Readable:
    """The wish to go on when there is input, while a connection is being opened."""

    where: Descriptor
    deadline: float  # monotonic seconds: then at the latest


@dataclass(frozen=True, slots=True)
class Writable:
    """The wish to go on when the system takes more output, or the connection is there."""

    where: Descriptor
    deadline: float  # monotonic seconds: then at the latest


@dataclass(frozen=True, slots=True)
class Pause:
    """The wish to go on later."""

    seconds: float


Address: TypeAlias = tuple[int, int, int, str, tuple[Any, ...]]  # as socket.getaddrinfo gives it


@dataclass(slots=True)
class Lookup:
    """The wish to go on when the addresses of a host are ``found``, or there is a ``problem``, or at the deadline."""

    host: str
    port: int
    deadline: float  # monotonic seconds
    found: Sequence[Address] = ()
    problem: OSError | None = None


Opening: TypeAlias = Readable | Writable | Pause | Lookup
Wish: TypeAlias = Pending | Until | Arrival | Parked | Opening
Flow: TypeAlias = Generator[Wish, None, T]
