"""The broker's rules, put together: facts in, dispatches out through the subscriptions' outboxes.

Nothing here waits or reads a clock; ``now`` is milliseconds since 1970. One caller at a time.
After each call `take_touched` names the subscriptions that were given something, and `next_deadline` when to `tick`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from redelivery.broker.engine import moves
from redelivery.broker.engine.config import BrokerConfig
from redelivery.broker.engine.entries import Entry
from redelivery.broker.engine.observer import EngineObserver
from redelivery.broker.engine.queues import QueueState
from redelivery.broker.engine.state import (
    EngineState,
    check_browsable,
    check_held,
    check_no_local,
    check_open,
    check_selector,
)
from redelivery.broker.engine.stored import END_OF_QUEUE, StoredMessage
from redelivery.broker.engine.subscriptions import CreditSubscription, Dispatch, Subscription
from redelivery.broker.engine.transactions import Transaction
from redelivery.model.destinations import Destination, Queue
from redelivery.model.errors import ResourceAllocationError, TransactionRolledBackError


class Engine:
    """Queues, topics, what is in flight, transactions and dead letters of one broker."""

    def __init__(self, config: BrokerConfig, observer: EngineObserver | None = None) -> None:
        self._state = EngineState(config, observer)

    # Sending

    def send(self, message: StoredMessage, now: int) -> None:
        """Put a message on its queue, or give it to the subscribers of its topic.

        Raises:
            ResourceAllocationError: the memory limit is reached.
            InvalidDestinationError: the temporary destination was removed.
        """
        self._state.check_exists(message.destination)
        self._state.check_memory((message,))
        moves.accept(self._state, message, now)
        moves.dispatch_ready(self._state, now)

    # Consuming

    def subscribe(self, subscription: Subscription, *, selector: str | None = None) -> None:
        """Make a consumer known; it is given nothing before `start`.

        Raises:
            UnsupportedError: it has a selector, or asks a queue for no_local.
            InvalidDestinationError: the temporary destination was removed.
        """
        state = self._state
        state.check_exists(subscription.destination)
        check_selector(selector)
        check_no_local(subscription)
        if isinstance(subscription.destination, Queue):
            if not subscription.destination.is_pattern:
                state.queue(subscription.destination.name)
            for queue in state.queues.values():
                state.attach(queue, subscription)
        state.subscriptions.append(subscription)

    def browse(self, subscription: Subscription, *, selector: str | None = None) -> None:
        """Make a browser known: from `start` on it is given copies of what its queue holds now, then `END_OF_QUEUE`.

        Those that consumers hold are among them, each with its count. Settling a copy changes nothing.

        Raises:
            UnsupportedError: it has a selector, or browses a pattern.
            InvalidDestinationError: it browses a topic, or the temporary queue was removed.
        """
        self._state.check_exists(subscription.destination)
        check_selector(selector)
        for entry in self.entries(check_browsable(subscription.destination).name):
            entry.copy().wait_in(subscription.waiting)
        end = self._state.new_entry(END_OF_QUEUE, None)
        end.browsed = True
        end.wait_in(subscription.waiting)

    def start(self, subscription: Subscription, now: int) -> None:
        """Open its window."""
        subscription.open = True
        moves.refill(self._state, subscription, now)

    def grant(self, subscription: CreditSubscription, credit: int, now: int) -> None:
        """Let it take so many messages from now on, whatever it took before."""
        subscription.credit = credit
        moves.refill(self._state, subscription, now)

    def stop(self, subscription: Subscription) -> None:
        """Close its window: it keeps what it has, and is given no more until `start`."""
        subscription.open = False

    def unsubscribe(self, subscription: Subscription, now: int, *, all_seen: bool) -> None:
        """The consumer is gone: what it held is put back where it stood, counted as delivered if it was seen.

        ``all_seen`` counts everything: the broker cannot know better after an abrupt loss (ActiveMQ's
        LAST_DELIVERED_UNKNOWN). What a transaction has acknowledged stays the transaction's.
        """
        if subscription.closed:
            return
        subscription.closed, subscription.open = True, False
        queues = self._state.detach(subscription)
        for dispatch in subscription.in_flight.values():
            dispatch.seen = dispatch.seen or all_seen
        held = [dispatch for dispatch in subscription.in_flight.values() if not dispatch.enlisted]
        moves.release(self._state, held, now, list(subscription.waiting.values()))
        for name in queues:
            self._state.tidy(name)
        moves.dispatch_ready(self._state, now)

    def mark_seen(self, dispatches: Sequence[Dispatch], now: int) -> None:
        """The application has them; they no longer fill the window."""
        for dispatch in dispatches:
            dispatch.seen = True
            dispatch.subscription.widen(dispatch)
        moves.refill_all(self._state, dispatches, now)

    def acknowledge(self, dispatches: Sequence[Dispatch], now: int) -> None:
        """Remove the messages.

        Raises:
            IllegalStateError: one is not in flight, or a transaction has it; then none is acknowledged.
        """
        check_held(dispatches)
        for dispatch in dispatches:
            moves.acknowledge(self._state, dispatch)
        moves.refill_all(self._state, dispatches, now)

    def release(self, dispatches: Sequence[Dispatch], now: int) -> None:
        """Let them wait again; what is not `seen` is not counted.

        Raises:
            IllegalStateError: as `acknowledge`.
        """
        check_held(dispatches)
        moves.release(self._state, dispatches, now)
        moves.dispatch_ready(self._state, now)

    def poison(self, dispatch: Dispatch, cause: str | None, now: int, *, expired: bool = False) -> None:
        """Dead-letter one message; one of a topic is only removed, as there is no durable subscription.

        ``expired``: the consumer found it so.

        Raises:
            IllegalStateError: as `acknowledge`.
        """
        check_held((dispatch,))
        moves.settle(self._state, dispatch)
        dispatch.entry.redeliveries += dispatch.seen
        if not dispatch.entry.browsed:
            moves.dead_letter(self._state, dispatch.entry, cause, now, expired=expired)
        moves.refill(self._state, dispatch.subscription, now)
        moves.dispatch_ready(self._state, now)

    # Transactions

    def enlist_send(self, transaction: Transaction, message: StoredMessage) -> None:
        """Send the message at the commit; one to a temporary destination that is removed by then is dropped.

        Raises:
            InvalidDestinationError: the temporary destination was removed already.
        """
        check_open(transaction)
        self._state.check_exists(message.destination)
        transaction.sends.append(message)

    def enlist(self, transaction: Transaction, dispatches: Sequence[Dispatch], now: int) -> None:
        """Acknowledge them at the commit; the window moves past them at once.

        Raises:
            IllegalStateError: as `acknowledge`.
        """
        check_open(transaction)
        check_held(dispatches)
        for dispatch in dispatches:
            dispatch.enlisted = True
            dispatch.subscription.widen(dispatch)
        transaction.acknowledged.extend(dispatches)
        moves.refill_all(self._state, dispatches, now)

    def withdraw(self, transaction: Transaction, dispatch: Dispatch) -> None:
        """Take a dispatch out of the transaction: it is unacknowledged again, at the same consumer."""
        check_open(transaction)
        transaction.acknowledged.remove(dispatch)
        dispatch.enlisted = False

    def commit(self, transaction: Transaction, now: int) -> None:
        """Do all of it.

        Raises:
            TransactionRolledBackError: there is no room for the sends; nothing was done.
        """
        check_open(transaction)
        freed = sum(dispatch.message.size for dispatch in transaction.acknowledged)
        try:
            self._state.check_memory(transaction.sends, freed)
        except ResourceAllocationError as error:
            self.rollback(transaction, now)
            raise TransactionRolledBackError(f"the transaction was rolled back: {error}") from error
        transaction.ended = True
        for dispatch in transaction.acknowledged:
            moves.acknowledge(self._state, dispatch)
        for message in transaction.sends:
            moves.accept(self._state, message, now)
        if self._state.observer is not None:
            self._state.observer.committed(len(transaction.sends), len(transaction.acknowledged))
        moves.refill_all(self._state, transaction.acknowledged, now)
        moves.dispatch_ready(self._state, now)

    def rollback(self, transaction: Transaction, now: int) -> None:
        """Do nothing of it: acknowledged messages are dispatched and unacknowledged again, at the same consumer."""
        check_open(transaction)
        transaction.ended = True
        for dispatch in transaction.acknowledged:
            dispatch.enlisted = False
        orphans = [dispatch for dispatch in transaction.acknowledged if dispatch.subscription.closed]
        moves.release(self._state, orphans, now)
        moves.dispatch_ready(self._state, now)

    # Temporary destinations

    def make_temporary(self, destination: Destination) -> None:
        """Add a destination whose name begins with `TEMPORARY`: it can be sent to and consumed from now on."""
        self._state.temporary.add(destination.name)

    def drop_temporary(self, destination: Destination) -> None:
        """Remove it with what it holds; sending to it fails from now on. Idempotent."""
        self._state.temporary.discard(destination.name)
        queue = self._state.queues.get(destination.name)
        if queue is not None and isinstance(destination, Queue):
            queue.removed = True
            for entry in [entry for entry in queue.entries.values() if entry.backlog is not None]:
                entry.leave()
                moves.drop(self._state, entry, "its temporary queue was removed")

    def check_exists(self, destination: Destination) -> None:
        """Raise InvalidDestinationError where it is a temporary destination that was removed."""
        self._state.check_exists(destination)

    # Time

    def tick(self, now: int) -> None:
        """Deliver the delayed messages that are due, dead-letter the waiting ones that have expired."""
        for message in self._state.deadlines.due(now):
            self._state.memory_used -= message.size
            moves.accept(self._state, message, now)
        for entry in self._state.deadlines.expired(now):
            moves.expire(self._state, entry, now)
        moves.dispatch_ready(self._state, now)

    def next_deadline(self) -> int | None:
        """When `tick` has something to do, None for never."""
        return self._state.deadlines.next()

    # Looking

    @property
    def queues(self) -> Mapping[str, QueueState]:
        """All queues, by name."""
        return self._state.queues

    @property
    def memory_used(self) -> int:
        """Bytes that messages take, as `BrokerConfig.memory_limit` counts them."""
        return self._state.memory_used

    def depth(self, name: str) -> int:
        """How many messages a queue holds, those in flight included, delayed ones not."""
        queue = self._state.queues.get(name)
        return len(queue.entries) if queue else 0

    def entries(self, name: str) -> list[Entry]:
        """What a queue holds, in order."""
        queue = self._state.queues.get(name)
        return list(queue.entries.values()) if queue else []

    def take_touched(self) -> list[Subscription]:
        """The subscriptions that were given something since the last call."""
        touched = list(self._state.touched)
        self._state.touched.clear()
        return touched
