"""The receivers of `receiver=driver`, one thread or `lanes` processes, and what they have found so far."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Protocol

from redelivery.model.errors import JMSError
from redelivery.spark.depth import QueueDepth
from redelivery.spark.lane_process import ProcessLane
from redelivery.spark.options import SourceOptions
from redelivery.spark.receiver import OTHERS, Receiver, Wishes
from redelivery.spark.segments import segment_rows
from redelivery.spark.wal import Wal
from redelivery.transports.wire.clock import monotonic

_STOP_SECONDS = 10.0


class Lane(Protocol):
    """One receiver."""

    def wish(self, *, hold: bool, hurry: bool) -> None:
        """See `Wishes`."""

    def counts(self) -> Mapping[str, int]:
        """Of `Intake`."""

    def stop(self) -> None:
        """Have it end."""

    def join(self, timeout: float) -> None:
        """Until it has ended, or time is up, in seconds; then it is ended the hard way, if there is one."""


class Lanes:
    """Started when made; whoever asks for rows is told what ended a receiver.

    Args:
        head: the highest number of a segment.
        known: the rows of segments that are there and not read yet, by number.
    """

    def __init__(self, options: SourceOptions, wal: Wal, head: int, epoch: int, known: Mapping[int, int]) -> None:
        self.head = head
        self._options = options
        self._wal = wal
        self._rows = dict(known)
        self._changed = threading.Condition()
        self._error: JMSError | None = None
        self._quiet = [0.0] * options.lanes  # since when each lane has found nothing; 0: it has
        self._wanted = (False, True)
        self._lanes: list[Lane] = [self._start(number, epoch) for number in range(options.lanes)]
        self._depth = QueueDepth(options)

    def wait_for_rows(
        self, seq: int, seconds: float, most: int, *, until_idle: bool, deadline: float = math.inf
    ) -> Mapping[int, int]:
        """The rows of each segment behind ``seq``, by number.

        Waits ``seconds`` at most for a first one; with ``until_idle`` until there are ``most`` rows, or as many as may
        be pending, or every lane has found its queue empty for ``seconds``; and not beyond ``deadline``, of the
        monotonic clock.

        Raises:
            JMSError: a receiver has ended.
        """
        began = monotonic()

        def enough() -> bool:
            rows = self._behind(seq)
            if self._error is not None or (not until_idle and rows) or sum(rows.values()) >= most or self._wanted[0]:
                return True
            now = monotonic()
            if now >= deadline:
                return True
            if until_idle:
                return all(quiet and now - max(quiet, began) >= seconds for quiet in self._quiet)
            return now - began >= seconds

        self._wish(hurry=not until_idle)
        with self._changed:
            while not enough():
                self._changed.wait(0.05 if until_idle else max(0.0, seconds - (monotonic() - began)))
            rows = self._behind(seq)
            error = self._error
        if error is not None and not rows:
            raise error
        self._wish(hurry=False)
        return rows

    def committed(self, seq: int) -> None:
        """The segments up to ``seq`` are no longer pending."""
        with self._changed:
            for number in [each for each in self._rows if each <= seq]:
                del self._rows[number]
        self._wish(hurry=self._wanted[1])

    def report(self) -> dict[str, int]:
        """What they have done; `pendingRows`: in segments that no committed batch has read; `queueDepth` if known."""
        counts: Counter[str] = Counter()
        for lane in self._lanes:
            counts.update(lane.counts())
        with self._changed:
            pending = sum(self._rows.values())
        names = ("received", "duplicates", "deadLetters", "dropped", "inDoubt", "connections")
        return {"pendingRows": pending, **{name: counts[name] for name in names}, **self._depth.report()}

    def stop(self) -> None:
        """End them all."""
        for lane in self._lanes:
            lane.stop()
        self._depth.close()
        until = monotonic() + _STOP_SECONDS
        for lane in self._lanes:
            lane.join(max(0.1, until - monotonic()))

    def _behind(self, seq: int) -> dict[int, int]:
        return {number: rows for number, rows in self._rows.items() if number > seq}

    def _wish(self, *, hurry: bool) -> None:
        with self._changed:
            wanted = (sum(self._rows.values()) >= self._options.max_pending_rows, hurry)
            if wanted == self._wanted:
                return
            self._wanted = wanted
        for lane in self._lanes:
            lane.wish(hold=wanted[0], hurry=wanted[1])

    def _start(self, number: int, epoch: int) -> Lane:
        kind: Callable[..., Lane] = ThreadLane if self._options.lanes == 1 else ProcessLane
        return kind(
            self._options,
            self._wal,
            self.head,
            epoch,
            found=lambda seq, rows: self._found(number, seq, rows),
            failed=self._failed,
        )

    def _found(self, lane: int, seq: int, rows: int) -> None:
        if rows == OTHERS:
            reader = self._wal.reader(seq, 0)
            rows = 0 if reader is None else segment_rows(reader)
        with self._changed:
            if seq:
                self._quiet[lane] = 0.0
                self._rows.setdefault(seq, rows)
                self.head = max(self.head, seq)
            else:
                self._quiet[lane] = self._quiet[lane] or monotonic()
            self._changed.notify_all()
        if seq:
            self._wish(hurry=self._wanted[1])

    def _failed(self, error: JMSError) -> None:
        with self._changed:
            self._error = self._error or error
            self._changed.notify_all()


class ThreadLane:
    """A receiver in a thread of the runner's process."""

    def __init__(
        self,
        options: SourceOptions,
        wal: Wal,
        head: int,
        epoch: int,
        *,
        found: Callable[[int, int], None],
        failed: Callable[[JMSError], None],
    ) -> None:
        self._wishes = Wishes()
        self._receiver = Receiver(options, wal, head, epoch, self._wishes, found)
        self._failed = failed
        self._thread = threading.Thread(target=self._run, name="redelivery-receiver", daemon=True)
        self._thread.start()

    def wish(self, *, hold: bool, hurry: bool) -> None:
        """See `Wishes`."""
        self._wishes.set(hold=hold, hurry=hurry)

    def counts(self) -> Mapping[str, int]:
        """Of `Intake`."""
        return dict(self._receiver.intake.counts)

    def stop(self) -> None:
        """Have it end."""
        self._wishes.stop()

    def join(self, timeout: float) -> None:
        """It is a daemon: what does not end in time ends with the process."""
        self._thread.join(timeout)

    def _run(self) -> None:
        try:
            self._receiver.run()
        except JMSError as error:
            if not self._wishes.stopped.is_set():
                self._failed(error)
        except BaseException as error:
            self._failed(JMSError(f"the receiver failed: {type(error).__name__}: {error}"))
            raise
