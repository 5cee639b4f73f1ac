"""A consumer as the broker sees it: its window, and what it holds unacknowledged."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from heapq import heappop, heappush
from typing import Any, Final, Protocol

from redelivery.broker.engine.entries import Backlog, Entry, order_of
from redelivery.broker.engine.stored import StoredMessage
from redelivery.broker.store.places import Places
from redelivery.model.destinations import Destination, SubscriptionName
from redelivery.model.selectors.selector import Selector

SLACK: Final = 1024  # entries that have left are not worth looking for, as long as they are so few


class Dispatch:
    """One delivery of one entry: what a server passes on to its client, and names when the client answers.

    ``count`` is JMSXDeliveryCount at the time, ``seen`` whether the application is known to have had it, ``enlisted``
    whether an open transaction has acknowledged it.
    """

    __slots__ = ("count", "enlisted", "entry", "fills_window", "number", "seen", "subscription")

    def __init__(self, subscription: Subscription, entry: Entry, number: int) -> None:
        self.subscription = subscription
        self.entry = entry
        self.number = number
        self.count = entry.redeliveries + 1
        self.fills_window = True
        self.seen = False
        self.enlisted = False

    @property
    def message(self) -> StoredMessage:
        """The message that was dispatched."""
        return self.entry.message


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a slow consumer: with its ``connection``, or alone."""

    reason: str
    connection: bool


class DispatchOutbox(Protocol):
    """The place where a server collects dispatches for its client."""

    def append(self, dispatch: Dispatch, /) -> object:
        """Keep it; only that, for the broker's lock is held."""

    def wake(self) -> None:
        """Something was appended; the lock is free again. Not called by the engine itself."""

    def end_slow(self, ending: Ending) -> None:
        """The broker's rules end the consumer; likewise."""


class Browsed(Protocol):
    """See `redelivery.broker.store.browsing.BrowsedQueue`."""

    found: deque[Entry]
    more: bool

    def take(self) -> Entry:
        """A copy of the next one."""

    def read(self) -> None:
        """The next page."""


class Candidate(Protocol):
    """See `redelivery.broker.engine.queues.QueueState`."""

    @property
    def holds_some(self) -> bool:
        """True: something waits for any consumer."""


@dataclass(slots=True, eq=False, repr=False)
class Subscription:
    """A consumer of a queue, a topic, or a pattern of them. ``prefetch`` is its window in messages, 0 for none ever.

    ``named``: it is a consumer of the topic's subscription of that name, ``client_id`` whose name that is; None: the
    broker's, for all clients. ``exclusive``: while it is there, the queue's other consumers get nothing new, but for an
    exclusive one that was there before.
    """

    destination: Destination
    outbox: DispatchOutbox
    _: KW_ONLY
    prefetch: int
    no_local: bool = False
    origin: str = ""
    named: SubscriptionName | None = None
    client_id: str | None = None
    exclusive: bool = False
    rated_prefetch: int = field(init=False)  # by which ActiveMQ rates how many messages may wait for it
    pending_limit: int = 0  # how many of these it asks for itself; 0: it does not
    open: bool = False
    closed: bool = False
    selector: Selector | None = None
    in_flight: dict[int, Dispatch] = field(default_factory=dict)
    filling: int = 0  # how many of them fill the window
    queues: list[str] = field(default_factory=list)  # the names of those that it consumes
    # Those in which something waited when it had no room, in turn.
    candidates: dict[Candidate, None] = field(default_factory=dict)
    # For this one only: the messages of its groups, a browser's copies.
    waiting: Backlog = field(default_factory=OrderedDict)
    # And what of its groups only the journal has, by the names of their queues.
    later: dict[str, Places] = field(default_factory=dict)
    tried: int = 0  # so many wait for it that it was no use to look for what can be left to the journal
    browsed: Browsed | None = None  # of a browser: what of its queue it has still to be shown
    settled: int = 0  # how often it has acknowledged or returned something, and when at last, or when it began
    settled_at: int = 0
    undelivered: int = 0  # how many are in flight that its outbox has not got yet
    _number: int = 0

    def __post_init__(self) -> None:
        self.rated_prefetch = self.prefetch

    @property
    def room(self) -> bool:
        """True: its window takes another message."""
        return self.open and self.filling < self.prefetch

    @property
    def ready(self) -> bool:
        """The same for what waits for any consumer: what waits for this one only comes first."""
        return self.room and not self.waiting and not self.later

    def give(self, entry: Entry) -> Dispatch:
        """Put an entry in flight; the outbox is for the caller."""
        entry.leave()
        self._number += 1
        dispatch = Dispatch(self, entry, self._number)
        self.in_flight[dispatch.number] = dispatch
        self.filling += 1
        return dispatch

    def widen(self, dispatch: Dispatch) -> None:
        """Let the window move past a dispatch that stays in flight."""
        if dispatch.fills_window:
            dispatch.fills_window = False
            self.filling -= 1

    def take_back(self, dispatch: Dispatch) -> None:
        """End the flight of a dispatch."""
        self.widen(dispatch)
        del self.in_flight[dispatch.number]


