"""What a session has shown its application and released, where the broker delivers that as new.

JMS requires the flag JMSRedelivered of whatever the session has delivered before. Memory is bounded twice: by what the
application holds unacknowledged, and by the last 10,000 ids that were released and not acknowledged since (about
100 bytes each); an id before those is forgotten, and its message comes without the flag.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from redelivery.transports.stomp.connection.subscriptions import StompDelivery, Subscription

MOST: Final = 10_000  # ids


class Shown:
    """One session's record, for its thread; `mark` is called by the thread that reads."""

    def __init__(self) -> None:
        self._held: dict[StompDelivery, None] = {}
        self._released: dict[bytes, None] = {}  # ids of the broker, in order

    def show(self, delivery: StompDelivery) -> None:
        """The application gets it, unacknowledged."""
        self._held[delivery] = None

    def settle(self, deliveries: Iterable[StompDelivery]) -> None:
        """They are acknowledged: nobody gets them again."""
        for each in deliveries:
            self._held.pop(each, None)
            if self._released:
                self._released.pop(each.raw_id(), None)

    def release(self, subscriptions: Collection[Subscription]) -> None:
        """These end: what they brought and the application holds goes back to the broker."""
        for each in [each for each in self._held if each.subscription in subscriptions]:
            del self._held[each]
            self._released.pop(each.raw_id(), None)  # to the end
            self._released[each.raw_id()] = None
        while len(self._released) > MOST:
            del self._released[next(iter(self._released))]

    def mark(self, deliveries: Iterable[StompDelivery]) -> None:
        """They arrive: those that were released are flagged."""
        released = self._released
        if released:
            for each in deliveries:
                if each.raw_id() in released:
                    each.mark_redelivered()
