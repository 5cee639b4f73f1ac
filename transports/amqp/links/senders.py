"""Sending links, and the coordinator, which is one."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from functools import partial
from itertools import count
from typing import Any, Final, TypeAlias

import proton
from cproton_ffi import ffi, lib

from redelivery.model.destinations import Destination
from redelivery.model.errors import (
    ConnectionLostError,
    InvalidDestinationError,
    JMSError,
    ProtocolError,
    RequestTimeoutError,
    ResourceAllocationError,
)
from redelivery.transports.amqp.codec.errors import broker_error
from redelivery.transports.amqp.links.dispositions import (
    ACCEPTED,
    DECLARED,
    REJECTED,
    RELEASED,
    TRANSACTIONAL,
    Condition,
    declared_id,
    enlist,
    outcome_in_transaction,
    refusal,
    said_outcome,
)
from redelivery.transports.amqp.links.endpoints import Endpoint
from redelivery.transports.amqp.links.sessions import AmqpSession
from redelivery.transports.amqp.links.terminus import describe, link_name, outcomes
from redelivery.transports.dialects.amqp import AmqpDialect
from redelivery.transports.flows import NotSent
from redelivery.transports.seam import Pending, SessionEvents
from redelivery.transports.wire.clock import monotonic

Parts: TypeAlias = tuple[bytes, ...]  # of a message, to be sent one behind the other
Queued: TypeAlias = tuple[Parts, bytes | None, Pending, float]  # with its transaction, and since when it waits

_DECLARE: Final = b"\x00\x53\x77\x00\x53\x31\xc0\x02\x01\x40"  # amqp-value: declare, a list of a null
_ALARM: Final = (
    "the broker takes nothing in this session now, as when it has raised an alarm (memory, disk); it leaves when the "
    "broker goes on"
)
_DELETE_ON_CLOSE: Final = 0x2B
_LOCAL_TRANSACTIONS: Final = proton.symbol("amqp:local-transactions")


class Sender(Endpoint):
    """A link that messages leave by; each is answered by its outcome.

    What waits for credit is `queued` here and not given to proton, which would let it go whenever there is credit, also
    when its transaction is over. It is withdrawn when there was no credit for as long as a request may take: nobody
    waits for it any more, and sending it behind the application's back would double what that sends again.
    """

    __slots__ = (
        *("_moved", "_numbers", "blocked_senders", "held", "most", "published", "queued", "session", "unanswered"),
    )

    def __init__(self, session: AmqpSession, what: str, name: str | None = None) -> None:
        super().__init__(session.table, session.handle.sender(name or link_name("sender")), what)
        self.session = session
        self.queued: deque[Queued] = deque()  # waits for credit
        self._moved = 0.0  # when something of it left last
        self.unanswered: dict[Any, Pending] = {}  # by the C library's delivery
        self.blocked_senders: SessionEvents | None = None  # waits for credit
        self.published: set[Pending] = set()  # of `unanswered`: it is no matter whether anybody wants it
        self.most = 0  # bytes of a message that the peer takes; 0: it does not say
        self.held = 0  # queues that are looked up or made: what is sent is queued
        self._numbers = count(1)
        self.handle.source.outcomes.put_object(outcomes())
        self.handle.snd_settle_mode = proton.Link.SND_UNSETTLED
        self.handle.rcv_settle_mode = proton.Link.RCV_FIRST
        session.links.add(self)

    def send(self, parts: Parts, transaction: bytes | None, pending: Pending) -> None:
        """Send as soon as there is credit; the pending is the outcome."""
        if self.ended is not None:
            self.table.notifications.answer(pending, self.ended)
            return
        self.table.unanswered += 1
        if self.queued or self.held or lib.pn_link_credit(self.raw) <= 0:
            now = monotonic()
            if not self.queued:
                self.table.expire_at(now + self.table.patience)
            self.queued.append((parts, transaction, pending, now))
        else:
            self._transfer(parts, transaction, pending)

    def on_opened(self) -> None:
        """See `Endpoint.on_opened`."""
        self.most = lib.pn_link_remote_max_message_size(self.raw)
        super().on_opened()

    def _refuse(self, size: int, pending: Pending) -> None:
        """The peer would end the link instead, and perhaps its session with all others."""
        self.table.unanswered -= 1
        self.table.notifications.answer(
            pending,
            ResourceAllocationError(
                f"{self.what}: a message of {size} bytes is larger than the {self.most} that the broker takes"
            ),
        )

    @property
    def awaits(self) -> bool:
        """See `Endpoint.awaits`."""
        return bool(self.unanswered) or super().awaits

    def withdraw(self, sends: Collection[Pending], error: JMSError) -> list[Pending]:
        """Take those back that have not left, which fails them; the answer is those that are leaving just now.

        These are written in part, or wait for room in the session. Those that have left are neither.
        """
        kept: deque[Queued] = deque()
        for each in self.queued:
            if each[2] in sends:
                self._give_up(each[2], error)
            else:
                kept.append(each)
        self.queued = kept
        return self._inside(sends)

    def _inside(self, sends: Collection[Pending]) -> list[Pending]:
        inside = 0 if self.ended is not None else lib.pn_link_queued(self.raw)  # in proton: the last of them
        return [each for each in list(self.unanswered.values())[len(self.unanswered) - inside :] if each in sends]

    def say_stuck(self, sends: Collection[Pending]) -> None:
        """Say which of these have credit and have not left all the same: the peer takes nothing in this session."""
        for each in self._inside(sends):
            each.error = each.error or RequestTimeoutError(f"{self.what}: it waits here still: {_ALARM}")

    def no_credit(self) -> ResourceAllocationError:
        """The reason why what is withdrawn was not sent."""
        return ResourceAllocationError(
            f"no credit: nothing was sent: {self.what}: the broker takes no more there now (a full address, or nobody "
            "who consumes)"
        )

    def expire(self, now: float) -> float | None:
        """See `Endpoint.expire`: what waits for credit, for a request's time since the last that left."""
        while self.queued and self._expires(self.queued[0][0]):
            due = max(self.queued[0][3], self._moved) + self.table.patience
            if now < due:
                return due
            self._give_up(self.queued[0][2], self.no_credit())
            self.queued.popleft()
        return None

    def _expires(self, parts: Parts) -> bool:  # noqa: ARG002  # of the coordinator
        return True

    def _give_up(self, pending: Pending, error: JMSError) -> None:
        """Fail what is still queued: who waits for its room looks there, and must know that it has not left."""
        pending.error = error
        self.table.unanswered -= 1
        self.table.notifications.answer(pending, error)

    def _transfer(self, parts: Parts, transaction: bytes | None, pending: Pending) -> None:
        if 0 < self.most < (size := sum(map(len, parts))):
            self._refuse(size, pending)
            return
        tag = b"%x" % next(self._numbers)
        handle = lib.pn_delivery(self.raw, (len(tag), ffi.from_buffer(tag)))
        if transaction is not None:
            enlist(handle, transaction, None)
        for part in parts:
            lib.pn_link_send(self.raw, part, len(part))
        lib.pn_link_advance(self.raw)
        self.unanswered[handle] = pending

    def let_go(self, _: JMSError | None, __: str | None) -> None:
        """One of the queues that it waited for is there, or is not, which the broker says of what is sent there."""
        self.held -= 1
        if self.ended is None:
            self.on_flow()

    def on_flow(self) -> None:
        """See `Endpoint.on_flow`: what waits for credit leaves."""
        if self.queued and not self.held and lib.pn_link_credit(self.raw) > 0:
            self._moved = monotonic()
            while self.queued and lib.pn_link_credit(self.raw) > 0:
                self._transfer(*self.queued.popleft()[:3])
        if self.blocked_senders is not None:
            self.table.notifications.awake.append(self.blocked_senders)

    def on_delivery(self, handle: Any) -> None:
        """An outcome."""
        state = lib.pn_delivery_remote_state(handle)
        if not (state or lib.pn_delivery_settled(handle)):
            return
        pending = self.unanswered.pop(handle, None)
        if pending is None:
            return
        self.table.unanswered -= 1
        unwanted = state == RELEASED and pending in self.published
        self.published.discard(pending)
        if state == ACCEPTED or unwanted:
            self.table.notifications.answer(pending)
        else:
            error, value = self._read(handle, state)
            self.table.notifications.answer(pending, error, value)
        lib.pn_delivery_settle(handle)

    def _read(self, handle: Any, state: int) -> tuple[JMSError | None, object]:
        if state == TRANSACTIONAL:
            outcome, reason = outcome_in_transaction(handle)
            if outcome == ACCEPTED:
                return None, None
            if outcome == REJECTED:
                return broker_error(reason, f"{self.what}: rejected"), None
            return JMSError(
                f"{self.what}: the broker did not take the message into the transaction: {said_outcome(outcome)}"
            ), None
        if state == REJECTED:
            return self._rejected(refusal(handle)), None
        if state == RELEASED and self.table.dialect.released_is_unrouted:
            return InvalidDestinationError(f"{self.what}: no queue takes what is sent there: it was not stored"), None
        return JMSError(f"{self.what}: the broker did not take the message: {said_outcome(state)}"), None

    def _rejected(self, reason: Condition | None) -> JMSError:
        if reason is None and self.table.dialect.bare_rejection:
            return ResourceAllocationError(
                f"{self.what}: rejected, without a reason: this broker does so for {self.table.dialect.bare_rejection}"
            )
        return broker_error(reason, f"{self.what}: rejected")

    def on_end(self, error: JMSError, ours: bool) -> None:
        """See `Endpoint.on_end`: what is not answered fails."""
        unanswered = list(self.unanswered.values())
        self.unanswered.clear()
        self.published.clear()
        self.table.unanswered -= len(unanswered)
        for pending in unanswered:
            self.table.notifications.answer(pending, error)
        if self.queued and isinstance(error, ConnectionLostError):
            cause, error = error, NotSent(f"nothing was sent: it waited for credit: {error}")
            error.__cause__ = cause
        for each in self.queued:
            self._give_up(each[2], error)
        self.queued.clear()
        self.on_flow()
        if not ours:
            self.session.links.discard(self)

    def forget(self) -> None:
        """See `Endpoint.forget`."""
        self.session.links.discard(self)
        super().forget()


