"""Where the messages are, and how they move: in, to a consumer, back, and away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from redelivery.broker.engine.config import BrokerConfig
from redelivery.broker.engine.dead_letters import DeadLetters
from redelivery.broker.engine.deadlines import Deadlines
from redelivery.broker.engine.queues import QueueState
from redelivery.broker.engine.stored import StoredMessage
from redelivery.broker.engine.subscriptions import Dispatch, Entry, Subscription, put_back
from redelivery.model.destinations import Destination, Queue, Topic
from redelivery.model.errors import InvalidDestinationError, ResourceAllocationError
from redelivery.policies.causes import expired_cause
from redelivery.policies.destination_map import matches

TEMPORARY: Final = ("temp-queue://", "temp-topic://")  # the broker's own names; they exist for a while


class Holding:
    """The state of a broker and its inner steps; `Engine` says when they are taken."""

    def __init__(self, config: BrokerConfig) -> None:
        self.config = config
        self.queues: dict[str, QueueState] = {}
        self.memory_used = 0
        self._subscriptions: list[Subscription] = []
        self._dead_letters = DeadLetters(config)
        self._deadlines = Deadlines()
        self._touched: dict[Subscription, None] = {}
        self._stirred: dict[QueueState, None] = {}  # queues in which something may be given now
        self._temporary: set[str] = set()
        self._order = 0

    def check_there(self, destination: Destination) -> None:
        """Raise InvalidDestinationError where it is a temporary one that is gone."""
        if destination.name.startswith(TEMPORARY) and destination.name not in self._temporary:
            raise InvalidDestinationError(f"{destination.name} does not exist: who made it has removed it, or has left")

    def _accept(self, message: StoredMessage, now: int) -> None:
        if message.destination.name.startswith(TEMPORARY) and message.destination.name not in self._temporary:
            return  # it went meanwhile, and with it whoever could have consumed it
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
        if wanted.is_pattern and queue.destination.name.startswith(TEMPORARY):
            return
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
            self._tidy(entry.queue)

    def _tidy(self, queue: QueueState) -> None:
        """A queue that holds nothing and that nobody consumes is forgotten: names may be made by the thousand."""
        if not queue.entries and not queue.consumers and self.queues.get(queue.destination.name) is queue:
            del self.queues[queue.destination.name]

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
        for subscription in {dispatch.subscription: None for dispatch in dispatches}:
            self._refill(subscription, now)  # what waits for it alone: it has room now

    def _return(self, entry: Entry, homes: dict[QueueState, list[Entry]]) -> None:
        if entry.queue is None or entry.queue.gone:
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
