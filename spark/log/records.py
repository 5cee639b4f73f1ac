"""Records of segments apart from their own files: that they were there, and that a task has left one out.

``heads/`` says that a segment was there, whatever becomes of it and its ``.ok``; without it nothing would miss the last
one of receiver=driver, or a part of receiver=executor. ``lost/`` tells the process that counts what tasks have found.
"""

from __future__ import annotations

from redelivery.spark.log.names import HEADS, LOST, SegmentName
from redelivery.spark.log.store.interface import SegmentStore

__all__ = ["Records"]


class Records:
    """The folders ``heads`` and ``lost`` of one store. Every method raises StoreError when the store fails."""

    def __init__(self, store: SegmentStore) -> None:
        self._store = store

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
