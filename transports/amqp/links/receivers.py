"""Receiving links: from a transfer to a delivery in its session's inbox, and from an outcome to a disposition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from sys import maxsize
from typing import Any, Final

import proton
from cproton_ffi import ffi, lib

from redelivery.model.errors import IllegalStateError, JMSError, MessageFormatError
from redelivery.transports.amqp.codec.messages import AmqpFields, AmqpFormat
from redelivery.transports.amqp.links.delivery_log import DELIVERY_LOG
from redelivery.transports.amqp.links.dispositions import ACCEPTED, MODIFIED, REJECTED, RELEASED, enlist, explain, fail
from redelivery.transports.amqp.links.endpoints import Endpoint
from redelivery.transports.amqp.links.sessions import AmqpSession
from redelivery.transports.amqp.links.subscriptions import subscription_name
from redelivery.transports.amqp.links.terminus import describe_source, link_name
from redelivery.transports.amqp.links.windows import CreditWindow
from redelivery.transports.dialects.amqp import AmqpDialect
from redelivery.transports.finding import return_limit, warn_of_stream
from redelivery.transports.seam import Delivery, Link, Pending, SessionEvents

_FRONT: Final = 16 << 10  # bytes in which the annotations are
_SMALL: Final = 64 << 10  # bytes up to which one copy is cheaper than a buffer of its own


class AmqpDelivery(AmqpFields, Delivery):
    """One message of one receiver.

    ``handle`` is the engine's own for it; ``credited``: its credit was given again; ``back``: how often it
    had gone back before, once it has gone back to the broker itself.
    """

    __slots__ = ("_expires", "_fields", "_found", "back", "credited", "format", "handle", "raw", "receiver")

    def __init__(self, raw: bytes | bytearray, receiver: Receiver, handle: Any) -> None:
        # Not by super(): this is the only thing that is made for every message.
        self.raw = raw
        self.receiver = receiver
        self.format = receiver.format
        self.handle = handle
        self.credited = False
        self.back: int | None = None
        self._found = None
        self._fields = None
        self._expires = -1
        self.link = receiver.link
        self.redeliveries = self.earlier = self.state = 0
        self.cause = None

    def charged(self) -> int:
        """See `Delivery.charged`."""
        return max(self._header()[4] or 0, self.wire_count() - 1)

    def fingerprint(self) -> object:
        """See `Delivery.fingerprint`: by what no broker changes."""
        return hash(bytes(self.raw[self.bare_at() :]))

    def returned(self) -> int:
        """See `Delivery.returned`."""
        named = self.receiver.dialect.count_annotation
        return self._annotated(named) if named and self.raw.find(named.encode(), 0, _FRONT) >= 0 else 0

    def weight(self) -> int:
        """See `Delivery.weight`."""
        return len(self.raw)

    def proven(self) -> int:
        """See `Delivery.proven`."""
        if not self.receiver.dialect.session_end_counts:
            return self.wire_count() - 1
        if not self._header()[4]:
            return 0
        return DELIVERY_LOG.count(self.receiver.table.broker, self._id()) if self.back is None else self.back

    def went_back(self) -> None:
        """The application had it, and it goes back to the broker."""
        message_id = self._id()
        if message_id is not None:
            self.back = self.proven()
            DELIVERY_LOG.note(self.receiver.table.broker, message_id)

    def _id(self) -> str | None:
        try:
            message_id: str | None = self.header("message_id")
        except MessageFormatError:
            return None
        return message_id


class Receiver(Endpoint):
    """One consumer's link.

    Its credit counts what the application has not seen: a delivery that was dispatched makes room for another one,
    whether it is acknowledged or not, so that no batch is too large for the window.

    `seen` is written by the session's thread alone and without the lock, everything else by the holder of the lock.
    """

    __slots__ = (
        *("ack_threshold", "ahead", "arrived", "batched", "dialect", "drained", "events", "format", "granted", "keeps"),
        *("link", "name", "seen", "session", "stopped", "unsettled", "wanted"),
    )

    def __init__(
        self,
        session: AmqpSession,
        link: Link,
        events: SessionEvents,
        dialect: AmqpDialect,
        address: str | None = None,
    ) -> None:
        named, table = link.spec.subscription, session.table
        if named is None:
            self.name = link_name("receiver")
        else:
            taken = {each.name for each in table.endpoints.values() if isinstance(each, Receiver)}
            self.name = subscription_name(named, taken, client_id=table.client_id)
        self.keeps = named is not None and named.durable
        super().__init__(session.table, session.handle.receiver(self.name), f"the consumer of {link.destination}")
        self.session = session
        self.link = link
        self.events = events
        self.dialect = dialect
        self.format = AmqpFormat(dialect, link.destination)
        self.arrived = 0  # deliveries that came
        self.seen = 0  # of those, dispatched
        self.granted = 0  # deliveries that may come, and those that came
        self._begin_with(dialect.default_prefetch)
        self.batched = 0  # acknowledgements since some of them were written
        self.unsettled: dict[AmqpDelivery, None] = {}  # in the peer's order
        self.drained: Pending | None = None
        self.wanted = True  # more is wanted; not while the link is being closed
        self.stopped = False  # detached; what came is released by the end of the session
        describe_source(self.handle.source, link, dialect, client_id=table.client_id)
        if address is not None:
            self.handle.source.address = address
        self.handle.snd_settle_mode = proton.Link.SND_UNSETTLED
        self.handle.rcv_settle_mode = proton.Link.RCV_FIRST
        session.links.add(self)

    def _begin_with(self, default: int) -> None:
        spec = self.link.spec
        self.ahead = CreditWindow(spec, self.dialect, default)
        self.ack_threshold = maxsize if spec.pulls else self.ahead.step  # of `seen`: then there is credit to give

    def heed(self, queue: Mapping[str, Any]) -> None:
        """Take in what the broker has said of its queue, before the link is opened."""
        names, link = self.dialect.limits, self.link
        if self.dialect.stream and queue.get("type") == self.dialect.stream:
            warn_of_stream(link.destination)
        if names is None or queue.get("type") != names.kind:
            return
        link.limit = return_limit(names, queue.get("arguments") or {})
        if link.spec.adapts and self.dialect.counted_prefetch:
            self._begin_with(self.dialect.counted_prefetch)
            link.prefetch = self.ahead.size

    def on_opened(self) -> None:
        """See `Endpoint.on_opened`: the first credit."""
        super().on_opened()
        self.give_credit()

    @property
    def awaits(self) -> bool:
        """See `Endpoint.awaits`."""
        return self.drained is not None or super().awaits

    def on_end(self, error: JMSError, ours: bool) -> None:
        """See `Endpoint.on_end`: the deliveries are the peer's."""
        drained, self.drained = self.drained, None
        if drained is not None:
            self.table.notifications.answer(drained, error)
        if not ours:
            self.release(list(self.unsettled))  # freed, proton would settle them without an outcome
            self.session.links.discard(self)
            if self.opened and self.wanted:  # otherwise we were about to end it ourselves
                self.table.notifications.links.append((self.events, self.link, error))
        elif self.dialect.session_end_counts:
            for delivery in self.unsettled:
                if delivery.credited:
                    delivery.went_back()
        self.unsettled.clear()

    def say_end(self) -> None:
        """See `Endpoint.say_end`: a durable subscription stays at the broker."""
        if self.keeps:
            self.handle.detach()
        else:
            super().say_end()

    def stop(self, pending: Pending) -> None:
        """Detach it, and leave what came to the end of its session, which releases it at once and in order."""
        self.stopped = True
        self.close(pending)

    def forget(self) -> None:
        """See `Endpoint.forget`."""
        self.session.links.discard(self)
        super().forget()

    def on_delivery(self, handle: Any) -> None:
        """A transfer, or a part of one; or the peer has changed its mind about a delivery."""
        if not lib.pn_delivery_readable(handle) or lib.pn_delivery_partial(handle):
            return
        if lib.pn_delivery_aborted(handle):
            lib.pn_delivery_settle(handle)
            self.granted -= 1
            (self.pull if self.link.spec.pulls else self.give_credit)()
            return
        size = lib.pn_delivery_pending(handle)
        table = self.table
        raw: bytes | bytearray
        if size <= _SMALL:
            lib.pn_link_recv(self.raw, table.space, size)
            raw = table.view[:size].tobytes()
        else:
            raw = bytearray(size)
            lib.pn_link_recv(self.raw, ffi.from_buffer(raw), size)
        lib.pn_link_advance(self.raw)
        if self.ended is not None:  # closed meanwhile
            if not self.stopped:
                lib.pn_delivery_update(handle, RELEASED)
                lib.pn_delivery_settle(handle)
            return
        delivery = AmqpDelivery(raw, self, handle)
        self.unsettled[delivery] = None
        self.arrived += 1
        self.ahead.number += 1
        self.ahead.bytes += size
        events = self.events
        events.inbox.append(delivery)
        awake = table.notifications.awake
        if not awake or awake[-1] is not events:
            awake.append(events)

        if self.drained is not None:
            self.on_flow()  # it may have been the last one, which no flow follows

    def make_room(self, delivery: AmqpDelivery) -> None:
        """Make room for another delivery: this one will not come to the application's hands (any more)."""
        if not delivery.credited:
            delivery.credited = True
            self.seen += 1
            if self.seen >= self.ack_threshold:
                self.give_credit()

    def give_credit(self) -> None:
        """Give the credit that the window allows: for what was dispatched since the last time, or is never whole."""
        if self.ended is None and self.drained is None and self.wanted and not self.link.spec.pulls:
            self.ahead.grow()
            limit = max(self.granted, self.ahead.size + self.seen)
            self.ack_threshold = self.seen + self.ahead.step
            lib.pn_link_flow(self.raw, limit - self.granted)
            self.granted = limit

    @property
    def spent(self) -> bool:
        """Check, for a link that pulls, that what was asked for is dispatched, or most of it where more may come."""
        return self.granted <= self.seen + self.link.ahead // 2

    def pull(self) -> None:
        """See `Channel.pull`: credit for one, and for what may come with it."""
        if self.ended is None and self.drained is None and self.wanted and self.spent:
            limit = self.seen + 1 + self.link.ahead
            lib.pn_link_flow(self.raw, limit - self.granted)
            self.granted = limit

    def withdraw(self) -> None:
        """Take the credit back: nothing more shall come, least of all what is released."""
        if self.ended is None:
            lib.pn_link_flow(self.raw, -lib.pn_link_credit(self.raw))

    def drain(self, pending: Pending) -> None:
        """Ask for what there is; the pending is that it has come."""
        self.drained = pending
        lib.pn_link_drain(self.raw, 0)
        self.on_flow()

    def on_flow(self) -> None:
        """See `Endpoint.on_flow`: of a link that is drained, that may be the end of it."""
        drained = self.drained
        if drained is None or lib.pn_link_draining(self.raw):
            return
        self.drained = None
        self.table.notifications.answer(drained)
        lib.pn_link_drained(self.raw)
        lib.pn_link_set_drain(self.raw, False)
        self.granted = self.arrived + lib.pn_link_credit(self.raw)  # the rest of the credit is void
        self.give_credit()

    def settle(self, delivery: AmqpDelivery, outcome: int) -> None:
        """Write the outcome, and be done with it.

        Raises:
            IllegalStateError, ConnectionLostError: the link is gone; by now the delivery is another one's.
        """
        self.take(delivery)
        lib.pn_delivery_update(delivery.handle, outcome)
        lib.pn_delivery_settle(delivery.handle)

    def settle_failed(self, delivery: AmqpDelivery) -> None:
        """The application had it, and did not acknowledge it: it is redelivered with its count raised."""
        if self.dialect.modified:
            fail(delivery.handle)
            self.settle(delivery, MODIFIED)
        else:
            self.settle(delivery, RELEASED)

    def reject(self, delivery: AmqpDelivery, cause: str) -> None:
        """Poison, with its cause."""
        self.check(delivery)
        explain(delivery.handle, "redelivery:poison", cause)
        self.settle(delivery, REJECTED)

    def enlist(self, delivery: AmqpDelivery, transaction: bytes) -> None:
        """Accepted in a transaction, and not settled yet. Raises as `settle`."""
        self.check(delivery)
        enlist(delivery.handle, transaction, ACCEPTED)

    def settle_enlisted(self, delivery: AmqpDelivery, transaction: bytes) -> None:
        """Accepted in a transaction: the transaction's from now on. Raises as `settle`."""
        self.take(delivery)
        enlist(delivery.handle, transaction, ACCEPTED)
        lib.pn_delivery_settle(delivery.handle)

    def check(self, delivery: AmqpDelivery) -> None:
        """Raise as `settle`."""
        if self.ended is not None:
            raise type(self.ended)(f"the message cannot be acknowledged any more: {self.ended}") from self.ended
        if delivery not in self.unsettled:
            raise IllegalStateError("the message is acknowledged already, or has gone back to the broker")

    def take(self, delivery: AmqpDelivery) -> None:
        """Take a delivery out of the unsettled ones. Raises as `settle`."""
        try:
            del self.unsettled[delivery]
        except KeyError:
            self.check(delivery)

    def release(self, deliveries: Iterable[AmqpDelivery]) -> None:
        """Release deliveries: those that the application has seen as failed, the others as if nothing had been."""
        for delivery in deliveries:
            if delivery.credited:
                self.settle_failed(delivery)
            else:
                self.settle(delivery, RELEASED)
