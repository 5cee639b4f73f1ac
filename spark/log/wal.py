"""The log between broker and Spark: numbered segments that are written once, read any number of times, then deleted.

What makes it lose and duplicate nothing, whichever process dies, and when:

1. A segment is durable before the session that received it commits, and rows are only ever read from segments. That
   it was there is written down elsewhere too, before that commit: a segment that is gone with its mark is missed.
2. A name is given once: of several attempts one publishes, the others roll back and read the winner's segment.
3. A batch is committed in this order: what nobody published gets a tombstone, so nobody can publish it any more; the
   ids in doubt are written down; a record says which segments the batch was made of, which is the commit; old files go.
4. A segment that is published for a committed batch and not in its record came too late: it is withdrawn, its session
   rolls back, and its messages are redelivered (`Wal.check_published`).

The files are listed in `redelivery.spark.log.names`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import redelivery
from redelivery.spark.log.claims import Claim
from redelivery.spark.log.commits import Commits, Part
from redelivery.spark.log.epochs import PATIENCE, Epochs, FencedError
from redelivery.spark.log.identity import made_identity, read_identity
from redelivery.spark.log.names import (
    ATTEMPTS,
    COMMITS,
    EPOCHS,
    FOLDERS,
    HEADS,
    IDENTITY,
    IN_DOUBT,
    PLANS,
    QUARANTINE,
    SEGMENTS,
    Extent,
    SegmentName,
    batch_name,
    leading_number,
    prefix_of,
    segment_names,
    unconfirmed,
)
from redelivery.spark.log.records import FailedBatches, Records
from redelivery.spark.log.store.interface import DELETED, PROBES, Data, SegmentStore, StoreError, check_create_if_absent
from redelivery.spark.log.uncommitted import InDoubtSegment, UncommittedIds
from redelivery.spark.rows.digests import Key
from redelivery.transports.wire.clock import epoch_ms

__all__ = ["FencedError", "SegmentName", "Wal"]

DAY: Final = 86_400.0
_TIDY_EVERY: Final = 20  # commits
_TEMPORARY_AGE: Final = 3600.0  # seconds; no write takes that long


class Wal(FailedBatches):
    """One stream's log, made by `open` or `attach`. Each process has its own; threads may share one.

    Every method raises StoreError when the store fails. Batches are numbered from 1.
    """

    identity: str
    """What the offsets of this log name."""

    def __init__(self, store: SegmentStore, identity: str, dedupe_window: float, now: Callable[[], int]) -> None:
        self.store = store
        self.identity = identity
        self.records = Records(store)
        self._now = now
        self._epochs = Epochs(store)
        self.uncommitted = UncommittedIds(store, dedupe_window, now)
        self._committed = Commits(store, self.uncommitted)
        self._until_tidy = 0
        self._deleted = 0  # the last batch whose segments are; what turns up there late goes with the next

    @classmethod
    def open(
        cls, store: SegmentStore, *, check: bool = True, dedupe_window: float = DAY, now: Callable[[], int] = epoch_ms
    ) -> Wal:
        """The log of a store, a new one where there is none; ``now`` in milliseconds since 1970.

        ``check``: make sure first that the store can create a file only if it is absent. ``dedupe_window``: seconds
        that ids in doubt are remembered after their batch was committed.

        Raises:
            StoreError: the store cannot be used.
            ConfigError: the log was written by a newer version.
        """
        store.make_folders((*FOLDERS, PROBES))
        if check:
            check_create_if_absent(store)
        return cls(store, made_identity(store), dedupe_window, now)

    @classmethod
    def attach(
        cls, store: SegmentStore, identity: str, *, dedupe_window: float = DAY, now: Callable[[], int] = epoch_ms
    ) -> Wal:
        """The log that another process has opened, for executors: nothing is made here.

        Raises:
            ConfigError: this host sees no such log at the location, so the location is not shared.
        """
        found = read_identity(store)
        if found != identity:
            raise redelivery.ConfigError(
                f"walLocation {store.location} on this host holds {f'log {found}' if found else 'no log'}, but the "
                f"driver uses log {identity}: walLocation must be the same folder on all hosts, so mounted there, "
                "or an object store"
            )
        return cls(store, identity, dedupe_window, now)

    def check_offset(self, wal: str) -> None:
        """Raises ConfigError if an offset names another log than this one."""
        if wal != self.identity:
            raise redelivery.ConfigError(
                f"the checkpoint belongs to log {wal}, but walLocation {self.store.location} holds log "
                f"{self.identity}, so the segments of its batches are not here: set walLocation to where they are, "
                "restore them, or start with a new checkpointLocation"
            )

    # Whose turn it is

    def take_turn(self, claim: Claim, patience: float = PATIENCE, *, source: Mapping[str, Any] | None = None) -> int:
        """This query's turn: a query that took an earlier one is fenced, or is waited for while it is known to run.

        ``source``: what this one reads.

        Raises:
            IllegalStateError: it does, and still does after ``patience`` seconds; the text names it.
            ConfigError: it has read something else, so this is its walLocation.
        """
        return self._epochs.take_turn(claim, patience, source=source)

    def leave(self, epoch: int) -> None:
        """The query that took this epoch has ended."""
        self._epochs.leave(epoch)

    def check_epoch(self, epoch: int) -> None:
        """Make sure that the log is there, and this query's.

        Raises:
            FencedError: another query has taken a later epoch; the text says which.
            StoreError: the log was deleted.

        With receiver=driver it is called between `publish` and the session's commit: no query can then have deleted the
        segment unread, and a later one will find it.
        """
        self._epochs.check(epoch)

    # Segments

    def segments(self) -> list[SegmentName]:
        """The segments that there are, in order, tombstones included."""
        return segment_names(self.store.list(SEGMENTS))

    def survey(self) -> list[SegmentName]:
        """As `segments`, with those of which only the ``.ok`` or ``.head`` is there.

        For a query that has taken its turn: from here on nobody else commits, so what is committed is not listed again.
        """
        found = self.store.files(FOLDERS)
        self._committed.hold(found[COMMITS])
        self.uncommitted.hold(found[IN_DOUBT])
        names = segment_names({**found[SEGMENTS], **found[HEADS]}, lost=True)
        self.records.hold_plans(found[PLANS], names)
        return names

    def publish(self, seq: int, part: int, data: Data) -> bool:
        """Make a segment durable under this name; False if another one has it (or a tombstone)."""
        name = SegmentName(seq, part).data
        if self.store.put_if_absent(name, data):
            return True
        # An object store's client asks again where the first answer was lost, and the answer is then that the file
        # exists: ours. No other's is equal, a segment holds the id of its attempt.
        return self.store.get(name) == bytes(data)

    def check_published(self, seq: int, part: int, attempt: str) -> None:
        """Check, with receiver=executor between `publish` and the session's commit, that this attempt is the one used.

        Raises:
            StoreError: the log was deleted.
            FencedError: the batch was committed before and without this segment, which is withdrawn; roll back.
        """
        if read_identity(self.store) != self.identity:
            raise StoreError(f"{self.store.location}/{IDENTITY} is not there any more: {DELETED}")
        if self._committed.uses(seq, part, attempt):
            return
        self.withdraw(seq, part)
        raise FencedError(
            f"batch {seq} was committed before this attempt of part {part} had received its messages, which are "
            "redelivered"
        )

    def reader(self, seq: int, part: int) -> Any:
        """A pyarrow.ipc.RecordBatchFileReader, None if the segment is not there.

        Raises:
            Tombstone: the batch was committed without this segment.
        """
        return self.store.open_arrow(SegmentName(seq, part).data)

    def confirm(self, seq: int, part: int, said: Extent | Part | None = None) -> None:
        """The session's commit is known to have succeeded: the broker will not redeliver these messages.

        ``said``: what the mark says of the segment, so that nobody need open it: with receiver=driver its extent.
        """
        name = SegmentName(seq, part, extent=said if isinstance(said, Extent) else None)
        self.store.put_if_absent(name.mark, said.mark() if isinstance(said, Part) else b"")

    def withdraw(self, seq: int, part: int) -> None:
        """Delete a segment of a committed batch; only for the attempt that published it too late."""
        self.store.delete(SegmentName(seq, part).data)

    def there(self, seq: int, part: int) -> bool:
        """Check whether somebody has published the segment (or a tombstone stands in its place)."""
        return self.store.exists(SegmentName(seq, part).data)

    # What may be redelivered

    def in_doubt(
        self, seq: int = 0, parts: int = 0, unmarked: Sequence[SegmentName] | None = None
    ) -> dict[str, InDoubtSegment]:
        """The segments whose messages may be redelivered, by the keys of their names.

        Ask after the messages that are looked up have arrived. ``seq``, ``parts``: a batch of which only so many parts
        will be read; what a fenced task of an older query has published beyond them does not count. ``unmarked``:
        the segments without an ``.ok``, where the caller has just listed them; None: they are listed here.
        """
        return self.uncommitted.segments(self.watermark(), seq, parts, unmarked)

    def in_doubt_for_task(self, seq: int, parts: int, entries: Sequence[str]) -> dict[str, InDoubtSegment]:
        """As `in_doubt`, for a task of the batch ``seq`` of receiver=executor.

        All batches before were committed when it was planned, with these ``entries``: what has changed since is in the
        other parts of its batch. A task whose own batch is committed meanwhile does not commit.
        """
        self.uncommitted.hold(entries)
        files = self.store.starting(SEGMENTS, f"{batch_name(seq)}-") if parts > 1 else []
        return self.uncommitted.segments(seq - 1, seq, parts, segment_names(unconfirmed(files)))

    def confirmed(self, key: str) -> bool:
        """Check whether the session that published the segment of this name's key is known to have committed."""
        return any(name.endswith(".ok") for name in self.store.starting(SEGMENTS, f"{key}."))

    def part_confirmed(self, seq: int, part: int) -> bool:
        """As `confirmed`, of receiver=executor, whose marks say nothing in their names."""
        return self.store.exists(SegmentName(seq, part).mark)

    def parts(self, seq: int, count: int) -> dict[int, Part | None]:
        """The parts of a batch of receiver=executor; None: it has a tombstone, is damaged, or not there."""
        return self._committed.parts(SegmentName(seq, part) for part in range(count))

    def keys(self, name: SegmentName) -> tuple[Key, ...]:
        """The keys of a segment's rows; none if it is gone or damaged."""
        return self.uncommitted.keys(name)

    def begin_window(self, segment: InDoubtSegment) -> InDoubtSegment:
        """Begin the window for which a segment is remembered, as its batch is committed; one that has begun goes on."""
        return replace(segment, since=min(segment.since, self._now()))

    # Commits

    def watermark(self) -> int:
        """The last committed batch; 0 before the first."""
        return self._committed.watermark()

    def commit(self, seq: int, parts: int, *, retain: int = 1, epoch: int | None = None) -> None:
        """Spark will not ask for the batches up to ``seq`` again (receiver=executor). Twice is harmless.

        ``parts``: how many it was planned with. ``retain``: so many of the last batches stay readable. ``epoch``:
        checked before the batch is committed; raises FencedError of `check_epoch`.
        """
        self._commit(seq, parts, retain, epoch)

    def commit_driver(self, seq: int, retain: int = 1, *, epoch: int | None = None) -> None:
        """Spark will not ask for the segments up to ``seq`` again (receiver=driver). Twice is harmless.

        ``retain``: so many of the last batches stay readable, whatever the number of their segments. Raises FencedError
        of `check_epoch`.
        """
        self._commit(seq, None, retain, epoch)

    def _commit(self, seq: int, parts: int | None, retain: int, epoch: int | None) -> None:
        self._until_tidy -= 1
        tidy = self._until_tidy < 0
        found = self.store.files(FOLDERS) if tidy else {}
        files = found[SEGMENTS] if tidy else self.store.starting(SEGMENTS, prefix_of(self._deleted, seq))
        self._committed.add(seq, parts, lambda: None if epoch is None else self.check_epoch(epoch), files)
        watermark, unread = self._committed.last(retain)
        self._committed.delete_segments(unread, files)
        self._deleted = max(self._deleted, min(unread, seq))
        if tidy:
            self._until_tidy = _TIDY_EVERY
            self._tidy(found, watermark, unread, retain)

    def _tidy(self, found: Mapping[str, Iterable[str]], watermark: int, unread: int, retain: int) -> None:
        """Delete what no query needs any more; what is said of batches that are retained is needed with them."""
        for folder, last in ((ATTEMPTS, watermark), (QUARANTINE, unread), (HEADS, unread), (PLANS, watermark - 1)):
            for name in found[folder]:
                if 0 <= leading_number(name) <= last:
                    self.store.delete(f"{folder}/{name}")
        self._committed.forget_old(retain)
        self.uncommitted.forget_old()
        self._epochs.forget_old(found[EPOCHS])
        self.store.clean(_TEMPORARY_AGE)
