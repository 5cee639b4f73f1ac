"""Records a commit: tombstones, ids in doubt, the record; deletes what is not needed any more.

The record ``commits/<seq>.json`` is the commit. It is created, never replaced, so the watermark, the highest of them,
cannot fall, not even through a driver that slept while another one took over.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Final, Self

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
from redelivery.spark.log.segments import segment_attempt, segment_rows
from redelivery.spark.log.store.interface import DamagedError, SegmentStore, Tombstone
from redelivery.spark.log.uncommitted import UncommittedIds

_KEPT: Final = 100  # records; an attempt that sleeps for longer is fenced, and its messages are in doubt


@dataclass(frozen=True, slots=True)
class Part:
    """The segment of one task of receiver=executor, as its mark says: who wrote it, its rows and their bytes.

    ``counts``: of `BatchReceiver`, for the query's progress; empty where there is no mark.
    """

    attempt: str
    rows: int
    size: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)

    def mark(self) -> bytes:
        """The content of the mark."""
        return to_json(asdict(self))

    @classmethod
    def of_mark(cls, content: bytes) -> Self | None:
        """Return what a mark says; None: it says nothing, as those of older versions, or is damaged."""
        try:
            found = json.loads(content)
            return cls(found["attempt"], found["rows"], found.get("size", 0), found.get("counts", {}))
        except (ValueError, KeyError, TypeError):
            return None


class Commits:
    """The committed batches of one store."""

    def __init__(self, store: SegmentStore, uncommitted: UncommittedIds) -> None:
        self._store = store
        self._uncommitted = uncommitted
        self._held: set[int] | None = None

    def hold(self, files: Iterable[str]) -> None:
        """Nobody else commits from here on. ``files``: the records that there are."""
        self._held = _numbers(files)

    def watermark(self) -> int:
        """The last committed batch; 0 before the first."""
        return max(self._records(), default=0)

    def last(self, retain: int) -> tuple[int, int]:
        """The last committed batch, and the last of those before the ``retain`` last ones; 0 where there is none."""
        numbers = sorted(self._records())
        return (numbers[-1] if numbers else 0), (numbers[-1 - retain] if len(numbers) > retain else 0)

    def _records(self) -> set[int]:
        return _numbers(self._store.list(COMMITS)) if self._held is None else self._held

    def record(self, seq: int) -> dict[str, str | None] | None:
        """The attempt, by part, whose segment the batch used; None: it is not committed, or long ago."""
        found: dict[str, str | None] | None = read_json(self._store, _name(seq))
        return found

    def uses(self, seq: int, part: int, attempt: str) -> bool:
        """Check that a batch of receiver=executor was made of this attempt's segment, or that it is not committed yet.

        Each batch there has a record, and old ones are deleted in order: where the one before has one, and this one had
        none a moment ago, it was not committed. A listing is only for the first batch of all, and for one long ago.
        """
        record = self.record(seq)
        if record is None:
            if self._store.exists(_name(seq - 1)):
                return True
            committed = self.watermark() >= seq  # before the record, which may come in between
            record = self.record(seq)
            if record is None:
                return not committed
        return record.get(str(part)) == attempt

    def add(self, seq: int, parts: int | None, check: Callable[[], None], files: Iterable[str]) -> None:
        """Commit everything up to this batch.

        ``parts``: how many tasks could have published for it; None: the segments are one stream, without tasks.
        ``check``: called before each record; what it raises ends the commit. ``files``: in the folder of the segments,
        those of the batches that are not committed yet.
        """
        last = self.watermark()
        if seq <= last:
            return
        there = [each for each in segment_names(files) if last < each.seq <= seq]
        if parts is None:
            self._uncommitted.remember(there)
            check()
            self._put(seq, {})
            return
        # Spark does not repeat a commit that died on its way but goes on with the next batch, whose plan is as good a
        # guess as any of how many parts that one had. If that dies, too, an attempt at either may still publish.
        skipped = {each.seq for each in there if each.seq < seq} | set(range(max(last + 1, seq - _KEPT), seq))
        for batch in sorted(skipped):
            self._add(batch, there, max([parts, *(each.part + 1 for each in there if each.seq == batch)]), check)
        self._add(seq, there, parts, check)

    def _add(self, seq: int, there: list[SegmentName], parts: int, check: Callable[[], None]) -> None:
        used = {each.part: each for each in there if each.seq == seq and each.part < parts}
        for part in range(parts):
            name = used.setdefault(part, SegmentName(seq, part))
            if name not in there:
                self._store.put_if_absent(name.data, b"")  # False: it was published just now
        attempts = self.parts(used.values()).items()
        record = {str(part): None if found is None else found.attempt for part, found in attempts}
        self._uncommitted.remember(used.values())
        check()
        self._put(seq, record)

    def parts(self, names: Iterable[SegmentName]) -> dict[int, Part | None]:
        """The parts of one batch: by their marks, or what is published without one; None: a tombstone, or damaged."""
        asked = sorted(names)
        marks = self._store.get_all(each.mark for each in asked)
        return {each.part: Part.of_mark(marks.get(each.mark, b"")) or self._opened(each) for each in asked}

    def _opened(self, name: SegmentName) -> Part | None:
        try:
            reader = self._store.open_arrow(name.data)
            return None if reader is None else Part(segment_attempt(reader), segment_rows(reader))
        except (Tombstone, DamagedError):
            return None

    def _put(self, seq: int, record: dict[str, str | None]) -> None:
        self._store.put_if_absent(_name(seq), to_json(record))
        if self._held is not None:
            self._held = self._held | {seq}  # not in place: a lane's thread may be looking

    def delete_segments(self, seq: int, files: Iterable[str]) -> None:
        """Delete those of the files that belong to the batches up to this one."""
        for name in files:
            if 0 <= leading_number(name) <= seq:
                self._store.delete(f"{SEGMENTS}/{name}")

    def forget_old(self, retain: int) -> None:
        """Delete all but the newest records; those of the ``retain`` last batches, and the one before, are needed."""
        for number in sorted(self._records())[: -max(_KEPT, retain + 1)]:  # the oldest first: see `uses`
            self._store.delete(_name(number))
            if self._held is not None:
                self._held = self._held - {number}


def _numbers(files: Iterable[str]) -> set[int]:
    return {number for number in map(leading_number, files) if number > 0}


def _name(seq: int) -> str:
    return f"{COMMITS}/{batch_name(seq)}.json"
