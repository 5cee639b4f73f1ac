"""``python -m benchmarks.spark_latency URL``: how late rows are, and what a batch costs; ``-`` writes the page only.

A process of its own sends so many messages a second by the clock; a row is late by the time from the call of `send`
until foreachBatch has it. Receiver `none` is a source without a broker, whose rows are there when their time comes:
what Spark itself takes on this machine. The cost of a batch is that of one of a backlog, which nothing has to be
waited for, above that of an empty one of a source that does nothing, with the same sink in the same run. Writes
docs/spark-latency.json, and from it the table of docs/spark/performance.md.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import redelivery
from benchmarks.machine import HERE, BenchmarkError, in_process
from benchmarks.spark_bounds import PAGE, send, write_between
from benchmarks.spark_fake import CLOCK, IDLE, ClockSource, IdleSource
from benchmarks.spark_session import PATIENCE, Batch, spark_session, stream

RATES: Final = (3, 30, 300, 3_000)  # messages a second
SECONDS: Final = 12.0
FEW: Final = 34.0  # seconds at the lowest rate
WARM: Final = 5.0  # seconds in which a query's workers start
ROWS: Final = 100  # of a batch whose cost is measured
BATCHES: Final = 20
OUTPUT: Final = HERE / "docs" / "spark-latency.json"
_TICK: Final = 0.002  # seconds


def send_times(url: str, queue: str, rate: float, seconds: float) -> int:
    """Send the time, so many times a second by the clock; return how many were sent."""
    with redelivery.connect(url) as connection, connection.session() as session:
        producer, began, sent = session.producer(queue, persistent=False), time.monotonic(), 0
        while (now := time.monotonic() - began) < seconds:
            for _ in range(sent, int(now * rate) + 1):
                producer.send(str(time.time_ns()))
                sent += 1
            time.sleep(max(_TICK, sent / rate - (time.monotonic() - began)))
    return sent


def late(spark: Any, url: str, receiver: str, rate: float) -> dict[str, Any]:
    """Measure how late rows are at one rate."""
    queue, seconds = f"bench.late.{uuid.uuid4().hex[:8]}", WARM + (FEW if rate == RATES[0] else SECONDS)
    call = f"spark_latency.send_times({url!r}, {queue!r}, {rate}, {seconds})"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        options = {"url": url, "destination": queue, "walLocation": f"{folder}/wal", "receiver": receiver}
        rows = spark.readStream.format("jms").options(**options).load()
        sent, found = watched(rows, folder, lambda: in_process(call, timeout=PATIENCE))
    return {**found, "receiver": receiver, "rate": rate, "sent_per_second": round(sent / seconds)}


def least(spark: Any, rate: float) -> dict[str, Any]:
    """Measure the same of rows that are there at their time and cost nothing: what Spark alone takes."""
    spark.dataSource.register(ClockSource)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        _, found = watched(
            spark.readStream.format(CLOCK).option("rate", str(rate)).load(), folder, lambda: time.sleep(WARM + SECONDS)
        )
    return {**found, "receiver": "none", "rate": rate, "sent_per_second": rate}


def watched(rows: Any, folder: str, feed: Callable[[], int | None]) -> tuple[int, dict[str, Any]]:
    """Run a query while ``feed`` runs, and until it has as many rows as that returns; None: however many it has then.

    Returns:
        The number of its rows, and what was measured.

    Raises:
        BenchmarkError: it had fewer or more, or none at all.
    """
    seen, grew = list[tuple[int, float]](), threading.Event()

    def take(batch: Any, _: int) -> None:
        bodies = [bytes(row.body) for row in batch.select("body").collect()]
        now = time.time_ns()
        seen.extend((int(body), (now - int(body)) / 1e6) for body in bodies)
        grew.set()

    query = rows.writeStream.foreachBatch(take).option("checkpointLocation", f"{folder}/checkpoint").start()
    try:
        with ThreadPoolExecutor() as pool:
            sent = pool.submit(feed).result()
        until = time.monotonic() + PATIENCE
        while sent is not None and len(seen) < sent and query.isActive and time.monotonic() < until:
            grew.wait(1)
            grew.clear()
    finally:
        query.stop()
    if not seen or (sent is not None and len(seen) != sent):
        raise BenchmarkError(f"{len(seen)} of {sent} rows came: {query.exception()}")
    first = min(seen)[0] + WARM * 1e9
    times = [each for began, each in seen if began >= first]
    source, rest = batch_steps(query.recentProgress)
    found = {"p50_ms": round(statistics.median(times)), "p99_ms": round(statistics.quantiles(times, n=100)[98])}
    found |= {"source_ms": source, "spark_ms": rest, "messages": len(times)}
    return len(seen), {**found, "load": round(os.getloadavg()[0], 1)}


def batch_steps(progress: Sequence[Any]) -> tuple[int, int]:
    """Return the median milliseconds of a batch with rows: of the source's answer what there is, and of all else.

    All else is Spark's: planning, its two writes to the checkpoint, the tasks, the sink; the tasks read segments.
    """
    steps = [each.durationMs for each in progress if each.numInputRows][1:]  # the first one starts workers
    if not steps:
        return 0, 0
    asked = [each.get("latestOffset", 0) for each in steps]
    rest = [each["triggerExecution"] - each.get("latestOffset", 0) for each in steps]
    return round(statistics.median(asked)), round(statistics.median(rest))


def cost(spark: Any, url: str) -> dict[str, float]:
    """Measure batches of a few rows that are there, and empty ones of a source that does nothing."""
    queue, count = f"bench.late.{uuid.uuid4().hex[:8]}", BATCHES + BATCHES // 4
    send(url, queue, (count + 2) * ROWS, ROWS)
    spark.dataSource.register(IdleSource)

    def enough(found: Sequence[Batch]) -> bool:
        return len(found) >= count

    rows = str(ROWS)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        options = {"url": url, "destination": queue, "walLocation": f"{folder}/wal", "maxMessagesPerBatch": rows}
        idle = stream(spark, IDLE, {}, Path(folder, "idle"), until=enough)
        ours = stream(spark, "jms", {**options, "segmentRows": rows}, Path(folder, "ours"), until=enough)
        again = stream(spark, IDLE, {}, Path(folder, "again"), until=enough)
    least, took = (
        1000 * statistics.median([batch.seconds for batch in each[-BATCHES:]]) for each in ([*idle, *again], ours)
    )
    return {"idle_ms": round(least), "batch_ms": round(took), "rows": ROWS, "load": round(os.getloadavg()[0], 1)}


def lines(found: dict[str, Any]) -> str:
    """Return the table, and the sentence about a batch."""
    heads = ["receiver", "messages a second", "p50", "p99", "of a batch: `latestOffset`", "all else", "load"]
    table = [f"| {' | '.join(heads)} |", "|---|---|---|---|---|---|---|"]
    for each in sorted(found["late"].values(), key=lambda each: (each["receiver"], each["rate"])):
        said = f"{each['rate']:,.0f}"
        if each["sent_per_second"] < 0.9 * each["rate"]:
            said += f" asked, {each['sent_per_second']:,} sent"
        times = " | ".join(f"{each[name]:,} ms" for name in ("p50_ms", "p99_ms", "source_ms", "spark_ms"))
        table.append(f"| `{each['receiver']}` | {said} | {times} | {each['load']:g} |")
    cost = found["cost"]
    ours = f"A batch of {cost['rows']} rows of a backlog takes {cost['batch_ms']:,} ms with `receiver=driver`"
    idle = f"an empty one of a source that does nothing {cost['idle_ms']:,} ms"
    more = f"{cost['batch_ms'] - cost['idle_ms']:,} ms more, at a load of {cost['load']:g}. All with {found['broker']}."
    return "\n".join([*table, "", f"{ours}, {idle}: {more}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url", help="a broker that may be used; '-': write the page only")
    cases = ["cost", *(f"{receiver}-{rate}" for receiver in ("none", "driver", "executor") for rate in RATES)]
    parser.add_argument("--only", choices=cases, action="append", help="this case; all without it")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="a JSON file that keeps the other cases")
    given = parser.parse_args()
    found = json.loads(given.output.read_text(encoding="utf-8")) if given.output.exists() else {"late": {}}
    if given.url != "-":
        with redelivery.connect(given.url) as connection:
            about = connection.metadata
        found["broker"] = f"{about.provider_name} {about.provider_version}, {about.protocol.split()[0]}"
        with spark_session() as spark:
            for case in given.only or cases:
                if case == "cost":
                    made = found["cost"] = cost(spark, given.url)
                else:
                    receiver, _, rate = case.partition("-")
                    one = (
                        least(spark, float(rate))
                        if receiver == "none"
                        else late(spark, given.url, receiver, float(rate))
                    )
                    made = found["late"][case] = one
                print(case, json.dumps(made), flush=True)
                given.output.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    if given.output == OUTPUT:
        write_between(PAGE, "latency", lines(found))


if __name__ == "__main__":
    main()
