"""Write orders from a queue into a table, each exactly once, although the job fails half-way and is started again.

python spark_exactly_once.py

Needs Java 17 and the extra: pip install '.[spark]'.
"""

import os
import sys
from tempfile import TemporaryDirectory

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import redelivery
from redelivery.broker import EmbeddedBroker

ORDERS = 1000


def job(spark: SparkSession, url: str, folder: str, *, breaks: bool) -> None:
    """The job that a scheduler starts: it takes what is in the queue and ends."""

    def write(orders: DataFrame, batch: int) -> None:
        # A batch that is repeated has the same number and the same rows, so it overwrites what was written before.
        # In a database or a lake table, delete the rows of this number, or use it as a key, in the same transaction.
        orders.write.mode("overwrite").parquet(f"{folder}/table/batch={batch}")
        if breaks and batch == 1:
            raise OSError("the power failed")  # the batch is written, but Spark does not know it

    query = (
        spark.readStream.format("jms")
        .option("url", url)
        .option("walLocation", f"{folder}/segments")  # as durable as the checkpoint: see docs/spark.md
        .option("maxMessagesPerBatch", 300)
        .load("orders")
        .select("message_id", F.expr("CAST(body AS STRING)").alias("order"), "timestamp")
        .writeStream.foreachBatch(write)
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def main(url: str, folder: str) -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # or the workers are whatever python3 is on the PATH
    spark = SparkSession.builder.master("local[2]").config("spark.ui.showConsoleProgress", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")

    try:
        job(spark, url, folder, breaks=True)
    except StreamingQueryException as error:
        if "the power failed" not in str(error):
            raise
        print(f"the job failed, and has written {spark.read.parquet(f'{folder}/table').count()} rows")
    job(spark, url, folder, breaks=False)

    table = spark.read.parquet(f"{folder}/table")
    table.groupBy("batch").count().orderBy("batch").show()
    print(f"{table.count()} rows, {table.select('order').distinct().count()} orders")
    spark.stop()


if __name__ == "__main__":
    with EmbeddedBroker("example", stomp_port=0) as broker, TemporaryDirectory(ignore_cleanup_errors=True) as place:
        with redelivery.connect(broker.vm_url) as connection, connection.session("transacted") as session:
            for number in range(ORDERS):
                session.producer("orders").send(f"order {number}")
            session.commit()
        main(broker.stomp_url, place)
        print(f"{broker.queue_depth('orders')} orders are left in the queue")
