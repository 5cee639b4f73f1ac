"""A program for one Spark: runs of a stream whose job fails half-way, then until nothing is left; a sink; a look.

``python -m tests.spark.versions.program URL FOLDER QUEUE PLAN``; its last line is JSON. The plan, in JSON: ``options``
of the source, ``breaks``: for each run the batch that fails when it has written its rows, ``more``: whether to go on
until all are there, ``copy``: whether to send the rows to another queue and look at them there. A batch writes a file
of its number, so that a batch that is repeated is there once.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

MESSAGES = 40
OPTIONS = {"maxMessagesPerBatch": "25", "segmentRows": "10", "availableNowIdle": "300 ms"}
_RUNS = 8
_CONFIGURATION = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "600m",
    "spark.sql.shuffle.partitions": "1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def session() -> Any:
    """`local[2]`, whose workers are this interpreter."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]")
    for name, value in _CONFIGURATION.items():
        builder = builder.config(name, value)
    found = builder.getOrCreate()
    found.sparkContext.setLogLevel("OFF")
    return found


class Stream:
    """The same query of each run."""

    def __init__(self, spark: Any, url: str, folder: Path, queue: str, options: dict[str, str]) -> None:
        self._spark, self._folder, self._queue = spark, folder, queue
        self._options = {"url": url, "walLocation": str(folder / "wal"), **OPTIONS, **options}
        if options.get("receiver") == "executor":
            del self._options["segmentRows"]
        (folder / "table").mkdir(parents=True, exist_ok=True)

    def run(self, breaks: int | None = None) -> int:
        """One AvailableNow query; the rows that it read. Batch ``breaks`` fails when it has written its rows."""
        read = 0

        def write(rows: Any, batch: int) -> None:
            nonlocal read
            bodies = [row.body for row in rows.collect()]
            (self._folder / "table" / f"{batch:04}").write_text("".join(f"{body}\n" for body in bodies), "utf-8")
            read += len(bodies)
            if batch == breaks:
                raise OSError("the power failed")

        stream = self._spark.readStream.format("jms").options(**self._options).load(self._queue)
        writer = stream.selectExpr("CAST(body AS STRING) AS body").writeStream.foreachBatch(write)
        query = writer.option("checkpointLocation", str(self._folder / "checkpoint")).trigger(availableNow=True).start()
        try:
            query.awaitTermination(120)
        except Exception as error:  # Spark's, of any class, by version
            if "the power failed" not in str(error):
                raise
        return read

    def batches(self) -> list[list[str]]:
        """The rows of each batch."""
        return [file.read_text("utf-8").splitlines() for file in sorted((self._folder / "table").iterdir())]

    def rows(self) -> list[str]:
        """Of all batches."""
        return [body for batch in self.batches() for body in batch]


def copied(spark: Any, url: str, queue: str, folder: Path) -> int:
    """How many messages are seen on a queue to which a stream sends the rows, and a batch once more."""
    lines = spark.readStream.text(str(folder / "table")).withColumnRenamed("value", "body")
    writer = lines.writeStream.format("jms").options(url=url, destination=queue)
    writer.option("checkpointLocation", str(folder / "sent")).trigger(availableNow=True).start().awaitTermination(120)
    lines = spark.read.text(str(folder / "table")).withColumnRenamed("value", "body")
    lines.write.format("jms").option("url", url).mode("append").save(queue)
    return int(spark.read.format("jms").option("url", url).load(queue).count())


def main(url: str, place: str, queue: str, given: str) -> None:
    import pyspark

    folder, plan = Path(place), json.loads(given)
    spark = session()
    stream = Stream(spark, url, folder, queue, plan.get("options", {}))
    runs = [stream.run(breaks) for breaks in plan.get("breaks", ())]
    while plan.get("more", True) and len(runs) < _RUNS and len(set(stream.rows())) < plan.get("messages", MESSAGES):
        runs.append(stream.run())
    rows = stream.rows()
    found = {"spark": pyspark.__version__, "rows": len(rows), "distinct": len(set(rows)), "runs": runs}
    found["batches"] = [len(each) for each in stream.batches()]
    if plan.get("copy"):
        found["copied"] = copied(spark, url, f"{queue}.copies", folder)
    spark.stop()
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
