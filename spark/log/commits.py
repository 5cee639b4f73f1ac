"""Records a commit: tombstones, ids in doubt, the record; deletes what is not needed any more.

The record ``commits/<seq>.json`` is the commit. It is created, never replaced, so the watermark, the highest of them,
cannot fall, not even through a driver that slept while another one took over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from redelivery.spark.log.names import (
    COMMITS,
    SEGMENTS,
    SegmentName,
    batch_name,
    leading_number,
    read_json,
    segment_names,
    to_json,
)
from redelivery.spark.log.segments import segment_attempt
from redelivery.spark.log.store.interface import DamagedError, SegmentStore, Tombstone
from redelivery.spark.log.uncommitted import UncommittedIds

__all__ = ["Commits"]

_KEPT: Final = 100  # records; an attempt that sleeps for longer is fenced, and its messages are in doubt


class Commits:
    """The committed batches of one store."""

    def __init__(self, store: SegmentStore, uncommitted: UncommittedIds) -> None:
        self._store = store
        self._uncommitted = uncommitted

    def watermark(self) -> int:
        """The last committed batch; 0 before the first."""
        return max([0, *map(leading_number, self._store.list(COMMITS))])

    def last(self, retain: int) -> tuple[int, int]:
        """The last committed batch, and the last of those before the ``retain`` last ones; 0 where there is none."""
        numbers = sorted(number for number in map(leading_number, self._store.list(COMMITS)) if number > 0)
        return (numbers[-1] if numbers else 0), (numbers[-1 - retain] if len(numbers) > retain else 0)

    def record(self, seq: int) -> dict[str, str | None] | None:
        """The attempt, by part, whose segment the batch used; None: it is not committed, or long ago."""
        found: dict[str, str | None] | None = read_json(self._store, _name(seq))
        return found

    def add(self, seq: int, parts: int | None, check: Callable[[], None]) -> None:
        """Commit everything up to this batch.

        Args:
            seq: the batch.
            parts: how many tasks could have published for it; None: the segments are one stream, without tasks.
            check: called before each record; what it raises ends the commit.
        """
        last = self.watermark()
        if seq <= last:
            return
        there = [each for each in segment_names(self._store.list(SEGMENTS)) if last < each.seq <= seq]
        if parts is None:
            self._uncommitted.remember(there)
            check()
            self._store.put_if_absent(_name(seq), to_json({}))
            return
        # Spark does not repeat a commit that died on its way but goes on with the next batch, whose plan is as good a
        # guess as any of how many parts that one had.
        skipped = {each.seq for each in there if each.seq < seq} | {seq - 1} - {last}
        for batch in sorted(skipped):
            self._add(batch, there, max([parts, *(each.part + 1 for each in there if each.seq == batch)]), check)
        self._add(seq, there, parts, check)

    def _add(self, seq: int, there: list[SegmentName], parts: int, check: Callable[[], None]) -> None:
        used = {each.part: each for each in there if each.seq == seq and each.part < parts}
        record: dict[str, str | None] = {}
        for part in range(parts):
            name = used.setdefault(part, SegmentName(seq, part))
            if name not in there:
                self._store.put_if_absent(name.data, b"")  # False: it was published just now
            record[str(part)] = self._attempt(name)
        self._uncommitted.remember(used.values())
        check()
        self._store.put_if_absent(_name(seq), to_json(record))

    def _attempt(self, segment: SegmentName) -> str | None:
        try:
            reader = self._store.open_arrow(segment.data)
            return None if reader is None else segment_attempt(reader)
        except (Tombstone, DamagedError):
            return None

    def delete_segments(self, seq: int) -> None:
        """Delete the segments of the batches up to this one."""
        for name in self._store.list(SEGMENTS):
            if 0 <= leading_number(name) <= seq:
                self._store.delete(f"{SEGMENTS}/{name}")

    def forget_old(self, retain: int) -> None:
        """Delete all but the newest records; those of the ``retain`` last batches, and the one before, are needed."""
        for name in self._store.list(COMMITS)[: -max(_KEPT, retain + 1)]:
            if leading_number(name) > 0:
                self._store.delete(f"{COMMITS}/{name}")


def _name(seq: int) -> str:
    return f"{COMMITS}/{batch_name(seq)}.json"
