"""The transactions of one AMQP client (part 4 of the standard), over the engine's.

A message that was accepted and settled is the transaction's: a rollback redelivers it. One that was accepted and not
settled stays with the client after a rollback, as it does with ActiveMQ.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

from redelivery.broker.core import Core
from redelivery.broker.engine.engine import Engine
from redelivery.broker.engine.rules.rules import Manner
from redelivery.broker.engine.subscriptions import Dispatch
from redelivery.broker.engine.transactions import Transaction
from redelivery.broker.servers.amqp.codec.conditions import UNKNOWN_TRANSACTION, RefusedError
from redelivery.broker.servers.amqp.codec.outcomes import AmqpOutcome
from redelivery.model.errors import TransactionRolledBackError
from redelivery.transports.amqp.links.dispositions import ACCEPTED, MODIFIED, REJECTED


class Settler(Protocol):
    """The link of a delivery."""

    def settle(self, unsettled: Unsettled, kind: int) -> None:
        """Notify the client that the delivery has ended with this outcome, unless the client settled it first."""


class Unsettled:
    """A delivery that the client has not settled, or that its transaction has not.

    ``transaction`` is the one that it has an outcome in, ``settled`` whether the client settled that one.
    """

    __slots__ = ("dispatch", "handle", "link", "settled", "transaction")

    def __init__(self, link: Settler, dispatch: Dispatch, handle: Any) -> None:
        self.link = link
        self.dispatch = dispatch
        self.handle = handle
        self.transaction: OpenTransaction | None = None
        self.settled = False

    def apply(self, engine: Engine, outcome: AmqpOutcome, now: int) -> None:
        """Do what an outcome other than accepted means."""
        dispatch = self.dispatch
        if outcome.kind == REJECTED:
            engine.poison(dispatch, outcome.cause, now)
        elif outcome.kind == MODIFIED and outcome.undeliverable:
            dispatch.seen = outcome.failed
            cause = outcome.cause or "the consumer said: undeliverable here"
            engine.poison(dispatch, cause, now, Manner.UNDELIVERABLE)
        else:
            dispatch.seen = outcome.counts
            engine.release([dispatch], now, outcome.manner)


@dataclass(slots=True, eq=False)
class OpenTransaction:
    """One transaction. ``owner`` is the number of its coordinator's link, ``retired`` are its outcomes, in order."""

    owner: int
    enlisted: Transaction = field(default_factory=Transaction)
    retired: list[tuple[Unsettled, AmqpOutcome]] = field(default_factory=list)


class OpenTransactions:
    """The open transactions of a connection, by id."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._open: dict[bytes, OpenTransaction] = {}
        self._numbers = count(1)

    def declare(self, owner: int) -> bytes:
        """Begin one; its id."""
        identity = next(self._numbers).to_bytes(8, "big")
        self._open[identity] = OpenTransaction(owner)
        return identity

    def known(self, identity: bytes) -> OpenTransaction:
        """The open transaction of that id. Raises RefusedError."""
        transaction = self._open.get(identity)
        if transaction is None:
            raise RefusedError(UNKNOWN_TRANSACTION, f"there is no open transaction {identity.hex() or 'without an id'}")
        return transaction

    def retire(self, identity: bytes, unsettled: Unsettled, outcome: AmqpOutcome) -> None:
        """Add an outcome that counts from the commit on. Raises RefusedError."""
        transaction = self.known(identity)
        if unsettled.transaction is transaction and not unsettled.settled:
            self._recall(transaction, unsettled)
        if unsettled.transaction is not None:
            raise RefusedError("amqp:illegal-state", "the delivery has an outcome in another transaction")
        if outcome.kind == ACCEPTED:
            self._core.call(lambda engine, now: engine.enlist(transaction.enlisted, [unsettled.dispatch], now))
        unsettled.transaction = transaction
        unsettled.settled = outcome.settled
        transaction.retired.append((unsettled, outcome))

    def recall(self, unsettled: Unsettled) -> None:
        """Take the delivery out of its transaction: the client has given it another outcome."""
        if unsettled.transaction is not None:
            self._recall(unsettled.transaction, unsettled)

    def discharge(self, identity: bytes, *, fail: bool) -> None:
        """End a transaction.

        Raises:
            RefusedError: it is not known.
            TransactionRolledBackError: it was rolled back instead.
        """
        transaction = self.known(identity)
        del self._open[identity]
        if fail:
            self._roll_back([transaction])
        else:
            self._commit(transaction)

    def forget(self, identity: bytes) -> None:
        """Roll it back if it is open."""
        transaction = self._open.pop(identity, None)
        if transaction is not None:
            self._roll_back([transaction])

    def end_of(self, owner: int) -> None:
        """Roll back the transactions of a coordinator's link that has ended."""
        own = [identity for identity, transaction in self._open.items() if transaction.owner == owner]
        if own:
            self._roll_back([self._open.pop(identity) for identity in own])

    def end(self) -> None:
        """Roll back all, as the connection has ended."""
        transactions, self._open = list(self._open.values()), {}
        if transactions:
            self._roll_back(transactions)

    def _commit(self, transaction: OpenTransaction) -> None:
        def finish(engine: Engine, now: int) -> None:
            engine.commit(transaction.enlisted, now)
            for unsettled, outcome in transaction.retired:
                if outcome.kind != ACCEPTED and not unsettled.dispatch.subscription.closed:
                    unsettled.apply(engine, outcome, now)

        try:
            self._core.call(finish)
        except TransactionRolledBackError:
            self._core.call(lambda engine, now: _release(engine, transaction, now))
            raise
        for unsettled, outcome in transaction.retired:
            unsettled.transaction = None
            unsettled.link.settle(unsettled, outcome.kind)

    def _roll_back(self, transactions: list[OpenTransaction]) -> None:
        def undo(engine: Engine, now: int) -> None:
            for transaction in transactions:
                engine.rollback(transaction.enlisted, now)
                _release(engine, transaction, now)

        self._core.call(undo)

    def _recall(self, transaction: OpenTransaction, unsettled: Unsettled) -> None:
        unsettled.transaction = None
        before = [outcome for each, outcome in transaction.retired if each is unsettled]
        transaction.retired = [(each, outcome) for each, outcome in transaction.retired if each is not unsettled]
        if before[-1].kind == ACCEPTED:
            self._core.call(lambda engine, _now: engine.withdraw(transaction.enlisted, unsettled.dispatch))


def _release(engine: Engine, transaction: OpenTransaction, now: int) -> None:
    """Give what was settled back to the broker, counted as delivered."""
    back = []
    for unsettled, _ in transaction.retired:
        unsettled.transaction = None
        if unsettled.settled and not unsettled.dispatch.subscription.closed:
            unsettled.dispatch.seen = True
            back.append(unsettled.dispatch)
    engine.release(back, now)
