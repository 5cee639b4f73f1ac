"""``python -m benchmarks.spark_bounds URL``: memory, files and time that the source's process needs; ``-`` for the URL
writes the page only.

Each case runs the reader of `receiver=driver` as Spark calls it, in a process of its own, so that its memory is that of
the source alone: the figures of docs/spark/performance.md. ``latency`` is the exception: it runs Spark, with
`receiver=executor`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import redelivery
from benchmarks.machine import HERE, in_process
from redelivery.spark.log.chain import SegmentChain
from redelivery.spark.log.damage import survey_chain
from redelivery.spark.log.names import Extent
from redelivery.spark.log.segments import SegmentWriter
from redelivery.spark.log.store.local_store import LocalStore
from redelivery.spark.log.wal import Wal
from redelivery.spark.options.query import SourceOptions
from redelivery.spark.read.driver import DriverStreamReader

MIB: Final = 1 << 20
PATIENCE: Final = 1500.0  # seconds for a case
PAGE: Final = HERE / "docs" / "spark" / "performance.md"
RATE: Final = 30.0  # messages a second, when it is measured how late they are


def memory(name: str) -> float:
    """Return MiB of this process: ``VmRSS`` now, ``VmHWM`` at most."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:"))


def send(url: str, queue: str, count: int, size: int, rate: float = 0.0) -> None:
    """Send so many random bodies, which nothing compresses; so many a second by the clock, or at once."""
    began = time.monotonic()
    with (
        redelivery.connect(url) as connection,
        connection.session("transacted" if connection.metadata.capabilities.transactions else "auto") as session,
    ):
        producer = session.producer(queue)
        for number in range(count):
            time.sleep(max(0.0, began + number / rate - time.monotonic()) if rate else 0)
            producer.send(os.urandom(size))
            if session.transacted and (rate or (number + 1) % max(4, min(1000, 4 * MIB // size)) == 0):
                session.commit()
        if session.transacted:
            session.commit()


@contextmanager
def reading(url: str, queue: str, **options: str) -> Iterator[DriverStreamReader]:
    """Read a queue, with segments in a new folder."""
    with tempfile.TemporaryDirectory() as folder:
        reader = DriverStreamReader(
            SourceOptions.parse({"url": url, "destination": queue, "walLocation": folder, **options})
        )
        try:
            yield reader
        finally:
            reader.stop()


def drain(reader: DriverStreamReader, count: int, each: Callable[[int], None] = lambda _: None) -> None:
    """Plan and commit batches as Spark does until there were so many rows. Raises OSError: they did not come."""
    start = reader.initialOffset()
    done, until = 0, time.monotonic() + PATIENCE
    while done < count:
        end = reader.latestOffset(start, reader.getDefaultReadLimit())
        if end != start:
            lanes = reader._lanes
            assert lanes is not None
            done += sum(lanes._segments[number].rows for number in range(start["seq"] + 1, end["seq"] + 1))
            reader.commit(end)
            start = end
            each(done)
        if time.monotonic() > until:
            raise OSError(f"{done} of {count} messages came")


def large(url: str, queue: str, count: int, size: int) -> dict[str, Any]:
    """Drain bodies of a MiB with the default options; the result is by broker and protocol."""
    with redelivery.connect(url) as connection:
        about = connection.metadata
        name = f"{about.provider_name} {about.provider_version}, {about.protocol.split()[0]}"
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
    """Make so many segments that Spark has not read: what it costs to know which messages are in doubt."""
    import pyarrow as pa

    with tempfile.TemporaryDirectory() as folder:
        wal = Wal.open(LocalStore(folder))
        writer = SegmentWriter(pa.schema([("message_id", pa.string())]), "none", "a")
        writer.add(pa.record_batch({"message_id": ["m"]}), [("m", bytes(16))], 1)
        data = writer.finish()
        wal.publish(1, 0, data)
        target = Path(folder, "seg")
        source = target / "000000000001-0000.arrow"
        for number in range(2, count + 1):  # the same content: links are quick
            if number % 50_000 == 2:
                copy = target / f".copy-{number}"
                copy.write_bytes(source.read_bytes())
                source = copy
            (target / f"{number:012d}-0000.arrow").hardlink_to(source)
            (target / f"{number:012d}-0000.1-1-{len(data)}.ok").touch()
        wal.confirm(1, 0, Extent(1, 1, len(data)))
        began = time.perf_counter()
        survey = survey_chain(wal, 0)  # as the query begins
        begin = time.perf_counter() - began
        chain = SegmentChain(wal, count, unmarked=survey.unmarked)
        times = []
        for _ in range(20):
            began = time.perf_counter()
            chain.in_doubt()
            times.append((time.perf_counter() - began) * 1000)
        first, then = round(times[0], 1), round(max(times[1:]), 3)
        return {"segments": count, "query_start_s": round(begin, 1), "first_ms": first, "then_ms": then}


def latency(url: str, queue: str, count: int, _size: int) -> dict[str, float]:
    """Measure how late rows are with receiver=executor in Spark, after messages of 3 s."""
    from benchmarks.spark_cases import EXECUTOR, waits
    from benchmarks.spark_session import spark_session

    warm = round(3 * RATE)  # the first batch with rows starts Spark's workers, and takes seconds
    with spark_session() as spark:
        late = sorted(waits(spark, url, queue, warm + count, RATE, EXECUTOR)[warm:])
    deciles = [each * 1000 for each in statistics.quantiles(late, n=10)]
    return {"messages": len(late), "per_second": RATE, "p50_ms": round(deciles[4]), "p90_ms": round(deciles[8])}


Case = Callable[[str, str, int, int], Mapping[str, Any]]
CASES: Final[Mapping[str, tuple[Case, int, int, bool]]] = {  # messages, bytes of a body, whether they are sent before
    "large": (large, 250, MIB, True),
    "backlog": (backlog, 1_000_000, 200, True),
    "trickle": (trickle, 99, 100, False),
    "pending": (pending, 200_000, 0, False),
    "latency": (latency, 600, 0, False),
}


def one(name: str, url: str, queue: str, count: int) -> Mapping[str, Any]:
    """Run one case in this process."""
    case, _, size, _ = CASES[name]
    return case(url, queue, count, size)


def table(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the Markdown table of `large` by broker."""
    lines = ["| broker, protocol | at the start | at most |", "|---|---|---|"]
    for name, each in sorted(found.items()):
        lines.append(f"| {name} | {each['rss_before_mib']:.0f} MiB | {each['rss_peak_mib']:.0f} MiB |")
    return "\n".join(lines)


def write_between(page: Path, what: str, lines: str) -> None:
    """Put lines into a page, between the two comments that name them. Raises ValueError: they are not there."""
    before, first, rest = page.read_text(encoding="utf-8").partition(f"<!-- {what} -->")
    _, last, after = rest.partition(f"<!-- end of {what} -->")
    if not first or not last:
        raise ValueError(f"{page} has no place for {what}")
    page.write_text(f"{before}{first}\n\n{lines}\n\n{last}{after}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", help="a broker that may be used")
    parser.add_argument("--only", choices=CASES, action="append", help="this case; all without it")
    parser.add_argument("--count", type=int, help="so many messages instead of a case's own number")
    output = HERE / "docs" / "spark-bounds.json"
    parser.add_argument("--output", type=Path, default=output, help="a JSON file that keeps the other cases")
    given = parser.parse_args()
    found = json.loads(given.output.read_text(encoding="utf-8")) if given.output.exists() else {}
    for name in () if given.url == "-" else given.only or CASES:
        _, count, size, before = CASES[name]
        count, queue = given.count or count, f"bench.bounds.{uuid.uuid4().hex[:8]}"
        if before:
            in_process(f"spark_bounds.send({given.url!r}, {queue!r}, {count}, {size})", timeout=PATIENCE)
        call = f"spark_bounds.one({name!r}, {given.url!r}, {queue!r}, {count})"
        made = in_process(call, timeout=2 * PATIENCE)
        print(name, json.dumps(made))
        found[name] = {**found.get(name, {}), **made} if name == "large" else made
        given.output.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    if given.output == output:
        write_between(PAGE, "memory by broker", table(found["large"]))


if __name__ == "__main__":
    main()
