"""What the source's process needs of memory, files and time: ``python -m benchmarks.spark_bounds URL``.

Each case runs the reader of `receiver=driver` as Spark calls it, in a process of its own, so that its memory is that of
the source alone: the figures of docs/spark.md. ``latency`` is the exception: it runs Spark, with `receiver=executor`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import redelivery
from redelivery.spark.log.chain import SegmentChain
from redelivery.spark.log.damage import survey_chain
from redelivery.spark.log.segments import SegmentWriter
from redelivery.spark.log.store.local_store import LocalStore
from redelivery.spark.log.wal import Wal
from redelivery.spark.options.query import SourceOptions
from redelivery.spark.read.driver import DriverStreamReader

ROOT: Final = Path(__file__).parents[1]
OUTPUT: Final = ROOT / "docs" / "spark-bounds.json"
MIB: Final = 1 << 20
PATIENCE: Final = 1500.0  # seconds for a case
_WARM: Final = 90  # messages


def send(url: str, queue: str, count: int, size: int) -> None:
    """So many messages with bodies of so many random bytes, which nothing compresses."""
    block = memoryview(uuid.uuid4().bytes * (size // 16 + 2))
    with redelivery.connect(url) as connection, connection.session(redelivery.AckMode.TRANSACTED) as session:
        producer = session.producer(queue)
        for number in range(count):
            producer.send(bytes(block[number % 16 : number % 16 + size]) if size < MIB else _random(size))
            if (number + 1) % (1000 if size < MIB else 4) == 0:
                session.commit()
        session.commit()


def paced(url: str, queue: str, bodies: Iterable[bytes | None], rate: float) -> None:
    """One a body, so many a second by the clock, however long each takes; None: a str that says when."""
    began = time.monotonic()
    with redelivery.connect(url) as connection, connection.session() as session:
        producer = session.producer(queue)
        for number, body in enumerate(bodies):
            time.sleep(max(0.0, began + number / rate - time.monotonic()))
            producer.send(repr(time.time()) if body is None else body)


def _random(size: int) -> bytes:
    with Path("/dev/urandom").open("rb") as source:
        return source.read(size)


def memory(name: str) -> float:
    """MiB of this process: ``VmRSS`` now, ``VmHWM`` at most."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    raise OSError(f"/proc/self/status has no {name}")


@contextmanager
def reading(url: str, queue: str, **options: str) -> Iterator[DriverStreamReader]:
    """The reader of a queue, with segments in a new folder."""
    with tempfile.TemporaryDirectory() as folder:
        given = {"url": url, "destination": queue, "walLocation": folder, **options}
        reader = DriverStreamReader(SourceOptions.parse(given))
        try:
            yield reader
        finally:
            reader.stop()


def drain(reader: DriverStreamReader, count: int, each: Callable[[int], None] = lambda _: None) -> int:
    """Batches until there were so many rows, planned and committed as Spark does. Raises OSError: they did not come."""
    start = reader.initialOffset()
    done, until = 0, time.monotonic() + PATIENCE
    while done < count:
        end = reader.latestOffset(start, reader.getDefaultReadLimit())
        if end != start:
            done += rows_between(reader, start["seq"], end["seq"])
            reader.commit(end)
            start = end
            each(done)
        if time.monotonic() > until:
            raise OSError(f"{done} of {count} messages came")
    return done


def rows_between(reader: DriverStreamReader, start: int, end: int) -> int:
    """Rows of a batch."""
    lanes = reader._lanes
    assert lanes is not None
    return sum(lanes._segments[number].rows for number in range(start + 1, end + 1))


def large(url: str, queue: str, count: int, size: int) -> dict[str, float]:
    """Bodies of a MiB with the default options, and Spark reads."""
    with reading(url, queue) as reader:
        before = memory("VmRSS")
        drain(reader, count)
        return {"rss_before_mib": before, "rss_peak_mib": memory("VmHWM"), "messages": count, "body_bytes": size}


def backlog(url: str, queue: str, count: int, size: int) -> dict[str, Any]:
    """Many small ones: what the process has after each tenth."""
    samples: list[float] = []
    began = time.monotonic()

    def sample(done: int) -> None:
        while done >= (len(samples) + 1) * count // 10:
            samples.append(round(memory("VmRSS"), 1))

    with reading(url, queue, maxMessagesPerBatch="50000") as reader:
        before = memory("VmRSS")
        drain(reader, count, sample)
    seconds = time.monotonic() - began
    return {
        **{"rss_before_mib": before, "rss_mib_after_each_tenth": samples, "rss_peak_mib": memory("VmHWM")},
        **{"messages": count, "body_bytes": size, "rows_per_second": round(count / seconds)},
    }


