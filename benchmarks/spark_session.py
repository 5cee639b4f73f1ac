"""One Spark on this machine, and what the batches of a stream took."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from benchmarks.machine import HERE, BenchmarkError, in_process

PATIENCE = 120.0  # seconds without an end: the run has failed
LOOK = 0.05  # seconds between two looks at a stream


class Batch(NamedTuple):
    """One micro-batch. Times are seconds since 1970.

    ``known``: when its end was. ``pending``: rows that had been received by then, its own included; 0: none are before
    they are asked for.
    """

    rows: int
    began: float
    known: float
    ended: float
    pending: int

    @property
    def seconds(self) -> float:
        """From the look for rows to the commit."""
        return self.ended - self.began


@contextmanager
def spark_session() -> Iterator[SparkSession]:
    """``local[2]``, whose workers are this interpreter and can import the benchmarks; its JVM ends on leaving."""
    paths = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    local = "127.0.0.1"
    settings = {"ui.enabled": "false", "ui.showConsoleProgress": "false", "sql.session.timeZone": "UTC"}
    settings |= {"driver.bindAddress": local, "driver.host": local, "driver.memory": "1g"}
    builder = SparkSession.builder.master("local[2]").appName("redelivery benchmarks")
    session = builder.config(map={f"spark.{name}": value for name, value in settings.items()}).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    gateway = session.sparkContext._gateway  # Spark leaves its JVM running until Python ends
    try:
        yield session
    finally:
        session.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(PATIENCE)


@contextmanager
def folder() -> Iterator[Path]:
    """A new folder; Spark may still write into it when it ends."""
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def jms(url: str, destination: str, place: Path, **more: str) -> dict[str, str]:
    """Return the options of a source whose segments are below a folder."""
    return {"url": url, "destination": destination, "walLocation": str(place / "wal"), **more}


def stream(
    spark: SparkSession,
    form: str,
    options: Mapping[str, str],
    checkpoint: Path,
    *,
    until: Callable[[Sequence[Batch]], bool] | None = None,
) -> list[Batch]:
    """The batches of a query into nowhere, which stops by itself (AvailableNow) or when ``until`` says so.

    Raises:
        BenchmarkError: it failed, or did not end in time.
    """
    writer = spark.readStream.format(form).options(**options).load().writeStream.format("noop")
    writer = writer.option("checkpointLocation", str(checkpoint))
    query = (writer if until else writer.trigger(availableNow=True)).start()
    deadline = time.monotonic() + PATIENCE
    try:
        while query.isActive and not (until and until(batches(query))):
            if time.monotonic() > deadline:
                raise BenchmarkError(f"the stream has not ended after {PATIENCE:.0f} s: {query.lastProgress}")
            time.sleep(LOOK)
    finally:
        query.stop()
    if query.exception() is not None:
        raise BenchmarkError(f"the stream failed: {query.exception()}")
    return batches(query)


def batches(query: Any) -> list[Batch]:
    """Return those that were run so far, empty ones included; not the triggers that found nothing to run."""
    return [_batch(each) for each in query.recentProgress if "addBatch" in each["durationMs"]]


def _batch(progress: Mapping[str, Any]) -> Batch:
    began = datetime.fromisoformat(progress["timestamp"]).timestamp()
    (source,) = progress["sources"]
    known, ended = (began + progress["durationMs"][phase] / 1000 for phase in ("latestOffset", "triggerExecution"))
    report = json.loads(source["latestOffset"] or "null")  # null: the source reports nothing
    return Batch(progress["numInputRows"], began, known, ended, report.get("pendingRows", 0) if report else 0)


def steady(found: Sequence[Batch]) -> float:
    """Rows per second that were received and processed after the first batch. Raises BenchmarkError."""
    full = [batch for batch in found if batch.rows]
    if len(full) < 2:
        raise BenchmarkError(f"a stream had {len(full)} batches with rows, and 2 are needed to see what it does")
    first = full.pop(0)
    if first.pending:  # they are received while Spark works
        return (first.rows + sum(batch.rows for batch in full) - first.pending) / (full[-1].ended - first.known)
    return sum(batch.rows for batch in full) / (full[-1].ended - first.ended)


class LateRows(NamedTuple):
    """The rows of a query: ms from `send` to foreachBatch, in the order of sending. ``fed``: when all were sent."""

    late: list[float]
    fed: float
    progress: Sequence[Any]


def arrivals(
    spark: Any, form: str, options: Mapping[str, str], feed: Callable[[], object], count: int | None = None
) -> LateRows:
    """Run a query whose bodies are the times of sending, while ``feed`` runs, and until it has so many rows.

    Raises:
        BenchmarkError: it had fewer or more, or none at all.
    """
    seen, grew = list[tuple[int, float]](), threading.Event()

    def take(batch: Any, _: int) -> None:
        bodies = [bytes(row.body) for row in batch.select("body").collect()]
        now = time.time_ns()
        seen.extend((int(body), (now - int(body)) / 1e6) for body in bodies)
        grew.set()

    with folder() as place:
        writer = spark.readStream.format(form).options(**options).load().writeStream.foreachBatch(take)
        query = writer.option("checkpointLocation", str(place / "checkpoint")).start()
        try:
            with ThreadPoolExecutor() as pool:
                pool.submit(feed).result()
            fed = time.monotonic()
            while count and len(seen) < count and query.isActive and time.monotonic() < fed + PATIENCE:
                grew.wait(1)
                grew.clear()
        finally:
            query.stop()
    if not seen or (count and len(seen) != count):
        raise BenchmarkError(f"{len(seen)} of {count} rows came: {query.exception()}")
    return LateRows([late for _, late in sorted(seen)], fed, query.recentProgress)


def waits(spark: Any, url: str, queue: str, count: int, rate: float, receiver: str) -> LateRows:
    """Send so many messages by the clock, in a process of its own. Raises BenchmarkError: the rows did not come."""
    call = f"senders.send_times({url!r}, {queue!r}, {count}, {rate})"
    with folder() as place:
        options = jms(url, queue, place, receiver=receiver)
        return arrivals(spark, "jms", options, lambda: in_process(call), count)
