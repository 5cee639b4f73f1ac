"""The seam between the sessions above and a protocol or the embedded broker below.

Rules of this file:

1. It knows values only: no clock, no thread, no socket. The implementations of the seam bring those.
2. What can wait is a `Flow`: a generator that yields what it waits for, a `Wish`: the `Pending` of an answer, a socket
   that is being opened, or (above the seam) an `Arrival`. The shell above drives it (threads: `wait` until the pending
   is done; asyncio: await it). What ends a wait is thrown in: RequestTimeoutError (an interrupt too), or a loss.
3. What waits for no answer is a plain method and returns after the bytes are written or queued. Under threads these
   (`send`, `accept`, `release`, `dispatched`, `park`, `unpark`, `flush`) wait until the system has taken the bytes: at
   most `request_timeout` without progress, no lock held. Under a loop none waits, and a sender drives `room` next.
4. The transport calls up on the thread that reads, holding no lock of its own.
5. Broker differences are `Capabilities` and tables of the dialect, never subclasses seen from above.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Protocol

from redelivery.model.capabilities import Capabilities
from redelivery.model.destinations import Destination
from redelivery.model.errors import JMSError, UnsupportedError
from redelivery.model.messages import Message
from redelivery.model.modes import AckMode
from redelivery.policies.destinations.bound import BoundTo
from redelivery.transports.delivery import Delivery, Link, LinkSpec, SessionEvents
from redelivery.transports.finding import Finder
from redelivery.transports.flows import (
    NO_ANSWER,
    Arrival,
    Flow,
    InterruptedWait,
    Opening,
    Parked,
    Pause,
    Pending,
    Readable,
    T,
    Waiter,
    Wish,
    Writable,
)
from redelivery.transports.management.declaring import Queues
from redelivery.transports.runtime import Runtime

__all__ = [
    "NO_ANSWER",
    "Arrival",
    "Channel",
    "ConnectionEvents",
    "Delivery",
    "Flow",
    "InterruptedWait",
    "Link",
    "LinkSpec",
    "Opening",
    "Parked",
    "Pause",
    "Peer",
    "Pending",
    "Queues",
    "Readable",
    "Runtime",
    "SessionEvents",
    "T",
    "Transport",
    "TransportOptions",
    "Waiter",
    "Wish",
    "Writable",
]


class ConnectionEvents(Protocol):
    """The notifications of a transport to its connection."""

    def on_lost(self, error: JMSError) -> None:
        """The connection is gone; called once, after every pending answer has failed. Not called for our own close."""

    def on_error(self, error: JMSError) -> None:
        """Something failed that no call waits for (it goes to the exception listener)."""


@dataclass(frozen=True, slots=True)
class TransportOptions:
    """The options that a transport is opened with; the password is in no repr. Times are in seconds."""

    scheme: str
    host: str
    port: int | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    client_id: str | None = None
    vhost: str | None = None
    dialect: str = "auto"
    declare: bool = True
    tls: SSLContext | None = None
    connect_timeout: float = 15.0
    request_timeout: float = 30.0
    close_timeout: float = 15.0
    heartbeat: float = 10.0
    params: Mapping[str, str] = field(default_factory=dict)  # of the URL's query, those that the transport itself knows
    made: Sequence[BoundTo] | None = None  # the queues that the broker's file makes, where it was given and lists them


@dataclass(frozen=True, slots=True)
class Peer:
    """The peer that answered: filled by `Transport.open`."""

    provider_name: str
    provider_version: str
    protocol: str
    dialect: str
    capabilities: Capabilities


class Channel(ABC):
    """One session at the broker. One thread at a time, the session's own (`close` aside).

    Attributes:
        has_client_id: a durable subscription of the connection's client id can be consumed by it.
        finder: where a destination must be found before it is used.
        congested: so much waits for the peer to take it that the caller of `send` should drive `room` next.
        blocked_sends: how many messages wait for the peer to take them; a guess from other threads.
    """

    congested, blocked_sends = False, 0
    finder: Finder | None = None
    has_client_id: bool = True  # the connection's, to which durable subscriptions belong

    @abstractmethod
    def attach(self, link: Link) -> Flow[None]:
        """Start consuming. Raises InvalidDestinationError, InvalidSelectorError, SecurityError, UnsupportedError."""

    @abstractmethod
    def detach(self, link: Link) -> Flow[None]:
        """Stop consuming; deliveries of the link that are neither settled nor in `commit` go back to the broker."""

    def fetch(self, link: Link) -> Flow[None]:  # noqa: ARG002  # of those that can ask
        """All that the broker has for the link now, as far as its window goes, has come; where the protocol can ask."""
        yield from ()

    def browse_more(self, link: Link) -> Flow[bool]:  # noqa: ARG002  # of those that can browse
        """For a link that browses, when the application has had what came: more is in the inbox; False: that was all.

        Raises:
            UnsupportedError, JMSError: there is no browsing over this protocol; the broker has ended the link.
        """
        yield from ()
        raise UnsupportedError("there is no browsing over this protocol")

    def pull(self, link: Link) -> None:  # noqa: B027  # of those where the receiver gives credit
        """The application wants one by a link that `pulls`. Where the broker pushes, its window is one unsettled."""

    @abstractmethod
    def dispatched(self, delivery: Delivery) -> None:
        """The application has it, unacknowledged: the window may move on (credit; an ACK in the open transaction)."""

    def has_room(self, link: Link, number: int) -> bool:
        """Check whether more can come while so many are not acknowledged; False: `widen_window` must see to it.

        Half of the window may be acknowledgements that are still on their way, or credit that is not given yet.
        """
        return 2 * number < (link.prefetch or 0)

    def widen_window(self, deliveries: Sequence[Delivery]) -> bool:
        """The application waits for more, to acknowledge all together. Whether more can come: until `unpark`."""
        for each in deliveries:
            self.dispatched(each)
        self.park(deliveries)
        return True

    @abstractmethod
    def accept(self, deliveries: Sequence[Delivery], *, batched: bool, done: list[None] | None = None) -> None:
        """Acknowledge outside any transaction; batched ones may stay with us for a few milliseconds to leave together.

        ``done`` gets an entry when they leave, or will, whatever fails afterwards.
        """

    @abstractmethod
    def release(self, deliveries: Sequence[Delivery]) -> None:
        """Release what the application never saw, where the protocol can; otherwise they go back at detach."""

    @abstractmethod
    def poison(self, delivery: Delivery, cause: str, copy: Message | None, *, expired: bool = False) -> Flow[None]:
        """Dead-letter: ``copy`` (stamped with its destination) and an ack as one; None: the broker's own way.

        ``expired``: it has expired and not failed, where the protocol can say so.
        """

    def check(self, message: Message) -> None:  # noqa: B027  # where nothing is refused before it is sent
        """Raise as `send` would for what a stamped message holds; nothing is written."""

    @abstractmethod
    def send(self, message: Message, *, transacted: bool, pending: Pending | None, batched: bool = False) -> None:
        """Write a stamped message. A pending is completed by the broker's confirmation; transacted ones need none.

        ``batched``: its caller goes on without the answer, so that it may wait some milliseconds for others to leave
        with; one that is transacted may wait for its commit. It never waits for the peer's credit: see `congested`.
        """

    def room(self) -> Flow[None]:
        """Hold the application back while the channel is congested, as a full pipe would.

        Raises:
            ResourceAllocationError: there was no credit within request_timeout; what was sent last is withdrawn.
            RequestTimeoutError: the system took too little within request_timeout; what waits leaves when it can.
            ConnectionLostError: the connection is gone; NotSent: and what was sent last had not left.
        """
        yield from ()

    def withdraw(self, pending: Pending) -> None:  # noqa: B027  # of those where something may wait for the peer
        """Wait for it no longer: what waits for the peer is taken back, and fails with ResourceAllocationError."""

    def forget(self, queue: Destination) -> None:
        """The queue was made or removed: what was found of it, or opened to send there, is of another one."""
        if self.finder is not None:
            self.finder.forget(queue)

    @abstractmethod
    def commit(self, deliveries: Sequence[Delivery]) -> Flow[None]:
        """Make the sends visible and acknowledge the deliveries, as one unit.

        Raises:
            TransactionRolledBackError: nothing happened; the deliveries are still ours, unless the error says that
                the broker redelivers them.
            InDoubtError: the answer did not come; the deliveries are forgotten.
        """

    @abstractmethod
    def rollback(self) -> Flow[None]:
        """Undo the sends and whatever `dispatched` enlisted; the deliveries are still ours."""

    @abstractmethod
    def park(self, deliveries: Sequence[Delivery]) -> None:
        """Take deliveries out of the window: they wait for a non-blocking redelivery."""

    @abstractmethod
    def unpark(self, deliveries: Sequence[Delivery]) -> None:
        """Count deliveries in the window again: their wait is over, they will be dispatched again."""

    @abstractmethod
    def close(self) -> Flow[None]:
        """End it: open transaction undone, links detached. Never raises for a lost connection."""


class Transport(ABC):
    """A connection to one broker; thread-safe."""

    peer: Peer

    def __init__(self, options: TransportOptions, events: ConnectionEvents, runtime: Runtime | None = None) -> None:
        self.options = options
        self.events = events
        self.runtime = runtime  # None: threads

    @property
    def remark(self) -> str:
        """The text of ``repr`` about the connection beside its URL and stage; "" for nothing."""
        return ""

    @property
    @abstractmethod
    def lost(self) -> bool:
        """True: the connection is lost; its events may not have been notified yet."""

    @abstractmethod
    def open(self) -> Flow[None]:
        """Connect and log in within connect_timeout; fill `peer`. Raises ConnectError, SecurityError, ProtocolError.

        Whatever ends the flow early, also by an exception thrown in, closes the socket.
        """

    @abstractmethod
    def channel(self, mode: AckMode, events: SessionEvents, *, client_id: bool = False) -> Flow[Channel]:
        """A channel for one session; where its waiter has one already, a further one of that session.

        ``client_id``: it must be one that `has_client_id`.

        Raises:
            UnsupportedError: there is no such one any more.
            ConnectError, SecurityError: the session needs a socket of its own, which could not be opened.
            ConnectionLostError: the connection is gone.
        """

    def meant(self, destination: Destination) -> Destination:
        """The meaning of a destination to this broker, as it is consumed."""
        return destination

    def temporary(self, kind: type[Destination], waiter: Waiter) -> Flow[Destination]:  # noqa: ARG002  # of those that can
        """A temporary destination, which the broker removes with the connection; ``waiter``: of the flow's driver.

        Raises:
            UnsupportedError: it makes none over this protocol.
            ConnectionLostError, RequestTimeoutError: it did not answer.
        """
        yield from ()
        raise UnsupportedError(f"there is no {kind.__name__} over this protocol and broker")

    def queues(self, waiter: Waiter) -> Queues:  # noqa: ARG002  # as above
        """The broker's queues, for one call of the waiter's. Raises UnsupportedError: see `Capabilities.declares`."""
        peer = self.peer
        raise UnsupportedError(
            f"{peer.provider_name} over {peer.protocol} declares and deletes no queue: {peer.capabilities.no_declaring}"
        )

    def unsubscribe(self, name: str, known: Link | None, waiter: Waiter) -> Flow[None]:  # noqa: ARG002  # as above
        """Remove a durable subscription with what it holds; this connection has no consumer of it.

        ``known``: a link by which this connection has consumed it, if it has. ``waiter``: of the driver of this flow.

        Raises:
            InvalidDestinationError: there is none, as far as the broker says so.
            IllegalStateError: another connection has a consumer of it.
            UnsupportedError: it cannot be removed over this protocol, or not without ``known``.
            ConnectionLostError, RequestTimeoutError: the broker did not answer.
        """
        yield from ()
        raise UnsupportedError("there are no durable subscriptions over this protocol and broker")

    @abstractmethod
    def new_waiter(self, beside: Waiter | None = None) -> Waiter:
        """A place to park for `wait`; ``beside`` a session's, to wait in another thread for answers to that session."""

    @abstractmethod
    def wait(self, waiter: Waiter, timeout: float | None) -> None:
        """Return when the waiter was woken since its last wait, or after ``timeout`` seconds; may read meanwhile.

        What is read is what brings its session's answers and messages. A ``timeout`` of 0 takes in what has come there,
        whether woken or not; with a waiter of no session, what has come anywhere. Raises ConnectionLostError.
        """

    def flush(self, waiter: Waiter) -> None:  # noqa: B027  # of those that let something wait
        """Write now what waits to leave together with more, before a task waits. Raises ConnectionLostError."""

    @abstractmethod
    def close(self, waiter: Waiter) -> Flow[None]:
        """Say goodbye within `close_timeout`, then close, answered or not. Harmless twice. ``waiter``: as above."""

    @abstractmethod
    def abort(self) -> None:
        """Close without a goodbye; every pending answer fails with ConnectionLostError."""

    @abstractmethod
    def fail(self, error: JMSError) -> None:
        """The same, as a loss of which its events are notified."""
