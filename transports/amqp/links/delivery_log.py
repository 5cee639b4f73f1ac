"""Remembers what applications of this process have had and released, for a broker whose own count charges more.

ActiveMQ Classic counts a delivery only when the session ends that it came to, and then all that was prefetched there.
So of a message that it calls delivered before, its count is an upper bound, and this one a lower bound.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

_MOST: Final = 10_000  # messages that are remembered; then the oldest is forgotten


class DeliveryLog:
    """Counts how often messages went back unacknowledged after an application had them; by broker and message id."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._counts: OrderedDict[tuple[str, str], int] = OrderedDict()

    def note(self, broker: str, message_id: str) -> None:
        """Note that a message goes back once more."""
        counts, key = self._counts, (broker, message_id)
        counts[key] = counts.pop(key, 0) + 1
        if len(counts) > self._most:
            counts.popitem(last=False)

    def count(self, broker: str, message_id: str | None) -> int:
        """The number of times that a message went back; 0 for one without an id."""
        return 0 if message_id is None else self._counts.get((broker, message_id), 0)


DELIVERY_LOG: Final = DeliveryLog()
