"""Write orders from a queue into an Iceberg table, each exactly once, although the job dies after Iceberg's commit.

spark-submit --packages org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0 spark_iceberg.py

Needs Java 17, the extra (pip install '.[spark]') and a Spark that Iceberg has an artifact for: docs/spark/versions.md.
"""

import os
import sys
from collections.abc import Callable
from tempfile import TemporaryDirectory

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import redelivery
from redelivery.broker import EmbeddedBroker

ORDERS = 300
TABLE = "lake.shop.orders"


def append(orders: DataFrame, batch: int) -> None:
    """Append a batch unless the table has it: each snapshot names the query and the batch that it was made of.

    Iceberg does not compare them when it commits, so one query at a time may write: `walLocation` sees to that. Keep
    the snapshots of the last hours (`history.expire.max-snapshot-age-ms`), or a job that died finds no name.
    """
    spark = orders.sparkSession
    query = spark.sparkContext.getLocalProperty("sql.streaming.queryId")  # another one with a new checkpoint
    known = spark.read.table(f"{TABLE}.snapshots").where(F.expr(f"summary['jms.query'] = '{query}'"))
    if known.where(F.expr(f"CAST(summary['jms.batch'] AS BIGINT) >= {batch}")).isEmpty():
        writer = orders.writeTo(TABLE).option("snapshot-property.jms.query", query)
        writer.option("snapshot-property.jms.batch", str(batch)).append()


def job(spark: SparkSession, url: str, folder: str, write: Callable[[DataFrame, int], None] = append) -> bool:
    """The job that a scheduler starts: it takes what is in the queue and ends. False: there was nothing."""
    query = (
        spark.readStream.format("jms")
        .option("url", url)
        .option("walLocation", f"{folder}/segments")  # as durable as the checkpoint: see docs/spark.md
        .option("maxMessagesPerBatch", 100)
        .option("segmentRows", 50)
        .load("orders")
        .selectExpr("message_id", "CAST(body AS STRING) AS order", "timestamp")
        .writeStream.foreachBatch(write)
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    sources = [source for progress in query.recentProgress for source in progress["sources"]]
    return any(source["startOffset"] != source["endOffset"] for source in sources)


def session(folder: str) -> SparkSession:
    """A local Spark with a catalog ``lake`` in a folder, and the table."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # or the workers are whatever python3 is on the PATH
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.catalog.lake", "org.apache.iceberg.spark.SparkCatalog")
        .config("spark.sql.catalog.lake.type", "hadoop")
        .config("spark.sql.catalog.lake.warehouse", f"file://{folder}/lake")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    spark.sql(
        f"CREATE TABLE IF NOT EXISTS {TABLE} (message_id STRING, order STRING, timestamp TIMESTAMP) USING iceberg"
    )
    return spark


def table(spark: SparkSession) -> DataFrame:
    """The orders that were written."""
    return spark.read.table(TABLE)


def main(url: str, folder: str) -> None:
    spark = session(folder)

    def write_and_break(orders: DataFrame, batch: int) -> None:
        append(orders, batch)
        if batch == 1:
            raise OSError("the power failed")  # the batch is in the table, but Spark does not know it

    for write in (write_and_break, write_and_break, append):
        try:
            while job(spark, url, folder, write):  # Spark 4.0 and 4.1 end after one batch
                pass
        except StreamingQueryException as error:
            if "the power failed" not in str(error):
                raise
            print(f"the job failed, and the table has {table(spark).count()} rows")

    written = table(spark)
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
