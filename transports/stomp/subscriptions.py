"""One SUBSCRIBE of one connection: what its messages need to be routed, read and acknowledged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from redelivery.model.errors import JMSError, ProtocolError
from redelivery.transports.base import Link
from redelivery.transports.dialects.dialect import StompDialect

if TYPE_CHECKING:
    from redelivery.transports.base import SessionEvents
    from redelivery.transports.stomp.messages import StompDelivery

PLAIN = b"\n\n\0"  # what ends an ACK outside any transaction


class Subscription:
    """Ids are never used twice in a process, so that no message can be taken for one of another connection."""

    __slots__ = (
        *("ack_key", "ack_start", "dialect", "ended", "events", "half", "held", "identifier", "lazy", "link", "mark"),
        *("aside", "stopping", "unsettled", "usual_ids", "version", "window"),
    )

    def __init__(
        self, link: Link, events: SessionEvents, dialect: StompDialect, version: str, identifier: str = ""
    ) -> None:
        self.identifier = (identifier or link.id).encode()
        self.link = link
        self.events = events
        self.dialect = dialect
        self.version = version
        self.ended: JMSError | None = None  # why its messages cannot be acknowledged any more
        self.aside = False  # its id stands for a place where nothing comes: what came before can be settled
        self.stopping = False  # UNSUBSCRIBE is on its way: what comes now is given back
        # all that came and is not settled, in order, where that has to be known
        self.unsettled: dict[StompDelivery, None] | None = {} if dialect.overflows else None
        self.usual_ids = dialect.message_id_header is None and not dialect.message_id_separator
        self.held: list[StompDelivery] = []  # handed out, and not in the transaction
        window = dialect.default_prefetch if link.prefetch is None else link.prefetch
        self.window = max(1, min(window, 2 * dialect.enlist_at_most))  # beyond this the broker would stop
        self.half = max(1, window // 2)
        self.lazy = 0  # acknowledgements since some of them were written
        self.mark = max(1, min(window // 2, dialect.enlist_at_most))
        if version == "1.1":
            self.ack_key = b"\nmessage-id:"
            self.ack_start = b"ACK\nsubscription:%b\nmessage-id:" % self.identifier
        else:
            self.ack_key = dialect.ack_key
            self.ack_start = b"ACK\nid:"

    def ack(self, delivery: StompDelivery, end: bytes) -> bytes:
        """ACK; the id is taken as the broker wrote it, so that nothing need be unescaped and escaped.

        Raises:
            ConnectionLostError, IllegalStateError: the connection or consumer that brought it is gone: by now the id
                means nothing, or another message.
        """
        if self.ended is not None:
            raise type(self.ended)(f"the message cannot be acknowledged any more: {self.ended}") from self.ended
        head = delivery.head
        at = head.find(self.ack_key)
        if at < 0:
            raise ProtocolError(f"a MESSAGE came without the header {self.ack_key[1:-1].decode()}")
        at += len(self.ack_key)
        return self.ack_start + head[at : head.find(b"\n", at)] + end


def acks(deliveries: Iterable[StompDelivery], end: bytes = PLAIN) -> bytes:
    """One ACK for each; raises as `Subscription.ack`."""
    return b"".join([delivery.subscription.ack(delivery, end) for delivery in deliveries])
