"""Browsing: a subscription that shows what a queue holds, until the broker says that this was all.

The end is a MESSAGE that is none: it has the header ``browser:end`` and the id 0. The header alone proves nothing, for
a producer can send it; the id is the broker's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import cast

from redelivery.model.errors import JMSError, UnsupportedError
from redelivery.transports.dialects.dialect import StompDialect
from redelivery.transports.seam import Delivery, Flow, Link, Pending, SessionEvents
from redelivery.transports.stomp.codec.frames import raw_value
from redelivery.transports.stomp.connection.subscriptions import StompDelivery, acks
from redelivery.transports.wire.outbox import Outbox


class BrowseSubscription:
    """Between the router, on the thread that reads, and the session that browses: a browsing subscription's events."""

    def __init__(self, events: SessionEvents) -> None:
        self.inbox = events.inbox
        self.waiter = events.waiter
        self.shown: deque[StompDelivery] = deque()  # and not acknowledged, which the broker waits for to show more
        self.ended = False
        self.failed: JMSError | None = None  # why the broker has ended it
        self.asked: Pending | None = None  # whether there is more
        self._events = events

    def on_deliveries(self, deliveries: Sequence[Delivery]) -> None:
        """On to the session; the mark of the end is kept here."""
        for each in cast(Iterable[StompDelivery], deliveries):
            if _is_end(each.head):
                self.ended = True
            else:
                self.shown.append(each)
                self.inbox.append(each)
        asked, self.asked = self.asked, None
        if asked is not None:
            asked.complete()
        self.waiter.wake()

    def on_link_closed(self, link: Link, error: JMSError) -> None:
        """See SessionEvents: `browse_more` raises it."""
        self.failed = error
        asked, self.asked = self.asked, None
        if asked is not None:
            asked.fail(error)
        self._events.on_link_closed(link, error)

    def browse_more(self, outbox: Outbox) -> Flow[bool]:
        """See `Channel.browse_more`. The ACKs take nothing away: they let the broker show more."""
        self.asked = pending = Pending(self.waiter)  # first: what comes now is seen below, or completes it
        seen = [self.shown.popleft() for _ in range(len(self.shown))]
        if seen and not self.ended:
            outbox.write(acks(seen))
        if not self.ended and not self.inbox and self.failed is None:
            yield pending
        if self.failed is not None and not self.inbox:
            raise self.failed
        return not self.ended


def browse_headers(dialect: StompDialect) -> dict[str, str]:
    """The further headers of a browser's SUBSCRIBE. Raises UnsupportedError."""
    if not dialect.capabilities.browse:
        raise UnsupportedError("this broker has no browsing over STOMP: it would consume what it shows")
    return {"browser": "true"} | ({"ack": "auto"} if dialect.acks_browsers_itself else {})


def _is_end(head: bytes) -> bool:
    return b"\nbrowser:end\n" in head and raw_value(head, b"\nmessage-id:") == b"0"