class Maker(Sender):
    """A link to a node that the broker makes for it, and that lives as long as the link does."""

    __slots__ = ("address",)

    def __init__(self, session: AmqpSession, capability: str) -> None:
        super().__init__(session, f"making a {capability}")
        self.address: str | None = None
        target = self.handle.target
        target.dynamic = True
        target.durability = proton.Terminus.NONDURABLE
        target.expiry_policy = proton.Terminus.EXPIRE_WITH_LINK
        target.capabilities.put_object(proton.symbol(capability))
        lifetime = proton.Described(proton.ulong(_DELETE_ON_CLOSE), [])
        target.properties.put_dict({proton.symbol("lifetime-policy"): lifetime})

    def on_opened(self) -> None:
        """See `Endpoint.on_opened`: the broker has named it."""
        self.address = self.handle.remote_target.address
        super().on_opened()


def relay(session: AmqpSession) -> Sender:
    """A link by which a message goes wherever it says itself (AMQP's anonymous terminus), not opened yet."""
    sender = Sender(session, "sending to the destination of each message")
    sender.handle.target.type = proton.Terminus.TARGET
    return sender


def sender_to(session: AmqpSession, destination: Destination, dialect: AmqpDialect) -> Sender:
    """A link to one destination, not opened yet."""
    sender = Sender(session, f"sending to {destination}")
    describe(sender.handle.target, destination, dialect)
    return sender


