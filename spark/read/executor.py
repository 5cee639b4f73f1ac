"""`receiver=executor`: each task receives its share of the batch itself, makes it a segment, and reads that.

For more messages than one process can receive, and for more than one host. The order of messages is kept within a
partition only. What a task has received is nobody's row before it is published, and what is published is read by every
other attempt: a retry, a second action and a restart see the same rows.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark import TaskContext
from pyspark.sql.datasource import InputPartition

from redelivery.spark.log.commits import Part
from redelivery.spark.log.damage import older_copy, survey_batch
from redelivery.spark.log.names import Extent, numbers_of
from redelivery.spark.log.wal import Wal
from redelivery.spark.read.attempts import count_attempt
from redelivery.spark.read.inspect.probe import Probe
from redelivery.spark.read.offsets import ExecutorOffset, parse_offset
from redelivery.spark.read.receiving.batch_receiver import COUNTS, BatchReceiver
from redelivery.spark.read.receiving.received_batch import BatchPause, ReceivedBatch, empty_batch
from redelivery.spark.read.stream import JmsStreamReader, row_limit
from redelivery.spark.rows.digests import Key
from redelivery.transports.wire.clock import monotonic

log = logging.getLogger(__name__)

_FIRST: Final = 0.25  # seconds for a first message: the question for work has seen one
_MOMENT: Final = 0.02  # seconds without a message after which a queue has nothing more for now


@dataclass(slots=True)
class SharePartition(InputPartition):
    """One task's share: ``quota`` messages at most, kept as the segment ``seq``-``part``, one of ``parts``.

    ``first``: seconds that it waits for a first message. ``doubt``: of `UncommittedIds.entries`. ``broker``: of a list,
    where the messages were seen.
    """

    seq: int
    part: int
    parts: int
    quota: int
    wal: str
    epoch: int
    first: float
    doubt: Sequence[str]
    broker: int = 0


class ExecutorStreamReader(JmsStreamReader):
    """See the module. The plan of a batch stands in its offset, so that a restart with other options repeats it."""

    _probe: Probe | None = None
    _counts: Mapping[str, int] | None = None  # of the batches that are done
    _uncommitted: Mapping[str, int] | None = None  # of the last one, while it is not committed
    _surveyed, _parts = 0, 0  # the batch that was looked for as the query began, and how many parts it had
    _nothing = 0, False  # the last batch that was looked at, and whether it had no rows

    def initialOffset(self) -> dict[str, Any]:
        """Behind the last batch that was committed."""
        _ = self.listed
        begin = self.wal.watermark()
        self.wal.records.plan(begin)
        return ExecutorOffset(self.wal.identity, begin, 0, 0).json()

    def latestOffset(self, start: Mapping[str, Any], limit: object = None) -> dict[str, Any]:
        """The plan of one more batch when there is something to receive, `pollInterval` after the call at the latest.

        Where the broker cannot browse it cannot be asked, and a batch is planned each `pollInterval`, perhaps for
        nothing.

        Raises:
            DataLossError: a segment that is to be read is gone or damaged, and `failOnDataLoss` is true.
            ConnectError: the broker was away for longer than `maxReconnectTime`.
            ConfigError: the checkpoint belongs to other segments than `walLocation` has.
        """
        offset = self._known(start)
        idle = self._probe is not None and self._came_to_nothing(offset)  # a batch of an earlier run says nothing
        if self.deadline is not None and (monotonic() >= self.deadline or idle):
            return dict(start)
        if self._probe is None:
            self._probe = Probe(self.options)
        unread = self._unread(offset.seq + 1)
        wait = self.options.poll_interval if self.deadline is None else self.options.available_now_idle
        least = self.delay.least() if self.deadline is None else 1
        if not unread and not self._probe.ready(wait, quiet=self._came_to_nothing(offset), least=least):
            return dict(start)
        self.wal.records.plan(offset.seq + 1)
        self.delay.planned()
        most = min(row_limit(limit), self.options.max_messages_per_batch)
        parts = max(min(self.options.num_partitions, most), unread)
        return ExecutorOffset(self.wal.identity, offset.seq + 1, parts, max(most, parts)).json()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """The source's latest offset, as the query's progress shows it."""
        if "listed" not in self.__dict__:
            return None
        pending = {"pendingRows": 0, "pendingBytes": 0}  # whatever is received belongs to a batch that is planned
        said = Counter(self._counts) + Counter(self._uncommitted)
        counts = {name: said[name] for name in ("uncommittedRows", "uncommittedBytes", *COUNTS, "inDoubt")}
        probed = {} if self._probe is None else self._probe.report()
        return {"v": 1, "wal": self.wal.identity, **pending, **counts, **probed, "lostSegments": self.lost}

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[SharePartition]:
        """The partitions that the offset says. Raises BatchFailedError after `maxBatchAttempts`."""
        first, last = self._own(start), self._known(end)
        if first.seq == last.seq:
            return []
        if first.parts and self.wal.watermark() < first.seq:  # Spark does not repeat a commit that died
            self.wal.commit(first.seq, first.parts, retain=self.options.retain_batches, epoch=self.epoch)
        if self._probe is None:  # Spark repeats it: what is there of it is received, and not done
            self._count(last.seq, [each for each in self.wal.parts(last.seq, last.parts).values() if each is not None])
        count_attempt(self.wal, self.options, first.seq + 1, last.seq)
        share, more = divmod(last.max, last.parts)
        wait = max(_FIRST, self.options.receive_timeout)
        if self.deadline is not None:  # a batch of nothing ends the query, so a broker that is slow to push has as long
            wait = max(wait, self.options.available_now_idle)
        doubt = self.wal.uncommitted.entries()
        broker = 0 if self._probe is None else self._probe.broker
        return [
            SharePartition(last.seq, part, last.parts, share + (part < more), last.wal, self.epoch, wait, doubt, broker)
            for part in range(last.parts)
        ]

    def read(self, partition: SharePartition) -> Iterator[Any]:
        """Receive, unless another attempt has; then the rows of the segment.

        Raises:
            FencedError: the batch was committed without this attempt, whose messages are released.
            JMSError: the broker, or the store, fails.
        """
        self.attach(partition.wal)
        if not self.wal.quarantined(partition.seq) and self._is_free(partition):
            self._receive(partition)
        yield from self.segment(partition.seq, partition.part)

    def commit(self, end: Mapping[str, Any]) -> None:
        """Nothing up to ``end`` is asked for again. Raises FencedError if another query uses the same walLocation."""
        offset = self._own(end)
        self.wal.commit(offset.seq, offset.parts, retain=self.options.retain_batches, epoch=self.epoch)
        self._uncommitted = None

    def stop(self) -> None:
        """Close what asks the broker. Twice is harmless."""
        probe, self._probe = self._probe, None
        if probe is not None:
            probe.close()
        self.leave()

    def _own(self, offset: Mapping[str, Any]) -> ExecutorOffset:
        parsed = parse_offset(offset, "executor")
        assert isinstance(parsed, ExecutorOffset)
        self.wal.check_offset(parsed.wal)
        return parsed

    def _known(self, value: Mapping[str, Any]) -> ExecutorOffset:
        """The offset, of which the log knows.

        Raises:
            DataLossError: the log was copied before that batch was planned, and `failOnDataLoss` is true.
        """
        offset = self._own(value)
        _ = self.listed
        last = self.wal.records.planned_before(offset.seq, self.wal.watermark())
        if last is not None:
            self.report_loss(older_copy(self.wal, offset.seq, offset.parts, last))
            self.wal.quarantine(offset.seq)  # its rows are gone, and others must not come under its number
        self.wal.records.plan(offset.seq)
        return offset

    def _came_to_nothing(self, offset: ExecutorOffset) -> bool:
        """Check whether the batch that ends there is known to have no rows."""
        if self._nothing[0] != offset.seq:
            parts = self.wal.parts(offset.seq, offset.parts).values()
            # None: of a task that was never run, or unknown: there may be more
            self._nothing = offset.seq, bool(parts) and all(part is not None and part.rows == 0 for part in parts)
            self._count(offset.seq, [part for part in parts if part is not None])
        return self._nothing[1]

    def _count(self, seq: int, parts: Sequence[Part]) -> None:
        """The batch ``seq`` is done; only those are counted that this query has planned."""
        self._is_there(parts)
        if seq >= self._surveyed > 0:
            for each in parts:
                counts = each.counts or {"received": each.rows, "inDoubt": 1}
                self._counts = Counter(self._counts) + Counter(counts)

    def _is_there(self, parts: Sequence[Part | Extent]) -> None:
        """These are received, and Spark has not reported their batch as done."""
        rows, size = (sum(getattr(each, name) for each in parts) for name in ("rows", "size"))
        self._uncommitted = {"uncommittedRows": rows, "uncommittedBytes": size}

    def _unread(self, seq: int) -> int:
        """The parts that a query before this one has published for a batch that it never planned: this one reads them.

        Raises:
            DataLossError: some of it is gone or damaged, and `failOnDataLoss` is true.
        """
        if not self._surveyed:
            survey = survey_batch(self.wal, seq, self.listed)
            self.report_loss(survey.lost)
            parts = {*survey.found, *(each.part for each in survey.lost)}
            self._surveyed, self._parts = seq, max(parts, default=-1) + 1
            if survey.found:
                self._is_there(list(survey.found.values()))
            self.listed = []
        return self._parts if self._surveyed == seq else 0

    def _is_free(self, share: SharePartition) -> bool:
        """Check that nobody has published this part. The problem of one that is there is reported when it is read."""
        wal, part = self.wal, (share.seq, share.part)
        return not (wal.there(*part) or wal.part_confirmed(*part) or wal.records.has_head(*part))

    def _receive(self, share: SharePartition) -> None:
        wal, options = self.wal, self.options
        wal.check_epoch(share.epoch)
        context = TaskContext.get()
        # a message that kills the task must not take the same neighbours with it each time
        quota = max(1, share.quota >> min(context.attemptNumber() if context is not None else 0, 30))
        size = min(options.segment_bytes, min(options.max_bytes_per_batch, options.max_pending_bytes) // share.parts)
        known = _SegmentsInDoubt(wal, share)
        with BatchReceiver(options, known, quota=quota, broker=share.broker) as receiver:
            batch = receiver.receive(quota, size, self._pause, first=share.first)
            self._keep(receiver, share, batch)

    def _keep(self, receiver: BatchReceiver, share: SharePartition, batch: ReceivedBatch | None) -> None:
        wal = self.wal
        made = batch or empty_batch(self.options)
        if not wal.publish(share.seq, share.part, made.data):
            log.info(
                "segment %d-%d: another attempt was first; the messages of this one are released", share.seq, share.part
            )
            return
        made.release()
        wal.check_epoch(share.epoch)  # no withdrawal: the newer query may have found and planned it
        wal.check_published(share.seq, share.part, made.attempt)
        wal.records.add_head(share.seq, share.part)
        if batch is None or receiver.confirm():
            counts = {name: receiver.counts[name] for name in COUNTS}
            wal.confirm(share.seq, share.part, Part(made.attempt, made.rows, made.size, counts))

    def _pause(self) -> BatchPause:
        """A share ends when what was there is taken, or after `latencyTarget`; a backlog has `maxReceiveTime`."""
        options = self.options
        return BatchPause(
            _MOMENT, options.max_receive_time, least=options.receive_timeout, target=options.latency_target
        )


@dataclass(frozen=True, slots=True)
class _SegmentsInDoubt:
    """The segments in doubt of a task; see `redelivery.spark.read.receiving.duplicates.SegmentsInDoubt`."""

    wal: Wal
    share: SharePartition

    def in_doubt(self) -> Mapping[str, Sequence[Key]]:
        """The segments in doubt of other tasks and batches."""
        share = self.share
        found = self.wal.in_doubt_for_task(share.seq, share.parts, share.doubt)
        return {name: each.keys for name, each in found.items()}

    def confirmed(self, name: str) -> bool:
        """Check whether the segment has its mark."""
        return self.wal.part_confirmed(*numbers_of(name))
