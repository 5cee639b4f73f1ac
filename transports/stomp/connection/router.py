"""Routes frames from the broker: a MESSAGE to its session's inbox, an answer to its request.

It runs on the thread that reads. Other threads only add and remove entries of its tables, each in one step; `retire`
alone needs a lock for that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from itertools import count
from threading import Lock
from typing import TypeAlias

from redelivery.model.errors import ConnectionLostError, IllegalStateError, JMSError, ProtocolError
from redelivery.transports.dialects.dialect import StompDialect
from redelivery.transports.seam import Pending
from redelivery.transports.stomp.codec.errors import broker_error
from redelivery.transports.stomp.codec.frames import Frame, raw_value
from redelivery.transports.stomp.codec.reader import RawFrame
from redelivery.transports.stomp.connection.subscriptions import StompDelivery, StompSubscription
from redelivery.transports.wire.answers import finish

# a subscription and its messages; or receipts, as `Router.expect` gave them; or a frame that is another answer
Parcel: TypeAlias = tuple[StompSubscription | None, Sequence[StompDelivery], Sequence[bytes], RawFrame | None]
log = logging.getLogger(__name__)
_SUBSCRIPTION = b"\nsubscription:"
_RECEIPT = b"RECEIPT\nreceipt-id:"  # with no other header, as brokers send it
_AFTER = len(_RECEIPT)
_CLOSED = " closed the connection"
_M = ord("M")
# How a message of AMQP 1.0 begins (§3.2): with one of its sections, a described type
_DESCRIBED = b"\0S"
_NONE: tuple[()] = ()
_SECTIONS = frozenset(bytes((code,)) for code in range(0x70, 0x79))


class Router:
    """One connection's tables.

    Args:
        dialect: whether an ERROR says whom it answers, and whether it ends the connection.
        on_error: is called with errors that answer nobody.
    """

    def __init__(self, dialect: StompDialect, version: str, on_error: Callable[[JMSError], None]) -> None:
        self._dialect = dialect
        self._version = version
        self._on_error = on_error
        self._subscriptions: dict[bytes, StompSubscription] = {}
        self._last: tuple[StompSubscription, bytes] | None = None  # of the last message, with the rest of that line
        self._numbers = count(1)
        self._lost: JMSError | None = None
        self._watches = dialect.amqp_bodies is not None
        self._amqp = ""  # what it was warned of
        self._first_map: bytes | None = None  # see `asks_for_maps`
        self._arrival = Lock()  # of messages whose subscription may be retired
        self.receipts: dict[bytes, Pending] = {}
        self.last_error: JMSError | None = None
        self.ending: ConnectionLostError | None = None  # the broker has said ERROR, and closes the connection
        self.errors = 0  # so far
        self.last_unasked: JMSError | None = None
        self.unasked = 0  # errors so far that answer nobody: an ACK asks for no answer

    def add(self, subscription: StompSubscription) -> None:
        """Put the messages of a subscription into its inbox from now on."""
        self._subscriptions[subscription.identifier] = subscription

    def remove(self, subscription: StompSubscription) -> None:
        """Drop the messages of a subscription from now on; they go back to the broker."""
        subscription.ended = IllegalStateError("its consumer is closed")
        self._subscriptions.pop(subscription.identifier, None)
        self._last = None

    def cancelled(self, subscription: StompSubscription) -> bool:
        """Check whether the broker has ended it by itself: it knows no UNSUBSCRIBE of it."""
        return self._lost is None and subscription.identifier not in self._subscriptions

    def retire(self, subscriptions: Collection[StompSubscription]) -> bool:
        """Remove them, unless a message of theirs is not settled: in one step, so that none can come between."""
        with self._arrival:
            if any(each.unsettled for each in subscriptions):
                return False
            for each in subscriptions:
                self.remove(each)
            return True

    def expect(self, pending: Pending) -> bytes:
        """The receipt to ask for; its RECEIPT or ERROR completes the pending. Raises ConnectionLostError."""
        receipt = b"%d" % next(self._numbers)
        self.receipts[receipt] = pending
        if self._lost is not None:  # read after: `lose` sees the entry, or we see the loss
            self.receipts.pop(receipt, None)
            raise ConnectionLostError(str(self._lost)) from self._lost
        return receipt

    def confirm(self, receipt: bytes) -> bool:
        """The RECEIPT has come; False, and nothing is done, where nobody waits for it."""
        pending = self.receipts.pop(receipt, None)
        if pending is not None:
            finish(pending, None)
        return pending is not None

    def asks_for_maps(self, receipt: bytes = b"") -> None:
        """A frame that asks for them leaves: if the first one is answered, the broker has what it takes.

        ``receipt``: by which it is answered; none where the one who asks looks into a loss.
        """
        if self._first_map is None:
            self._first_map = receipt

    def expect_map(self, pending: Pending) -> bytes:
        """See `expect` and `asks_for_maps`."""
        receipt = self.expect(pending)
        self.asks_for_maps(receipt)
        return receipt

    @property
    def hint(self) -> str:
        """The reason why the broker may have closed the connection, where we know."""
        return self._dialect.maps_lacking if self._first_map in self.receipts else self._amqp

    def forget(self, receipt: bytes) -> None:
        """Nobody waits for it any more."""
        self.receipts.pop(receipt, None)

    def lose(self, error: JMSError) -> None:
        """The connection is gone: every answer that is missing fails, every delivery is stale."""
        self.refuse(error)
        for subscription in list(self._subscriptions.values()):
            subscription.ended = ConnectionLostError(str(error))
        for pending in self._take_all():
            lost = ConnectionLostError(str(error))
            lost.__cause__ = error
            finish(pending, lost)

    def closed_silently(self, error: JMSError) -> str:
        """The reason why the broker may have ended the connection while answers were awaited; empty: not so."""
        why = self._dialect.closes_silently
        ended = isinstance(error, ConnectionLostError) and (
            isinstance(error.__cause__, ConnectionResetError | BrokenPipeError) or str(error).endswith(_CLOSED)
        )
        return f"without a word this broker does so for {why}" if why and ended and self.receipts else ""

    def refuse(self, error: JMSError) -> None:
        """Answers can be asked for no more."""
        self._lost = error

    def route(self, frames: list[RawFrame]) -> None:
        """Take the frames of one read.

        Raises:
            ProtocolError: a frame that no server sends, or that lacks what it must have.
        """
        parcels: list[Parcel] = []
        try:
            self._sort(frames, parcels)
        finally:
            self._deliver_all(parcels)  # also what came before a frame that no server sends

    def _sort(self, frames: list[RawFrame], parcels: list[Parcel]) -> None:
        """Append what is to be delivered, in order: messages and answers. Nothing else is changed."""
        target, line = self._last or (None, b"")
        batch: list[StompDelivery] | None = None
        receipts: list[bytes] | None = None
        for head, body in frames:
            if head[0] == _M:  # of the frames that a reader cuts, MESSAGE alone begins so
                receipts = None
                if target is None or not head.partition(_SUBSCRIPTION)[2].startswith(line):
                    target, line = self._find(head)
                    batch = None
                if target is None:
                    continue
                if self._watches and body.startswith(_DESCRIBED):
                    self._warn_of_amqp(target, body)
                if batch is None:
                    batch = []
                    parcels.append((target, batch, _NONE, None))
                batch.append(StompDelivery(head, body, target))
                continue
            batch = None  # answers come in the order in which the broker did things
            if not head.startswith(_RECEIPT) or head.find(b"\n", _AFTER) != len(head) - 1:
                receipts = None
                parcels.append((None, _NONE, _NONE, (head, body)))
                continue
            if receipts is None:
                receipts = []
                parcels.append((None, _NONE, receipts, None))
            receipts.append(head[_AFTER:-1])

    def _deliver_all(self, parcels: list[Parcel]) -> None:
        for target, batch, receipts, frame in parcels:
            if frame is not None:
                self._answer(*frame)
                if self.ending is not None:
                    return
            elif target is not None:
                self._deliver(target, batch)
            else:
                for receipt in receipts:
                    self.confirm(receipt)  # or nobody waits for it any more

    def _warn_of_amqp(self, target: StompSubscription, body: bytes) -> None:
        if body[2:3] not in _SECTIONS:
            return  # bytes that happen to begin so
        self._watches = False  # once a connection
        place = target.link.destination
        self._amqp = f"{self._dialect.amqp_bodies}, and one of {place} was: use amqp:// for it"
        log.warning("%s: a message has AMQP's bytes for a body: %s", place, self._amqp)

    def _deliver(self, target: StompSubscription, batch: Sequence[StompDelivery]) -> None:
        if target.unsettled is None:
            _hand_over(target, batch)
            return
        with self._arrival:
            if target.ended is None:
                target.unsettled.update(dict.fromkeys(batch))
                _hand_over(target, batch)

    def _find(self, head: bytes) -> tuple[StompSubscription | None, bytes]:
        """The message's subscription, None where it has ended; and the rest of that header's line, to know the next."""
        identifier = raw_value(head, _SUBSCRIPTION)
        if identifier is None:
            raise ProtocolError("a MESSAGE came without the header subscription")
        found = self._subscriptions.get(identifier)
        line = identifier + b"\n"
        self._last = None if found is None else (found, line)
        return found, line

    def _answer(self, head: bytes, body: bytes) -> None:
        if head.startswith(b"RECEIPT\n"):
            receipt = raw_value(head, b"\nreceipt-id:")
            if receipt is None:
                raise ProtocolError("a RECEIPT came without the header receipt-id")
            pending = self.receipts.pop(receipt, None)
            if pending is not None:  # else: nobody waits for it any more
                finish(pending, None)
        elif head.startswith(b"ERROR\n"):
            self._error(Frame(head, body, self._version))
        else:
            raise ProtocolError(f"a server does not send {Frame(head, body).command}")

    def _error(self, frame: Frame) -> None:
        error = self.last_error = broker_error(frame)
        self.errors += 1
        receipt = frame.raw(b"\nreceipt-id:")
        cancelled = self._subscriptions.get(frame.raw(_SUBSCRIPTION) or b"") if receipt is None else None
        if cancelled is not None:  # RabbitMQ: "Server cancelled subscription", when its queue is deleted
            self.remove(cancelled)
            cancelled.ended = error
            cancelled.events.on_link_closed(cancelled.link, error)
            return
        if receipt is not None:
            asked = [self.receipts.pop(receipt)] if receipt in self.receipts else []
        elif self._dialect.error_names_receipt:
            asked = []
        else:
            asked = self._take_all()  # it may answer any of them
        for pending in asked:
            finish(pending, error)
        if not asked:
            self.last_unasked = error
            self.unasked += 1
            self._on_error(error)
        if self._dialect.error_closes:
            self.ending = ConnectionLostError(str(error))
            self.ending.__cause__ = error

    def _take_all(self) -> list[Pending]:
        taken: list[Pending] = []
        with suppress(KeyError):  # there is no more; another thread may take some meanwhile
            while True:
                taken.append(self.receipts.popitem()[1])
        return taken


def _hand_over(subscription: StompSubscription, batch: Sequence[StompDelivery]) -> None:
    if subscription.ended is None and not subscription.stopping:
        if subscription.redelivered is not None:
            subscription.redelivered.mark(batch)
        subscription.events.on_deliveries(batch)
