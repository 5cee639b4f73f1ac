"""One SUBSCRIBE of one connection, and its deliveries: what they need to be routed, read and acknowledged."""

from __future__ import annotations

from collections.abc import Iterable
from sys import maxsize
from typing import Protocol

from redelivery.model.destinations import Topic
from redelivery.model.errors import JMSError, ProtocolError
from redelivery.transports.dialects.dialect import StompDialect
from redelivery.transports.seam import Delivery, Link, SessionEvents
from redelivery.transports.stomp.codec.formats import StompFormat
from redelivery.transports.stomp.codec.frames import raw_value
from redelivery.transports.stomp.codec.messages import StompFields

PLAIN = b"\n\n\0"  # what ends an ACK outside any transaction


class StompDelivery(StompFields, Delivery):
    """One MESSAGE. ``subscription`` ties it to one connection: it can be acknowledged there and nowhere else."""

    __slots__ = ("format", "head", "payload", "subscription")

    def __init__(self, head: bytes, payload: bytes, subscription: StompSubscription) -> None:
        # Not by super(): this is the only thing that is made for every message.
        self.head = head
        self.payload = payload
        self.subscription = subscription
        self.format = subscription.format
        self.link = subscription.link
        self.redeliveries = self.earlier = self.state = 0
        self.cause = None

    def identity(self) -> object | None:
        """See `Delivery.identity`: as it is written."""
        key, head = self.format.stable_key, self.head
        found = raw_value(head, key) if key else self.raw_id()
        return (found, raw_value(head, b"\ntimestamp:")) if found else None

    def fingerprint(self) -> object:
        """See `Delivery.fingerprint`."""
        return hash(self.payload), len(self.payload)

    def returned(self) -> int:
        """See `Delivery.returned`."""
        return self.counted()

    def weight(self) -> int:
        """See `Delivery.weight`."""
        return len(self.payload)

    def mark_redelivered(self) -> None:
        """Add the header that the broker should have sent: see `redelivered_ids`."""
        self.head = b"MESSAGE\nredelivered:true" + self.head.removeprefix(b"MESSAGE")


class MarksRedelivered(Protocol):
    """Flags what was delivered before, where the broker does not say."""

    def mark(self, deliveries: Iterable[StompDelivery]) -> None:
        """Flag arriving deliveries where that is needed."""


class StompSubscription:
    """Ids are never used twice in a process, so that no message can be taken for one of another connection."""

    __slots__ = (
        "ack_key",
        "ack_start",
        "ack_threshold",
        "automatic",
        "batch_limit",
        "batched",
        "dialect",
        "ended",
        "events",
        "format",
        "held",
        "identifier",
        "link",
        "most_loose",
        "redelivered",
        "stopping",
        "superseded",
        "unsettled",
    )

    def __init__(
        self, link: Link, events: SessionEvents, dialect: StompDialect, version: str, identifier: str = ""
    ) -> None:
        self.identifier = (identifier or link.id).encode()
        self.link = link
        self.events = events
        self.dialect = dialect
        self.format = StompFormat(dialect, version, link.destination, link.spec.bodies)
        unasked = dialect.acks_browsers_itself if link.spec.browse else dialect.acks_topics_itself
        self.automatic = unasked and (link.spec.browse or isinstance(link.destination, Topic))  # no ACK is sent
        self.ended: JMSError | None = None  # why its messages cannot be acknowledged any more
        self.superseded = False  # its id stands for a place where nothing comes: what came before can be settled
        self.stopping = False  # UNSUBSCRIBE is on its way: what comes now is released
        # all that came and is not settled, in order, where that has to be known
        self.unsettled: dict[StompDelivery, None] | None = {} if dialect.needs_extra_subscription else None
        self.redelivered: MarksRedelivered | None = None  # where the broker does not say it
        self.held: list[StompDelivery] = []  # dispatched, and not in the transaction
        window = dialect.default_prefetch if link.prefetch is None else link.prefetch
        self.batch_limit = max(1, window // 2)
        self.batched = 0  # acknowledgements since some of them were written
        enlisted = max(1, min(window // 2, dialect.enlist_at_most))
        self.ack_threshold = maxsize if link.spec.pulls else enlisted  # where it pulls, only a commit makes room
        self.most_loose = enlisted // 2  # that wait for a redelivery and are not parked
        if version == "1.1":
            self.ack_key = b"\nmessage-id:"
            self.ack_start = b"ACK\nsubscription:%b\nmessage-id:" % self.identifier
        else:
            self.ack_key = dialect.ack_key
            self.ack_start = b"ACK\nid:"

    def ack(self, delivery: StompDelivery, end: bytes) -> bytes:
        """ACK, or nothing; the id is taken as the broker wrote it, so that nothing need be unescaped and escaped.

        Raises:
            ConnectionLostError, IllegalStateError: the connection or consumer that brought it is gone: by now the id
                means nothing, or another message.
        """
        if self.ended is not None:
            raise type(self.ended)(f"the message cannot be acknowledged any more: {self.ended}") from self.ended
        if self.automatic:
            return b""
        _, key, rest = delivery.head.partition(self.ack_key)
        if not key:
            raise ProtocolError(f"a MESSAGE came without the header {self.ack_key[1:-1].decode()}")
        return self.ack_start + rest.partition(b"\n")[0] + end


def acks(deliveries: Iterable[StompDelivery], end: bytes = PLAIN) -> bytes:
    """One ACK for each; raises as `StompSubscription.ack`."""
    return b"".join([delivery.subscription.ack(delivery, end) for delivery in deliveries])
