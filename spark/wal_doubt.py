"""Which messages may come again although they stand in a segment, because the answer to a session's commit is unknown.

A session commits after its segment is durable. Where it died in between, or nobody learned how the commit ended, the
segment has no ``.ok``: the broker may deliver its messages again, flagged as redelivered, and they must be dropped.
Before a batch is committed, and its segments are garbage, such ids move to ``doubt/``. So above the watermark the
segments themselves are asked, and below it only ``doubt/``: a segment that turns up below the watermark was published
by an attempt that came too late; no query reads it, and its messages must come again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf

from redelivery.spark.segments import segment_ids
from redelivery.spark.store import SegmentStore, StoreError, Tombstone
from redelivery.spark.wal_names import DOUBT, SEGMENTS, SegmentName, read_json, segment_names, to_json

__all__ = ["Doubt"]


@dataclass(frozen=True, slots=True)
class _Ids:
    ids: frozenset[str]
    since: float = inf  # epoch ms; inf: the batch is not committed, so the window has not begun


class Doubt:
    """The ids in doubt of one store.

    Args:
        store: holds them.
        window: seconds that the ids of a committed batch are kept.
        now: the wall clock, in milliseconds since 1970.
    """

    def __init__(self, store: SegmentStore, window: float, now: Callable[[], int]) -> None:
        self._store = store
        self._window_ms = window * 1000
        self._now = now
        self._read: dict[str, _Ids] = {}  # by file: they never change

    def ids(self, watermark: int, seq: int = 0, parts: int = 0) -> frozenset[str]:
        """All of them. The watermark must have been read after the messages that are looked up arrived.

        ``seq``, ``parts``: see `Wal.in_doubt_ids`.
        """
        found: dict[str, _Ids] = {}
        for each in segment_names(self._store.list(SEGMENTS)):
            unread = each.seq == seq and each.part >= parts
            if each.seq > watermark and not each.ok and not unread:
                found[each.data] = self._read.get(each.data) or _Ids(self._of(each))
        # After the segments: a commit that runs at the same time writes here before it deletes there.
        found |= self._entries()
        self._read = found
        return frozenset().union(*(entry.ids for entry in found.values() if not self._is_over(entry)))

    def remember(self, segments: Iterable[SegmentName]) -> None:
        """Write down the ids of those that have no ``.ok``."""
        for each in segments:
            ids = frozenset() if each.ok else self._of(each)
            if ids:
                entry = to_json({"since": self._now(), "ids": sorted(ids)})
                self._store.put_if_absent(f"{DOUBT}/{each.key}.json", entry)

    def forget_old(self) -> None:
        """Delete what is older than the window."""
        for name, entry in self._entries().items():
            if self._is_over(entry):
                self._store.delete(name)

    def _is_over(self, entry: _Ids) -> bool:
        return entry.since + self._window_ms <= self._now()

    def _of(self, segment: SegmentName) -> frozenset[str]:
        try:
            reader = self._store.open_arrow(segment.data)
        except Tombstone:
            return frozenset()
        return frozenset() if reader is None else frozenset(segment_ids(reader))

    def _entries(self) -> dict[str, _Ids]:
        names = [f"{DOUBT}/{file}" for file in self._store.list(DOUBT)]
        entries = {name: self._read.get(name) or self._entry(name) for name in names}
        return {name: entry for name, entry in entries.items() if entry is not None}

    def _entry(self, name: str) -> _Ids | None:
        entry = read_json(self._store, name)
        if entry is None:
            return None
        try:
            return _Ids(frozenset(entry["ids"]), entry["since"])
        except KeyError as error:
            raise StoreError(f"{self._store.location}/{name} is damaged, it has no {error}") from error
