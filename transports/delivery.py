"""Deliveries, and the links that they come on: pure values that travel up through the seam, for the ledger."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeAlias

from redelivery.model.destinations import Destination, SubscriptionName
from redelivery.model.errors import JMSError, MessageFormatError
from redelivery.model.values import Body, Value
from redelivery.transports.flows import Waiter

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # of mypy's own: Python 3.13 has a default, too

    C = TypeVar("C", covariant=True, default=object)  # the session's type of a consumer, which nothing here reads
else:
    from typing import TypeVar

    C = TypeVar("C")


Attempts: TypeAlias = tuple[tuple[int, int], ...]  # of what failed: JMSXDeliveryCount, and when, in epoch milliseconds
_ATTEMPTS: Final = 16  # that are kept: the first one, and the last


@dataclass(frozen=True, slots=True)
class ReturnLimit:
    """The broker's limit for a message that goes back to its queue too often, and what it does then.

    ``most``: how often it may, so that there is one delivery more. ``then``: what the broker does after that, for a
    sentence. ``unsure``: what of it is supposed; empty: nothing.
    """

    most: int
    then: str
    unsure: str = ""


@dataclass(frozen=True, slots=True)
class LinkSpec:
    """The wishes of a consumer or browser for its link, on whichever connection.

    Attributes:
        window: the prefetch; None: the dialect's default.
        max_bytes: what is sent ahead has about so many bytes, of at most ``window`` messages; None: those alone count.
        no_local: nothing that its own connection has sent.
        browse: it takes nothing: what comes is never settled, see `Channel.browse_more`.
        subscription: of a topic, which it consumes; None: it has one of its own, without a name.
        exclusive: while it is there, other consumers of the queue get nothing.
        pulls: nothing is sent ahead: what comes is pulled, or has the room of what is settled.
        bodies: "text" or "bytes", which all are taken for; "auto": as their senders say.
    """

    destination: Destination
    selector: str | None = None
    no_local: bool = False
    window: int | None = None
    max_bytes: int | None = None
    browse: bool = False
    subscription: SubscriptionName | None = None
    exclusive: bool = False
    pulls: bool = False
    bodies: str = "auto"

    @property
    def adapts(self) -> bool:
        """Check whether the dialect chooses the window."""
        return self.window is None or self.max_bytes is not None

    def ahead(self, default: int) -> int:
        """Return the prefetch, at least 1, where the dialect's own is ``default`` messages."""
        window = self.window
        return default if window is None else max(1, window if self.max_bytes is None else min(window, default))


class Link(Generic[C]):
    """One consumer's attachment to a destination, as its ``spec`` asks; it ends with its connection.

    Attributes:
        id: filled in by the transport.
        consumer: the session's, above this room: nothing here reads it. It is there before the link is attached.
        prefetch: None: as the dialect's default; filled in by attach.
        ahead: so many more may come with what is pulled.
        changed: this connection had a consumer of that subscription for another topic, selector or no_local.
        limit: of its queue, as far as attach knows; None: there is none.
    """

    __slots__ = ("ahead", "changed", "consumer", "id", "limit", "prefetch", "spec")
    consumer: C

    def __init__(self, spec: LinkSpec) -> None:
        self.spec = spec
        self.prefetch = None if spec.adapts else spec.window
        self.ahead = 0
        self.changed = False
        self.limit: ReturnLimit | None = None
        self.id = ""

    @property
    def destination(self) -> Destination:
        """The destination that it consumes from."""
        return self.spec.destination


