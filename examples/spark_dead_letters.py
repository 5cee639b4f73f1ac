"""Count the messages of a dead-letter queue by origin and cause, with Spark. Nothing is taken from the queue.

python spark_dead_letters.py                                     # a broker in this process
python spark_dead_letters.py amqp://user:password@localhost:5672 [dead-letter queue]

Needs Java 17 and the extra: pip install '.[spark]'. A broker that cannot browse says so.
"""

import os
import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import redelivery
from redelivery import RedeliveryPolicy, SharedDeadLetterStrategy
from redelivery.broker import EmbeddedBroker

LETTERS = "ActiveMQ.DLQ"
FAILURES = (
    ("orders", LookupError("no such article"), 3),
    ("orders", ValueError("price is negative"), 1),
    ("payments", TimeoutError("the bank did not answer"), 2),
)


def make_dead_letters(url: str) -> None:
    """Fail on some messages, so that there is something to count."""
    with (
        redelivery.connect(
            url,
            redelivery_policy=RedeliveryPolicy(maximum_redeliveries=0),
            dead_letter_strategy=SharedDeadLetterStrategy(LETTERS),
        ) as connection,
        connection.session("transacted") as session,
    ):
        for queue, error, count in FAILURES:
            with session.consumer(queue) as consumer:
                for number in range(count):
                    session.producer(queue).send(f"{queue} {number}")
                session.commit()
                for _ in range(count):
                    consumer.receive(timeout=10)
                    session.rollback(cause=error)


def counted(letters: DataFrame) -> DataFrame:
    says = F.col("properties")
    return (
        letters.groupBy(
            says["originalDestination"].alias("origin"),
            F.regexp_extract(says["dlqDeliveryFailureCause"], r"(?s)cause:(.*)", 1).alias("cause"),
        )
        .agg(F.count("*").alias("letters"), F.max("timestamp").cast("date").alias("last"))
        .orderBy("origin", F.desc("letters"))
    )


def main(url: str, queue: str = LETTERS) -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # or the workers are whatever python3 is on the PATH
    spark = SparkSession.builder.master("local[2]").config("spark.ui.showConsoleProgress", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    letters = spark.read.format("jms").option("url", url).load(queue)
    counted(letters).show(truncate=False)
    spark.stop()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(*sys.argv[1:3])
    else:
        with EmbeddedBroker("example", stomp_port=0) as broker:
            make_dead_letters(broker.stomp_url)
            main(broker.stomp_url)
            print(f"{broker.queue_depth(LETTERS)} dead letters are still there")
