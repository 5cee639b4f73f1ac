"""The Spark source: against its own session outside Spark, without a broker, and how late a row is."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import redelivery
from benchmarks.machine import BenchmarkError
from benchmarks.places import Place
from benchmarks.record import Measure
from benchmarks.spark_fake import EMPTY, FORMAT, IDLE, MESSAGES, ROWS, FakeSource, IdleSource
from benchmarks.spark_session import Batch, folder, jms, steady, stream, waits
from redelivery.spark.log.store.opening import open_store
from redelivery.spark.options.query import SourceOptions
from redelivery.spark.read.receiving.batch_receiver import BatchReceiver
from redelivery.spark.read.receiving.received_batch import BatchPause
from redelivery.spark.rows.digests import Key

BATCH: Final = 30_000  # rows
DRIVER, EXECUTOR = "driver", "executor"
SEGMENTS: Final = {DRIVER: 10_000, EXECUTOR: BATCH}  # rows of a transaction: `segmentRows` by default, and a batch
SIZES: Final = (1_000, 10_000, 50_000)  # rows of a batch
PARTITIONS: Final = (1, 2)
WARM: Final = 3  # batches in which a query's processes start
MOST: Final = 3  # rounds at the fake receiver
RATE: Final = 3.0  # messages per second, when it is measured how late they are
Found = Iterator[tuple[str, Measure]]  # with its key


class NothingInDoubt:
    """No segment is in doubt."""

    def in_doubt(self) -> Mapping[str, Sequence[Key]]:
        return {}

    def confirmed(self, name: str) -> bool:
        raise AssertionError(name)


def received(options: SourceOptions, place: Path, count: int, rows: int) -> Iterator[int]:
    """Receive so many messages as a lane does, into durable segments of so many rows; the number after each."""
    store, done, segments = open_store(str(place)), 0, 0
    store.make_folders([""])
    with BatchReceiver(options, NothingInDoubt()) as receiver:
        while done < count:
            batch = receiver.receive(rows, options.segment_bytes, lambda: BatchPause(0.2))
            if batch is None:
                raise BenchmarkError(f"{options.source}: {count - done} of {count} messages did not come")
            segments += 1
            store.put_if_absent(f"{segments:08d}.arrow", batch.data)
            receiver.confirm()
            done += batch.received
            yield done


def outside(options: SourceOptions, place: Path, count: int, rows: int) -> float:
    """Return rows per second of the source's own session, rows and segments without Spark around them.

    The time is from the end of the first segment to that of the last.
    """
    ends = [(done, time.perf_counter()) for done in received(options, place, count, rows)]
    (first, began), (last, ended) = ends[0], ends[-1]
    return (last - first) / (ended - began)


def _batches(most: int, scale: float) -> int:
    """Return so many batches at full scale, and 3 at least."""
    return max(3, round(most * scale))


def of_place(spark: Any, place: Place, rounds: int, scale: float) -> Found:
    """Measure both receivers on a real broker, each in turn with the same session outside Spark."""
    count = BATCH * _batches(6, scale)
    rates: dict[str, list[tuple[float, float]]] = {DRIVER: [], EXECUTOR: []}
    for _ in range(rounds):
        for receiver, found in rates.items():
            found.append((_rate(spark, place, receiver, count), _rate(None, place, receiver, count)))
    for receiver, found in rates.items():
        inside, bare = (statistics.median(each) for each in zip(*found, strict=True))
        key, title = f"spark-{place.protocol}-{receiver}", f"{place.protocol.upper()}, {place.title}"
        yield key, Measure(f"{title}: receiver={receiver}, batches of {BATCH:,}", inside, "rows/s")
        session = f"{title}: the same session outside Spark, segments of {SEGMENTS[receiver]:,}"
        yield f"{key}-outside", Measure(session, bare, "rows/s")
        against = f"{title}: receiver={receiver} against the session outside Spark"
        yield f"{key}-ratio", Measure(against, inside / bare, "times")


def _rate(spark: Any | None, place: Place, receiver: str, count: int) -> float:
    """Return rows per second in Spark or, where there is none, of the session outside it. Raises BenchmarkError."""
    queue = place.prepare(count)
    with folder() as home:
        options = jms(place.url, queue, home, receiver=receiver, maxMessagesPerBatch=str(BATCH))
        if spark is None:
            rate = outside(SourceOptions.parse(options), home / "segments", count, SEGMENTS[receiver])
        else:
            found = stream(spark, "jms", options, home / "checkpoint")
            rate, rows = steady(found), sum(batch.rows for batch in found)
            if rows != count:
                raise BenchmarkError(f"{queue}: {rows} rows of {count} messages")
    place.finish(queue, acked=count)
    return rate


def fake(spark: Any, rounds: int, scale: float) -> Found:
    """Measure the receiver of executors with rows or messages out of nowhere, and empty batches."""
    spark.dataSource.register(FakeSource)
    spark.dataSource.register(IdleSource)
    _fake(spark, ROWS, 1, 1_000, 5)  # warms the JVM up

    def rate(destination: redelivery.Queue, parts: int, rows: int) -> float:
        runs = (_fake(spark, destination, parts, rows, _batches(10, scale)) for _ in range(min(rounds, MOST)))
        return statistics.median(steady(run[WARM:]) for run in runs)

    most, many = SIZES[-1], PARTITIONS[-1]
    for parts in PARTITIONS:
        for rows in SIZES:
            title = f"without a broker, {parts} partition{'s' if parts > 1 else ''}, batches of {rows:,}"
            key = "spark-fake" if (parts, rows) == (many, most) else f"spark-fake-{parts}-{rows}"
            yield key, Measure(title, rate(ROWS, parts, rows), "rows/s")
    yield "spark-messages", Measure(f"{title}, rows made of messages", rate(MESSAGES, many, most), "rows/s")
    count = _batches(20, scale)
    ours = _fake(spark, EMPTY, 1, 1, count)
    with folder() as home:
        idle = stream(spark, IDLE, {}, home / "checkpoint", until=lambda found: len(found) >= count + WARM)
    took, least = (1000 * statistics.median(batch.seconds for batch in each[WARM:]) for each in (ours, idle))
    yield "spark-empty", Measure("without a broker, an empty batch", took, "ms")
    yield "spark-idle", Measure("an empty batch of a source that does nothing", least, "ms")


def _fake(spark: Any, destination: redelivery.Queue, partitions: int, rows: int, count: int) -> list[Batch]:
    """Run so many batches and more, and those that warm its processes up."""
    more = {"receiver": EXECUTOR, "numPartitions": str(partitions), "maxMessagesPerBatch": str(rows)}
    with folder() as home:
        options = jms("stomp://nowhere:1", str(destination), home, **more)
        return stream(spark, FORMAT, options, home / "checkpoint", until=lambda found: len(found) >= count + WARM)


def latency(spark: Any, place: Place, scale: float) -> Found:
    """Measure how late rows are, with few messages."""
    count = max(10, round(45 * scale))
    queue = place.prepare(0)
    late = waits(spark, place.url, queue, count, RATE, DRIVER).late
    place.finish(queue, acked=count)
    warm = sorted(late[len(late) // 5 :])
    title = f"{place.protocol.upper()}, {place.title}: receiver=driver, {RATE:g} messages a second"
    p50, p90 = statistics.median(warm), statistics.quantiles(warm, n=10)[8]
    yield "spark-latency", Measure(f"{title}, from send to foreachBatch, p50", p50, "ms")
    yield "spark-latency-90", Measure(f"{title}, from send to foreachBatch, p90", p90, "ms")
