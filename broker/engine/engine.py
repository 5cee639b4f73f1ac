"""The broker's rules, put together: facts in, dispatches out through the subscriptions' outboxes.

Nothing here waits or reads a clock; ``now`` is milliseconds since 1970. One caller at a time.
After each call `take_touched` names the subscriptions that were given something, and `next_deadline` when to `tick`.
"""

from __future__ import annotations

from collections.abc import Sequence

from redelivery.broker.engine.config import BrokerConfig
from redelivery.broker.engine.dead_letters import DeadLetters
from redelivery.broker.engine.deadlines import Deadlines
from redelivery.broker.engine.queues import QueueState
from redelivery.broker.engine.stored import StoredMessage
from redelivery.broker.engine.subscriptions import Dispatch, Entry, Subscription, put_back
from redelivery.broker.engine.transactions import Transaction
from redelivery.model.destinations import Queue, Topic
from redelivery.model.errors import (
    IllegalStateError,
    ResourceAllocationError,
    TransactionRolledBackError,
    UnsupportedError,
)
from redelivery.policies.causes import expired_cause
from redelivery.policies.destination_map import matches


class Engine:
    """Queues, topics, what is in flight, transactions and dead letters of one broker."""

    def __init__(self, config: BrokerConfig) -> None:
        self.config = config
        self.queues: dict[str, QueueState] = {}
        self.memory_used = 0
        self._subscriptions: list[Subscription] = []
        self._dead_letters = DeadLetters(config)
        self._deadlines = Deadlines()
        self._touched: dict[Subscription, None] = {}
        self._stirred: dict[QueueState, None] = {}  # queues in which something may be given now
        self._order = 0

    # Sending

    def send(self, message: StoredMessage, now: int) -> None:
        """Put a message on its queue, or give it to the subscribers of its topic.

        Raises:
            ResourceAllocationError: the memory limit is reached.
        """
        self._check_room((message,))
        self._accept(message, now)
        self._dispatch(now)

    # Consuming

    def subscribe(self, subscription: Subscription, *, selector: str | None = None) -> None:
        """Make a consumer known; it is given nothing before `start`.

        Raises:
            UnsupportedError: it has a selector, or asks a queue for no_local.
        """
        if selector is not None:
            raise UnsupportedError(
                f"selector {selector!r}: the embedded broker does not evaluate selectors; choose among the messages"
                " in the consumer, or use a real broker"
            )
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

    def start(self, subscription: Subscription, now: int) -> None:
        """Open its window."""
        subscription.open = True
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
        self._subscriptions.remove(subscription)
        for queue in subscription.queues:
            queue.detach(subscription)
        for dispatch in subscription.in_flight.values():
            dispatch.seen = dispatch.seen or all_seen
        held = [dispatch for dispatch in subscription.in_flight.values() if dispatch.transaction is None]
        self._give_back(held, now, list(subscription.waiting.values()))
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
        """Give back, uncounted, what nobody has seen.

        Raises:
            IllegalStateError: as `acknowledge`.
        """
        self._check_held(dispatches)
        self._give_back(dispatches, now)
        self._dispatch(now)

    def poison(self, dispatch: Dispatch, cause: str | None, now: int) -> None:
        """Dead-letter one message; one of a topic is only forgotten, as there is no durable subscription.

        Raises:
            IllegalStateError: as `acknowledge`.
        """
        self._check_held((dispatch,))
        entry = dispatch.entry
        self._settle(dispatch)
        if entry.queue is not None:
            self._bury(entry.message, cause, now)
        self._refill(dispatch.subscription, now)
        self._dispatch(now)

    # Transactions

    def enlist_send(self, transaction: Transaction, message: StoredMessage) -> None:
        """The message is sent at the commit."""
        _check_running(transaction)
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

    # Inner steps

    def _accept(self, message: StoredMessage, now: int) -> None:
        if message.delivery_time > now:
            self.memory_used += message.size
            self._deadlines.delay(message)
        elif isinstance(message.destination, Topic):
            self._publish(message, now)
        else:
            self._enqueue(message)

    def _enqueue(self, message: StoredMessage) -> None:
        queue = self._queue(message.destination.name)
        entry = self._entry(message, queue)
        queue.add(entry)
        self._deadlines.watch(entry)
        self._stirred[queue] = None

    def _publish(self, message: StoredMessage, now: int) -> None:
        for subscription in self._subscriptions:
            if not isinstance(subscription.destination, Topic) or not matches(
                subscription.destination.name, message.destination.name
            ):
                continue
            if subscription.no_local and subscription.origin == message.origin:
                continue
            entry = self._entry(message, None)
            entry.wait_in(subscription.waiting)
            self._deadlines.watch(entry)
            self._refill(subscription, now)

    def _entry(self, message: StoredMessage, queue: QueueState | None) -> Entry:
        self._order += 1
        self.memory_used += message.size
        return Entry(message, self._order, queue)

    def _queue(self, name: str) -> QueueState:
        queue = self.queues.get(name)
        if queue is None:
            queue = self.queues[name] = QueueState(Queue(name))
            for subscription in self._subscriptions:
                self._attach(queue, subscription)
        return queue

    def _attach(self, queue: QueueState, subscription: Subscription) -> None:
        wanted = subscription.destination
        if isinstance(wanted, Queue) and matches(wanted.name, queue.destination.name):
            queue.consumers.append(subscription)
            subscription.queues.append(queue)

    def _refill(self, subscription: Subscription, now: int) -> None:
        """Room may have come up: first what waits for this one only."""
        while subscription.waiting and subscription.room:
            entry = next(iter(subscription.waiting.values()))
            if entry.message.expired(now):
                self._expire(entry, now)
            else:
                subscription.give(entry)
                self._touched[subscription] = None
        if subscription.room:
            self._stirred.update(dict.fromkeys(queue for queue in subscription.queues if queue.pending))
        self._dispatch(now)

    def _dispatch(self, now: int) -> None:
        while self._stirred:
            queue = next(iter(self._stirred))
            del self._stirred[queue]
            self._touched.update(dict.fromkeys(queue.dispatch(now, lambda entry: self._expire(entry, now))))

    def _expire(self, entry: Entry, now: int) -> None:
        entry.leave()
        self._forget(entry)
        if entry.queue is not None:
            self._bury(entry.message, expired_cause(entry.message.expiration), now, expired=True)

    def _bury(self, message: StoredMessage, cause: str | None, now: int, *, expired: bool = False) -> None:
        letter = self._dead_letters.letter(message, cause, now, expired=expired)
        if letter is not None:
            self._accept(letter, now)

    def _settle(self, dispatch: Dispatch) -> None:
        dispatch.subscription.take_back(dispatch)
        self._forget(dispatch.entry)

    def _forget(self, entry: Entry) -> None:
        self.memory_used -= entry.message.size
        if entry.queue is not None:
            del entry.queue.entries[entry.order]

    def _give_back(self, dispatches: Sequence[Dispatch], now: int, unsent: Sequence[Entry] = ()) -> None:
        """Dispatched and merely reserved entries wait again; a topic's are forgotten with their subscription."""
        homes: dict[QueueState, list[Entry]] = {}
        for dispatch in dispatches:
            dispatch.subscription.take_back(dispatch)
            dispatch.entry.redeliveries += dispatch.seen
            if dispatch.entry.queue is None and not dispatch.subscription.closed:
                put_back(dispatch.subscription.waiting, (dispatch.entry,))
            else:
                self._return(dispatch.entry, homes)
        for entry in unsent:
            entry.leave()
            self._return(entry, homes)
        for queue, entries in homes.items():
            owners = queue.restore(entries)
            self._stirred[queue] = None
            for owner in owners:
                self._refill(owner, now)

    def _return(self, entry: Entry, homes: dict[QueueState, list[Entry]]) -> None:
        if entry.queue is None:
            self._forget(entry)
        else:
            homes.setdefault(entry.queue, []).append(entry)
            self._deadlines.watch(entry)

    def _check_room(self, messages: Sequence[StoredMessage], freed: int = 0) -> None:
        limit = self.config.memory_limit
        if limit is None or not messages:
            return
        needed = sum(message.size for message in messages)
        if self.memory_used - freed + needed > limit:
            raise ResourceAllocationError(
                f"the broker's memory limit of {limit} bytes is reached: {self.memory_used} are in use, {needed} more"
                " were sent; consume messages or raise BrokerConfig.memory_limit"
            )

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


def _check_running(transaction: Transaction) -> None:
    if transaction.over:
        raise IllegalStateError("the transaction is over: it was committed or rolled back")
