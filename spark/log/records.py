"""Records apart from the segments' own files: that one was there, that a task has left it out, that it was planned;
the batches that Spark plans again and again, and those whose messages are dead letters (`maxBatchAttempts`).

``heads/`` says that a segment was there, whatever becomes of it and its ``.ok``; without it nothing would miss the last
one of receiver=driver, or a part of receiver=executor. ``lost/`` tells the process that counts what tasks have found.
``plans/`` names a batch of receiver=executor before the checkpoint does: a log that does not know what the checkpoint
names is an older copy.
"""

from __future__ import annotations

from collections.abc import Iterable

from redelivery.spark.log.names import ATTEMPTS, HEADS, LOST, PLANS, QUARANTINE, SegmentName, batch_name, leading_number
from redelivery.spark.log.store.interface import SegmentStore


class Records:
    """The folders ``heads``, ``lost`` and ``plans`` of one store. Methods raise StoreError when the store fails."""

    def __init__(self, store: SegmentStore) -> None:
        self._store = store
        self._planned = -1  # the last batch, as far as `plans` says; nothing in a log of an older release

    def heads(self) -> list[str]:
        """The files that say of segments that they were there."""
        return self._store.list(HEADS)

    def add_head(self, seq: int, part: int) -> None:
        """The segment is there, and its session is about to commit."""
        self._store.put_if_absent(SegmentName(seq, part).head, b"")

    def forget_head(self, seq: int, part: int) -> None:
        """Of receiver=driver: a later segment says that this one was there."""
        self._store.delete(SegmentName(seq, part).head)

    def has_head(self, seq: int, part: int) -> bool:
        """Check whether the segment was there."""
        return self._store.exists(SegmentName(seq, part).head)

    def add_lost(self, seq: int, part: int) -> None:
        """A task has gone on without the segment."""
        self._store.put_if_absent(f"{LOST}/{SegmentName(seq, part).key}", b"")

    def take_lost(self) -> list[str]:
        """The keys of the segments that tasks have gone on without since this was asked last."""
        keys = self._store.list(LOST)
        for each in keys:
            self._store.delete(f"{LOST}/{each}")
        return keys

    def hold_plans(self, files: Iterable[str], names: Iterable[SegmentName]) -> None:
        """Note the plans that there were as a query began, and the segments: nobody else plans from here on."""
        plans = [leading_number(each) for each in files]
        if plans:
            self._planned = max([*plans, *(each.seq for each in names)])

    def plan(self, seq: int) -> None:
        """A batch is about to be planned, or a query begins behind it."""
        if seq > self._planned:
            self._store.put_if_absent(f"{PLANS}/{batch_name(seq)}", b"")
            self._planned = seq

    def planned_before(self, seq: int, committed: int) -> int | None:
        """The last batch that was planned, where ``seq`` was not, so the log is an older copy; None: it may have been.

        ``committed``: the last batch that is. A log that an older release has written, or gone on with, says nothing.
        """
        return self._planned if committed <= self._planned < seq else None


class FailedBatches:
    """The part of a log that counts them."""

    store: SegmentStore

    def attempts(self, seq: int) -> int:
        """The number of times that `count_attempt` was called for the batch."""
        return sum(leading_number(name) == seq for name in self.store.list(ATTEMPTS))

    def count_attempt(self, seq: int) -> int:
        """Spark plans the batch once more; the number of times, this one included."""
        number = self.attempts(seq) + 1
        while not self.store.put_if_absent(f"{ATTEMPTS}/{batch_name(seq)}-{number:06d}", b""):
            number += 1
        return number

    def quarantine(self, seq: int) -> None:
        """The batch's messages are dead letters: nothing of it is read any more."""
        self.store.put_if_absent(f"{QUARANTINE}/{batch_name(seq)}", b"")

    def quarantined(self, seq: int) -> bool:
        """Check whether `quarantine` was called for the batch."""
        return self.store.exists(f"{QUARANTINE}/{batch_name(seq)}")
