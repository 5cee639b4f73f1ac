"""Remembers what sessions have shown their applications and released, where the broker delivers that as new.

JMS requires the flag JMSRedelivered of whatever was delivered before. Memory is bounded twice: by what the applications
hold unacknowledged, and by the last 10,000 ids that a connection has released and not acknowledged since (about 100
bytes each); an id before those is forgotten, and its message comes without the flag.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable
from typing import Final, TypeAlias

from redelivery.model.destinations import Topic
from redelivery.transports.stomp.connection.subscriptions import StompDelivery, StompSubscription

MOST: Final = 10_000  # ids
Place: TypeAlias = tuple[bytes, object]
"""The broker's id of a message, and where it waits: each subscription to a topic has its own."""


class ReleasedIds:
    """One connection's record: the next one who gets the message may be another session. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._places: dict[Place, None] = {}  # in order

    def add(self, places: Iterable[Place]) -> None:
        """Remember places that go back to the broker."""
        with self._lock:
            for place in places:
                self._places.pop(place, None)  # to the end
                self._places[place] = None
            while len(self._places) > MOST:
                del self._places[next(iter(self._places))]

    def discard(self, places: Iterable[Place]) -> None:
        """Nobody gets them again."""
        if self._places:
            with self._lock:
                for place in places:
                    self._places.pop(place, None)

    def __bool__(self) -> bool:
        return bool(self._places)

    def __contains__(self, place: Place) -> bool:
        return place in self._places


class RedeliveredIds:
    """One session's part of it, for its thread; `mark` is called by the thread that reads."""

    def __init__(self, released: ReleasedIds) -> None:
        self._held: dict[StompDelivery, None] = {}
        self._released = released

    def show(self, delivery: StompDelivery) -> None:
        """The application gets it, unacknowledged."""
        self._held[delivery] = None

    def settle(self, deliveries: Iterable[StompDelivery]) -> None:
        """Forget deliveries that are acknowledged: nobody gets them again."""
        deliveries = list(deliveries)
        for each in deliveries:
            self._held.pop(each, None)
        if self._released:
            self._released.discard(self._place(each) for each in deliveries)

    def release(self, subscriptions: Collection[StompSubscription]) -> None:
        """These end: what they brought and the application holds goes back to the broker."""
        ended = [each for each in self._held if each.subscription in subscriptions]
        for each in ended:
            del self._held[each]
        self._released.add(self._place(each) for each in ended)

    def mark(self, deliveries: Iterable[StompDelivery]) -> None:
        """Flag those of the arriving deliveries that were released."""
        if self._released:
            for each in deliveries:
                if self._place(each) in self._released:
                    each.mark_redelivered()

    def _place(self, delivery: StompDelivery) -> Place:
        link = delivery.link
        if not isinstance(link.destination, Topic):
            return delivery.raw_id(), None
        return delivery.raw_id(), link.spec.subscription or self  # without a name it ends with its consumer
