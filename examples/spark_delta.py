"""Write orders from a queue into a Delta table, each exactly once, although the job dies after Delta's commit.

spark-submit --packages io.delta:delta-spark_4.2_2.13:4.4.0 spark_delta.py

Needs Java 17, the extra (pip install '.[spark]') and a Spark that Delta has an artifact for: docs/spark/versions.md.
"""

import os
import sys
from collections.abc import Callable
from tempfile import TemporaryDirectory

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import redelivery
from redelivery.broker import EmbeddedBroker

ORDERS = 300


def append(orders: DataFrame, batch: int, path: str) -> None:
    """Append a batch unless the table has it: Delta compares both names with its log when it commits."""
    # The query's id is another one where the checkpoint is a new one, whose batches are numbered from 0 again. With a
    # name that stays, Delta would take those for known ones and leave them out.
    query = orders.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    writer = orders.write.format("delta").option("txnAppId", f"orders-{query}").option("txnVersion", batch)
    writer.mode("append").save(path)


def job(spark: SparkSession, url: str, folder: str, write: Callable[[DataFrame, int, str], None] = append) -> bool:
    """The job that a scheduler starts: it takes what is in the queue and ends. False: there was nothing."""
    query = (
        spark.readStream.format("jms")
        .option("url", url)
        .option("walLocation", f"{folder}/segments")  # as durable as the checkpoint: see docs/spark.md
        .option("maxMessagesPerBatch", 100)
        .option("segmentRows", 50)
        .load("orders")
        .selectExpr("message_id", "CAST(body AS STRING) AS order", "timestamp")
        .writeStream.foreachBatch(lambda orders, batch: write(orders, batch, f"{folder}/table"))
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    sources = [source for progress in query.recentProgress for source in progress["sources"]]
    return any(source["startOffset"] != source["endOffset"] for source in sources)


def session() -> SparkSession:
    """A local Spark that knows Delta."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # or the workers are whatever python3 is on the PATH
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    return spark


def table(spark: SparkSession, folder: str) -> DataFrame:
    """The orders that were written."""
    return spark.read.format("delta").load(f"{folder}/table")


def main(url: str, folder: str) -> None:
    spark = session()

    def write_and_break(orders: DataFrame, batch: int, path: str) -> None:
        append(orders, batch, path)
        if batch == 1:
            raise OSError("the power failed")  # the batch is in the table, but Spark does not know it

    for write in (write_and_break, write_and_break, append):
        try:
            while job(spark, url, folder, write):  # Spark 4.0 and 4.1 end after one batch
                pass
        except StreamingQueryException as error:
            if "the power failed" not in str(error):
                raise
            print(f"the job failed, and the table has {table(spark, folder).count()} rows")

    written = table(spark, folder)
    print(f"{written.count()} rows, {written.select('order').distinct().count()} orders")
    spark.stop()


if __name__ == "__main__":
    with EmbeddedBroker("example", stomp_port=0) as broker, TemporaryDirectory(ignore_cleanup_errors=True) as place:
        with redelivery.connect(broker.vm_url) as connection, connection.session("transacted") as orders:
            for number in range(ORDERS):
                orders.producer("orders").send(f"order {number}")
            orders.commit()
        main(broker.stomp_url, place)
        print(f"{broker.queue_depth('orders')} orders are left in the queue")