class Delivery(ABC, Generic[C]):
    """One message as the broker handed it to one link: a `redelivery.model.messages.MessageSource`.

    The slots after `link` belong to the session's ledger; a transport only initialises them.
    ``redeliveries`` counts those that the wire's count does not know, ``earlier`` how often this connection has
    delivered the message before; ``state`` is the ledger's, ``cause`` the application's last failure with it.
    ``attempts`` are those that failed: not set before the first does, as most messages have none (`attempted`).
    """

    __slots__ = ("attempts", "cause", "earlier", "link", "redeliveries", "state")
    attempts: Attempts

    def __init__(self, link: Link[C]) -> None:
        self.link = link
        self.redeliveries = 0
        self.earlier = 0
        self.state = 0
        self.cause: BaseException | None = None

    @property
    def subscription_name(self) -> str | None:
        """The name of the subscription that its consumer has; None where it has none."""
        named = self.link.spec.subscription
        return None if named is None else named.name

    @abstractmethod
    def wire_count(self) -> int:
        """1 on what the wire calls a first delivery; a lower bound where it carries only a flag."""

    def charged(self) -> int:
        """Deliveries before this one as the broker counts them, those that nobody saw among them."""
        return self.wire_count() - 1

    def returned(self) -> int:
        """The number of times it went back to a queue that counts this, and has a `Link.limit`; cheap where it is 0."""
        return 0

    def proven(self) -> int:
        """Deliveries before this one that an application had, as far as that is known: what the limit counts."""
        return self.wire_count() - 1

    def attempted(self, failed_at: int | None = None) -> Attempts:
        """The attempts with it that failed, and this one too, at that time, where one is given."""
        attempts: Attempts = getattr(self, "attempts", ())
        if failed_at is None:
            return attempts
        attempts += ((self.wire_count() + self.redeliveries, failed_at),)
        return attempts if len(attempts) <= _ATTEMPTS else (attempts[0], *attempts[2:])

    def failed(self, cause: BaseException | None, at: int) -> None:
        """The application has failed with it once more, at this time; None: it does not say why."""
        self.attempts = self.attempted(at)
        self.redeliveries += 1
        self.earlier += 1
        if cause is not None:
            self.cause = cause

    def identity(self) -> object | None:
        """The key by which the message is known when it is delivered again; None for one without an id that stays."""
        found = self._stable("message_id")
        return (found, self._stable("timestamp")) if found else None

    def fingerprint(self) -> object:
        """The key in place of `identity` where there is none: the same for messages that nothing distinguishes."""
        return None

    def _stable(self, name: str) -> object:
        try:
            return self.header(name)
        except MessageFormatError:
            return None

    def weight(self) -> int:
        """Bytes that it keeps in memory, about."""
        return 0

    @abstractmethod
    def expires_at(self) -> int:
        """Epoch milliseconds, 0 for never; cheap, it is asked of every message."""

    @abstractmethod
    def body(self) -> Body:
        """The body, decoded. Raises MessageFormatError."""

    @abstractmethod
    def properties(self) -> Mapping[str, Value]:
        """The properties, read-only."""

    def noted(self) -> Mapping[str, object]:
        """See `redelivery.model.content.dead_letters.Noting`: what the broker has written on it as no property."""
        return {}

    def sent_to(self) -> Destination:
        """The header ``destination``; where nobody can read it, what it was consumed from."""
        try:
            found = self.header("destination")
        except MessageFormatError:
            found = None
        return found if isinstance(found, Destination) else self.link.destination

    def came_from(self) -> Destination:
        """The queue or topic whose message it is: what it was consumed from, or which one of those that it names."""
        consumed = self.link.destination
        return self.sent_to() if consumed.is_pattern or "," in consumed.name else consumed

    def consumed_from(self) -> Destination:
        """See `redelivery.model.content.dead_letters.Noting`."""
        return self.link.destination

    @abstractmethod
    def header(self, name: str) -> object:
        """One of `redelivery.model.messages.HEADERS`."""


class SessionEvents(Protocol):
    """The notifications of a channel to its session."""

    inbox: deque[Delivery]
    waiter: Waiter

    def on_deliveries(self, deliveries: Sequence[Delivery]) -> None:
        """Deliveries came, in the broker's order. For a consumer: the same as extending `inbox`, waking `waiter`."""

    def on_link_closed(self, link: Link, error: JMSError) -> None:
        """The broker ended one consumer."""
