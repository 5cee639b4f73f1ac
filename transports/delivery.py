"""Deliveries, and the links that they come on: pure values that travel up through the seam, for the ledger."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from redelivery.model.destinations import Destination, SubscriptionName
from redelivery.model.errors import JMSError, MessageFormatError
from redelivery.model.values import Body, Value
from redelivery.transports.flows import Waiter


@dataclass(frozen=True, slots=True)
class ReturnLimit:
    """The broker's limit for a message that goes back to its queue too often, and what it does then.

    ``most``: how often it may, so that there is one delivery more. ``then``: what the broker does after that, for a
    sentence. ``unsure``: what of it is supposed; empty: nothing.
    """

    most: int
    then: str
    unsure: str = ""


class Link:
    """One consumer's attachment to a destination. The transport fills `id`; the session owns `consumer`."""

    __slots__ = (
        *(
            "ahead",
            "bodies",
            "browse",
            "changed",
            "consumer",
            "destination",
            "exclusive",
            "id",
            "limit",
            "no_local",
            "prefetch",
            "pulls",
            "selector",
            "subscription",
        ),
        "window",
    )

    def __init__(
        self,
        destination: Destination,
        *,
        prefetch: int | None = None,
        selector: str | None = None,
        no_local: bool = False,
        browse: bool = False,
        subscription: SubscriptionName | None = None,
        exclusive: bool = False,
        bodies: str = "auto",
        pulls: bool = False,
    ) -> None:
        self.destination = destination
        self.window = prefetch  # as it was wished
        self.prefetch = prefetch  # None: the dialect's default, filled in by attach
        self.selector = selector
        self.no_local = no_local
        self.browse = browse  # it takes nothing: what comes is never settled, see `Channel.browse_more`
        self.subscription = subscription  # of a topic, which it consumes; None: it has one of its own, without a name
        self.pulls = pulls  # nothing is sent ahead: what comes is pulled, or has the room of what is settled
        self.ahead = 0  # with what is pulled so many more may come
        self.bodies = bodies  # "text" or "bytes", which all are taken for; "auto": as their senders say
        self.exclusive = exclusive  # while it is there, other consumers of the queue get nothing
        self.changed = False  # this connection had a consumer of that name for another topic, selector or no_local
        self.limit: ReturnLimit | None = None  # of its queue, as far as attach knows; None: there is none
        self.id = ""
        self.consumer: Any = None  # a type of the session's, above this room: nothing here reads it

    def again(self) -> Link:
        """Another one of the same wishes, for another connection."""
        return Link(
            self.destination,
            prefetch=self.window,
            selector=self.selector,
            no_local=self.no_local,
            subscription=self.subscription,
            exclusive=self.exclusive,
            bodies=self.bodies,
            pulls=self.pulls,
        )


class Delivery(ABC):
    """One message as the broker handed it to one link: a `redelivery.model.messages.MessageSource`.

    The slots after `link` belong to the session's ledger; a transport only initialises them.
    ``redeliveries`` counts those that the wire's count does not know, ``earlier`` how often this connection has
    delivered the message before; ``state`` is the ledger's, ``cause`` the application's last failure with it.
    """

    __slots__ = ("cause", "earlier", "link", "redeliveries", "state")

    def __init__(self, link: Link) -> None:
        self.link = link
        self.redeliveries = 0
        self.earlier = 0
        self.state = 0
        self.cause: BaseException | None = None

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

    def failed(self, cause: BaseException | None) -> None:
        """The application has failed with it once more; None: it does not say why."""
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
        """See `redelivery.model.parts.dead_letters.Noting`: what the broker has written on it as no property."""
        return {}

    def sent_to(self) -> Destination:
        """The header ``destination``; where nobody can read it, what it was consumed from."""
        try:
            found = self.header("destination")
        except MessageFormatError:
            found = None
        return found if isinstance(found, Destination) else self.link.destination

    def consumed_from(self) -> Destination:
        """See `redelivery.model.parts.dead_letters.Noting`."""
        return self.link.destination

    @abstractmethod
    def header(self, name: str) -> object:
        """One of `redelivery.model.messages.HEADERS`."""


class SessionEvents(Protocol):
    """Of what a channel notifies its session."""

    inbox: deque[Delivery]
    waiter: Waiter

    def on_deliveries(self, deliveries: Sequence[Delivery]) -> None:
        """Deliveries came, in the broker's order. For a consumer: the same as extending `inbox`, waking `waiter`."""

    def on_link_closed(self, link: Link, error: JMSError) -> None:
        """The broker ended one consumer."""
