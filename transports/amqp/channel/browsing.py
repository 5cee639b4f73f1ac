"""Browsing: a link that is sent copies of what a queue holds, and is drained to find the end.

1. It is given credit only together with the wish to drain it. The answer to such a question is a window full of
   messages, or fewer and a flow that voids the rest of the credit.
2. An answer that is not full does not prove the end, since it may be a stale one.
3. On ActiveMQ a question that comes while the queue is still being read may leave its answer behind what was read so
   far; of these a question meets as many as its window has room for, and one. So the end is where empty answers follow
   each other, and more of them than can be left of earlier questions.
4. On Artemis a question may be answered by the end of the one before it, which messages alone had answered, and so on;
   or it is missed, and asked again after a while (`AmqpDialect.drain_overlaps`). All work for a queue is
   done there in order: so the end is an empty answer after another link was shown something of the queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import count
from typing import Any

import proton
from cproton_ffi import lib

from redelivery.model.errors import JMSError
from redelivery.transports.amqp.channel.context import AmqpChannelContext
from redelivery.transports.amqp.channel.detaching import Drain
from redelivery.transports.amqp.links.receivers import Receiver
from redelivery.transports.amqp.links.sessions import AmqpSession
from redelivery.transports.dialects.amqp import AmqpDialect
from redelivery.transports.seam import Delivery, Flow, Link, LinkSpec, Pending, SessionEvents, Waiter


class BrowsingReceiver(Receiver):
    """One browser's link. What comes is settled already, and needs no outcome."""

    __slots__ = ("exhausted", "questions")

    def __init__(
        self,
        session: AmqpSession,
        link: Link,
        events: SessionEvents,
        dialect: AmqpDialect,
        address: str | None = None,
    ) -> None:
        super().__init__(session, link, events, dialect, address)
        self.wanted = False  # no credit but by `ask`
        self.questions = 0
        self.exhausted = False  # at the last question there was less than a window full
        self.handle.source.distribution_mode = proton.Terminus.DIST_MODE_COPY
        self.handle.snd_settle_mode = proton.Link.SND_SETTLED

    def on_delivery(self, handle: Any) -> None:
        """See `Receiver.on_delivery`."""
        super().on_delivery(handle)
        if self.unsettled:
            self.unsettled.clear()
            lib.pn_delivery_settle(handle)

    def on_flow(self) -> None:
        """See `Endpoint.on_flow`."""
        if self.drained is not None and not lib.pn_link_draining(self.raw):
            self.exhausted = self.arrived + lib.pn_link_queued(self.raw) < self.granted
        super().on_flow()

    def drain(self, pending: Pending) -> None:
        """See `Receiver.drain`; a question as well."""
        self.questions += 1
        super().drain(pending)

    def ask(self, pending: Pending) -> None:
        """For a window full of messages; the pending is that all there is of it has come."""
        self.questions += 1
        self.drained = pending
        self.granted = self.arrived + lib.pn_link_queued(self.raw) + self.ahead.size  # one may be on its way, in parts
        lib.pn_link_drain(self.raw, self.ahead.size)


def browse_more(context: AmqpChannelContext, receiver: BrowsingReceiver) -> Flow[bool]:
    """See `Channel.browse_more`."""
    stale = 0
    for empty in count():  # answers in a row
        fresh = receiver.exhausted and context.dialect.drain_overlaps
        if fresh:
            yield from _pass_by(context, receiver)
        before = receiver.arrived
        yield from _ask(context, receiver)
        if receiver.arrived > before or not receiver.exhausted:
            return True
        if fresh:
            return False
        if not empty:
            stale = receiver.questions  # at most
        elif empty * (receiver.ahead.size + 1) > stale + 1 and not context.dialect.drain_overlaps:
            return False
    raise AssertionError("it counts for ever")


def _pass_by(context: AmqpChannelContext, receiver: BrowsingReceiver) -> Flow[None]:
    """Browse the head of the queue by a further link: when that is shown, every earlier question is done with."""
    head = Link(LinkSpec(receiver.link.destination, window=1, browse=True))
    opened, closed = context.ask(), context.ask()
    with context.writing():
        other = BrowsingReceiver(
            context.session(consumers=True), head, NullEvents(context.events.waiter), context.dialect
        )
        other.open(opened)
    try:
        yield from context.answer(opened)
        yield from _ask(context, other)
    finally:
        with context.writing():
            other.close(closed)
    yield from context.answer(closed)


def _ask(context: AmqpChannelContext, receiver: BrowsingReceiver) -> Flow[None]:
    asked = Drain(context, receiver)
    with context.writing():
        if receiver.ended is None:
            receiver.ask(asked)
    if receiver.ended is None:
        yield from context.answer(asked)
    if receiver.ended is not None:
        raise type(receiver.ended)(str(receiver.ended)) from receiver.ended


class NullEvents:
    """The events of a link whose messages nobody reads: `redelivery.transports.seam.SessionEvents`."""

    def __init__(self, waiter: Waiter) -> None:
        self.inbox: deque[Delivery] = deque()
        self.waiter = waiter

    def on_deliveries(self, deliveries: Sequence[Delivery]) -> None:
        """See SessionEvents."""

    def on_link_closed(self, link: Link, error: JMSError) -> None:
        """See SessionEvents."""
