"""The part that both receivers share: the segments, the epoch, AvailableNow, and making rows of a segment."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Iterator, Mapping
from functools import cached_property
from math import inf
from types import FrameType
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader

from redelivery.spark.log.claims import Claim
from redelivery.spark.log.damage import DataLossError, loss
from redelivery.spark.log.segments import segment_attempt, segment_batches
from redelivery.spark.log.store.interface import DamagedError, Tombstone
from redelivery.spark.log.store.opening import open_store
from redelivery.spark.log.wal import SegmentName, Wal
from redelivery.spark.options.query import SourceOptions
from redelivery.spark.read.refused import is_runner
from redelivery.spark.rows.check import check_segment
from redelivery.spark.rows.schema import shown
from redelivery.spark.versions import ReadMaxRows, SupportsTriggerAvailableNow
from redelivery.transports.wire.clock import monotonic

log = logging.getLogger(__name__)


class JmsStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The common part. It is pickled: what is open is made anew where it is used."""

    def __init__(self, options: SourceOptions) -> None:
        self.options = options
        self.deadline: float | None = None  # of AvailableNow, by the monotonic clock
        self.delay = TriggerDelay(options)
        self._lost: set[str] = set()  # keys of segments that were gone or damaged, and left out
        if is_runner():
            signal.signal(signal.SIGTERM, _end)

    def __getstate__(self) -> dict[str, Any]:
        return {"options": self.options, "deadline": None, "delay": TriggerDelay(self.options), "_lost": set()}

    @cached_property
    def wal(self) -> Wal:
        """The segments. Raises StoreError where the place cannot hold them."""
        return Wal.open(
            open_store(self.options.wal_location, self.options.storage_options),
            check=is_runner(),
            dedupe_window=self.options.dedupe_window,
        )

    def attach(self, identity: str) -> None:
        """Use the log that the driver has opened. Raises ConfigError where this host sees another one, or none."""
        if "wal" not in self.__dict__:
            store = open_store(self.options.wal_location, self.options.storage_options)
            self.__dict__["wal"] = Wal.attach(store, identity, dedupe_window=self.options.dedupe_window)

    @cached_property
    def epoch(self) -> int:
        """This query's turn with `walLocation`: a query that has had an earlier one is fenced.

        Raises:
            IllegalStateError: another query on this host has the turn, and lives.
            ConfigError: `walLocation` belongs to a query of other destinations, or of another subscription.
        """
        return self.wal.take_turn(Claim.of_this_process(), source=self.options.identity)

    @cached_property
    def listed(self) -> list[SegmentName]:
        """The segments that there were when this query had taken its turn. Raises IllegalStateError of `epoch`."""
        _ = self.epoch  # before we look: from here on nobody else publishes or commits for good
        return self.wal.survey()

    def leave(self) -> None:
        """The query ends: the next one need not wait for us."""
        if "epoch" in self.__dict__:
            self.wal.leave(self.__dict__.pop("epoch"))

    def getDefaultReadLimit(self) -> ReadMaxRows:
        """`maxMessagesPerBatch`."""
        return ReadMaxRows(self.options.max_messages_per_batch)

    def prepareForTriggerAvailableNow(self) -> None:
        """End, from now on, where the queue is empty, or where `availableNowMaxTime` has passed."""
        limit = self.options.available_now_max_time
        self.deadline = float("inf") if limit is None else monotonic() + limit

    def segment(self, seq: int, part: int) -> Iterator[Any]:
        """The rows of one segment as Arrow batches; nothing of one that is quarantined.

        Raises:
            DataLossError: it is gone or damaged, and `failOnDataLoss` is true.
            ConfigError: it was received with other columns.
            Tombstone: the batch was committed without it.
        """
        if self.wal.quarantined(seq):
            return
        name = SegmentName(seq, part)
        try:
            reader = self.wal.reader(seq, part)
            if reader is not None:
                segment_attempt(reader)  # raises where it is not a segment
                check_segment(reader, f"segment {seq}-{part}", self.options)
                columns = shown(self.options.columns, self.options.errors)
                yield from (batch.select(columns) for batch in segment_batches(reader))
                return
            problem = "is gone"
        except DamagedError as error:
            problem = f"is damaged ({error})"
        except Tombstone:
            parts = self.options.receiver == "executor"
            if parts and not self.wal.part_confirmed(seq, part) and self.wal.watermark() >= seq:
                raise
            problem = "is empty"
        self.report_loss({name: f"{self.wal.store.location}/{name.data} {problem}"})
        self.wal.records.add_lost(seq, part)  # the process that counts is another one

    @property
    def lost(self) -> int:
        """The segments that were gone or damaged, and left out, by this process or by tasks."""
        if not self.options.fail_on_data_loss:
            self._lost.update(self.wal.records.take_lost())
        return len(self._lost)

    def report_loss(self, lost: Mapping[SegmentName, str]) -> None:
        """Raise DataLossError for these problems of segments, or log and count them."""
        if not lost:
            return
        if self.options.fail_on_data_loss:
            raise DataLossError(loss(lost))
        self._lost.update(each.key for each in lost)
        for each in lost.values():
            log.error("%s: going on without it (failOnDataLoss=false)", each)


def row_limit(limit: object) -> int:
    """The rows that Spark allows a batch; whatever is not `ReadMaxRows` allows any number."""
    return limit.max_rows if isinstance(limit, ReadMaxRows) else sys.maxsize


def _end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001  # as signal calls it
    """Let the runner's `finally` call `stop()`. Spark sends the signal twice, and the second would interrupt that."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(0)


class TriggerDelay:
    """The clock of one query. Its first batch does not wait, so that a restart goes on with what is pending."""

    def __init__(self, options: SourceOptions) -> None:
        self._least = options.min_messages_per_batch
        self._delay = options.max_trigger_delay
        self._planned = -inf

    def least(self) -> int:
        """The messages without which no batch begins now; 1 once `maxTriggerDelay` has passed."""
        return 1 if monotonic() - self._planned >= self._delay else max(1, self._least)

    def planned(self) -> None:
        """A batch begins."""
        self._planned = monotonic()
