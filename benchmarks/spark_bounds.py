"""``python -m benchmarks.spark_bounds URL``: memory, files, requests and time that the source's process needs.

Each case runs the reader of `receiver=driver` as Spark calls it, in a process of its own, so that its memory is that of
the source alone: the figures of docs/spark/performance.md. ``latency`` is the exception: it runs Spark, with
`receiver=executor`.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch
from uuid import uuid4

import redelivery
from benchmarks.figures import Figures, between
from benchmarks.machine import in_process
from benchmarks.senders import fill
from benchmarks.spark_reader import PATIENCE, broker_at, drain, memory, reading
from benchmarks.targets import table
from redelivery.spark.log.damage import survey_chain
from redelivery.spark.log.names import Extent
from redelivery.spark.log.segments import SegmentWriter
from redelivery.spark.log.store.local_store import LocalStore
from redelivery.spark.log.wal import Wal

MIB: Final = 1 << 20
RATE: Final = 30.0  # messages a second, when it is measured how late they are


def send(url: str, queue: str, count: int, size: int, rate: float = 0.0) -> None:
    """Send so many random bodies, which nothing compresses; so many a second by the clock, or at once."""
    commit = max(4, min(1000, 4 * MIB // size))
    with redelivery.connect(url) as connection:
        fill(connection, queue, (os.urandom(size) for _ in range(count)), rate=rate, commit=commit)


def large(url: str, queue: str, count: int, size: int) -> dict[str, Any]:
    """Drain bodies of a MiB with the default options; the result is by broker and protocol."""
    name = broker_at(url)
    with reading(url, queue) as reader:
        before = memory("VmRSS")
        drain(reader, count)
    peak = memory("VmHWM")  # ru_maxrss begins with what the process had that started this one
    found = {"rss_before_mib": round(before, 1), "rss_peak_mib": round(peak, 1), "messages": count, "body_bytes": size}
    return {name: found}


def backlog(url: str, queue: str, count: int, size: int) -> dict[str, Any]:
    """Drain many small ones, and note what the process has after each tenth."""
    samples: list[float] = []
    began = time.monotonic()

    def sample(done: int) -> None:
        while done >= (len(samples) + 1) * count // 10:
            samples.append(round(memory("VmRSS"), 1))

    with reading(url, queue, maxMessagesPerBatch="50000") as reader:
        before = memory("VmRSS")
        drain(reader, count, sample)
    seconds = time.monotonic() - began
    memories = {"rss_before_mib": before, "rss_mib_after_each_tenth": samples, "rss_peak_mib": memory("VmHWM")}
    return {**memories, "messages": count, "body_bytes": size, "rows_per_second": round(count / seconds)}


def trickle(url: str, queue: str, count: int, size: int) -> dict[str, float]:
    """Send five messages a second while Spark is busy with a batch: files and listings."""
    listings: Counter[str] = Counter()
    original = LocalStore.list

    def counted(store: LocalStore, folder: str) -> list[str]:
        listings[folder] += 1
        return original(store, folder)

    with reading(url, queue) as reader:
        reader.latestOffset(reader.initialOffset(), None)  # Spark asks, gets nothing and is busy from here on
        with patch.object(LocalStore, "list", counted):
            send(url, queue, count, size, 5.0)
            time.sleep(reader.options.linger + 1)  # the last transaction ends
            files = len([*Path(reader.wal.store.location, "seg").iterdir()])
        return {"messages": count, "files": files, "listings": sum(listings.values()), "segments": files / 2}


def pending(_url: str, _queue: str, count: int, _size: int) -> dict[str, float]:
    """Make so many segments that Spark has not read: the processor time that it costs to begin a query with them."""
    import pyarrow as pa

    with tempfile.TemporaryDirectory() as folder:
        wal = Wal.open(LocalStore(folder))
        writer = SegmentWriter(pa.schema([("message_id", pa.string())]), "none", "a")
        writer.add(pa.record_batch({"message_id": ["m"]}), [("m", bytes(16))], 1)
        data = writer.finish()
        wal.publish(1, 0, data)
        wal.confirm(1, 0, Extent(1, 1, len(data)))
        for number in range(2, count + 1):
            Path(folder, "seg", f"{number:012d}-0000.arrow").write_bytes(data)
            Path(folder, "seg", f"{number:012d}-0000.1-1-{len(data)}.ok").touch()
        began = time.process_time()
        survey_chain(wal, 0)
        return {"segments": count, "query_start_cpu_s": round(time.process_time() - began, 1)}


def latency(url: str, queue: str, count: int, _size: int) -> dict[str, float]:
    """Measure how late rows are with receiver=executor in Spark, after messages of 3 s."""
    from benchmarks.spark_session import spark_session, waits

    warm = round(3 * RATE)  # the first batch with rows starts Spark's workers, and takes seconds
    with spark_session() as spark:
        late = waits(spark, url, queue, warm + count, RATE, "executor").late[warm:]
    deciles = statistics.quantiles(late, n=10)
    return {"messages": len(late), "per_second": RATE, "p50_ms": round(deciles[4]), "p90_ms": round(deciles[8])}


def requests(_url: str, _queue: str, _count: int, _size: int) -> dict[str, Any]:
    """Count the requests of either receiver whose segments are on S3, an emulator."""
    from benchmarks.spark_requests import bucket, counted

    with bucket() as store:
        return {receiver: counted(store, receiver) for receiver in ("driver", "executor")}


Case = Callable[[str, str, int, int], Mapping[str, Any]]
CASES: Final[Mapping[str, tuple[Case, int, int, bool]]] = {  # messages, bytes of a body, whether they are sent before
    "large": (large, 250, MIB, True),
    "backlog": (backlog, 1_000_000, 200, True),
    "trickle": (trickle, 99, 100, False),
    "pending": (pending, 100_000, 0, False),
    "latency": (latency, 600, 0, False),
    "requests": (requests, 0, 0, False),
}


def one(name: str, url: str, queue: str) -> Mapping[str, Any]:
    """Run one case in this process."""
    case, count, size, _ = CASES[name]
    return case(url, queue, count, size)


def take(found: dict[str, Any], name: str, url: str) -> Mapping[str, Any]:
    """Run one in a process of its own, and put what it found into the numbers."""
    _, count, size, before = CASES[name]
    queue = f"bench.bounds.{uuid4().hex[:8]}"
    if before:
        in_process(f"spark_bounds.send({url!r}, {queue!r}, {count}, {size})", timeout=PATIENCE)
    made: Mapping[str, Any] = in_process(f"spark_bounds.one({name!r}, {url!r}, {queue!r})", timeout=2 * PATIENCE)
    found[name] = {**found.get(name, {}), **made} if name == "large" else made
    return made


def text(found: Mapping[str, Any], old: str) -> str:
    """Return the page with the table of `large` by broker."""
    rows = [
        (name, *(f"{each[f'rss_{when}_mib']:.0f} MiB" for when in ("before", "peak")))
        for name, each in sorted(found["large"].items())
    ]
    return between(old, "memory by broker", table(("broker, protocol", "at the start", "at most"), rows))


if __name__ == "__main__":
    Figures("docs/spark-bounds.json", "docs/spark/performance.md", list(CASES), take, text).main(__doc__)
