"""The loop of `receiver=driver`: receive, make it durable as the next segment, commit; for one thread or process.

The order is what loses and duplicates nothing: the segment is published under the next free number before the session
commits, so a crash in between brings the messages again, whose ids then stand in a segment in doubt, and are dropped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

from redelivery.spark.intake import Fill, Intake
from redelivery.spark.options import SourceOptions
from redelivery.spark.rows import arrow_schema
from redelivery.spark.segments import encode
from redelivery.spark.wal import Wal


@dataclass(slots=True)
class Wishes:
    """What the reader wants of its receivers; ``changed`` is notified when anything of it changes.

    ``hold``: enough is pending. ``hurry``: Spark waits for rows.
    """

    hold: bool = False
    hurry: bool = True
    stopped: threading.Event = field(default_factory=threading.Event)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def set(self, *, hold: bool, hurry: bool) -> None:
        """Change them."""
        with self.changed:
            self.hold, self.hurry = hold, hurry
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


Found = Callable[[int, int], None]  # a segment's number and rows; 0, 0: nothing came for a while
OTHERS: Final = -1  # the rows of a segment that somebody else wrote


class Receiver:
    """One lane.

    Args:
        head: the highest number that a segment has.
        epoch: of the query that it belongs to; a later one of the same walLocation ends it.
        found: told of each segment, one that somebody else wrote included, and (0, 0) of an empty queue.
    """

    def __init__(self, options: SourceOptions, wal: Wal, head: int, epoch: int, wishes: Wishes, found: Found) -> None:
        self._options = options
        self._wal = wal
        self._head = head
        self._epoch = epoch
        self._wishes = wishes
        self._found = found
        self._schema = arrow_schema(options.properties_type, options.errors)
        self.intake = Intake(options, wal.in_doubt_ids, prefetch=options.prefetch, stopped=wishes.stopped)

    def run(self) -> None:
        """Until it is told to stop.

        Raises:
            JMSError: of `Intake.fill`, a store that fails, or another query on the same walLocation.
        """
        options, wishes = self._options, self._wishes
        looked = False
        with self.intake:
            while not wishes.stopped.is_set():
                wishes.wait()
                fill = self.intake.fill(options.segment_rows, options.linger, hurry=lambda: wishes.hurry)
                if wishes.stopped.is_set():
                    return
                if fill is not None:
                    self._keep(fill)
                else:
                    if not looked:  # for what a receiver of an earlier query has published since we began
                        self._adopt()
                    self._found(0, 0)
                looked = fill is None

    def _keep(self, fill: Fill) -> None:
        if fill.rows == 0:  # all of it stands in segments, or is no row
            self.intake.confirm()
            return
        number = self._publish(fill)
        if number is None:
            self.intake.close()  # its messages come again, and are dropped if they were read
            return
        self._wal.check_epoch(self._epoch)
        if self.intake.confirm():
            self._wal.confirm(number, 0)
        self._found(number, fill.rows)

    def _adopt(self) -> None:
        while self._wal.published_parts(self._head + 1):
            self._head += 1
            self._found(self._head, OTHERS)

    def _publish(self, fill: Fill) -> int | None:
        """Under the next free number; one that somebody else has taken is a segment like ours.

        None: the number was committed meanwhile. Either it was free again because another lane's segment had been read
        and deleted, so nobody reads ours, or another lane has told of ours and it was read: its ids are in doubt then.
        """
        options = self._options
        data: Any = encode(fill.batches, self._schema, options.compression, rows=fill.rows, attempt=uuid4().hex)
        while True:
            self._head = max(self._head, self._wal.watermark()) + 1
            if not self._wal.publish(self._head, 0, data):
                self._found(self._head, OTHERS)
            else:
                return self._head if self._wal.watermark() < self._head else None
