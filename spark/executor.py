"""`receiver=executor`: each task receives its share of the batch itself, makes it a segment, and reads that.

For more messages than one process can receive, and for more than one host. The order of messages is kept within a
partition only. What a task has received is nobody's row before it is published, and what is published is read by every
other attempt: a retry, a second action and a restart see the same rows.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from uuid import uuid4

from pyspark import TaskContext
from pyspark.sql.datasource import InputPartition

from redelivery.spark.batches import count_attempt
from redelivery.spark.intake import Intake
from redelivery.spark.offsets import ExecutorOffset, parse_offset
from redelivery.spark.probe import Probe
from redelivery.spark.reader import JmsStreamReader, row_limit
from redelivery.spark.rows import arrow_schema
from redelivery.spark.segments import encode, segment_rows
from redelivery.spark.store import Tombstone
from redelivery.transports.wire.clock import monotonic

log = logging.getLogger(__name__)


@dataclass(slots=True)
class SharePartition(InputPartition):
    """One task's share: ``quota`` messages at most, kept as the segment ``seq``-``part``, one of ``parts``."""

    seq: int
    part: int
    parts: int
    quota: int
    wal: str
    epoch: int


class ExecutorStreamReader(JmsStreamReader):
    """See the module. The plan of a batch stands in its offset, so that a restart with other options repeats it."""

    _probe: Probe | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Behind the last batch that was committed."""
        _ = self.epoch  # from here on no other query commits
        return ExecutorOffset(self.wal.identity, self.wal.watermark(), 0, 0).json()

    def latestOffset(self, start: Mapping[str, Any], limit: object = None) -> dict[str, Any]:
        """The plan of one more batch when there is something to receive, `pollInterval` after the call at the latest.

        Where the broker cannot browse it cannot be asked, and a batch is planned each `pollInterval`, perhaps for
        nothing.

        Raises:
            ConnectError: the broker was away for longer than `maxReconnectTime`.
            ConfigError: the checkpoint belongs to other segments than `walLocation` has.
        """
        offset = self._own(start)
        over = self._probe is not None and self._came_to_nothing(offset)  # a batch of an earlier run says nothing
        if self.deadline is not None and (monotonic() >= self.deadline or over):
            return dict(start)
        if self._probe is None:
            self._probe = Probe(self.options)
            _ = self.epoch  # whoever has used these segments before is fenced from here on
        unread = self.wal.published_parts(offset.seq + 1)  # of a query that went on to nobody: this one reads them
        wait = self.options.poll_interval if self.deadline is None else self.options.available_now_idle
        if not unread and not self._probe.ready(wait, quiet=self._came_to_nothing(offset)):
            return dict(start)
        most = min(row_limit(limit), self.options.max_messages_per_batch)
        parts = max(min(self.options.num_partitions, most), unread)
        return ExecutorOffset(self.wal.identity, offset.seq + 1, parts, max(most, parts)).json()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """What the query's progress shows as the source's latest offset."""
        return None if self._probe is None else {"v": 1, "wal": self.wal.identity, **self._probe.report()}

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[SharePartition]:
        """As the offset says. Raises BatchFailedError after `maxBatchAttempts`."""
        first, last = self._own(start), self._own(end)
        if first.seq == last.seq:
            return []
        if first.parts and self.wal.watermark() < first.seq:  # Spark does not repeat a commit that died
            self.wal.commit(first.seq, first.parts, retain=self.options.retain_batches, epoch=self.epoch)
        count_attempt(self.wal, self.options, first.seq + 1, last.seq)
        share, more = divmod(last.max, last.parts)
        return [
            SharePartition(last.seq, part, last.parts, share + (part < more), last.wal, self.epoch)
            for part in range(last.parts)
        ]

    def read(self, partition: SharePartition) -> Iterator[Any]:
        """Receive, unless another attempt has; then the rows of the segment.

        Raises:
            FencedError: the batch is over without this attempt, whose messages go back.
            JMSError: the broker, or the store, fails.
        """
        self.attach(partition.wal)
        if not self.wal.quarantined(partition.seq) and self.wal.reader(partition.seq, partition.part) is None:
            self._receive(partition)
        yield from self.segment(partition.seq, partition.part)

    def commit(self, end: Mapping[str, Any]) -> None:
        """Nothing up to ``end`` is asked for again. Raises FencedError if another query uses the same walLocation."""
        offset = self._own(end)
        self.wal.commit(offset.seq, offset.parts, retain=self.options.retain_batches, epoch=self.epoch)

    def stop(self) -> None:
        """Close what asks the broker. Twice is harmless."""
        probe, self._probe = self._probe, None
        if probe is not None:
            probe.close()

    def _own(self, offset: Mapping[str, Any]) -> ExecutorOffset:
        parsed = parse_offset(offset, "executor")
        assert isinstance(parsed, ExecutorOffset)
        self.wal.check_offset(parsed.wal)
        return parsed

    def _came_to_nothing(self, offset: ExecutorOffset) -> bool:
        """Whether the batch that ends there had no rows, as far as is known."""
        try:
            readers = [self.wal.reader(offset.seq, part) for part in range(offset.parts)]
        except Tombstone:  # of a task that was never run: there may be more
            return False
        return bool(readers) and all(reader is not None and segment_rows(reader) == 0 for reader in readers)

    def _receive(self, share: SharePartition) -> None:
        wal, options = self.wal, self.options
        wal.check_epoch(share.epoch)
        context = TaskContext.get()
        # a message that kills the task must not take the same neighbours with it each time
        quota = max(1, share.quota >> min(context.attemptNumber() if context is not None else 0, 30))
        attempt = uuid4().hex
        settings = replace(options, prefetch=min(options.prefetch, quota))
        in_doubt = partial(wal.in_doubt_ids, share.seq, share.parts)
        with Intake(settings, in_doubt, prefetch=settings.prefetch) as intake:
            fill = intake.fill(quota, options.receive_timeout, longest=options.max_receive_time)
            data = encode(
                [] if fill is None else fill.batches,
                arrow_schema(options.properties_type, options.errors),
                options.compression,
                rows=0 if fill is None else fill.rows,
                attempt=attempt,
            )
            if not wal.publish(share.seq, share.part, data):
                log.info("segment %d-%d: another attempt was first; ours goes back", share.seq, share.part)
                return
            wal.check_epoch(share.epoch)  # no withdrawal: the newer query may have found and planned it
            wal.check_published(share.seq, share.part, attempt)
            if fill is None or intake.confirm():
                wal.confirm(share.seq, share.part)
