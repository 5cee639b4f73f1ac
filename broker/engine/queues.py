"""A queue: first in, first out, each message to one consumer in turn; message groups stick to their consumer."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable

from redelivery.broker.engine.entries import Backlog, Entry, put_back
from redelivery.broker.engine.subscriptions import Subscription
from redelivery.model.destinations import Queue

# ActiveMQ's CachedMessageGroupMap: a group that was silent while so many others spoke may move to another consumer.
REMEMBERED_GROUPS = 1024
_CLOSE_GROUP = -1  # JMSXGroupSeq that ends a group


class QueueState:
    """The messages and consumers of one queue."""

    __slots__ = ("consumers", "destination", "entries", "groups", "pending", "removed")

    def __init__(self, destination: Queue) -> None:
        self.destination = destination
        self.entries: dict[int, Entry] = {}  # all of them, waiting or in flight, in order
        self.pending: Backlog = OrderedDict()  # for any consumer with room
        self.consumers: deque[Subscription] = deque()
        self.groups: OrderedDict[str, Subscription] = OrderedDict()
        self.removed = False  # a temporary queue that was removed: what is released to it is forgotten

    def add(self, entry: Entry) -> None:
        """A new message, at the tail."""
        self.entries[entry.order] = entry
        entry.wait_in(self.pending)

    def restore(self, entries: Iterable[Entry]) -> list[Subscription]:
        """Put messages that were in flight where they stood, those of a group to its consumer; returns these."""
        for_any: list[Entry] = []
        owners: list[Subscription] = []
        for entry in entries:
            owner = self.groups.get(entry.message.group_id or "")
            if owner is None:
                for_any.append(entry)
            else:
                put_back(owner.waiting, (entry,))
                owners.append(owner)
        put_back(self.pending, for_any)
        return owners

    def detach(self, subscription: Subscription) -> None:
        """A consumer leaves; its groups may go to any other."""
        self.consumers.remove(subscription)
        for group in [name for name, owner in self.groups.items() if owner is subscription]:
            del self.groups[group]

    def dispatch(self, now: int, give: Callable[[Subscription, Entry], None], expire: Callable[[Entry], None]) -> None:
        """``give`` waiting messages to consumers with room, and ``expire`` those whose time is over."""
        while self.pending:
            ready = self._next_ready()
            if ready is None:
                break
            entry = next(iter(self.pending.values()))
            if entry.message.expired(now):
                expire(entry)
                continue
            consumer = self._group_consumer(entry, ready) if entry.message.group_id else ready
            if consumer.ready:
                give(consumer, entry)
                if consumer is ready:
                    self.consumers.rotate(-1)
            else:
                entry.leave()
                entry.wait_in(consumer.waiting)

    def _next_ready(self) -> Subscription | None:
        for _ in range(len(self.consumers)):
            if self.consumers[0].ready:
                return self.consumers[0]
            self.consumers.rotate(-1)
        return None

    def _group_consumer(self, entry: Entry, ready: Subscription) -> Subscription:
        group = entry.message.group_id or ""
        owner = self.groups.get(group, ready)
        if entry.message.group_sequence == _CLOSE_GROUP:
            self.groups.pop(group, None)
            return owner
        self.groups[group] = owner
        self.groups.move_to_end(group)
        if len(self.groups) > REMEMBERED_GROUPS:
            self.groups.popitem(last=False)
        return owner
