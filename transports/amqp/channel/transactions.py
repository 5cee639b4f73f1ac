"""Transactions over AMQP: declared when first needed, accepted deliveries enlisted at the commit and not before.

1. What is only held is not in the transaction: a rollback undoes the sends, and the deliveries stay ours, unsettled.
   An accept that is enlisted earlier and rolled back counts as a delivery on some brokers.
2. The next transaction is declared together with each discharge, so that a commit costs one round trip. One that was
   idle for long may have been given up by the broker, so it is replaced.
3. A commit's discharge is written when every send of the transaction is answered, and none was refused.
4. A rollback's discharge is written when every send of the transaction has left, or was taken back before it did:
   what leaves under a transaction that is over is delivered on one broker, and ends the connection on others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, cast

from redelivery.model.errors import (
    ConnectionLostError,
    InDoubtError,
    JMSError,
    RequestTimeoutError,
    ResourceAllocationError,
    TransactionRolledBackError,
    UnsupportedError,
)
from redelivery.transports.amqp.channel.context import AmqpChannelContext
from redelivery.transports.amqp.links.dispositions import ACCEPTED
from redelivery.transports.amqp.links.receivers import AmqpDelivery
from redelivery.transports.amqp.links.senders import Coordinator, Parts, Sender
from redelivery.transports.flows import NotSent
from redelivery.transports.seam import NO_ANSWER, Flow, InterruptedWait, Pending
from redelivery.transports.wire.answers import finish
from redelivery.transports.wire.clock import monotonic

_FRESH: Final = 20.0  # seconds that a declared transaction may have waited; the shortest limit of a broker is 60


class Transactions:
    """One session's: at most one is open that the application knows of."""

    def __init__(self, context: AmqpChannelContext) -> None:
        self._context = context
        self._coordinator: Coordinator | None = None
        self._declared: Pending | None = None  # the answer to the last declare; its value is the id
        self._since = 0.0
        self._entered: Coordinator | None = None  # something was sent in it: it is this one's transaction or none
        self._waiting: list[tuple[Sender, Parts, Pending]] = []  # sends before the id is known
        self._senders: set[Sender] = set()  # that its sends were given to
        self.sends: list[Pending] = []

    def send(self, sender: Sender, parts: Parts, pending: Pending) -> None:
        """A send in the transaction, which is declared if need be; inside `writing`."""
        self.sends.append(pending)
        self._waiting.append((sender, parts, pending))
        if self._gone() is None:
            transaction = self._id()
            if transaction is not None:
                self._let_go(transaction)

    def commit(self, deliveries: Sequence[AmqpDelivery]) -> Flow[None]:
        """Discharge, with the deliveries accepted in it.

        Raises:
            TransactionRolledBackError, InDoubtError: see `Channel.commit`.
        """
        if not deliveries and not self.sends:
            return
        asked = self._context.ask()
        coordinator = None
        left = self._context.protocol.written
        try:
            transaction = yield from self._ready()
            yield from self._confirm_sends()
            with self._context.writing():
                self._check_all(deliveries)
                for delivery in deliveries:
                    delivery.receiver.settle_enlisted(delivery, transaction)
                left = self._context.protocol.written
                coordinator = self._discharge(transaction, asked, fail=False)
        except JMSError as error:
            self._undo()
            if coordinator is not None and self._context.protocol.written != left:  # lost while it was written
                raise _in_doubt(error, transaction) from error
            raise _rolled_back(f"the transaction was undone before the commit: {error}", error) from error
        try:
            yield from self._context.answer(asked)
        except JMSError as error:
            kept = asked.error if isinstance(asked.error, NotSent) else self._take_back(coordinator, transaction, asked)
            if kept is not None:
                undone = _rolled_back(f"the commit was not sent: {kept}", kept)
                undone.redelivered_by_broker = bool(deliveries)
                raise undone from kept
            if isinstance(error, NO_ANSWER) or coordinator.session.ended is not None:
                raise _in_doubt(error, transaction) from error
            rolled_back = TransactionRolledBackError(f"the commit was refused: {error}")
            rolled_back.redelivered_by_broker = bool(deliveries)
            raise rolled_back from error

    def rollback(self) -> None:
        """Undo the sends; the answer is not waited for."""
        self._undo()

    def dead_letter(self, sender: Sender, parts: Parts, delivery: AmqpDelivery) -> Flow[None]:
        """A copy, and the accept of the original, in a transaction of their own.

        Raises:
            JMSError: the broker refuses; the delivery is still ours.
            InDoubtError: the answer did not come.
        """
        declared, sent, done = self._context.ask(), self._context.ask(), self._context.ask()
        with self._context.writing():
            coordinator = self._open()
            coordinator.declare(declared)
        yield from self._context.answer(declared)
        transaction = cast(bytes, declared.value)
        receiver = delivery.receiver
        with self._context.writing():
            sender.send(parts, transaction, sent)
        try:
            yield from self._answer_or_withdraw(sent, (sender,))
            with self._context.writing():
                receiver.enlist(delivery, transaction)  # not settled: if the broker refuses, it stays ours
                coordinator.discharge(transaction, done, fail=False)
        except JMSError as error:
            if not isinstance(error, ConnectionLostError):
                with self._context.writing():
                    self._discharge_undone(coordinator, transaction, {sender}, [sent])
            raise
        try:
            yield from self._context.answer(done)
        except NO_ANSWER as error:
            raise InDoubtError(f"the broker's answer to a dead letter did not come: {error}") from error
        with self._context.writing():
            if receiver.ended is None:
                receiver.settle(delivery, ACCEPTED)
                receiver.make_room(delivery)

    def _id(self) -> bytes | None:
        """The transaction's id, None while it is not known; declares it if need be."""
        declared = self._declared
        coordinator = self._coordinator
        if coordinator is None or coordinator.ended is not None or declared is None or declared.error is not None:
            self._declare()
            return None
        if not declared.done:
            return None
        identifier = cast(bytes, declared.value)
        if self._entered is None and monotonic() - self._since > _FRESH:
            self._discharge(identifier, Pending(), fail=True)
            return None
        return identifier

    def _ready(self) -> Flow[bytes]:
        """The transaction's id; what waited for it has left."""
        with self._context.writing():
            gone = self._gone() or next((each.error for each in self.sends if each.error is not None), None)
            if gone is not None:
                raise gone
            transaction = self._id()
        declared = self._declared
        assert declared is not None, "declared by _id"
        if transaction is None:
            yield from self._answer_or_withdraw(declared, [each for each in (self._coordinator,) if each is not None])
            transaction = cast(bytes, declared.value)
        if self._waiting:
            with self._context.writing():
                self._let_go(transaction)
        return transaction

    def _let_go(self, transaction: bytes) -> None:
        """Send what waited for the id."""
        waiting, self._waiting = self._waiting, []
        self._entered = self._coordinator
        for sender, parts, pending in waiting:
            self._senders.add(sender)
            sender.send(parts, transaction, pending)

    def _confirm_sends(self) -> Flow[None]:
        for pending in self.sends:
            yield from self._answer_or_withdraw(pending, self._senders, self.sends)
        self.sends = []

    def _answer_or_withdraw(
        self, pending: Pending, senders: Collection[Sender], among: Iterable[Pending] = ()
    ) -> Flow[None]:
        """Wait for the answer; when that is given up, it and ``among`` are taken back where they wait for credit.

        Raises as `answer`, and:

        Raises:
            ResourceAllocationError: there was no credit for it.
        """
        try:
            yield from self._context.answer(pending)
        except RequestTimeoutError as error:
            if isinstance(error, InterruptedWait) or pending.done:
                raise
            self._withdraw(senders, frozenset((pending, *among)))
            raise pending.error or error from None

    def _withdraw(self, senders: Collection[Sender], sends: Collection[Pending]) -> None:
        """Wait no longer for these sends: those that wait for credit are taken back."""
        with self._context.writing():
            for each in senders:
                each.withdraw(sends, each.no_credit())

    def _take_back(self, coordinator: Coordinator, transaction: bytes, asked: Pending) -> JMSError | None:
        """Take back, to be undone, a commit that nobody waits for and that waits for credit itself; the reason."""
        if not asked.done:
            with suppress(ConnectionLostError):
                self._withdraw((coordinator,), (asked,))
                if isinstance(asked.error, ResourceAllocationError):
                    with self._context.writing():
                        coordinator.discharge(transaction, Pending(), fail=True)
        return asked.error if isinstance(asked.error, ResourceAllocationError) else None

    def _gone(self) -> JMSError | None:
        """The reason why the transaction is gone that something was sent in; None: it is not."""
        return None if self._entered is None else self._entered.ended

    def _check_all(self, deliveries: Sequence[AmqpDelivery]) -> None:
        """Raise where one delivery is not ours any more, or the transaction is not there: then nothing is written."""
        if self._coordinator is not None and self._coordinator.ended is not None:
            raise self._coordinator.ended
        for delivery in deliveries:
            delivery.receiver.check(delivery)

    def _undo(self) -> None:
        """Discharge with fail where anything was sent in it. Never raises: without a connection it is undone anyway."""
        with self._context.protocol.lock:  # see `_on_declared`
            waiting, self._waiting = self._waiting, []
            sends, self.sends = self.sends, []
            senders, self._senders = self._senders, set()
            entered, self._entered = self._entered, None
            declared = self._declared
        try:
            with self._context.writing():
                for _, _, pending in waiting:
                    self._context.protocol.table.notifications.answer(pending, _never_sent())
                if entered is not None and declared is not None:
                    self._discharge_undone(entered, cast(bytes, declared.value), senders, sends)
                    if entered.ended is None:
                        self._declare()
        except ConnectionLostError:
            self._declared = None

    def _discharge_undone(
        self, coordinator: Coordinator, transaction: bytes, senders: set[Sender], sends: Sequence[Pending]
    ) -> None:
        """Take back what has not left, then discharge; what is leaving just now goes before. Inside `writing`."""
        protocol = self._context.protocol
        protocol.write()  # what has credit leaves
        among = frozenset(sends)
        leaving = [each for sender in senders for each in sender.withdraw(among, _never_sent())]
        if coordinator.ended is None:
            if leaving:
                _when_answered(leaving, lambda: self._discharge_late(coordinator, transaction))
            else:
                coordinator.discharge(transaction, Pending(), fail=True)

    def _discharge_late(self, coordinator: Coordinator, transaction: bytes) -> None:
        """On the thread that reads, which must not wait for the peer to read."""
        protocol = self._context.protocol
        with protocol.lock:
            if protocol.lost is None and coordinator.ended is None:
                coordinator.discharge(transaction, Pending(), fail=True)
                protocol.flush_soon()

    def _discharge(self, transaction: bytes, pending: Pending, *, fail: bool) -> Coordinator:
        """End it, and declare the next."""
        coordinator = self._open()
        coordinator.discharge(transaction, pending, fail=fail)
        self._entered = None
        self._senders.clear()
        self._declare()
        return coordinator

    def _declare(self) -> None:
        coordinator = self._open()
        self._declared = self._context.ask()
        self._declared.on_done = self._on_declared
        self._since = monotonic()
        coordinator.declare(self._declared)

    def _on_declared(self, declared: Pending) -> None:
        """On the thread that reads: what waited for the id leaves; where there is no transaction, it fails."""
        protocol = self._context.protocol
        with protocol.lock:
            if declared is not self._declared or not self._waiting:
                return
            if declared.error is None and protocol.lost is None and self._gone() is None:
                self._let_go(cast(bytes, declared.value))
                protocol.flush_soon()
                return
            waiting, self._waiting = self._waiting, []
        for _, _, pending in waiting:
            finish(pending, declared.error or ConnectionLostError(str(protocol.lost or self._gone())))

    def _open(self) -> Coordinator:
        if not self._context.dialect.capabilities.transactions:
            raise UnsupportedError("this broker has no transactions over AMQP")
        coordinator = self._coordinator
        if coordinator is None or coordinator.ended is not None:
            coordinator = self._coordinator = Coordinator(self._context.session())
            coordinator.open(None)
            self._declared = None
        return coordinator


class _NoCredit(TransactionRolledBackError, ResourceAllocationError):
    """Both: for who begins the transaction anew, and for who waits until the broker takes more."""


def _rolled_back(text: str, error: JMSError) -> TransactionRolledBackError:
    return (_NoCredit if isinstance(error, ResourceAllocationError) else TransactionRolledBackError)(text)


def _in_doubt(error: JMSError, transaction: bytes) -> InDoubtError:
    text = f"the broker's answer to the commit did not come: {error}"
    return InDoubtError(text, transaction_id=transaction.hex())


def _never_sent() -> TransactionRolledBackError:
    return TransactionRolledBackError("rolled back before it was sent")


def _when_answered(sends: Sequence[Pending], then: Callable[[], None]) -> None:
    """Call ``then`` with the last of their answers, which are not there yet: for the holder of the lock."""
    left = len(sends)

    def answered(on_done: Callable[[Pending], None] | None, pending: Pending) -> None:
        nonlocal left
        left -= 1
        try:
            if on_done is not None:
                on_done(pending)
        finally:
            if not left:
                then()

    for each in sends:
        each.on_done = partial(answered, each.on_done)
