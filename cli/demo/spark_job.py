"""The demo's Spark job, as one would write it: a stream of dead letters, counted by origin and cause.

``python -m redelivery.cli.demo.spark_job`` starts Spark at once and waits for a line of JSON on its standard input that
says where they are; it answers with another one.
"""

from __future__ import annotations

import json
import os
import re
import sys
from typing import Any


def count_letters(spark: Any, url: str, queue: str, folder: str) -> dict[str, Any]:
    """All that is in the queue; it is empty then."""
    letters = (
        spark.readStream.format("jms")
        .option("url", url)
        .option("walLocation", f"{folder}/segments")
        .option("badMessages", "permissive")
        .option("availableNowIdle", "500 ms")
        .option("maxReconnectTime", "10 s")
        .load(queue)
    )
    query = (
        letters.writeStream.format("memory")
        .queryName("letters")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    counted = spark.sql(
        """
        SELECT properties['originalDestination'] AS origin,
               regexp_extract(properties['dlqDeliveryFailureCause'], '(?s)cause:(.*)', 1) AS cause,
               count(*) AS letters
        FROM letters GROUP BY origin, cause ORDER BY origin, cause
        """
    )
    groups = [(row.origin or "", row.cause or "", row.letters) for row in counted.collect()]
    batches = sum(batch["numInputRows"] > 0 for batch in query.recentProgress)
    return {"version": spark.version, "groups": groups, "batches": batches}


def main() -> None:
    """Until the answer is given, or nobody asks any more."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    answer = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # the JVM would keep the pipe of our answer open
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[2]")
        .appName("redelivery demo")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "512m")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")  # it lives for seconds
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "1")
        .getOrCreate()
    )
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
    """Of Spark's text the line that says what was wrong: an error of ours, without its module; else the first one."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith("redelivery.")]
    return re.sub(r"^redelivery\.[\w.]*\.(?=\w+: )", "", (ours or lines or ["it said nothing"])[0])


if __name__ == "__main__":
    main()
