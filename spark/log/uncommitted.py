"""Keeps the ids of messages that may be redelivered although they are in a segment: their commit's outcome is unknown.

A session commits after its segment is durable. Where it died in between, or the outcome of the commit was lost, the
segment has no ``.ok``: the broker may redeliver its messages, and they must be dropped. Before a batch is
committed, after which its segments are garbage, their keys move to ``doubt/``. So above the watermark the segments
themselves are asked, and below it only ``doubt/``: a segment that turns up below the watermark was published by an
attempt that was too late; no query reads it, and its messages must be redelivered.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from redelivery.spark.log.names import IN_DOUBT, SEGMENTS, SegmentName, read_json, segment_names, to_json, unconfirmed
from redelivery.spark.log.segments import segment_keys
from redelivery.spark.log.store.interface import DamagedError, SegmentStore, StoreError, Tombstone
from redelivery.spark.rows.digests import Key

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class InDoubtSegment:
    """``since``: when its batch was committed, epoch ms; inf: it is not, so the window has not begun."""

    keys: tuple[Key, ...]
    since: float = inf


class UncommittedIds:
    """The segments in doubt of one store, and when (``now``, in milliseconds since 1970).

    ``window``: seconds that the keys of a committed batch are kept.
    """

    def __init__(self, store: SegmentStore, window: float, now: Callable[[], int]) -> None:
        self._store = store
        self._window_ms = window * 1000
        self._now = now
        self._read: dict[str, InDoubtSegment] = {}  # by file: they never change
        self._held: set[str] | None = None

    def hold(self, files: Iterable[str]) -> None:
        """Nobody else writes entries from here on. ``files``: those that there are."""
        self._held = set(files)

    def segments(
        self, watermark: int, seq: int = 0, parts: int = 0, unmarked: Sequence[SegmentName] | None = None
    ) -> dict[str, InDoubtSegment]:
        """All of them, by the key of their names.

        The watermark must have been read after the messages that are looked up arrived. ``seq``, ``parts``,
        ``unmarked``: see `Wal.in_doubt`.
        """
        found: dict[str, InDoubtSegment] = {}
        for each in segment_names(unconfirmed(self._store.list(SEGMENTS))) if unmarked is None else unmarked:
            unread = each.seq == seq and each.part >= parts
            if each.seq > watermark and not unread:
                found[each.data] = self._read.get(each.data) or InDoubtSegment(self.keys(each))
        # After the segments: a commit that runs at the same time writes here before it deletes there.
        found |= self._entries()
        self._read = found
        return {
            name.rpartition("/")[2].partition(".")[0]: entry
            for name, entry in found.items()
            if entry.keys and not self.has_ended(entry.since)
        }

    def entries(self) -> tuple[str, ...]:
        """The files of the folder ``doubt/``."""
        return tuple(self._store.list(IN_DOUBT) if self._held is None else sorted(self._held))

    def keys(self, segment: SegmentName) -> tuple[Key, ...]:
        """The keys of a segment's rows; none of one that is gone, or damaged, which is reported when it is read."""
        try:
            reader = self._store.open_arrow(segment.data)
            return () if reader is None else tuple(segment_keys(reader))
        except Tombstone:
            return ()
        except DamagedError as error:
            log.error("%s: its messages cannot be recognised if they are redelivered: %s", segment.data, error)
            return ()

    def remember(self, segments: Iterable[SegmentName]) -> None:
        """Write down the keys of those that have no ``.ok``."""
        for each in segments:
            keys = () if each.ok else self.keys(each)
            if keys:
                entry = to_json({"since": self._now(), "keys": [_to_json(key) for key in keys]})
                self._store.put_if_absent(f"{IN_DOUBT}/{each.key}.json", entry)
                if self._held is not None:
                    self._held = self._held | {f"{each.key}.json"}  # not in place: a lane's thread may be looking

    def forget_old(self) -> None:
        """Delete what is older than the window."""
        for name, entry in self._entries().items():
            if self.has_ended(entry.since):
                self._store.delete(name)
                if self._held is not None:
                    self._held = self._held - {name.rpartition("/")[2]}

    def has_ended(self, since: float) -> bool:
        """Check whether the window of a batch that was committed then has ended."""
        return since + self._window_ms <= self._now()

    def _entries(self) -> dict[str, InDoubtSegment]:
        names = [f"{IN_DOUBT}/{file}" for file in self.entries()]
        entries = {name: self._read.get(name) or self._entry(name) for name in names}
        return {name: entry for name, entry in entries.items() if entry is not None}

    def _entry(self, name: str) -> InDoubtSegment | None:
        entry = read_json(self._store, name)
        if entry is None:
            return None
        try:
            if "keys" in entry:
                return InDoubtSegment(tuple(map(_from_json, entry["keys"])), entry["since"])
            return InDoubtSegment(tuple((each, None) for each in entry["ids"]), entry["since"])  # of version 1
        except (KeyError, TypeError, ValueError) as error:
            raise StoreError(
                f"{self._store.location}/{name} is damaged ({error!r}); restore walLocation from a copy, or delete the "
                "file: its messages then give two rows each if the broker redelivers them"
            ) from error


def _to_json(key: Key) -> list[Any]:
    message_id, digest = key
    return [message_id, None if digest is None else digest.hex()]


def _from_json(value: list[Any]) -> Key:
    message_id, digest = value
    return message_id, None if digest is None else bytes.fromhex(digest)
