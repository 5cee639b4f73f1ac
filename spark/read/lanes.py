"""The receivers of `receiver=driver`, one thread or `lanes` processes, and what they have found so far."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from redelivery.model.errors import JMSError
from redelivery.spark.log.segments import Extent, segment_extent
from redelivery.spark.log.store.interface import DamagedError, Tombstone
from redelivery.spark.log.wal import SegmentName, Wal
from redelivery.spark.options.query import SourceOptions
from redelivery.spark.read.inspect.depth import QueueDepth
from redelivery.spark.read.lane import Found, LaneControl, LanePace, LaneReceiver
from redelivery.spark.read.lane_process import ProcessLane
from redelivery.spark.read.receiving.batch_receiver import COUNTS
from redelivery.transports.wire.clock import monotonic

_STOP_SECONDS = 10.0


class Lanes:
    """The lanes start when this is made; `wait_for_rows` raises what has ended one of them.

    ``known``: the segments that are there and not read yet, by number. ``head``, ``unmarked``: of `SegmentChain`.
    """

    def __init__(
        self,
        options: SourceOptions,
        wal: Wal,
        head: int,
        epoch: int,
        known: Mapping[int, Extent],
        unmarked: Sequence[SegmentName] | None = None,
    ) -> None:
        self.head = head
        self._options = options
        self._wal = wal
        self._segments = dict(known)
        self._rows, self._bytes = (sum(getattr(each, name) for each in known.values()) for name in ("rows", "size"))
        self._planned = 0
        self._changed = threading.Condition()
        self._error: JMSError | None = None
        self._quiet = [0.0] * options.lanes  # since when each lane has found its queue empty; 0: it has not
        self._looked = [0.0] * options.lanes  # when it found it empty last
        self._wanted: tuple[bool, LanePace] = (False, "now")
        self._lanes: list[ThreadLane | ProcessLane] = [
            self._start(number, epoch, unmarked) for number in range(options.lanes)
        ]
        self._depth = QueueDepth(options)

    def wait_for_rows(
        self,
        seq: int,
        seconds: float,
        most: int,
        *,
        until_idle: bool,
        deadline: float = math.inf,
        least: Callable[[], int] = lambda: 1,
    ) -> Mapping[int, Extent]:
        """The segments behind ``seq``, by number; none where they have fewer than ``least`` rows, and may get more.

        Waits ``seconds`` at most for those; with ``until_idle`` until they have ``most`` rows, or as many as may be
        pending, or every lane has found its queue empty for ``seconds``; and not beyond ``deadline``, of the monotonic
        clock. Raises JMSError: a receiver has ended.
        """
        began = monotonic()

        def enough() -> bool:
            found = self._behind(seq)
            rows = sum(each.rows for each in found.values())
            if (
                self._error is not None
                or (not until_idle and _suffice(found, least()))
                or rows >= most
                or self._wanted[0]
            ):
                return True
            now = monotonic()
            if now >= deadline:
                return True
            if until_idle:
                # by what the lanes have seen: one that is slow to make a segment durable has not looked
                times = zip(self._quiet, self._looked, strict=True)
                return all(quiet and looked - max(quiet, began) >= seconds for quiet, looked in times)
            return now - began >= seconds

        self._adjust("all" if until_idle else "now" if least() == 1 else "later")
        with self._changed:
            while not enough():
                self._changed.wait(0.05 if until_idle else max(0.0, seconds - (monotonic() - began)))
            found = self._behind(seq)
            error, full = self._error, self._wanted[0]
        if error is not None and not found:
            raise error
        self._adjust("later")
        return found if until_idle or full or error is not None or _suffice(found, least()) else {}

    def planned(self, seq: int) -> None:
        """The segments up to ``seq`` are in a batch."""
        with self._changed:
            self._planned = max(self._planned, seq)

    def committed(self, seq: int) -> None:
        """The segments up to ``seq`` are no longer pending."""
        with self._changed:
            for number in [each for each in self._segments if each <= seq]:
                extent = self._segments.pop(number)
                self._rows, self._bytes = self._rows - extent.rows, self._bytes - extent.size
        self._adjust(self._wanted[1])

    def report(self) -> dict[str, int]:
        """The counts of what the lanes have done.

        `pendingRows`: in segments that no batch has yet; `uncommittedRows`: that no committed batch has; their bytes;
        `queueDepth` if known.
        """
        counts: Counter[str] = Counter()
        for lane in self._lanes:
            counts.update(lane.counts())
        with self._changed:
            pending = [each for number, each in self._segments.items() if number > self._planned]
            rows = {
                "pendingRows": sum(each.rows for each in pending),
                "pendingBytes": sum(each.size for each in pending),
                "uncommittedRows": self._rows,
                "uncommittedBytes": self._bytes,
            }
        names = (*COUNTS, "inDoubt", "connections")
        return {**rows, **{name: counts[name] for name in names}, **self._depth.report()}

    def stop(self) -> None:
        """End them all."""
        for lane in self._lanes:
            lane.stop()
        self._depth.close()
        until = monotonic() + _STOP_SECONDS
        for lane in self._lanes:
            lane.join(max(0.1, until - monotonic()))

    def _behind(self, seq: int) -> dict[int, Extent]:
        return {number: extent for number, extent in self._segments.items() if number > seq}

    def _add(self, seq: int, extent: Extent) -> None:
        if seq not in self._segments:
            self._segments[seq] = extent
            self._rows, self._bytes = self._rows + extent.rows, self._bytes + extent.size

    def _adjust(self, pace: LanePace) -> None:
        with self._changed:
            full = self._rows >= self._options.max_pending_rows or self._bytes >= self._options.max_pending_bytes
            wanted = (full, pace)
            if wanted == self._wanted:
                return
            self._wanted = wanted
        for lane in self._lanes:
            lane.adjust(hold=wanted[0], pace=wanted[1])

    def _start(self, number: int, epoch: int, unmarked: Sequence[SegmentName] | None) -> ThreadLane | ProcessLane:
        return (ThreadLane if self._options.lanes == 1 else ProcessLane)(
            self._options,
            self._wal,
            self.head,
            epoch,
            found=lambda seq, extent: self._found(number, seq, extent),
            failed=self._failed,
            unmarked=unmarked,
        )

    def _found(self, lane: int, seq: int, extent: Extent | None) -> None:
        if seq and extent is None:
            extent = self._measured(seq)
        with self._changed:
            if seq:
                self._quiet[lane] = 0.0
                self._add(seq, extent or Extent())
                self.head = max(self.head, seq)
            elif extent is not None:
                self._quiet[lane] = 0.0
            else:
                self._looked[lane] = monotonic()
                self._quiet[lane] = self._quiet[lane] or self._looked[lane]
            self._changed.notify_all()
        if seq:
            self._adjust(self._wanted[1])

    def _measured(self, seq: int) -> Extent:
        """The extent of another lane's segment. One that is gone or damaged has no rows: reading it reports that."""
        try:
            reader = self._wal.reader(seq, 0)
            return Extent() if reader is None else segment_extent(reader)
        except (DamagedError, Tombstone):
            return Extent()

    def _failed(self, error: JMSError) -> None:
        with self._changed:
            self._error = self._error or error
            self._changed.notify_all()


