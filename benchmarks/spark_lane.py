"""``python -m benchmarks.spark_lane URL…``: processor time of a row in a lane of Spark's source.

In turn, in one process for each broker: the session alone (`receive_many`, body and id of each), a lane (rows,
segments on a disk, commits), and the same rows from memory as a Python source makes RecordBatches of them. Bodies of
1 KiB with two properties. The smallest of the rounds count. Writes docs/spark-lane.json, and from it the table of
docs/spark/performance.md; ``python -m benchmarks --judge`` writes that of docs/benchmarks.md.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import redelivery
from benchmarks.figures import Figures, between
from benchmarks.machine import in_process
from benchmarks.ours import BODY
from benchmarks.page import LANE_HEADS, LANES, lanes
from benchmarks.senders import fill
from benchmarks.spark_cases import received
from benchmarks.spark_reader import broker_at
from benchmarks.targets import table
from redelivery.spark.options.query import SourceOptions
from redelivery.spark.read.lane import imports_left_alone
from redelivery.spark.rows.columns import Columns

COUNT: Final = 8_000  # messages of a round
ROUNDS: Final = 5
_PORTION: Final = 500


def _session(url: str, queue: str) -> float:
    with redelivery.connect(url) as connection, connection.session("transacted") as session:
        consumer, done = session.consumer(queue), 0
        began = time.process_time()
        while done < COUNT:
            messages = consumer.receive_many(min(_PORTION, COUNT - done), 5.0)
            for message in messages:
                _ = message.body, message.message_id
            done += len(messages)
        session.commit()
        return time.process_time() - began


def _lane(url: str, queue: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        options = SourceOptions.parse({"url": url, "destination": queue, "walLocation": f"{folder}/wal"})
        began = time.process_time()
        with imports_left_alone():
            for _ in received(options, Path(folder, "segments"), COUNT, options.segment_rows):
                pass
        return time.process_time() - began


def _memory(url: str, queue: str) -> float:
    columns = Columns()
    with redelivery.connect(url) as connection, connection.session("auto") as session:
        consumer = session.consumer(queue)
        for _ in range(COUNT):
            message = consumer.receive(timeout=5)
            assert message is not None, "they were sent before"
            columns.add(message)
    began = time.process_time()
    columns.batches()
    return time.process_time() - began


def one(url: str) -> dict[str, Any]:
    """Return microseconds a row at one broker."""
    least: dict[str, float] = {}
    for _ in range(ROUNDS + 1):  # the first one warms up
        for name, case in (("session", _session), ("lane", _lane), ("memory", _memory)):
            queue = f"bench.lane.{uuid4().hex[:8]}"
            with redelivery.connect(url) as connection:
                messages = (
                    redelivery.Message(BODY, properties={"region": "eu", "number": str(number)})
                    for number in range(COUNT)
                )
                fill(connection, queue, messages)
            least[name] = min(case(url, queue) / COUNT * 1e6, least.get(name, 1e9))
    return {"broker": broker_at(url), "load": os.getloadavg()[0], **least}


def take(found: list[dict[str, Any]], _case: str, url: str) -> dict[str, Any]:
    """Measure at one broker, in a process of its own."""
    made: dict[str, Any] = in_process(f"spark_lane.one({url!r})")
    found[:] = [*(each for each in found if each["broker"] != made["broker"]), made]
    return made


def text(_found: object, old: str) -> str:
    """Return the page."""
    return between(old, "lane", table(LANE_HEADS, lanes()))


if __name__ == "__main__":
    Figures(LANES, "docs/spark/performance.md", ["lane"], take, text).main(__doc__)