class ByteSubscription(Subscription):
    """A window of so many bytes: it takes a message while less than that is in flight, however large the message is.

    ``returns``: what leaves makes room; else they are all that it ever takes.
    """

    __slots__ = ("_used", "returns", "window")

    def __init__(self, destination: Destination, outbox: DispatchOutbox, **more: Any) -> None:
        super().__init__(destination, outbox, **more)
        self.window = 0
        self.returns = True
        self._used = 0

    @property
    def room(self) -> bool:
        """True: it takes another message."""
        return self.open and self._used < self.window

    def give(self, entry: Entry) -> Dispatch:
        """Put an entry in flight."""
        self._used += entry.message.size
        return super().give(entry)

    def widen(self, dispatch: Dispatch) -> None:
        """Let the window move past a dispatch that stays in flight."""
        if dispatch.fills_window and self.returns:
            self._used -= dispatch.message.size
        super().widen(dispatch)


class Cursor:
    """The place that a consumer which does not want all has reached in a queue, so that it looks at a message once.

    What waits up to the place ``passed`` does not match, but for what was returned there since and is kept here.
    ``refused``: the places of messages that are not to be delivered to it again.
    """

    __slots__ = ("_heap", "_returned", "passed", "refused", "selector")

    def __init__(self, selector: Selector | None) -> None:
        self.selector = selector
        self.refused: set[int] = set()
        self.passed = 0
        self._returned: dict[int, Entry] = {}  # by place; those that have left again are forgotten late
        self._heap: list[int] = []  # their places

    def matches(self, entry: Entry) -> bool:
        """Check whether the consumer wants it."""
        if entry.order in self.refused:
            return False
        return self.selector is None or self.selector.matches(entry.value_of)

    def put_back(self, entry: Entry, pending: Backlog) -> None:
        """Let an entry wait once more, where it stood before; its count may have changed."""
        if not self.matches(entry):
            self._returned.pop(entry.order, None)
        elif entry.order not in self._returned:
            self._returned[entry.order] = entry
            heappush(self._heap, entry.order)
        if len(self._heap) > SLACK + 2 * len(pending):
            self._returned = {place: each for place, each in self._returned.items() if each.backlog is pending}
            self._heap = sorted(self._returned)

    def next(self, pending: Backlog, arrived: Sequence[Entry], gap: int | None) -> Entry | None:
        """The first that waits and matches. It is found once more unless it leaves; ``arrived``: all, in order.

        ``gap``: the first place that it has not passed and whose message is not in memory: it looks no further.
        """
        returned = self._first_returned(pending)
        if returned is not None and gap is not None and returned.order > gap:
            returned = None
        for index in range(bisect_right(arrived, self.passed, key=order_of), len(arrived)):
            entry = arrived[index]
            if returned is not None and returned.order <= entry.order:
                break
            if gap is not None and entry.order > gap:
                break
            if entry.backlog is pending and self.matches(entry):
                return entry
            self.passed = entry.order
        return returned

    def holds(self, entry: Entry) -> bool:
        """Check whether it is one that was returned and matches."""
        return self._returned.get(entry.order) is entry

    def go_back(self, place: int) -> None:
        """Look once more at what waits from that place on."""
        self.passed = min(self.passed, place - 1)

    def _first_returned(self, pending: Backlog) -> Entry | None:
        while self._heap:
            entry = self._returned.get(self._heap[0])
            if entry is not None and entry.backlog is pending:
                return entry
            self._returned.pop(heappop(self._heap), None)
        return None


class CreditSubscription(Subscription):
    """Each message uses one credit, however it is settled; only the consumer grants more."""

    __slots__ = ("credit",)

    def __init__(self, destination: Destination, outbox: DispatchOutbox, **more: Any) -> None:
        super().__init__(destination, outbox, prefetch=0, **more)
        self.credit = 0

    @property
    def room(self) -> bool:
        """True: it takes another message."""
        return self.open and self.credit > 0

    def give(self, entry: Entry) -> Dispatch:
        """Put an entry in flight."""
        self.credit -= 1
        return super().give(entry)
