"""The broker's rules, put together: facts in, dispatches out through the subscriptions' outboxes.

Nothing here waits or reads a clock; ``now`` is milliseconds since 1970. One caller at a time.
After each call `take_touched` names the subscriptions that were given something, and `next_deadline` when to `tick`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from redelivery.broker.engine import bindings, moves, statistics
from redelivery.broker.engine.config import BrokerConfig
from redelivery.broker.engine.entries import Entry
from redelivery.broker.engine.observer import EngineObserver
from redelivery.broker.engine.queues import QueueState
from redelivery.broker.engine.rules.rules import Manner
from redelivery.broker.engine.state import (
    EngineState,
    check_browsable,
    check_held,
    check_no_local,
    check_open,
    check_single,
)
from redelivery.broker.engine.stored import StoredMessage
from redelivery.broker.engine.subscriptions import CreditSubscription, Dispatch, Subscription
from redelivery.broker.engine.transactions import Transaction
from redelivery.broker.store import paging
from redelivery.broker.store.browsing import BrowsedQueue
from redelivery.broker.store.journal import Contents, Journal
from redelivery.model.destinations import Destination, Queue, Topic
from redelivery.model.errors import ResourceAllocationError, TransactionRolledBackError
from redelivery.model.selectors.selector import Selector


class Engine:
    """Queues, topics, what is in flight, transactions and dead letters of one broker.

    With a journal, `deliver` passes dispatches on to their consumers; without, that is done at once.
    """

    def __init__(
        self, config: BrokerConfig, observer: EngineObserver | None = None, journal: Journal | None = None
    ) -> None:
        self._state = EngineState(config, observer, journal)
        self.rules = self._state.rules
        self.slow = self._state.slow

    def restore(self, contents: Contents, now: int) -> None:
        """Begin with what a journal kept."""
        paging.restore(self._state, contents, now)

    def begin(self) -> None:
        """A call begins: it reads at most one page of a long queue from the journal, and `tick` goes on."""
        self._state.pages = 1

    def searches(self, subscription: Subscription) -> bool:
        """Check whether there is more to be read for a consumer that has room."""
        return subscription.room and moves.searches(self._state, subscription)

    def deliver(self, durable: int) -> None:
        """Let consumers see what was dispatched to them up to this step of the journal, and not taken back since."""
        given = self._state.given
        while given and given[0][0] <= durable:
            dispatch = given.popleft()[1]
            dispatch.subscription.undelivered -= 1
            if dispatch.subscription.in_flight.get(dispatch.number) is dispatch:
                dispatch.subscription.outbox.append(dispatch)
                self._state.touched[dispatch.subscription] = None

    def count_seen(self) -> None:
        """The broker ends: what its consumers have seen and not acknowledged counts as delivered."""
        moves.count_seen(self._state)

    # Sending

    def send(self, message: StoredMessage, now: int) -> None:
        """Put a message on its queue, or on that of each subscription to its topic; of a composite one, each of them.

        Raises:
            ResourceAllocationError: the memory limit is reached.
            InvalidDestinationError: the temporary destination was removed.
        """
        parts = self._state.parts(message)
        self._state.check_memory(parts)
        for part in parts:
            moves.accept(self._state, statistics.answer(self._state, part, now) or part, now)
        moves.dispatch_ready(self._state, now)

    # Consuming

    def subscribe(self, subscription: Subscription, *, selector: Selector | None = None) -> None:
        """Make a consumer known; it is given nothing before `start`, and nothing that its selector does not match.

        Raises:
            UnsupportedError: it asks a queue for no_local, or its destination is composite.
            InvalidDestinationError: the temporary destination was removed.
            IllegalStateError: its named subscription is in use, or another one; or it needs a client id.
        """
        state = self._state
        state.check_exists(subscription.destination)
        check_single(subscription.destination)
        check_no_local(subscription)
        wanted = subscription.destination
        if isinstance(wanted, Topic):
            bindings.subscribe(state, subscription, selector)
            return
        subscription.selector = selector
        if not wanted.is_pattern:
            state.attach_named(wanted.name, subscription)
        for queue in state.queues.values():
            state.attach_matching(queue, subscription)
        state.subscriptions.append(subscription)

    def browse(self, subscription: Subscription, *, selector: Selector | None = None) -> None:
        """Make a browser known: from `start` on it is given copies of what its queue holds now, then `END_OF_QUEUE`.

        Those that consumers hold are among them, each with its count. Settling a copy changes nothing.

        Raises:
            UnsupportedError: it browses a pattern or a composite destination.
            InvalidDestinationError: it browses a topic, or the temporary queue was removed.
        """
        self._state.check_exists(subscription.destination)
        subscription.browsed = self.browsed(check_browsable(subscription.destination).name, selector)

    def start(self, subscription: Subscription, now: int) -> None:
        """Open its window."""
        subscription.open, subscription.settled_at = True, subscription.settled_at or now
        moves.refill(self._state, subscription, now)

    def grant(self, subscription: CreditSubscription, credit: int, now: int) -> None:
        """Let it take so many messages from now on, whatever it took before."""
        subscription.credit = credit
        moves.refill(self._state, subscription, now)

    def stop(self, subscription: Subscription) -> None:
        """Close its window: it keeps what it has, and is given no more until `start`."""
        subscription.open = False

    def unsubscribe(
        self, subscription: Subscription, now: int, *, all_seen: bool, manner: Manner = Manner.CLOSED
    ) -> None:
        """The consumer is gone: what it held is put back where it stood, counted as the broker's rules say.

        A subscription to a topic that is not durable goes with its last consumer, and so does what it holds.
        ``all_seen`` counts everything: the broker cannot know better after an abrupt loss (ActiveMQ's
        LAST_DELIVERED_UNKNOWN). What a transaction has acknowledged stays the transaction's.
        """
        if subscription.closed:
            return
        subscription.closed, subscription.open = True, False
        queues = self._state.detach(subscription)
        for queue in [self._state.queues[name] for name in queues]:
            if queue.binding is not None and not queue.binding.durable and not queue.consumers:
                bindings.remove_queue(self._state, queue, "its subscriber has gone")
        for dispatch in subscription.in_flight.values():
            dispatch.seen = dispatch.seen or all_seen
        held = [dispatch for dispatch in subscription.in_flight.values() if not dispatch.enlisted]
        moves.release(self._state, held, now, manner, list(subscription.waiting.values()))
        for name in queues:
            self._state.tidy(name)
            moves.wake(self._state, name)  # what was kept for an exclusive consumer is for others now
        moves.dispatch_ready(self._state, now)

    def remove_subscription(self, name: str, client_id: str | None) -> None:
        """Remove a durable subscription, shared or not, with what it holds.

        Raises:
            InvalidDestinationError: there is none.
            IllegalStateError: it has a consumer, or a transaction that is open has messages of it.
        """
        bindings.unsubscribe(self._state, name, client_id)

    def topic_of(self, name: str, client_id: str | None) -> Destination:
        """The topic of a durable subscription. Raises as `remove_subscription`."""
        return bindings.unused(self._state, name, client_id).destination

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
        check_held(dispatches, now)
        for dispatch in dispatches:
            moves.acknowledge(self._state, dispatch)
        moves.refill_all(self._state, dispatches, now)

    def release(self, dispatches: Sequence[Dispatch], now: int, manner: Manner | None = None) -> None:
        """Release what its consumer has not acknowledged: it waits again, or has failed for good.

        The broker's rules say which; without a ``manner`` what is `seen` has failed there, and the rest was not used.
        Raises IllegalStateError: as `acknowledge`.
        """
        check_held(dispatches, now)
        moves.release(self._state, dispatches, now, manner)
        moves.dispatch_ready(self._state, now)

    def poison(self, dispatch: Dispatch, cause: str | None, now: int, manner: Manner = Manner.REJECTED) -> None:
        """Dead-letter one message; one of a topic is only removed where its subscription is not durable.

        A broker whose rules say that it is only returned does that. Raises IllegalStateError: as `acknowledge`.
        """
        check_held((dispatch,), now)
        moves.poison(self._state, dispatch, cause, now, manner)
        moves.refill(self._state, dispatch.subscription, now)
        moves.dispatch_ready(self._state, now)

    # Transactions

    def enlist_send(self, transaction: Transaction, message: StoredMessage) -> None:
        """Send the message at the commit; one to a temporary destination that is removed by then is dropped.

        Raises:
            InvalidDestinationError: the temporary destination was removed already.
        """
        check_open(transaction)
        transaction.sends += self._state.parts(message)

    def enlist(self, transaction: Transaction, dispatches: Sequence[Dispatch], now: int) -> None:
        """Acknowledge them at the commit; the window moves past them at once.

        Raises:
            IllegalStateError: as `acknowledge`.
        """
        check_open(transaction)
        check_held(dispatches, now)
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
        """Do all of it. Raises TransactionRolledBackError: there is no room for the sends; nothing was done."""
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
        moves.release(self._state, [d for d in transaction.acknowledged if d.subscription.closed], now, Manner.CLOSED)
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
            bindings.remove_queue(self._state, queue, "its temporary queue was removed")

    def check_exists(self, destination: Destination) -> None:
        """Raise InvalidDestinationError where it is a temporary destination that was removed."""
        self._state.check_exists(destination)

    # Time

    def tick(self, now: int) -> None:
        """Deliver the delayed messages that are due, dead-letter the waiting ones that have expired."""
        for message in paging.due(self._state, now):
            moves.accept(self._state, message, now)
        for entry in self._state.deadlines.expired(now):
            moves.expire(self._state, entry, now)
        moves.redeliver(self._state, now)
        self.slow.check(now)
        moves.go_on(self._state, now)

    def next_deadline(self) -> int | None:
        """The time when `tick` has something to do, None for never."""
        return self._state.next_deadline()

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
        """The number of messages that a queue holds, those in flight included, delayed ones not."""
        return len(self._state.queues.get(self._state.resolved(name), ()))

    def entries(self, name: str, selector: Selector | None = None) -> list[Entry]:
        """The messages that a queue holds, in order, and a selector matches; all of it is read."""
        browsed = self.browsed(name, selector)
        while browsed.more:
            browsed.read()
        return list(browsed.found)

    def browsed(self, name: str, selector: Selector | None = None) -> BrowsedQueue:
        """The same, of which only what is in memory is found already."""
        return BrowsedQueue(self._state, self._state.resolved(name), selector)

    def take_touched(self) -> list[Subscription]:
        """The subscriptions that were given something since the last call."""
        touched, self._state.touched = list(self._state.touched), {}
        return touched