class Coordinator(Sender):
    """The link on which transactions are declared and discharged."""

    __slots__ = ()

    def __init__(self, session: AmqpSession) -> None:
        super().__init__(session, "the transaction")
        self.handle.target.type = proton.Terminus.COORDINATOR
        self.handle.target.capabilities.put_object(_LOCAL_TRANSACTIONS)

    def declare(self, pending: Pending) -> None:
        """Begin a transaction: the pending's value is its id."""
        self.send((_DECLARE,), None, Pending(None, partial(_declared, pending)))

    def discharge(self, transaction: bytes, pending: Pending, *, fail: bool) -> None:
        """End one; ``fail`` undoes it."""
        fields = b"\xa0%c%b%c" % (len(transaction), transaction, 0x41 if fail else 0x42)
        self.send((b"\x00\x53\x77\x00\x53\x32\xc0%c\x02%b" % (len(fields) + 1, fields),), None, pending)

    def _expires(self, parts: Parts) -> bool:
        """A declare expires. A discharge has a commit that waits for it, or is to leave however late."""
        return parts[0] is _DECLARE

    def _read(self, handle: Any, state: int) -> tuple[JMSError | None, object]:
        return (None, declared_id(handle)) if state == DECLARED else super()._read(handle, state)


def _declared(asked: Pending, answered: Pending) -> None:
    if answered.error is None and not answered.value:
        asked.fail(ProtocolError("the transaction: the broker has declared it without an id"))
    else:
        asked.pass_on(answered)
