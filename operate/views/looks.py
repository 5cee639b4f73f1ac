"""Remembers how long the dead-letter queues were at former looks: by how many each has grown, and its curve."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Final

from redelivery.operate.letters.overview import DeadLetterQueue, Overview

_KEPT: Final = 240  # looks
_APART: Final = 15.0  # seconds between two that are kept


class Looks:
    """The looks at one broker, for as long as the program runs: 240, which are at least 15 s apart by ``clock``
    (seconds).
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: deque[tuple[float, dict[str, int]]] = deque(maxlen=_KEPT)
        self._lock = Lock()

    def compared(self, found: Overview) -> Overview:
        """Say of each queue by how many letters it has grown since the first look that is kept, and remember this."""
        now = self._clock()
        counts = {each.name: each.letters for each in found.queues}
        with self._lock:
            if not self._kept or now - self._kept[-1][0] >= _APART:
                self._kept.append((now, counts))
            first, before = self._kept[0]
        if now == first:
            return found
        since = datetime.now(UTC) - timedelta(seconds=now - first)
        return replace(found, queues=tuple(_grown(each, before.get(each.name, 0), since) for each in found.queues))

    def curve(self, name: str) -> tuple[int, ...]:
        """The numbers of letters of a queue at the looks that are kept, the oldest first."""
        with self._lock:
            return tuple(counts.get(name, 0) for _, counts in self._kept)


def _grown(queue: DeadLetterQueue, before: int, since: datetime) -> DeadLetterQueue:
    return replace(queue, grew=queue.letters - before, since=since)
