"""Receiving links: from a transfer to a delivery in its session's inbox, and from an outcome to a disposition."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any, Final

import proton
from cproton_ffi import ffi, lib

from redelivery.model.destinations import Queue
from redelivery.model.errors import IllegalStateError, JMSError
from redelivery.transports.amqp.dispositions import ACCEPTED, MODIFIED, REJECTED, RELEASED, enlist, explain, fail
from redelivery.transports.amqp.endpoints import AmqpSession, Endpoint
from redelivery.transports.amqp.messages import AmqpDelivery
from redelivery.transports.amqp.names import capability, to_address
from redelivery.transports.base import Link, Pending, SessionEvents
from redelivery.transports.dialects.dialect import AmqpDialect

_OUTCOMES: Final = ("amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list")
_SELECTOR: Final = 0x0000468C00000004  # of the registry of Apache's filters
_NO_LOCAL: Final = 0x0000468C00000003
_STEP: Final = 100  # deliveries after which credit is given anew, at most
_SMALL: Final = 64 << 10  # bytes up to which one copy is cheaper than a buffer of its own
_names: Final = count(1)


def outcomes() -> Any:
    """What a source may say of itself: the outcomes that we know."""
    return proton.Array(proton.UNDESCRIBED, proton.Data.SYMBOL, *map(proton.symbol, _OUTCOMES))


def link_name(prefix: str) -> str:
    """Never the same twice in a process."""
    return f"{prefix}-{next(_names)}"


class Receiver(Endpoint):
    """One consumer's link.

    Its credit counts what the application has not seen: a delivery that was handed out makes room for another one,
    whether it is acknowledged or not, so that no batch is too large for the window.

    `seen` is written by the session's thread alone and without the lock, everything else by the holder of the lock.
    """

    __slots__ = (
        "arrived",
        "dialect",
        "drained",
        "events",
        "granted",
        "lazy",
        "link",
        "mark",
        "name",
        "seen",
        "session",
        "step",
        "stopped",
        "unsettled",
        "wanted",
        "window",
    )

    def __init__(self, session: AmqpSession, link: Link, events: SessionEvents, dialect: AmqpDialect) -> None:
        connection = session.connection
        self.name = link_name("receiver")
        super().__init__(connection, session.handle.receiver(self.name), f"the consumer of {link.destination}")
        self.session = session
        self.link = link
        self.events = events
        self.dialect = dialect
        window = max(1, dialect.default_prefetch if link.prefetch is None else link.prefetch)
        self.window = min(window, dialect.most_credit) if dialect.most_credit else window
        self.step = max(1, min(_STEP, self.window // 2))
        self.arrived = 0  # deliveries that came
        self.seen = 0  # of those, handed out
        self.granted = 0  # deliveries that may come, and those that came
        self.mark = self.step  # of `seen`: then there is credit to give
        self.lazy = 0  # acknowledgements since some of them were written
        self.unsettled: dict[AmqpDelivery, None] = {}  # in the peer's order
        self.drained: Pending | None = None
        self.wanted = True  # more is wanted; not while the link is being closed
        self.stopped = False  # detached; what came is given back by the end of the session
        self._describe()
        session.links.add(self)

    def _describe(self) -> None:
        link, source = self.link, self.handle.source
        source.address = to_address(link.destination, self.dialect)
        if self.dialect.durable_nodes and isinstance(link.destination, Queue):
            source.durability = proton.Terminus.CONFIGURATION
        named = capability(link.destination, self.dialect)
        if named is not None:
            source.capabilities.put_object(proton.symbol(named))
        filters = {}
        if link.selector is not None:
            filters[proton.symbol("jms-selector")] = proton.Described(proton.ulong(_SELECTOR), link.selector)
        if link.no_local:
            filters[proton.symbol("no-local")] = proton.Described(proton.ulong(_NO_LOCAL), [])
        if filters:
            source.filter.put_dict(filters)
        source.outcomes.put_object(outcomes())
        self.handle.snd_settle_mode = proton.Link.SND_UNSETTLED
        self.handle.rcv_settle_mode = proton.Link.RCV_FIRST

    def on_opened(self) -> None:
        """See `Endpoint.on_opened`: the first credit."""
        super().on_opened()
        self.give_credit()

    def on_end(self, error: JMSError, ours: bool) -> None:
        """See `Endpoint.on_end`: the deliveries are the peer's."""
        drained, self.drained = self.drained, None
        if drained is not None:
            self.connection.tidings.answer(drained, error)
        if not ours:
            self.give_back(list(self.unsettled))  # freed, proton would settle them without an outcome
            self.session.links.discard(self)
            if self.opened:
                self.connection.tidings.links.append((self.events, self.link, error))
        self.unsettled.clear()

    def stop(self, pending: Pending) -> None:
        """Detach it, and leave what came to the end of its session, which gives it back at once and in order."""
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
            self.give_credit()
            return
        size = lib.pn_delivery_pending(handle)
        connection = self.connection
        raw: bytes | bytearray
        if size <= _SMALL:
            lib.pn_link_recv(self.raw, connection.space, size)
            raw = connection.view[:size].tobytes()
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
        events = self.events
        events.inbox.append(delivery)
        awake = connection.tidings.awake
        if not awake or awake[-1] is not events:
            awake.append(events)

        if self.drained is not None:
            self.on_flow()  # it may have been the last one, which no flow follows

    def hand_out(self, delivery: AmqpDelivery) -> None:
        """It will not come to the application's hands (any more), and so makes room for another one."""
        if not delivery.credited:
            delivery.credited = True
            self.seen += 1
            if self.seen >= self.mark:
                self.give_credit()

    def give_credit(self) -> None:
        """As much as the window allows: for what was handed out since the last time, or will never be whole."""
        if self.ended is None and self.drained is None and self.wanted:
            limit = self.window + self.seen
            self.mark = limit - self.window + self.step
            lib.pn_link_flow(self.raw, limit - self.granted)
            self.granted = limit

    def withdraw(self) -> None:
        """Take the credit back: nothing more shall come, least of all what is given back."""
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
        self.connection.tidings.answer(drained)
        lib.pn_link_drained(self.raw)
        lib.pn_link_set_drain(self.raw, False)
        self.granted = self.arrived + lib.pn_link_credit(self.raw)  # the rest of the credit is void
        self.give_credit()

    def settle(self, delivery: AmqpDelivery, outcome: int) -> None:
        """Tell the outcome, and be done with it.

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
            raise IllegalStateError("the message is acknowledged already, or the broker's again")

    def take(self, delivery: AmqpDelivery) -> None:
        """It is settled now. Raises as `settle`."""
        try:
            del self.unsettled[delivery]
        except KeyError:
            self.check(delivery)

    def give_back(self, deliveries: Iterable[AmqpDelivery]) -> None:
        """Those that the application has seen are redelivered as failed, the others as if nothing had been."""
        for delivery in deliveries:
            if delivery.credited:
                self.settle_failed(delivery)
            else:
                self.settle(delivery, RELEASED)
