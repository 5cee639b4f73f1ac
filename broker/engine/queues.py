"""A queue: first in, first out, each message to one consumer in turn; message groups stick to their consumer.

A subscription to a topic is a queue, too, which is bound to the topic and gets a copy of each message.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from redelivery.broker.engine.entries import Backlog, Entry, put_back
from redelivery.broker.engine.stored import StoredMessage
from redelivery.broker.engine.subscriptions import SLACK, Cursor, Subscription
from redelivery.broker.store.places import Places
from redelivery.model.destinations import Destination, SubscriptionName, Topic
from redelivery.model.selectors.selector import Selector
from redelivery.policies.brokers.classic.arrivals import Eviction
from redelivery.policies.destinations.patterns import matches

SUBSCRIPTION: Final = "topic-subscription://"  # how the names of bound queues begin; no client can consume one by name

# ActiveMQ's CachedMessageGroupMap: a group that was silent while so many others spoke may move to another consumer.
REMEMBERED_GROUPS = 1024
_CLOSE_GROUP = -1  # JMSXGroupSeq that ends a group


@dataclass(frozen=True, slots=True)
class Binding:
    """The messages that a subscription to a topic gets, and its name if it has one.

    ``no_local``: not those of this origin; ``selector``: only those that it matches, as they are sent, so that its
    consumers need not look at them again. ``client_id``: whose name it is, None for the broker's own.
    """

    topic: Topic
    no_local: str | None = None
    selector: Selector | None = None
    named: SubscriptionName | None = None
    client_id: str | None = None

    @property
    def durable(self) -> bool:
        """True: it stays when its consumers leave, and what fails in it for good becomes a dead letter."""
        return self.named is not None and self.named.durable

    @property
    def subscriber(self) -> tuple[str | None, str] | None:
        """The client id and the name of a durable subscription."""
        return (self.client_id, self.named.name) if self.named is not None and self.named.durable else None

    def wants(self, message: StoredMessage) -> bool:
        """Check whether a message that was sent to a topic is for this subscription."""
        return (
            self.no_local != message.origin
            and matches(self.topic.name, message.destination.name)
            and (self.selector is None or self.selector.matches(message.value_of))
        )


@dataclass(slots=True, eq=False, repr=False)
class QueueState:
    """The messages and consumers of one queue.

    ``enqueued``: how many messages have come, and of a store those that were there when the broker started.
    ``removed``: why, once it was: what is released to it is then dropped for this reason. ``on_disk``: the number of
    messages that the journal alone holds and that never were in memory; ``front``: the highest order that was, before
    all of those. ``left``: where those wait that were in memory and that only the journal has again, as none of the
    consumers that had room wanted them. ``paged_out``: the number of these, and of those that wait there for the owners
    of groups.
    """

    name: str
    destination: Destination
    binding: Binding | None = None
    enqueued: int = 0
    entries: dict[int, Entry] = field(default_factory=dict)  # all of them, waiting or in flight, in order
    pending: Backlog = field(default_factory=OrderedDict)  # for any consumer with room
    parked: Backlog = field(default_factory=OrderedDict)  # not to be dispatched yet: they wait for their redelivery
    consumers: deque[Subscription] = field(default_factory=deque)
    exclusives: list[Subscription] = field(default_factory=list)  # that want all of it; the first gets all of it
    # Of the consumers with a selector, or that have refused a message.
    cursors: dict[Subscription, Cursor] = field(default_factory=dict)
    # Where there are cursors: what is pending, in order, and some that has left.
    arrived: list[Entry] = field(default_factory=list)
    # Of several owners of a group one each, by their selectors.
    groups: OrderedDict[str, list[Subscription]] = field(default_factory=OrderedDict)
    loads: Counter[Subscription] = field(default_factory=Counter)  # how many groups each consumer has
    removed: str | None = None
    slow: tuple[int, Eviction] | None = None  # how many may wait for its subscriber, and which go
    on_disk: int = 0
    front: int = 0
    left: Places = field(default_factory=Places)
    paged_out: int = 0
    tried: int = 0  # so many wait in memory that it was no use to look for what can be left to the journal

    def __len__(self) -> int:
        """The number of messages that the queue holds, those in flight included."""
        return len(self.entries) + self.on_disk + self.paged_out

    def __bool__(self) -> bool:
        return True

    @property
    def holds_some(self) -> bool:
        """True: something waits for any consumer."""
        return bool(self.pending or self.on_disk or self.paged_out)

    def offer(self) -> None:
        """Note for consumers without room that something waits here, for the time when they have."""
        if self.holds_some:
            for consumer in self.consumers:
                if not consumer.ready:
                    consumer.candidates[self] = None

    @property
    def lacks(self) -> int | None:
        """The place behind which messages are needed next that only the journal has; None: none are needed."""
        if not (self.on_disk or self.paged_out):
            return None
        gaps = [self._gap(consumer) for consumer in self.exclusives[:1] or self.consumers if consumer.ready]
        if not self.pending:
            gaps.append(self.left.first)
        return min((self.front if gap is None else gap - 1 for gap in gaps if self.on_disk or gap), default=None)

    def _gap(self, consumer: Subscription) -> int | None:
        """The first place that it has not passed and whose message waits for any, and is not in memory."""
        if not self.paged_out:
            return None
        cursor = self.cursors.get(consumer)
        return self.left.first if cursor is None else self.left.after(cursor.passed)

    @property
    def stays(self) -> bool:
        """True: the queue stays when it holds nothing and nobody consumes it."""
        return self.binding is not None and self.binding.durable and self.removed is None

    @property
    def makes_dead_letters(self) -> bool:
        """True: what the queue loses becomes a dead letter. Not in one that is not durable, as with ActiveMQ."""
        return self.binding is None or self.binding.durable

    def park(self, entry: Entry) -> None:
        """A message at the tail that waits for its redelivery."""
        self._append(entry)
        entry.wait_in(self.parked)

    def add(self, entry: Entry) -> None:
        """A new message, at the tail."""
        self._append(entry)
        entry.wait_in(self.pending)
        if self.cursors:
            self.arrived.append(entry)
            if len(self.arrived) > SLACK + 2 * len(self.pending):
                self.arrived = list(self.pending.values())

    def _append(self, entry: Entry) -> None:
        self.entries[entry.order] = entry
        self.front = entry.order

    def look_again(self, place: int | None = None) -> None:
        """Note that what is pending has changed before its tail, or waits from that place on as if it had come now."""
        if self.cursors:
            self.arrived = list(self.pending.values())
            if place is not None:
                for cursor in self.cursors.values():
                    cursor.go_back(place)

    def restore(self, entries: Iterable[Entry]) -> list[Subscription]:
        """Put messages that were in flight where they stood, those of a group to its consumer; returns these."""
        for_any: list[Entry] = []
        owners: list[Subscription] = []
        for entry in entries:
            owner = None if self.exclusives else self._owner(entry)
            if owner is None:
                for_any.append(entry)
            else:
                put_back(owner.waiting, (entry,))
                owners.append(owner)
        put_back(self.pending, for_any)
        for cursor in self.cursors.values():
            for entry in for_any:
                cursor.put_back(entry, self.pending)
        return owners

    def attach(self, subscription: Subscription) -> None:
        """A consumer comes."""
        self.consumers.append(subscription)
        if self.holds_some:
            subscription.candidates[self] = None
        if subscription.exclusive:
            self.exclusives.append(subscription)
        if subscription.selector is not None:
            self._follow(subscription)

    def refuse(self, entry: Entry, subscription: Subscription) -> None:
        """Never deliver the message to this consumer again: to another one, or it is kept until one comes."""
        cursor = self.cursors.get(subscription) or self._follow(subscription)
        if len(cursor.refused) > SLACK + 2 * len(self.entries) and not self.paged_out:
            cursor.refused &= self.entries.keys()
        cursor.refused.add(entry.order)

    def _follow(self, subscription: Subscription) -> Cursor:
        self.arrived = list(self.pending.values())
        cursor = self.cursors[subscription] = Cursor(subscription.selector)
        return cursor

    def detach(self, subscription: Subscription) -> None:
        """A consumer leaves; its groups may go to any other."""
        self.consumers.remove(subscription)
        if subscription.exclusive:
            self.exclusives.remove(subscription)
        self.loads.pop(subscription, None)
        if self.cursors.pop(subscription, None) is not None and not self.cursors:
            self.arrived = []
        for group in [name for name, owners in self.groups.items() if subscription in owners]:
            self.groups[group].remove(subscription)
            if not self.groups[group]:
                del self.groups[group]
        places = subscription.later.pop(self.name, None)
        if places is not None:
            self.left.add(places.some(0, len(places)))
            self.look_again(places.first)

    def dispatch(self, now: int, give: Callable[[Subscription, Entry], None], expire: Callable[[Entry], None]) -> None:
        """``give`` waiting messages to consumers with room, and ``expire`` those whose time is over."""
        while self.pending:
            ready, entry = self._next()
            if ready is None or entry is None:
                break
            if entry.message.expired(now):
                expire(entry)
                continue
            consumer = self._group_consumer(entry, ready) if entry.message.group_id and not self.exclusives else ready
            if consumer.ready:
                give(consumer, entry)
                if consumer is ready:
                    self.consumers.rotate(-1)
            else:
                entry.leave()
                if consumer.waiting and next(reversed(consumer.waiting)) > entry.order:
                    put_back(consumer.waiting, (entry,))
                else:
                    entry.wait_in(consumer.waiting)

    def _next(self) -> tuple[Subscription | None, Entry | None]:
        """The next consumer with room for something that waits, and what: the first that it wants."""
        if self.exclusives:  # ActiveMQ's Queue: the one that came first, until it leaves
            return self.exclusives[0], self._next_of(self.exclusives[0])
        for _ in range(len(self.consumers)):
            entry = self._next_of(self.consumers[0])
            if entry is not None:
                return self.consumers[0], entry
            self.consumers.rotate(-1)
        return None, None

    def _next_of(self, consumer: Subscription) -> Entry | None:
        """The first that waits and that the consumer wants; None, too, where it has no room."""
        if not consumer.ready:
            return None
        cursor = self.cursors.get(consumer) if self.cursors else None
        gap = self._gap(consumer)
        if cursor is not None:
            return cursor.next(self.pending, self.arrived, gap)
        entry = next(iter(self.pending.values()))
        return entry if gap is None or entry.order < gap else None

    def _owner(self, entry: Entry) -> Subscription | None:
        """The consumer that has the message's group: of several the first that wants the message."""
        for owner in self.groups.get(entry.message.group_id or "", ()):
            if self._wants(owner, entry):
                return owner
        return None

    def _group_consumer(self, entry: Entry, ready: Subscription) -> Subscription:
        group, owner = entry.message.group_id or "", self._owner(entry)
        if entry.message.group_sequence == _CLOSE_GROUP:
            self._ended(self.groups.pop(group, ()))
            return owner or ready
        owners = self.groups.setdefault(group, [])
        if owner is None:
            owner = self._least_loaded(entry, ready)
            owners.append(owner)
            self.loads[owner] += 1
        self.groups.move_to_end(group)
        if len(self.groups) > REMEMBERED_GROUPS:
            self._ended(self.groups.popitem(last=False)[1])
        return owner

    def _least_loaded(self, entry: Entry, ready: Subscription) -> Subscription:
        """The consumer that gets a new group: of those with room that want the message one with the fewest groups."""
        return min(
            (each for each in self.consumers if each is ready or (each.ready and self._wants(each, entry))),
            key=self.loads.__getitem__,
        )

    def _wants(self, consumer: Subscription, entry: Entry) -> bool:
        cursor = self.cursors.get(consumer)
        return cursor is None or cursor.matches(entry)

    def _ended(self, owners: Iterable[Subscription]) -> None:
        """One of the groups of these consumers has ended."""
        for owner in owners:
            self.loads[owner] -= 1
