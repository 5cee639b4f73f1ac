"""A program for `test_elsewhere`: a queue into a table and on to another queue, in a Spark of its own.

``python -m tests.spark.elsewhere connect|cluster URL FOLDER RECEIVER QUEUE``; its last line is JSON.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import redelivery
from redelivery.testing.brokers.ports import free_ports

MESSAGES = 500
_CONFIGURATION = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "700m",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def session(where: str) -> Any:
    """`remote("local[2]")`, on a port of its own, or a cluster of two executors with a JVM each."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    for name, value in _CONFIGURATION.items():
        builder = builder.config(name, value)
    if where == "cluster":
        return builder.master("local-cluster[2,1,1024]").getOrCreate()
    from pyspark.sql.connect.client import DefaultChannelBuilder

    port = free_ports(["connect"])["connect"]
    DefaultChannelBuilder.default_port = staticmethod(lambda: port)  # 15002, which others may have
    return builder.config("spark.connect.grpc.binding.port", str(port)).remote("local[2]").getOrCreate()


def send(url: str, queue: str, bodies: list[str]) -> None:
    with redelivery.connect(url) as connection, connection.session("transacted") as session:
        producer = session.producer(queue)
        for body in bodies:
            producer.send(body, properties={"kind": "test"})
        session.commit()


def main(where: str, url: str, folder: str, receiver: str, queue: str) -> None:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    spark = session(where)
    wal = f"{folder}/wal"

    def run() -> None:
        stream = (
            spark.readStream.format("jms")
            .options(url=url, walLocation=wal, receiver=receiver, numPartitions="2", maxMessagesPerBatch="200")
            .load(queue)
            .selectExpr("string(body) AS body", "properties['kind'] AS kind")
        )
        writer = stream.writeStream.format("parquet").option("path", f"{folder}/table")
        query = writer.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start()
        assert query.awaitTermination(120)
        assert query.exception() is None

    send(url, queue, [f"first {number}" for number in range(MESSAGES)])
    browsed = spark.read.format("jms").option("url", url).load(queue).count()
    run()
    send(url, queue, [f"second {number}" for number in range(MESSAGES)])
    run()  # goes on where its checkpoint is
    rows = Counter((row.body, row.kind) for row in spark.read.parquet(f"{folder}/table").collect())
    table = spark.read.parquet(f"{folder}/table").select("body")
    table.write.format("jms").option("url", url).mode("append").save(f"{queue}.copies")
    found = {
        "session": type(spark).__module__,
        "browsed": browsed,
        "rows": rows.total(),
        "different": len(rows),
        "kinds": sorted({kind for _, kind in rows}),
        "segments": len(list(Path(wal).rglob("*.arrow"))) > 0,
    }
    spark.stop()
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
