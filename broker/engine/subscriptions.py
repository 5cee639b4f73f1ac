"""A consumer as the broker sees it: its window, and what it holds unacknowledged.

An `Entry` is a message at a place; it is either in one backlog or in flight to one subscription, never both.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeAlias

from redelivery.broker.engine.stored import StoredMessage
from redelivery.model.destinations import Destination

if TYPE_CHECKING:
    from redelivery.broker.engine.queues import QueueState
    from redelivery.broker.engine.transactions import Transaction

Backlog: TypeAlias = "OrderedDict[int, Entry]"


class Entry:
    """One message that waits or is in flight; ``order`` is its place among all, ``redeliveries`` its counter.

    ``acquired``: for the doors, whether some client was sent it, counted or not.
    """

    __slots__ = ("acquired", "backlog", "message", "order", "queue", "redeliveries")

    def __init__(self, message: StoredMessage, order: int, queue: QueueState | None) -> None:
        self.message = message
        self.order = order
        self.queue = queue  # None for a topic's
        self.redeliveries = 0
        self.acquired = False
        self.backlog: Backlog | None = None  # where it waits; None while it is in flight

    def copy(self) -> Entry:
        """For a browser: of no queue, and without a charge on the broker's memory."""
        copy = Entry(replace(self.message, size=0), self.order, None)
        copy.redeliveries = self.redeliveries
        copy.acquired = self.acquired
        return copy

    def wait_in(self, backlog: Backlog) -> None:
        """Append to a backlog."""
        self.backlog = backlog
        backlog[self.order] = self

    def leave(self) -> None:
        """Leave the backlog."""
        if self.backlog is not None:
            del self.backlog[self.order]
            self.backlog = None


def put_back(backlog: Backlog, entries: Iterable[Entry]) -> None:
    """Entries that came back stand where they stood: in the order in which all of them once arrived."""
    returned = sorted(entries, key=_order)
    if not returned:
        return
    last = returned[-1].order
    while backlog and next(iter(backlog)) < last:
        returned.append(backlog.popitem(last=False)[1])
    returned.sort(key=_order, reverse=True)
    for entry in returned:
        entry.wait_in(backlog)
        backlog.move_to_end(entry.order, last=False)


def _order(entry: Entry) -> int:
    return entry.order


class Dispatch:
    """One delivery of one entry: what a door hands to its client, and names when it answers.

    ``count`` is JMSXDeliveryCount at the time, ``seen`` whether the application is known to have had it.
    """

    __slots__ = ("count", "entry", "fills_window", "number", "seen", "subscription", "transaction")

    def __init__(self, subscription: Subscription, entry: Entry, number: int) -> None:
        self.subscription = subscription
        self.entry = entry
        self.number = number
        self.count = entry.redeliveries + 1
        self.fills_window = True
        self.seen = False
        self.transaction: Transaction | None = None

    @property
    def message(self) -> StoredMessage:
        """What was dispatched."""
        return self.entry.message


class Outbox(Protocol):
    """Where a door collects dispatches for its client."""

    def append(self, dispatch: Dispatch, /) -> object:
        """Keep it; only that, for the broker's lock is held."""

    def wake(self) -> None:
        """Something was appended; the lock is free again. Not called by the engine itself."""


class Subscription:
    """A consumer of a queue, a topic, or a pattern of them. ``prefetch`` is its window in messages, 0 for none ever."""

    __slots__ = (
        "_number",
        "closed",
        "destination",
        "filling",
        "in_flight",
        "no_local",
        "open",
        "origin",
        "outbox",
        "prefetch",
        "queues",
        "waiting",
    )

    def __init__(
        self, destination: Destination, outbox: Outbox, *, prefetch: int, no_local: bool = False, origin: str = ""
    ) -> None:
        self.destination = destination
        self.outbox = outbox
        self.prefetch = prefetch
        self.no_local = no_local
        self.origin = origin
        self.open = False
        self.closed = False
        self.in_flight: dict[int, Dispatch] = {}
        self.filling = 0  # how many of them fill the window
        self.queues: list[QueueState] = []
        self.waiting: Backlog = OrderedDict()  # for this one only: a topic's messages, or those of its message groups
        self._number = 0

    @property
    def room(self) -> bool:
        """Whether its window takes another message."""
        return self.open and self.filling < self.prefetch

    @property
    def ready(self) -> bool:
        """The same for what waits for anybody: what waits for this one only comes first."""
        return not self.waiting and self.room

    def give(self, entry: Entry) -> None:
        """Put an entry in flight."""
        entry.leave()
        self._number += 1
        dispatch = Dispatch(self, entry, self._number)
        self.in_flight[dispatch.number] = dispatch
        self.filling += 1
        self.outbox.append(dispatch)

    def widen(self, dispatch: Dispatch) -> None:
        """Let the window move past a dispatch that stays in flight."""
        if dispatch.fills_window:
            dispatch.fills_window = False
            self.filling -= 1

    def take_back(self, dispatch: Dispatch) -> None:
        """It is in flight no more."""
        self.widen(dispatch)
        del self.in_flight[dispatch.number]
