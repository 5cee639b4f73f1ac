"""The segments of receiver=driver as one lane sees them: a chain of numbers without a gap, of which it knows the end.

Nothing is listed to know it. A number is given once, so a lane that publishes under the next free one has met every
segment before it, those of other lanes and of zombies of older queries too: their names were taken. What may be
redelivered out of them is known by then, and a batch that has some of it is released instead of published.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from redelivery.spark.log.names import Extent, SegmentName, leading_number
from redelivery.spark.log.store.interface import Data
from redelivery.spark.log.uncommitted import InDoubtSegment
from redelivery.spark.log.wal import Wal
from redelivery.spark.rows.digests import Key


class SegmentChain:
    """One lane's end of the log, in one thread; made after the query has taken its epoch.

    ``head``: the highest number that a segment has. ``alone``: no other process of this query publishes. ``taken``:
    notified of each number that another process has taken. ``check``: raises FencedError if a later query has taken the
    log. ``unmarked``: the segments up to ``head`` that had no ``.ok`` after the epoch was taken; None: they are listed.
    """

    def __init__(
        self,
        wal: Wal,
        head: int,
        *,
        alone: bool = True,
        taken: Callable[[int], None] = lambda _: None,
        check: Callable[[], None] = lambda: None,
        unmarked: Sequence[SegmentName] | None = None,
    ) -> None:
        self.head = head
        self._wal = wal
        self._alone = alone
        self._taken = taken
        self._check = check
        self._unmarked = unmarked
        self._recorded = 0  # the last segment of ours that `records` says was there
        self._known: dict[str, InDoubtSegment] | None = None  # looked for once, when it is first asked for

    def in_doubt(self) -> Mapping[str, Sequence[Key]]:
        """The keys of messages that are in a segment and may be redelivered, by segment."""
        known = self._all_known()
        for name in [name for name, each in known.items() if self._wal.uncommitted.has_ended(each.since)]:
            del known[name]
        return {name: each.keys for name, each in known.items()}

    def confirmed(self, name: str) -> bool:
        """Check whether the session of a segment in doubt is known by now to have committed."""
        known = self._all_known()
        if name in known and self._wal.confirmed(name):
            del known[name]
        return name not in known

    def publish(self, data: Data, keys: Sequence[Key]) -> int | None:
        """Make a segment durable under the next free number; it is in doubt until `confirm`.

        ``keys``: of its rows; none with ``dedupe=off``. Returns None where the session is to be rolled back: a segment
        of another lane, or of a zombie, may hold the same messages; or the number was used up by a committed batch, so
        that no query reads what was just written. Raises FencedError: a later query has taken the log and published
        since.
        """
        if not self._alone and self._skip_committed(keys):
            return None
        checked = False
        while True:
            name = SegmentName(self.head + 1, 0)
            self.head += 1
            if not self._wal.publish(name.seq, name.part, data):
                if not checked:  # a successor may have received our messages while we slept, and have marked them
                    self._check()
                    checked = True
                self._taken(name.seq)
                if keys and self._meet(name, keys):
                    return None
            elif (watermark := self._watermark()) >= name.seq:
                self.head, self._known = watermark, None
                return None
            else:
                if keys:
                    self._all_known()[name.key] = InDoubtSegment(tuple(keys))
                return name.seq

    def record_head(self, number: int) -> None:
        """Write down that a segment of ours is there, before its session commits. One before it says no more."""
        self._wal.records.add_head(number, 0)
        if self._recorded:
            self._wal.records.forget_head(self._recorded, 0)
        self._recorded = number

    def confirm(self, number: int, extent: Extent | None = None) -> None:
        """The session of a segment of ours, of this extent, has committed."""
        name = SegmentName(number, 0)
        self._wal.confirm(name.seq, name.part, extent)
        if self._known is not None:
            self._known.pop(name.key, None)

    def adopt(self) -> None:
        """Meet what others have published behind the end that we know."""
        while self._wal.there(self.head + 1, 0):
            self.head += 1
            self._taken(self.head)
            if self._known is not None:
                self._meet(SegmentName(self.head, 0), ())

    def _meet(self, name: SegmentName, keys: Sequence[Key]) -> bool:
        """Another process's segment; whether it may hold one of the messages with these keys."""
        if self._wal.confirmed(name.key):
            return False
        theirs = self._wal.keys(name)
        if theirs:
            self._all_known()[name.key] = InDoubtSegment(theirs)
        return _may_hold(theirs, keys)

    def _skip_committed(self, keys: Sequence[Key]) -> bool:
        """Other lanes' segments may have been read and deleted, so that numbers look free. Whether to roll back."""
        watermark = self._watermark()
        if watermark <= self.head:
            return False
        self.head, self._known = watermark, None
        return any(_may_hold(each.keys, keys) for each in self._all_known().values()) if keys else False

    def _watermark(self) -> int:
        """The last committed batch. With it begins the window of what is in doubt in it."""
        watermark = self._wal.watermark()
        for name, each in self._known.items() if self._known else ():
            if leading_number(name) <= watermark:
                assert self._known is not None
                self._known[name] = self._wal.begin_window(each)
        return watermark

    def _all_known(self) -> dict[str, InDoubtSegment]:
        if self._known is None:
            self._known = self._wal.in_doubt(unmarked=self._unmarked)
            self._unmarked = None  # of the beginning: a later question lists them anew
        return self._known


def _may_hold(theirs: Sequence[Key], ours: Sequence[Key]) -> bool:
    """Check whether two segments may have one of our messages in common."""
    return not {each for key in ours for each in (key, (key[0], None))}.isdisjoint(theirs)
