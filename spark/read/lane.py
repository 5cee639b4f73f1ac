"""The loop of `receiver=driver`: receive, make it durable as the next segment, commit; for one thread or process.

The order is what loses and duplicates nothing: the segment is published under the next free number before the session
commits, so a crash in between redelivers messages that are in a segment in doubt, and they are dropped.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from redelivery.spark.log.chain import SegmentChain
from redelivery.spark.log.segments import Extent
from redelivery.spark.log.wal import SegmentName, Wal
from redelivery.spark.options.query import SourceOptions
from redelivery.spark.read.receiving.batch_receiver import BatchReceiver
from redelivery.spark.read.receiving.received_batch import BatchPause, ReceivedBatch

LanePace: TypeAlias = Literal["now", "all", "later"]
"""What Spark does meanwhile.

``now``: it waits for rows, whatever is there. ``all``: it waits until the queue is empty. ``later``: it is busy, and
does not wait.
"""

_MOMENT: Final = 0.005  # seconds without a message after which Spark gets what there is
_SOON: Final = 0.1  # seconds after which it gets it all the same
_EMPTY: Final = 0.1  # seconds without a message after which a queue is empty


@dataclass(slots=True)
class LaneControl:
    """The reader's orders to its receivers; ``changed`` is notified when anything of it changes.

    ``hold``: enough is pending.
    """

    hold: bool = False
    pace: LanePace = "now"
    stopped: threading.Event = field(default_factory=threading.Event)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def set(self, *, hold: bool, pace: LanePace) -> None:
        """Change them."""
        with self.changed:
            self.hold, self.pace = hold, pace
            self.changed.notify_all()

    def stop(self) -> None:
        """End the loop, after the step that it is in."""
        self.stopped.set()
        with self.changed:
            self.changed.notify_all()

    def wait(self) -> None:
        """While ``hold``, and not stopped."""
        with self.changed:
            self.changed.wait_for(lambda: self.stopped.is_set() or not self.hold)


Found: TypeAlias = Callable[[int, "Extent | None"], None]
"""Notified of a segment: its number and extent, None if another lane wrote it.

Number 0 is no segment: None if the queue was empty, an extent if messages came or the connection is away.
"""


@contextmanager
def imports_left_alone() -> Iterator[None]:
    """Keep what is in the process by now out of Python's collections of garbage, within the block.

    A lane keeps the objects of many rows, so that full collections are frequent, and each would go through all that
    Spark and Arrow have imported.
    """
    if gc.get_freeze_count():  # the application has done so itself
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


class LaneReceiver:
    """One lane. ``unmarked``: of `SegmentChain`, as ``head``; ``found``: notified of each segment, and of an empty
    queue.

    ``epoch``: of the query that it belongs to; a later one of the same walLocation ends it.
    """

    def __init__(
        self,
        options: SourceOptions,
        wal: Wal,
        head: int,
        epoch: int,
        control: LaneControl,
        found: Found,
        unmarked: Sequence[SegmentName] | None = None,
    ) -> None:
        self._options = options
        self._wal = wal
        self._epoch = epoch
        self._control = control
        self._found = found
        self._chain = SegmentChain(
            wal,
            head,
            alone=options.lanes == 1,
            taken=lambda number: found(number, None),
            check=lambda: wal.check_epoch(epoch),
            unmarked=unmarked,
        )
        self.receiver = BatchReceiver(options, self._chain, stopped=control.stopped)

    def run(self) -> None:
        """Receive until `LaneControl.stop`.

        Raises:
            JMSError: of `BatchReceiver.receive`, a store that fails, or another query on the same walLocation.
        """
        options, control = self._options, self._control
        looked = False
        with imports_left_alone(), self.receiver:
            while not control.stopped.is_set():
                control.wait()
                batch = self.receiver.receive(options.segment_rows, options.segment_bytes, self._pause)
                if control.stopped.is_set():
                    return
                if batch is not None:
                    self._keep(batch)
                elif not self.receiver.empty:
                    self._found(0, Extent())
                else:
                    if not looked:  # for what a receiver of an earlier query has published since we began
                        self._chain.adopt()
                    self._found(0, None)
                looked = self.receiver.empty

    def _pause(self) -> BatchPause:
        linger = self._options.linger
        match self._control.pace:
            case "now":
                return BatchPause(_MOMENT, min(linger, _SOON))
            case "all":
                return BatchPause(min(linger, _EMPTY))
            case "later":
                return BatchPause(linger, linger)

    def _keep(self, batch: ReceivedBatch) -> None:
        if batch.rows == 0:  # all of it is in segments already, or gave no row
            self.receiver.confirm()
            self._found(0, Extent())
            return
        number = self._chain.publish(batch.data, batch.keys if self._options.dedupe == "inDoubt" else ())
        if number is None:
            self.receiver.close()  # its messages are redelivered, and dropped if they were read
            return
        extent = Extent(batch.rows, batch.size, len(batch.data))
        batch.release()
        self._wal.check_epoch(self._epoch)
        self._chain.record_head(number)
        if self.receiver.confirm():
            self._chain.confirm(number, extent)
        self._found(number, extent)