def trickle(url: str, queue: str, count: int, size: int) -> dict[str, float]:
    """Five messages a second while Spark is busy with a batch: files and listings."""
    with reading(url, queue) as reader:
        listings: Counter[str] = Counter()
        original = LocalStore.list

        def counted(store: LocalStore, folder: str) -> list[str]:
            listings[folder] += 1
            return original(store, folder)

        start = reader.initialOffset()
        reader.latestOffset(start, None)  # Spark asks, gets nothing and is busy from here on
        LocalStore.list = counted  # type: ignore[assignment,method-assign]  # to count
        paced(url, queue, [bytes(size)] * count, 5)
        time.sleep(reader.options.linger + 1)  # the last transaction ends
        segments = reader.wal.store.location
        files = len([*Path(segments, "seg").iterdir()])
        LocalStore.list = original  # type: ignore[method-assign]  # as it was
        return {"messages": count, "files": files, "listings": sum(listings.values()), "segments": files / 2}


def pending(url: str, queue: str, count: int, size: int) -> dict[str, float]:
    """So many segments that Spark has not read: what it costs to know which messages are in doubt."""
    del url, queue, size
    import pyarrow as pa

    schema = pa.schema([("message_id", pa.string())])
    with tempfile.TemporaryDirectory() as folder:
        wal = Wal.open(LocalStore(folder))
        writer = SegmentWriter(schema, "none", "a")
        writer.add(pa.record_batch({"message_id": ["m"]}), [("m", bytes(16))], 1)
        wal.publish(1, 0, writer.finish())
        source, target = Path(folder, "seg", "000000000001-0000.arrow"), Path(folder, "seg")
        for number in range(2, count + 1):  # the same content: links are quick
            if number % 50_000 == 2:
                copy = target / f".copy-{number}"
                copy.write_bytes(source.read_bytes())
                source = copy
            (target / f"{number:012d}-0000.arrow").hardlink_to(source)
            (target / f"{number:012d}-0000.ok").touch()
        wal.confirm(1, 0)
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


def latency(url: str, queue: str, count: int, size: int) -> dict[str, float]:
    """receiver=executor in Spark at 30 messages a second: from sending to the end of the batch that has it."""
    del size
    from benchmarks.spark_session import spark_session

    ends: list[tuple[float, list[float]]] = []

    def keep(frame: Any, _: int) -> None:
        bodies = [float(row.body) for row in frame.selectExpr("string(body) AS body").collect()]
        ends.append((time.time(), bodies))

    with tempfile.TemporaryDirectory() as folder, spark_session() as spark:
        options = {"url": url, "destination": queue, "walLocation": f"{folder}/wal", "receiver": "executor"}
        stream = spark.readStream.format("jms").options(**options).load()
        query = stream.writeStream.foreachBatch(keep).option("checkpointLocation", f"{folder}/checkpoint").start()
        try:
            for number in (_WARM, count):  # the first batch with rows starts Spark's workers, and takes seconds
                ends.clear()
                sender = threading.Thread(target=paced, args=(url, queue, [None] * number, 30))
                sender.start()
                until = time.monotonic() + PATIENCE
                while sum(len(bodies) for _, bodies in ends) < number and time.monotonic() < until:
                    time.sleep(0.1)
                sender.join()
        finally:
            query.stop()
    waits = sorted((end - sent) * 1000 for end, bodies in ends for sent in bodies)
    deciles = statistics.quantiles(waits, n=10)
    return {"messages": len(waits), "per_second": 30, "p50_ms": round(deciles[4]), "p90_ms": round(deciles[8])}


Case = Callable[[str, str, int, int], Mapping[str, Any]]
CASES: Final[Mapping[str, tuple[Case, int, int, bool]]] = {  # messages, bytes of a body, whether they are sent before
    "large": (large, 400, MIB, True),
    "backlog": (backlog, 1_000_000, 200, True),
    "trickle": (trickle, 99, 100, False),
    "pending": (pending, 200_000, 0, False),
    "latency": (latency, 600, 0, False),
}


def main() -> int:
    """One case in this process (``--child``), or those that are asked for, each in one of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", help="a broker that may be used")
    parser.add_argument("--only", choices=CASES, action="append", help="this case; all without it")
    parser.add_argument("--count", type=int, help="so many messages instead of a case's own number")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="a JSON file that keeps the other cases")
    parser.add_argument("--child", nargs=2, metavar=("CASE", "QUEUE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        case, count, size, _ = CASES[given.child[0]]
        print(json.dumps(case(given.url, given.child[1], given.count or count, size)))
        return 0
    found = json.loads(given.output.read_text(encoding="utf-8")) if given.output.exists() else {}
    for name in given.only or CASES:
        _, count, size, before = CASES[name]
        count = given.count or count
        queue = f"bench.bounds.{uuid.uuid4().hex[:8]}"
        if before:
            send(given.url, queue, count, size)
        command = [
            sys.executable,
            "-m",
            "benchmarks.spark_bounds",
            given.url,
            "--count",
            str(count),
            "--child",
            name,
            queue,
        ]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT, timeout=2 * PATIENCE)  # noqa: S603  # this module
        found[name] = json.loads(done.stdout.splitlines()[-1])
        print(name, json.dumps(found[name]))
        given.output.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
