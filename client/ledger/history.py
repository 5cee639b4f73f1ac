"""Remembers what a connection has delivered and lost: how often, by message id, over its losses.

A broker's word for it is too little: STOMP carries a flag, some brokers count randomly, and a message whose handling
ends the connection each time never fails by any other count. So what an application had when its connection was lost is
noted, and counted when it is redelivered.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias, TypeVar

from redelivery.client.ledger.state import HELD
from redelivery.model.destinations import Topic
from redelivery.transports.delivery import Attempts, Delivery, Link

K = TypeVar("K")
V = TypeVar("V")
MOST: Final = 10_000  # messages of one destination; then the oldest is forgotten
LIGHT: Final = 4096  # bytes of a delivery that may be kept instead of its `Trace`, which takes longer to make
Place: TypeAlias = object
# of what was delivered: where, the message's identity, how often, and which of these failed
Trace: TypeAlias = tuple[Place, object, int, Attempts]


class History:
    """Of one connection. From any thread: a step that another one may not see half done is one call of C code."""

    def __init__(self, most: int = MOST) -> None:
        # empty, most of the time; an identity's times, the cause of the last failure, if it has one, and which failed
        self.places: dict[Place, dict[object, tuple[int, BaseException | None, Attempts]]] = {}
        self._most = most
        self._tried: dict[tuple[Place, object], float] = {}  # dead letters that were refused: when to try again

    def put_off(self, delivery: Delivery, until: float) -> None:
        """Note that it could not be dead-lettered: where the broker hangs up on that, it is redelivered at once."""
        if (found := trace(delivery)) is not None:
            self._tried.pop(found[:2], None)
            self._tried[found[:2]] = until
            self._bound(self._tried)

    def put_off_until(self, delivery: Delivery) -> float:
        """The session's time when it may be dead-lettered; 0: at once."""
        found = trace(delivery) if self._tried else None
        return 0.0 if found is None else self._tried.get(found[:2], 0.0)

    def note(self, traces: Iterable[Trace | None], error: BaseException) -> None:
        """Note deliveries that went back to the broker, because of ``error``. To note one twice is harmless."""
        for each in traces:
            if each is not None:
                self._note(each, error)

    def note_failed(self, deliveries: Iterable[Delivery]) -> None:
        """Note deliveries that had failed before they went back to the broker: their causes stay what they were."""
        for each in deliveries:
            if (found := trace(each, had=False)) is not None:
                self._note(found, each.cause)

    def _note(self, of: Trace, cause: BaseException | None) -> None:
        place, identity, times, attempts = of
        known = self.places.setdefault(place, {})
        before = known.pop(identity, None)
        if before is not None:
            times, attempts = max(times, before[0]), max(before[2], attempts, key=len)
        known[identity] = (times, cause, attempts)
        self._bound(known)

    def _bound(self, known: dict[K, V]) -> None:
        """The oldest are forgotten."""
        if len(known) > self._most:
            for oldest in list(known)[: -self._most]:
                known.pop(oldest, None)

    def mark(self, deliveries: Iterable[Delivery]) -> None:
        """Count what was delivered before, of arriving deliveries, where the wire knows less."""
        for each in deliveries:
            known = self.places.get(_place(each.link))
            found = known.get(each.identity()) if known and not (each.state or each.earlier) else None
            if found is not None:
                each.earlier, each.cause, each.attempts = found
                each.redeliveries = max(0, each.earlier - (each.wire_count() - 1))

    def forget(self, deliveries: Iterable[Delivery]) -> None:
        """Forget settled deliveries: a later message of such an id is another one, such as a replayed dead letter."""
        for each in deliveries:
            if self._tried:
                self._tried.pop((_place(each.link), each.identity()), None)
            place = _place(each.link)
            known = self.places.get(place)
            if known:
                known.pop(each.identity(), None)
            if not known:
                self.places.pop(place, None)


def trace(delivery: Delivery, *, had: bool | None = None, failed_at: int | None = None) -> Trace | None:
    """Of one that the application ``had``, or not since it failed; None: that is to be seen by its state.

    ``failed_at``: when that delivery failed, in epoch milliseconds; None: it did not.
    None: it has no id, or it is of a topic's consumer without a name, which gets nothing again.
    """
    place = _place(delivery.link)
    identity = None if place is None else delivery.identity()
    if identity is None:
        return None
    times = delivery.earlier + (delivery.state is HELD if had is None else had)
    return place, identity, times, delivery.attempted(failed_at)


def _place(link: Link) -> Place | None:
    if link.spec.subscription is not None:
        return link.spec.subscription
    return None if isinstance(link.destination, Topic) else link.destination
