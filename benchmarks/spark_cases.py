"""The Spark source: against its own session outside Spark, without a broker, and how late a row is."""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import redelivery
from benchmarks.places import Place
from benchmarks.results import BenchmarkError, Curve, Measure
from benchmarks.spark_fake import EMPTY, FORMAT, IDLE, MESSAGES, ROWS, FakeSource, IdleSource
from benchmarks.spark_outside import outside
from benchmarks.spark_session import PATIENCE, Batch, steady, stream
from redelivery.spark.options.query import SourceOptions

GROUP: Final = "Spark source"
BATCH: Final = 30_000  # rows
SEGMENT: Final = 10_000  # rows, as `segmentRows` is by default
DRIVER, EXECUTOR = "driver", "executor"
TARGETS: Final = {DRIVER: 0.75, EXECUTOR: 0.8}
SEGMENTS: Final = {DRIVER: SEGMENT, EXECUTOR: BATCH}  # rows of a transaction
SIZES: Final = (1_000, 10_000, 50_000)  # rows of a batch
PARTITIONS: Final = (1, 2)
WARM: Final = 3  # batches in which a query's processes start
MOST: Final = 3  # rounds at the fake receiver
RATE: Final = 3.0  # messages per second, when it is measured how late they are
PER_SECOND: Final = "rows/s"


@dataclass(frozen=True, slots=True)
class Extent:
    """How much is run: rounds, and a scale of the number of batches; ``sizes``: rows of a batch without a broker."""

    rounds: int
    scale: float
    sizes: Sequence[int] = SIZES

    def batches(self, most: int) -> int:
        """So many batches at full scale, and 3 at least."""
        return max(3, round(most * self.scale))


def of_place(spark: Any, place: Place, extent: Extent) -> list[Measure]:
    """Both receivers on a real broker, each in turn with the same session outside Spark."""
    count = BATCH * extent.batches(6)
    rates: dict[str, list[tuple[float, float]]] = {DRIVER: [], EXECUTOR: []}
    for _ in range(extent.rounds):
        for receiver, found in rates.items():
            bare = _outside(place, receiver, count)
            found.append((_inside(spark, place, receiver, count), bare))
    return [
        measure
        for receiver, found in rates.items()
        for measure in _compared(place, receiver, *(statistics.median(each) for each in zip(*found, strict=True)))
    ]


def _compared(place: Place, receiver: str, inside: float, bare: float) -> Iterator[Measure]:
    key = f"spark-{place.protocol}-{receiver}"
    name = f"{place.name}: receiver={receiver}, batches of {BATCH:,}"
    yield Measure(key, name, inside, PER_SECOND, None, group=GROUP)
    name = f"{place.name}: the same session outside Spark, segments of {SEGMENTS[receiver]:,}"
    yield Measure(f"{key}-outside", name, bare, PER_SECOND, None, group=GROUP)
    name = f"{place.name}: receiver={receiver} against the session outside Spark"
    yield Measure(f"{key}-ratio", name, inside / bare, "times", TARGETS[receiver], at_most=False, group=GROUP)


def _outside(place: Place, receiver: str, count: int) -> float:
    queue = place.prepare(count)
    with _folder() as folder:
        options = SourceOptions.parse(_options(place.url, queue, folder, receiver=receiver))
        rate = outside(options, folder / "segments", count, SEGMENTS[receiver])
    place.finish(queue, acked=count)
    return rate


def _inside(spark: Any, place: Place, receiver: str, count: int) -> float:
    queue = place.prepare(count)
    with _folder() as folder:
        options = _options(place.url, queue, folder, receiver=receiver, maxMessagesPerBatch=str(BATCH))
        found = stream(spark, "jms", options, folder / "checkpoint")
    rows = sum(batch.rows for batch in found)
    if rows != count:
        raise BenchmarkError(f"{queue}: {rows} rows of {count} messages")
    place.finish(queue, acked=count)
    return steady(found)


