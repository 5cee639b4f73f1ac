"""`receiver=driver`: the query's runner process receives into segments all the time; executors only read segments.

`initialOffset`, `latestOffset`, `partitions`, `commit` and `reportLatestOffset` run in one process of the driver's host
for as long as the query runs; `read` runs in the executors' processes, with a pickled copy of this object.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import InputPartition

from redelivery.spark.log.damage import older_copy, survey_chain
from redelivery.spark.log.segments import Extent
from redelivery.spark.log.wal import SegmentName
from redelivery.spark.read.attempts import planned
from redelivery.spark.read.lanes import Lanes
from redelivery.spark.read.offsets import DriverOffset, parse_offset
from redelivery.spark.read.stream import JmsStreamReader, row_limit


@dataclass(slots=True)
class SegmentsPartition(InputPartition):
    """The segments that one task reads, in order, of the log ``wal``."""

    wal: str
    numbers: Sequence[int]


class DriverStreamReader(JmsStreamReader):
    """See the module. Made once in the runner, and once more to be pickled: nothing starts before it is needed."""

    _lanes: Lanes | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Behind the last batch that was committed: what is in the segments after it is read, not lost."""
        _ = self.listed
        return DriverOffset(self.wal.identity, self.wal.watermark()).json()

    def latestOffset(self, start: Mapping[str, Any], limit: object = None) -> dict[str, Any]:
        """Wait for `minMessagesPerBatch` rows, `pollInterval` at most; segments as the limits allow, one at least.

        Raises:
            DataLossError: a segment that is to be read is gone or damaged, and `failOnDataLoss` is true.
            JMSError: what ended the receiving, such as a broker that was away for longer than `maxReconnectTime`.
            ConfigError: the checkpoint belongs to other segments than `walLocation` has.
        """
        offset = self._own(start)
        lanes = self._started(offset.seq)
        options, most = self.options, row_limit(limit)
        if self.deadline is None:
            rows = lanes.wait_for_rows(
                offset.seq, options.poll_interval, most, until_idle=False, least=self.delay.least
            )
        else:
            idle = options.available_now_idle
            rows = lanes.wait_for_rows(offset.seq, idle, most, until_idle=True, deadline=self.deadline)
        end = self._end(offset.seq, rows, most)
        if end == offset.seq:
            return dict(start)
        lanes.planned(end)
        self.delay.planned()
        return DriverOffset(self.wal.identity, end).json()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """The source's latest offset, as the query's progress shows it."""
        if self._lanes is None:
            return None
        offset = DriverOffset(self.wal.identity, self._lanes.head).json()
        return {**offset, **self._lanes.report(), "lostSegments": self.lost}

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[SegmentsPartition]:
        """The segments behind ``start`` up to ``end``, in `numPartitions` runs of neighbours.

        Raises:
            BatchFailedError: Spark plans this batch for more than `maxBatchAttempts` times.
        """
        first, last = self._own(start).seq + 1, self._own(end).seq
        if last < first:
            return []
        numbers = planned(self.wal, self.options, first, last)
        count = min(self.options.num_partitions, len(numbers))
        return [
            SegmentsPartition(
                self.wal.identity, numbers[len(numbers) * each // count : len(numbers) * (each + 1) // count]
            )
            for each in range(count)
        ]

    def read(self, partition: SegmentsPartition) -> Iterator[Any]:
        """The rows, as Arrow batches. Raises DataLossError where a segment is gone and `failOnDataLoss` is true."""
        self.attach(partition.wal)
        for number in partition.numbers:
            yield from self.segment(number, 0)

    def commit(self, end: Mapping[str, Any]) -> None:
        """Nothing up to ``end`` is asked for again. Raises FencedError if another query uses the same walLocation."""
        offset = self._own(end)
        self.wal.commit_driver(offset.seq, self.options.retain_batches, epoch=self.epoch)
        if self._lanes is not None:
            self._lanes.committed(offset.seq)

    def stop(self) -> None:
        """End the receiving; what is not in a segment is released to the broker. Twice is harmless."""
        lanes, self._lanes = self._lanes, None
        if lanes is not None:
            lanes.stop()
        self.leave()

    def _own(self, offset: Mapping[str, Any]) -> DriverOffset:
        parsed = parse_offset(offset, "driver")
        assert isinstance(parsed, DriverOffset)
        self.wal.check_offset(parsed.wal)
        return parsed

    def _started(self, seq: int) -> Lanes:
        if self._lanes is None:
            wal, epoch = self.wal, self.epoch
            there = max([wal.watermark(), *(each.seq for each in self.listed)])
            if there < seq:
                self.report_loss(older_copy(wal, seq, 1, there))
            survey = survey_chain(wal, seq, self.listed)
            self.report_loss(survey.lost)
            known = survey.found | {each.seq: Extent() for each in survey.lost}
            head = max([seq, wal.watermark(), *known])
            self._lanes = Lanes(self.options, wal, head, epoch, known, survey.unmarked)
            self.listed = []  # it may have been long
        return self._lanes

    def _end(self, seq: int, known: Mapping[int, Extent], most: int) -> int:
        """The last segment of a batch behind ``seq``."""
        size = self.options.max_bytes_per_batch
        end = seq
        for number in range(seq + 1, max(known, default=seq) + 1):
            # A lane reports its segment when it has committed, perhaps after others have reported later ones.
            extent = known.get(number) or self._unknown(number)
            if extent is None or (end > seq and (extent.rows > most or extent.size > size)):
                break
            end, most, size = number, most - extent.rows, size - extent.size
        return end

    def _unknown(self, number: int) -> Extent | None:
        """A segment before one that is known: None if it is there, so that its lane will report it."""
        if self.wal.there(number, 0):
            return None
        name = SegmentName(number, 0)
        self.report_loss({name: f"{self.wal.store.location}/{name.data} is gone"})
        return Extent()