def _suffice(found: Mapping[int, Extent], least: int) -> bool:
    """Check that segments are enough for a batch; those without rows, that were lost, are passed by one."""
    return bool(found) and (least <= 1 or sum(each.rows for each in found.values()) >= least)


class ThreadLane:
    """A receiver in a thread of the runner's process."""

    def __init__(
        self,
        options: SourceOptions,
        wal: Wal,
        head: int,
        epoch: int,
        *,
        found: Found,
        failed: Callable[[JMSError], None],
        unmarked: Sequence[SegmentName] | None = None,
    ) -> None:
        self._control = LaneControl()
        self._lane = LaneReceiver(options, wal, head, epoch, self._control, found, unmarked)
        self._failed = failed
        self._thread = threading.Thread(target=self._run, name="redelivery-receiver", daemon=True)
        self._thread.start()

    def adjust(self, *, hold: bool, pace: LanePace) -> None:
        """See `LaneControl`."""
        self._control.set(hold=hold, pace=pace)

    def counts(self) -> Mapping[str, int]:
        """The counts of `BatchReceiver`."""
        return dict(self._lane.receiver.counts)

    def stop(self) -> None:
        """Have it end."""
        self._control.stop()

    def join(self, timeout: float) -> None:
        """Wait for the thread. It is a daemon: one that does not end in time ends with the process."""
        self._thread.join(timeout)

    def _run(self) -> None:
        try:
            self._lane.run()
        except JMSError as error:
            if not self._control.stopped.is_set():
                self._failed(error)
        except BaseException as error:
            self._failed(JMSError(f"the receiver failed: {type(error).__name__}: {error}"))
            raise
