"""``python -m benchmarks.spark_latency URL``: how late rows are, and what a batch costs.

A process of its own sends so many messages a second by the clock; a row is late by the time from the call of `send`
until foreachBatch has it. Receiver `none` is a source without a broker, whose rows are there when their time comes:
what Spark itself takes on this machine. The cost of a batch is that of one of a backlog, which nothing has to be
waited for, above that of an empty one of a source that does nothing, with the same sink in the same run. Writes
docs/spark-latency.json, and from it the table of docs/spark/performance.md.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Sequence
from typing import Any, Final
from uuid import uuid4

from benchmarks.figures import Figures, between
from benchmarks.machine import in_process
from benchmarks.spark_bounds import send
from benchmarks.spark_fake import CLOCK, IDLE, ClockSource, IdleSource
from benchmarks.spark_reader import broker_at
from benchmarks.spark_session import Batch, arrivals, folder, jms, spark_session, stream, waits
from benchmarks.targets import table

RATES: Final = (3, 30, 300, 3_000)  # messages a second
SECONDS: Final = 12.0
FEW: Final = 34.0  # seconds at the lowest rate
WARM: Final = 5.0  # seconds in which a query's workers start
ROWS: Final = 100  # of a batch whose cost is measured
BATCHES: Final = 20
CASES: Final = ("cost", *(f"{receiver}-{rate}" for receiver in ("none", "driver", "executor") for rate in RATES))
HEADS: Final = ("receiver", "messages a second", "p50", "p99", "of a batch: `latestOffset`", "all else", "load")


def late(spark: Any, url: str, receiver: str, rate: float) -> dict[str, Any]:
    """Measure how late rows are at one rate; those of ``none`` are there at their time and cost nothing."""
    seconds, sent = WARM + (FEW if rate == RATES[0] else SECONDS), rate
    if receiver == "none":
        spark.dataSource.register(ClockSource)
        found = arrivals(spark, CLOCK, {"rate": str(rate)}, lambda: time.sleep(seconds))
    else:
        began = time.monotonic()
        found = waits(spark, url, f"bench.late.{uuid4().hex[:8]}", round(rate * seconds), rate, receiver)
        sent = round(rate * seconds / (found.fed - began))
    times = found.late[round(rate * WARM) :]
    asked, rest = batch_steps(found.progress)
    return {
        **{"receiver": receiver, "rate": rate, "sent_per_second": sent, "messages": len(times)},
        **{"p50_ms": round(statistics.median(times)), "p99_ms": round(statistics.quantiles(times, n=100)[98])},
        **{"source_ms": asked, "spark_ms": rest, "load": round(os.getloadavg()[0], 1)},
    }


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
    queue, count = f"bench.late.{uuid4().hex[:8]}", BATCHES + BATCHES // 4
    send(url, queue, (count + 2) * ROWS, ROWS)
    spark.dataSource.register(IdleSource)

    def enough(found: Sequence[Batch]) -> bool:
        return len(found) >= count

    with folder() as place:
        options = jms(url, queue, place, maxMessagesPerBatch=str(ROWS), segmentRows=str(ROWS))
        idle = stream(spark, IDLE, {}, place / "idle", until=enough)
        ours = stream(spark, "jms", options, place / "ours", until=enough)
        again = stream(spark, IDLE, {}, place / "again", until=enough)
    least, took = (
        1000 * statistics.median([batch.seconds for batch in each[-BATCHES:]]) for each in ([*idle, *again], ours)
    )
    return {"idle_ms": round(least), "batch_ms": round(took), "rows": ROWS, "load": round(os.getloadavg()[0], 1)}


def one(case: str, url: str) -> dict[str, Any]:
    """Measure one case in this process."""
    receiver, _, rate = case.partition("-")
    with spark_session() as spark:
        return late(spark, url, receiver, float(rate)) if rate else cost(spark, url)


def take(found: dict[str, Any], case: str, url: str) -> dict[str, Any]:
    """Measure one in a process of its own, and put it into the numbers."""
    made: dict[str, Any] = in_process(f"spark_latency.one({case!r}, {url!r})", timeout=600)
    found["broker"] = broker_at(url)
    (found if case == "cost" else found["late"])[case] = made
    return made


def text(found: dict[str, Any], old: str) -> str:
    """Return the page, with the table and the sentence about a batch."""
    rows = []
    for each in sorted(found["late"].values(), key=lambda each: (each["receiver"], each["rate"])):
        said = f"{each['rate']:,.0f}"
        if each["sent_per_second"] < 0.9 * each["rate"]:
            said += f" asked, {each['sent_per_second']:,} sent"
        times = (f"{each[name]:,} ms" for name in ("p50_ms", "p99_ms", "source_ms", "spark_ms"))
        rows.append((f"`{each['receiver']}`", said, *times, f"{each['load']:g}"))
    cost = found["cost"]
    ours = f"A batch of {cost['rows']} rows of a backlog takes {cost['batch_ms']:,} ms with `receiver=driver`"
    idle = f"an empty one of a source that does nothing {cost['idle_ms']:,} ms"
    more = f"{cost['batch_ms'] - cost['idle_ms']:,} ms more, at a load of {cost['load']:g}. All with {found['broker']}."
    return between(old, "latency", [*table(HEADS, rows), "", f"{ours}, {idle}: {more}"])


if __name__ == "__main__":
    Figures("docs/spark-latency.json", "docs/spark/performance.md", CASES, take, text).main(__doc__)
