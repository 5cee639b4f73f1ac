"""The demo's Spark job, as one would write it: a stream of dead letters, counted by origin and cause.

``python -m redelivery.cli.demo.spark_job`` starts Spark at once and waits for a line of JSON on its standard input that
says where they are; it answers with another one.
"""

from __future__ import annotations

import json
import os
import re
import sys
from typing import Any, Final

_SETTINGS: Final = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # it lives for seconds
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "1",
}


def count_letters(spark: Any, url: str, queue: str, folder: str) -> dict[str, Any]:
    """All that is in the queue; it is empty then."""
    options = {"badMessages": "permissive", "availableNowIdle": "500 ms", "maxReconnectTime": "10 s"}
    letters = spark.readStream.format("jms").options(url=url, walLocation=f"{folder}/segments", **options).load(queue)
    writer = letters.writeStream.format("memory").queryName("letters").trigger(availableNow=True)
    query = writer.option("checkpointLocation", f"{folder}/checkpoint").start()
    query.awaitTermination()
    counted = spark.sql(
        "SELECT properties['originalDestination'] AS origin, count(*) AS letters,"
        " regexp_extract(properties['dlqDeliveryFailureCause'], '(?s)cause:(.*)', 1) AS cause"
        " FROM letters GROUP BY origin, cause ORDER BY origin, cause"
    )
    groups = [(row.origin or "", row.cause or "", row.letters) for row in counted.collect()]
    batches = sum(batch["numInputRows"] > 0 for batch in query.recentProgress)
    return {"version": spark.version, "groups": groups, "batches": batches}


def main() -> None:
    """Run until the answer is given, or nobody asks any more."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    answer = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # the JVM would keep the pipe of our answer open
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.appName("redelivery demo").config(map=_SETTINGS).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    asked = sys.stdin.read()
    if not asked:
        return
    try:
        said = count_letters(spark, **json.loads(asked))
    except PySparkException as error:
        said = {"error": _short(str(error))}
    with os.fdopen(answer, "w", encoding="utf-8") as pipe:
        json.dump(said, pipe)


def _short(error: str) -> str:
    """The line of Spark's text that says what was wrong: an error of ours, without its module; else the first one."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith("redelivery.")]
    return re.sub(r"^redelivery\.[\w.]*\.(?=\w+: )", "", (ours or lines or ["it said nothing"])[0])


if __name__ == "__main__":
    main()
