"""What both receivers share: the segments, the epoch, AvailableNow, and how a segment becomes rows."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import ReadMaxRows, SupportsTriggerAvailableNow

from redelivery.model.errors import JMSError
from redelivery.spark.options import SourceOptions
from redelivery.spark.segments import segment_batches
from redelivery.spark.store import open_store
from redelivery.spark.wal import Wal
from redelivery.transports.wire.clock import monotonic, utc_now

log = logging.getLogger(__name__)

_RUNNER = "python_streaming_source_runner"


class DataLossError(JMSError):
    """A segment that Spark asks for is gone; its messages were taken from the broker."""


class JmsStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The common part. It is pickled: what is open is made anew where it is used."""

    def __init__(self, options: SourceOptions) -> None:
        self.options = options
        self.deadline: float | None = None  # of AvailableNow, by the monotonic clock
        if _is_runner():
            signal.signal(signal.SIGTERM, _end)

    def __getstate__(self) -> dict[str, Any]:
        return {"options": self.options, "deadline": None}

    @cached_property
    def wal(self) -> Wal:
        """The segments. Raises StoreError where the place cannot hold them."""
        return Wal.open(
            open_store(self.options.wal_location, self.options.storage_options),
            check=_is_runner(),
            dedupe_window=self.options.dedupe_window,
        )

    def attach(self, identity: str) -> None:
        """Use the log that the driver has opened. Raises ConfigError where this host sees another one, or none."""
        if "wal" not in self.__dict__:
            store = open_store(self.options.wal_location, self.options.storage_options)
            self.__dict__["wal"] = Wal.attach(store, identity, dedupe_window=self.options.dedupe_window)

    @cached_property
    def epoch(self) -> int:
        """This query's turn with `walLocation`: whoever has had an earlier one is fenced."""
        return self.wal.take_epoch(
            f"{socket.gethostname()}, process {os.getpid()}, since {utc_now():%Y-%m-%d %H:%M:%S} UTC"
        )

    def getDefaultReadLimit(self) -> ReadMaxRows:
        """`maxMessagesPerBatch`."""
        return ReadMaxRows(self.options.max_messages_per_batch)

    def prepareForTriggerAvailableNow(self) -> None:
        """From now on the end is where the queue is empty, or where `availableNowMaxTime` is over."""
        limit = self.options.available_now_max_time
        self.deadline = float("inf") if limit is None else monotonic() + limit

    def segment(self, seq: int, part: int) -> Iterator[Any]:
        """The rows of one segment as Arrow batches; nothing of one that is quarantined.

        Raises:
            DataLossError: it is gone, and `failOnDataLoss` is true.
        """
        if self.wal.quarantined(seq):
            return
        reader = self.wal.reader(seq, part)
        if reader is not None:
            yield from segment_batches(reader)
            return
        text = (
            f"segment {seq}-{part} is not in {self.options.wal_location}, and its messages are no longer at the broker"
        )
        if self.options.fail_on_data_loss:
            raise DataLossError(f"{text}: restore it, or set failOnDataLoss=false to go on without it")
        log.error("%s: going on without it (failOnDataLoss=false)", text)


def row_limit(limit: object) -> int:
    """The rows that Spark allows a batch; whatever is not `ReadMaxRows` allows any number."""
    return limit.max_rows if isinstance(limit, ReadMaxRows) else sys.maxsize


def _is_runner() -> bool:
    """Whether this is the process in which a stream's source lives on the driver's host."""
    main = sys.modules.get("__main__")
    name = getattr(getattr(main, "__spec__", None), "name", None) or ""
    return _RUNNER in name or _RUNNER in Path(str(getattr(main, "__file__", ""))).name


def _end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001  # as signal calls it
    """Let the runner's `finally` call `stop()`. Spark sends the signal twice, and the second would interrupt that."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(0)
