"""The broker's rules, put together: facts in, dispatches out through the subscriptions' outboxes.

Nothing here waits or reads a clock; ``now`` is milliseconds since 1970. One caller at a time.
After each call `take_touched` names the subscriptions that were given something, and `next_deadline` when to `tick`.
"""

from __future__ import annotations

from collections.abc import Sequence

from redelivery.broker.engine.credit import CreditSubscription
from redelivery.broker.engine.holding import Holding
from redelivery.broker.engine.stored import END_OF_QUEUE, StoredMessage
from redelivery.broker.engine.subscriptions import Dispatch, Entry, Subscription
from redelivery.broker.engine.transactions import Transaction
from redelivery.model.destinations import Destination, Queue
from redelivery.model.errors import (
    IllegalStateError,
    InvalidDestinationError,
    ResourceAllocationError,
    TransactionRolledBackError,
    UnsupportedError,
)


class Engine(Holding):
    """Queues, topics, what is in flight, transactions and dead letters of one broker."""

    # Sending

    def send(self, message: StoredMessage, now: int) -> None:
        """Put a message on its queue, or give it to the subscribers of its topic.

        Raises:
            ResourceAllocationError: the memory limit is reached.
            InvalidDestinationError: the temporary destination is gone.
        """
        self.check_there(message.destination)
        self._check_room((message,))
        self._accept(message, now)
        self._dispatch(now)

    # Consuming

    def subscribe(self, subscription: Subscription, *, selector: str | None = None) -> None:
        """Make a consumer known; it is given nothing before `start`.

        Raises:
            UnsupportedError: it has a selector, or asks a queue for no_local.
            InvalidDestinationError: the temporary destination is gone.
        """
        self.check_there(subscription.destination)
        _check_selector(selector)
        if subscription.no_local and isinstance(subscription.destination, Queue):
            raise UnsupportedError(
                f"no_local on {subscription.destination}: the embedded broker knows it for topics only"
            )
        if isinstance(subscription.destination, Queue):
            if not subscription.destination.is_pattern:
                self._queue(subscription.destination.name)
            for queue in self.queues.values():
                self._attach(queue, subscription)
        self._subscriptions.append(subscription)

    def browse(self, subscription: Subscription, *, selector: str | None = None) -> None:
        """Make a browser known: from `start` on it is given copies of what its queue holds now, then `END_OF_QUEUE`.

        Those that consumers hold are among them, each with its count. Whatever becomes of a copy changes nothing.

        Raises:
            UnsupportedError: it has a selector, or browses a pattern.
            InvalidDestinationError: it browses a topic, or the temporary queue is gone.
        """
        queue = subscription.destination
        self.check_there(queue)
        _check_selector(selector)
        if not isinstance(queue, Queue):
            raise InvalidDestinationError(f"{queue}: a topic holds no messages; browse a queue")
        if queue.is_pattern:
            raise UnsupportedError(f"{queue} is a pattern: the embedded broker browses one queue at a time")
        for entry in self.entries(queue.name):
            entry.copy().wait_in(subscription.waiting)
        self._entry(END_OF_QUEUE, None).wait_in(subscription.waiting)

    def start(self, subscription: Subscription, now: int) -> None:
        """Open its window."""
        subscription.open = True
        self._refill(subscription, now)

    def grant(self, subscription: CreditSubscription, credit: int, now: int) -> None:
        """It takes so many messages from now on, whatever it took before."""
        subscription.credit = credit
        self._refill(subscription, now)

    def stop(self, subscription: Subscription) -> None:
        """Close its window: what it has it keeps, more does not come until `start`."""
        subscription.open = False

    def unsubscribe(self, subscription: Subscription, now: int, *, all_seen: bool) -> None:
        """The consumer is gone: what it held goes back to where it stood, counted as delivered if it was seen.

        ``all_seen`` counts everything: the broker cannot know better after an abrupt loss (ActiveMQ's
        LAST_DELIVERED_UNKNOWN). What a transaction has acknowledged stays the transaction's.
        """
        if subscription.closed:
            return
        subscription.closed, subscription.open = True, False
        if subscription in self._subscriptions:  # no browser is
            self._subscriptions.remove(subscription)
        for queue in subscription.queues:
            queue.detach(subscription)
        for dispatch in subscription.in_flight.values():
            dispatch.seen = dispatch.seen or all_seen
        held = [dispatch for dispatch in subscription.in_flight.values() if dispatch.transaction is None]
        self._give_back(held, now, list(subscription.waiting.values()))
        for queue in subscription.queues:
            self._tidy(queue)
        subscription.queues.clear()
        self._dispatch(now)

    def hand_out(self, dispatches: Sequence[Dispatch], now: int) -> None:
        """The application has them; they no longer fill the window."""
        for dispatch in dispatches:
            dispatch.seen = True
            dispatch.subscription.widen(dispatch)
        for subscription in {dispatch.subscription: None for dispatch in dispatches}:
            self._refill(subscription, now)

    def acknowledge(self, dispatches: Sequence[Dispatch], now: int) -> None:
        """Forget the messages.

        Raises:
            IllegalStateError: one is not in flight, or a transaction has it; then none is acknowledged.
        """
        self._check_held(dispatches)
        for dispatch in dispatches:
            self._settle(dispatch)
        for subscription in {dispatch.subscription: None for dispatch in dispatches}:
            self._refill(subscription, now)

    def release(self, dispatches: Sequence[Dispatch], now: int) -> None:
        """Give back; what is not `seen` is not counted.

        Raises:
            IllegalStateError: as `acknowledge`.
        """
        self._check_held(dispatches)
        self._give_back(dispatches, now)
        self._dispatch(now)

    def poison(self, dispatch: Dispatch, cause: str | None, now: int, *, expired: bool = False) -> None:
        """Dead-letter one message; one of a topic is only forgotten, as there is no durable subscription.

        ``expired``: the consumer found it so.

        Raises:
            IllegalStateError: as `acknowledge`.
        """
        self._check_held((dispatch,))
        entry = dispatch.entry
        self._settle(dispatch)
        if entry.queue is not None:
            self._bury(entry.message, cause, now, expired=expired)
        self._refill(dispatch.subscription, now)
        self._dispatch(now)

    # Transactions

    def enlist_send(self, transaction: Transaction, message: StoredMessage) -> None:
        """The message is sent at the commit; one to a temporary destination that is gone by then is dropped.

        Raises:
            InvalidDestinationError: the temporary destination is gone already.
        """
        _check_running(transaction)
        self.check_there(message.destination)
        transaction.sends.append(message)

    def enlist(self, transaction: Transaction, dispatches: Sequence[Dispatch], now: int) -> None:
        """They are acknowledged at the commit; the window moves past them at once.

        Raises:
            IllegalStateError: as `acknowledge`.
        """
        _check_running(transaction)
        self._check_held(dispatches)
        for dispatch in dispatches:
            dispatch.transaction = transaction
            dispatch.subscription.widen(dispatch)
        transaction.acknowledged.extend(dispatches)
        for subscription in {dispatch.subscription: None for dispatch in dispatches}:
            self._refill(subscription, now)

    def withdraw(self, transaction: Transaction, dispatch: Dispatch) -> None:
        """The transaction acknowledges it no more: it is unacknowledged again, at the same consumer."""
        _check_running(transaction)
        transaction.acknowledged.remove(dispatch)
        dispatch.transaction = None

    def commit(self, transaction: Transaction, now: int) -> None:
        """Do all of it.

        Raises:
            TransactionRolledBackError: there is no room for the sends; nothing was done.
        """
        _check_running(transaction)
        freed = sum(dispatch.message.size for dispatch in transaction.acknowledged)
        try:
            self._check_room(transaction.sends, freed)
        except ResourceAllocationError as error:
            self.rollback(transaction, now)
            raise TransactionRolledBackError(f"the transaction was rolled back: {error}") from error
        transaction.over = True
        for dispatch in transaction.acknowledged:
            self._settle(dispatch)
        for message in transaction.sends:
            self._accept(message, now)
        for subscription in {dispatch.subscription: None for dispatch in transaction.acknowledged}:
            self._refill(subscription, now)
        self._dispatch(now)

    def rollback(self, transaction: Transaction, now: int) -> None:
        """Do nothing of it: acknowledged messages are dispatched and unacknowledged again, at the same consumer."""
        _check_running(transaction)
        transaction.over = True
        orphans = []
        for dispatch in transaction.acknowledged:
            dispatch.transaction = None
            if dispatch.subscription.closed:
                orphans.append(dispatch)
        self._give_back(orphans, now)
        self._dispatch(now)

    # Temporary destinations

    def make_temporary(self, destination: Destination) -> None:
        """Add a destination whose name begins with `TEMPORARY`: it can be sent to and consumed from now on."""
        self._temporary.add(destination.name)

    def drop_temporary(self, destination: Destination) -> None:
        """Remove it with what it holds; sending to it fails from now on. Harmless twice."""
        self._temporary.discard(destination.name)
        queue = self.queues.get(destination.name)
        if queue is not None and isinstance(destination, Queue):
            queue.gone = True
            for entry in [entry for entry in queue.entries.values() if entry.backlog is not None]:
                entry.leave()
                self._forget(entry)

    # Time

    def tick(self, now: int) -> None:
        """Deliver the delayed messages that are due, dead-letter the waiting ones that have expired."""
        for message in self._deadlines.due(now):
            self.memory_used -= message.size
            self._accept(message, now)
        for entry in self._deadlines.expired(now):
            self._expire(entry, now)
        self._dispatch(now)

    def next_deadline(self) -> int | None:
        """When `tick` has something to do, None for never."""
        return self._deadlines.next()

    # Looking

    def depth(self, name: str) -> int:
        """How many messages a queue holds, those in flight included, delayed ones not."""
        queue = self.queues.get(name)
        return len(queue.entries) if queue else 0

    def entries(self, name: str) -> list[Entry]:
        """What a queue holds, in order."""
        queue = self.queues.get(name)
        return list(queue.entries.values()) if queue else []

    def take_touched(self) -> list[Subscription]:
        """The subscriptions that were given something since the last call."""
        touched = list(self._touched)
        self._touched.clear()
        return touched

    @staticmethod
    def _check_held(dispatches: Sequence[Dispatch]) -> None:
        if len(set(dispatches)) != len(dispatches):
            raise IllegalStateError("the same delivery is named twice")
        for dispatch in dispatches:
            if dispatch.subscription.in_flight.get(dispatch.number) is not dispatch:
                raise IllegalStateError(
                    f"message {dispatch.message.message_id} is not (or no longer) held unacknowledged"
                )
            if dispatch.transaction is not None:
                raise IllegalStateError(f"message {dispatch.message.message_id} is acknowledged in an open transaction")


def _check_selector(selector: str | None) -> None:
    if selector is not None:
        raise UnsupportedError(
            f"selector {selector!r}: the embedded broker does not evaluate selectors; choose among the messages"
            " in the consumer, or use a real broker"
        )


def _check_running(transaction: Transaction) -> None:
    if transaction.over:
        raise IllegalStateError("the transaction is over: it was committed or rolled back")
