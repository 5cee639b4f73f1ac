"""Keeps what becomes due: delayed messages, redeliveries that wait, and the expiry of messages that wait."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from redelivery.broker.engine.entries import Entry
from redelivery.broker.engine.stored import StoredMessage

_SWEEP = 1024  # entries; below, what has left its backlog is not worth looking for


class Deadlines:
    """Three heaps by time (milliseconds)."""

    __slots__ = ("_delayed", "_expiring", "_number", "_sweep_at", "_waiting")

    def __init__(self) -> None:
        self._delayed: list[tuple[int, int, StoredMessage | None]] = []
        self._expiring: list[tuple[int, int, Entry]] = []
        self._waiting: list[tuple[int, int, Entry]] = []
        self._number = 0
        self._sweep_at = _SWEEP

    def __len__(self) -> int:
        """The number of delayed messages."""
        return len(self._delayed)

    def delay(self, number: int, until: int, message: StoredMessage | None) -> None:
        """Keep a message until its delivery time; its number is its own. None: the journal alone has the message."""
        heapq.heappush(self._delayed, (until, number, message))

    def wait(self, entry: Entry, until: int) -> None:
        """Note when an entry that waits for its redelivery may be delivered again."""
        self._number += 1
        heapq.heappush(self._waiting, (until, self._number, entry))

    def redelivered(self, now: int) -> Iterator[Entry]:
        """The entries whose wait is over, and that have not left meanwhile."""
        while self._waiting and self._waiting[0][0] <= now:
            entry = heapq.heappop(self._waiting)[2]
            if entry.backlog is not None:
                yield entry

    def watch(self, entry: Entry) -> None:
        """Note when a waiting entry expires; needed only if it still waits then."""
        if entry.message.expiration:
            self._number += 1
            heapq.heappush(self._expiring, (entry.message.expiration, self._number, entry))
            if len(self._expiring) > self._sweep_at:
                self._sweep()

    def next(self) -> int | None:
        """The time when something becomes due, None for never."""
        while self._expiring and self._expiring[0][2].backlog is None:
            heapq.heappop(self._expiring)
        heads = [heap[0][0] for heap in (self._delayed, self._expiring, self._waiting) if heap]
        return min(heads, default=None)

    def due(self, now: int) -> Iterator[tuple[int, StoredMessage | None]]:
        """The delayed messages whose time has come, with their numbers."""
        while self._delayed and self._delayed[0][0] <= now:
            _, number, message = heapq.heappop(self._delayed)
            yield number, message

    def expired(self, now: int) -> Iterator[Entry]:
        """The waiting entries that have expired."""
        while self._expiring and self._expiring[0][0] <= now:
            entry = heapq.heappop(self._expiring)[2]
            if entry.backlog is not None:
                yield entry

    def _sweep(self) -> None:
        """Forget entries that were taken before they expired, or they would be held until then."""
        self._expiring = [item for item in self._expiring if item[2].backlog is not None]
        heapq.heapify(self._expiring)
        self._sweep_at = max(_SWEEP, 2 * len(self._expiring))
