"""Knows how much of a consumer's window the application holds, and when it needs a further subscription.

Where no ACK may leave before the commit, a batch larger than the window would wait for ever: the broker for an ACK, and
we for the next message. A second subscription of the same queue gets the next messages in order.

1. It is asked for only when the others are used up: brokers lose sight, for a time, of messages when several
   subscriptions of one connection come or go while messages flow.
2. Where UNSUBSCRIBE leaves with us what came (`unsubscribe_keeps`), the full subscription ends and the next one takes
   its place: nothing can be on its way to it.
3. Elsewhere it stays, beside the next ones, which end when the queue has nothing for us: what is on its way to one that
   ends goes back, and would come after what is on its way to another.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import islice
from typing import Final

from redelivery.model.destinations import Topic
from redelivery.policies.prefetch import GrowingWindow
from redelivery.transports.dialects.dialect import StompDialect
from redelivery.transports.seam import Link, LinkSpec
from redelivery.transports.stomp.connection.redelivered_ids import RedeliveredIds
from redelivery.transports.stomp.connection.subscriptions import StompDelivery, StompSubscription

STUCK: Final = "the broker sends no more until some of what this consumer holds is acknowledged"
_TIMES: Final = 10  # the first window at most is a further one, where the application holds more


def window_size(link: Link, dialect: StompDialect, *, deferred: bool = False) -> int | None:
    """The window of a consumer's first subscription, in the broker's unit; ``deferred``: ACKs wait for the commit.

    None: no window. What is withheld from a topic's consumer would stop it, and a second one would get all twice.
    """
    topic = isinstance(link.destination, Topic)
    if topic and dialect.acks_topics_itself:
        return None
    if dialect.fixed_window:
        return dialect.fixed_window
    if link.spec.pulls:
        return 1
    if deferred and topic:
        return None
    spec, unit = link.spec, dialect.prefetch_unit
    prefetch = spec.ahead(dialect.default_prefetch) if link.prefetch is None else max(1, link.prefetch)
    if link.prefetch is None and dialect.default_window:
        size = dialect.default_window if spec.max_bytes is None else min(dialect.default_window, spec.max_bytes)
        return size if spec.window is None else min(size, spec.window * unit)
    growing = _growing(spec, dialect, prefetch) if deferred else None
    if growing is not None:
        return growing.size
    return 1 if prefetch == 1 else prefetch * unit


def _growing(spec: LinkSpec, dialect: StompDialect, prefetch: int) -> GrowingWindow | None:
    """The windows in turn of who asks for so many bytes of a broker that counts messages only."""
    if spec.max_bytes is None or dialect.prefetch_unit > 1 or not dialect.needs_extra_subscription:
        return None
    return GrowingWindow(spec.ahead(_TIMES * prefetch), spec.max_bytes)


class Window:
    """One consumer's. Sizes are in the broker's unit, messages or bytes; it sends while a subscription has any left.

    Args:
        dialect: the unit, and whether the broker alone sets the size.
        size: of the first subscription's window; None: it has none.
        first: that subscription.
    """

    def __init__(self, dialect: StompDialect, size: int | None, first: StompSubscription) -> None:
        self._dialect = dialect
        self._limited = size is not None
        self._size = size or 0
        link = first.link
        self._growing = None if size is None else _growing(link.spec, dialect, link.prefetch or size)
        self._sizes = {first: self._size}
        self._taken = {first: 0}
        self._held: dict[StompDelivery, int] = {}
        self._left = self._size  # of all windows together
        self.subscriptions = [first]

    def take(self, delivery: StompDelivery) -> int:
        """The application has it, and it is not acknowledged: the window that is needed beside the others, or 0."""
        if not self._limited:
            return 0
        if delivery not in self._held:
            weight = 1
            if self._dialect.prefetch_unit > 1:  # bytes of the frame
                weight = len(delivery.head) + len(delivery.payload) + 3
            self._held[delivery] = weight
            self._add(delivery.subscription, weight)
        if self._left > 0:
            return 0
        if self._dialect.fixed_window:
            return self._size
        if delivery.link.spec.pulls:
            return self._size
        if self._growing is not None:
            last = list(islice(reversed(self._held), max(1, self._sizes[self.newest])))
            return self._growing.grow(len(last), sum([len(each.payload) for each in last]))
        return max(self._size, min(sum(self._held.values()), _TIMES * self._size))

    def settle(self, delivery: StompDelivery) -> None:
        """Count a delivery out of the window, as it is acknowledged."""
        unsettled = delivery.subscription.unsettled
        if unsettled is not None:
            unsettled.pop(delivery, None)
        weight = self._held.pop(delivery, 0)
        if weight:
            self._add(delivery.subscription, -weight)

    def unlimited(self) -> None:
        """Nothing can be done about it: count no more."""
        self._limited = False

    @property
    def newest(self) -> StompSubscription:
        """The one that messages come to."""
        return self.subscriptions[-1]

    def grow(self, subscription: StompSubscription, size: int) -> None:
        """A further subscription."""
        self.subscriptions.append(subscription)
        self._sizes[subscription] = size
        self._taken[subscription] = 0
        self._left += size

    def replace(self, subscription: StompSubscription, size: int) -> None:
        """The next subscription, instead of the others: their windows count no more."""
        self._sizes = dict.fromkeys(self._sizes, 0)
        self._left = 0
        self.grow(subscription, size)

    def exhausted(self) -> list[StompSubscription]:
        """The subscriptions that were replaced, and have nothing left that is not settled: they are to end now."""
        return [each for each in self.subscriptions if each.superseded and not each.unsettled]

    def idle(self, settled: Collection[StompDelivery]) -> bool:
        """Check that the queue has nothing for us, though it could send some, beside these, which are settled now."""
        if len(self.subscriptions) == 1 or self._left < self._size // 2:
            return False
        left = set().union(*[each.unsettled or () for each in self.subscriptions])
        return self._dialect.unsubscribe_keeps is None and left.issubset(settled)

    def further(self) -> list[StompSubscription]:
        """The subscriptions beside the first, to end now; none while anything of the consumer's is not settled."""
        return [] if any(each.unsettled for each in self.subscriptions) else self.subscriptions[1:]

    def drop(self, subscriptions: Iterable[StompSubscription]) -> None:
        """Forget subscriptions that have ended."""
        for each in subscriptions:
            self.subscriptions.remove(each)
            self._left -= self._sizes.pop(each)
            del self._taken[each]

    def _add(self, subscription: StompSubscription, weight: int) -> None:
        size = self._sizes[subscription]
        before = max(0, size - self._taken[subscription])
        self._taken[subscription] += weight
        self._left += max(0, size - self._taken[subscription]) - before


def settle(windows: Mapping[Link, Window], ids: RedeliveredIds | None, deliveries: Iterable[StompDelivery]) -> None:
    """Count acknowledged deliveries out of their windows; once more is harmless."""
    if ids is not None:
        ids.settle(deliveries)
    for each in deliveries:
        if (window := windows.get(each.link)) is not None:
            window.settle(each)


def fits(windows: Mapping[Link, Window], deliveries: Iterable[StompDelivery]) -> bool | None:
    """The application holds them, of one link: whether its window has room for more beside; None: it is not counted."""
    sizes = [window.take(each) for each in deliveries if (window := windows.get(each.link)) is not None]
    return not any(sizes) if sizes else None


def retired(
    windows: Iterable[Window], idle: Collection[Window], retire: Callable[[Collection[StompSubscription]], bool]
) -> list[StompSubscription]:
    """The further subscriptions that are needed no more, out of their windows: what is on its way to them goes back.

    ``retire`` says whether nothing of theirs is unsettled, and ends their deliveries.
    """
    ended: list[StompSubscription] = []
    for window in windows:
        group = [*window.exhausted(), *(window.further() if window in idle else ())]
        if group and retire(group):
            window.drop(group)
            ended += group
    return ended