def fake(spark: Any, extent: Extent) -> tuple[list[Measure], list[Curve]]:
    """The receiver of executors with rows or messages out of nowhere."""
    spark.dataSource.register(FakeSource)
    _fake(spark, ROWS, 1, 1_000, 5)  # warms the JVM up

    def rate(destination: redelivery.Queue, partitions: int, rows: int) -> float:
        runs = (
            _fake(spark, destination, partitions, rows, extent.batches(10)) for _ in range(min(extent.rounds, MOST))
        )
        return statistics.median(steady(run[WARM:]) for run in runs)

    rates = {(parts, rows): rate(ROWS, parts, rows) for parts in PARTITIONS for rows in extent.sizes}
    most, many = max(extent.sizes), PARTITIONS[-1]
    title = f"without a broker, {many} partitions, batches of {most:,}"
    measures = [
        Measure("spark-fake", title, rates[many, most], PER_SECOND, 150_000, at_most=False, group=GROUP),
        Measure(
            "spark-messages",
            f"{title}, rows made of messages",
            rate(MESSAGES, many, most),
            PER_SECOND,
            None,
            group=GROUP,
        ),
    ]
    measures += _empty(spark, extent.batches(20))
    curves = [
        Curve(
            f"spark-fake-{parts}",
            f"without a broker, {parts} partition{'s' if parts > 1 else ''}",
            tuple((rows, rates[parts, rows]) for rows in extent.sizes),
        )
        for parts in PARTITIONS
    ]
    return measures, curves


def _empty(spark: Any, count: int) -> list[Measure]:
    """An empty batch of ours, and one of a source in Python that does nothing."""
    spark.dataSource.register(IdleSource)
    ours = _fake(spark, EMPTY, 1, 1, count)
    with _folder() as folder:
        idle = stream(spark, IDLE, {}, folder / "checkpoint", until=lambda found: len(found) >= count + WARM)
    took, least = (1000 * statistics.median(batch.seconds for batch in each[WARM:]) for each in (ours, idle))
    return [
        Measure("spark-empty", "without a broker, an empty batch", took, "ms", 200, group=GROUP),
        Measure("spark-idle", "an empty batch of a source that does nothing", least, "ms", None, group=GROUP),
    ]


def _fake(spark: Any, destination: redelivery.Queue, partitions: int, rows: int, count: int) -> list[Batch]:
    """So many batches and more, and those that warm its processes up."""
    with _folder() as folder:
        options = _options(
            "stomp://nowhere:1",
            str(destination),
            folder,
            receiver=EXECUTOR,
            numPartitions=str(partitions),
            maxMessagesPerBatch=str(rows),
        )
        return stream(spark, FORMAT, options, folder / "checkpoint", until=lambda found: len(found) >= count + WARM)


def latency(spark: Any, place: Place, extent: Extent) -> list[Measure]:
    """From `send` until the row is in the hands of foreachBatch, with few messages: the median and the 90th percentile.

    Raises:
        BenchmarkError: the messages did not come.
    """
    count = max(10, round(45 * extent.scale))
    queue = place.prepare(0)
    late: list[float] = []
    done = threading.Event()

    def take(rows: Any, _: int) -> None:
        bodies = [bytes(row.body) for row in rows.select("body").collect()]
        now = time.time_ns()
        late.extend((now - int(body)) / 1e9 for body in bodies)
        if len(late) >= count:
            done.set()

    with _folder() as folder, redelivery.connect(place.url) as connection, connection.session() as session:
        options = _options(place.url, queue, folder, receiver=DRIVER)
        writer = spark.readStream.format("jms").options(**options).load().writeStream.foreachBatch(take)
        query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
        try:
            producer = session.producer(queue, persistent=False)
            for _ in range(count):
                producer.send(str(time.time_ns()))
                time.sleep(1 / RATE)
            if not done.wait(PATIENCE):
                raise BenchmarkError(f"{queue}: {len(late)} of {count} rows came: {query.exception()}")
        finally:
            query.stop()
    place.finish(queue, acked=count)
    warm = sorted(late[len(late) // 5 :])
    name = f"{place.name}: receiver=driver, {RATE:g} messages a second, from send to foreachBatch"
    p50, p90 = statistics.median(warm) * 1000, statistics.quantiles(warm, n=10)[8] * 1000
    return [
        Measure("spark-latency", f"{name}, p50", p50, "ms", 250, group=GROUP),
        Measure("spark-latency-90", f"{name}, p90", p90, "ms", None, group=GROUP),
    ]


def _options(url: str, destination: str, folder: Path, **more: str) -> Mapping[str, str]:
    return {"url": url, "destination": destination, "walLocation": str(folder / "wal"), **more}


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as name:
        yield Path(name)
