"""The data source `jms-fake`: the executor's receiver with something out of nowhere in the place of a broker.

All that comes after is the product's: segments, the log, offsets, and what Spark reads; of messages the columns too.
The source `idle` beside it does nothing at all, `clock` has the times that have passed.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Self
from unittest.mock import patch
from uuid import uuid4

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from redelivery import Message, Queue
from redelivery.model.values import Value
from redelivery.spark.log.segments import SegmentWriter
from redelivery.spark.options.query import SourceOptions
from redelivery.spark.read import executor
from redelivery.spark.read.executor import ExecutorStreamReader, SharePartition
from redelivery.spark.read.inspect.probe import Probe
from redelivery.spark.read.receiving.duplicates import SegmentsInDoubt
from redelivery.spark.read.receiving.received_batch import Pace, ReceivedBatch
from redelivery.spark.rows.columns import Columns
from redelivery.spark.rows.digests import Key
from redelivery.spark.rows.schema import arrow_schema
from redelivery.spark.source import DefaultSource

FORMAT, IDLE, CLOCK = "jms-fake", "idle", "clock"
# As many rows as are asked for, made once; as many messages, of which rows are made; and nothing.
ROWS, MESSAGES, EMPTY = Queue("bench.rows"), Queue("bench.messages"), Queue("bench.empty")
BODY: Final = "x" * 1024
PROPERTIES: Final[Mapping[str, Value]] = {"region": "eu", "number": "17"}
HEADERS: Final = {"destination": MESSAGES, "timestamp": 1_750_000_000_000, "priority": 4, "persistent": True}


class FakeSource(DefaultSource):
    """`jms` with another name and another receiver."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def streamReader(self, schema: Any) -> FakeReader:
        del schema
        return FakeReader(SourceOptions.parse(dict(self.options)))


class FakeReader(ExecutorStreamReader):
    """Has always something to receive."""

    def latestOffset(self, start: Mapping[str, Any], limit: object = None) -> dict[str, Any]:
        self._probe = self._probe or Ready(self.options)
        return super().latestOffset(start, limit)

    def read(self, partition: SharePartition) -> Iterator[Any]:
        with patch.object(executor, "BatchReceiver", FakeReceiver):
            yield from super().read(partition)


class IdleSource(DataSource):  # type: ignore[misc]  # pyspark has no types for us
    """Nothing, again and again: what an empty batch costs without us."""

    @classmethod
    def name(cls) -> str:
        return IDLE

    def schema(self) -> str:
        return "body binary"

    def streamReader(self, schema: Any) -> IdleReader:
        del schema
        return IdleReader()


class IdleReader(DataSourceStreamReader):  # type: ignore[misc]  # as above
    """Counts its batches."""

    def initialOffset(self) -> dict[str, int]:
        return {"seq": 0}

    def latestOffset(self, start: Mapping[str, Any], limit: object = None) -> dict[str, int]:
        del limit
        return {"seq": start["seq"] + 1}

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[InputPartition]:
        return [InputPartition((start["seq"], end["seq"]))]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        del partition
        yield from ()


class ClockSource(IdleSource):
    """So many rows a second, each with its own time in nanoseconds: what is late of it is Spark's."""

    @classmethod
    def name(cls) -> str:
        return CLOCK

    def streamReader(self, schema: Any) -> ClockReader:
        del schema
        return ClockReader(float(self.options["rate"]))


class ClockReader(IdleReader):
    """Counts the rows since 1970."""

    def __init__(self, rate: float) -> None:
        self._pause = 1e9 / rate

    def initialOffset(self) -> dict[str, int]:
        return {"seq": int(time.time_ns() // self._pause)}

    def latestOffset(self, start: Mapping[str, Any], limit: object = None) -> dict[str, int]:
        del start, limit
        return self.initialOffset()

    def read(self, partition: InputPartition) -> Iterator[Any]:
        for row in range(partition.value[0] + 1, partition.value[1] + 1):
            yield (str(int(row * self._pause)).encode(),)


class Ready(Probe):
    """Asks nobody."""

    def ready(self, seconds: float, *, quiet: bool, least: int = 1) -> bool:  # noqa: ARG002  # as its base has it
        return True


class FakeReceiver:
    """`BatchReceiver` without a session."""

    def __init__(self, options: SourceOptions, in_doubt: SegmentsInDoubt, *, quota: int, broker: int) -> None:
        del in_doubt, quota, broker
        (self._destination,) = options.destinations
        self.counts = Counter[str]()

    def receive(self, rows: int, size: int, pace: Pace, *, first: float) -> ReceivedBatch | None:
        del size, pace, first
        if self._destination == EMPTY:
            return None
        return received(rows, premade=self._destination == ROWS)

    def confirm(self) -> bool:
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""


class Made:
    """The source of one message."""

    __slots__ = ("message_id",)

    def __init__(self, message_id: str) -> None:
        self.message_id = message_id

    def body(self) -> str:
        return BODY

    def properties(self) -> Mapping[str, Value]:
        return PROPERTIES

    def header(self, name: str) -> object:
        return self.message_id if name == "message_id" else HEADERS.get(name)

    def wire_count(self) -> int:
        return 1


def _columns(rows: int) -> Sequence[tuple[Any, Sequence[Key]]]:
    columns = Columns()
    for number in range(rows):
        columns.add(Message.received(Made(f"ID:bench-{number}"), 0, None))
    batches, found, begin = columns.batches(), [], 0
    for batch in batches:
        found.append((batch, columns.keys[begin : begin + batch.num_rows]))
        begin += batch.num_rows
    return found


_premade = lru_cache(maxsize=4)(_columns)  # as long as the worker's process lives, which Spark uses again


def received(rows: int, *, premade: bool) -> ReceivedBatch:
    """Return a batch of so many messages; of rows that were made before, or are made now."""
    attempt = uuid4().hex
    writer = SegmentWriter(arrow_schema(), "zstd", attempt)
    for batch, keys in (_premade if premade else _columns)(rows):
        writer.add(batch, keys, batch.nbytes)
    return ReceivedBatch(writer.finish(), attempt, writer.rows, writer.size, writer.keys, writer.rows, 0)
