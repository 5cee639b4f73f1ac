"""``python -m benchmarks.spark_lane URL…``: processor time of a row in a lane of Spark's source; ``-`` writes the page.

In turn, in one process for each broker: the session alone (`receive_many`, body and id of each), a lane (rows,
segments on a disk, commits), and the same rows from memory as a Python source makes RecordBatches of them. Bodies of
1 KiB with two properties. The smallest of the rounds count. Writes docs/spark-lane.json, and from it the table of
docs/spark/performance.md; ``python -m benchmarks --judge`` writes that of docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any, Final

import redelivery
from benchmarks.machine import in_process
from benchmarks.page import LANE_HEADS, LANES, lanes
from benchmarks.spark_bounds import PAGE, write_between
from benchmarks.spark_cases import NothingInDoubt
from benchmarks.targets import table
from redelivery.spark.log.store.opening import open_store
from redelivery.spark.options.query import SourceOptions
from redelivery.spark.read.lane import imports_left_alone
from redelivery.spark.read.receiving.batch_receiver import BatchReceiver
from redelivery.spark.read.receiving.received_batch import BatchPause
from redelivery.spark.rows.columns import Columns

COUNT: Final = 8_000  # messages of a round
ROUNDS: Final = 5
_BODY: Final = "x" * 1024
_PORTION: Final = 500


def _fill(url: str, queue: str, count: int) -> None:
    with redelivery.connect(url) as connection, connection.session("transacted") as session:
        producer = session.producer(queue)
        for number in range(count):
            producer.send(redelivery.Message(_BODY, properties={"region": "eu", "number": str(number)}))
            if number % _PORTION == _PORTION - 1:
                session.commit()
        session.commit()


def _session(url: str, queue: str, count: int) -> float:
    with redelivery.connect(url) as connection, connection.session("transacted") as session:
        consumer, done = session.consumer(queue), 0
        began = time.process_time()
        while done < count:
            messages = consumer.receive_many(min(_PORTION, count - done), 5.0)
            for message in messages:
                _ = message.body, message.message_id
            done += len(messages)
        session.commit()
        return time.process_time() - began


def _lane(url: str, queue: str, count: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        options = SourceOptions.parse({"url": url, "destination": queue, "walLocation": f"{folder}/wal"})
        store, done, segments = open_store(f"{folder}/segments"), 0, 0
        store.make_folders([""])
        began = time.process_time()
        with imports_left_alone(), BatchReceiver(options, NothingInDoubt()) as receiver:
            while done < count:
                batch = receiver.receive(options.segment_rows, options.segment_bytes, lambda: BatchPause(0.2))
                if batch is not None:
                    segments += 1
                    store.put_if_absent(f"{segments:08d}.arrow", batch.data)
                    receiver.confirm()
                    done += batch.received
        return time.process_time() - began


def _memory(url: str, queue: str, count: int) -> float:
    columns = Columns()
    with redelivery.connect(url) as connection, connection.session("auto") as session:
        consumer = session.consumer(queue)
        for _ in range(count):
            message = consumer.receive(timeout=5)
            assert message is not None, "they were sent before"
            columns.add(message)
    began = time.process_time()
    columns.batches()
    return time.process_time() - began


def one(url: str) -> dict[str, Any]:
    """Return microseconds a row at one broker."""
    with redelivery.connect(url) as connection:
        about = connection.metadata
    least: dict[str, float] = {}
    for _ in range(ROUNDS + 1):  # the first one warms up
        for name, case in (("session", _session), ("lane", _lane), ("memory", _memory)):
            queue = f"bench.lane.{uuid.uuid4().hex[:8]}"
            _fill(url, queue, COUNT)
            least[name] = min(case(url, queue, COUNT) / COUNT * 1e6, least.get(name, 1e9))
    broker = f"{about.provider_name} {about.provider_version}, {about.protocol.split()[0]}"
    return {"broker": broker, "load": os.getloadavg()[0], **least}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url", nargs="+", help="a broker that may be used; '-': write the page only")
    parser.add_argument("--output", type=Path, default=LANES)
    given = parser.parse_args()
    if given.url != ["-"]:
        found = [in_process(f"spark_lane.one({url!r})") for url in given.url]
        given.output.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    lines = "\n".join(table(LANE_HEADS, lanes(given.output)))
    print(lines)
    if given.output == LANES:
        write_between(PAGE, "lane", lines)


if __name__ == "__main__":
    main()
