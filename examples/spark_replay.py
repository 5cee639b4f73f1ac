"""Send dead letters back to their original queue, as a Spark job: thousands at a time, with any filter.

python spark_replay.py                                           # a broker in this process
python spark_replay.py amqp://user:password@localhost:5672 /folder/of/the/job [dead-letter queue]

Needs Java 17 and the extra: pip install '.[spark]'. The folder holds the messages in transit and the
progress of the job; restart a failed job with the same folder. Delivery is at least once: each copy has a property
`redelivery_dedupe_id`.
"""

import os
import sys
from tempfile import TemporaryDirectory

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import redelivery
from redelivery import RedeliveryPolicy, SharedDeadLetterStrategy
from redelivery.broker import EmbeddedBroker

REASONS = (
    *("dlqDeliveryFailureCause", "dlqDeliveryCount", "dlqFailedAt", "dlqPassport"),
    *("originalDestination", "originalDeliveryMode", "originalExpiration"),
)


def returned(letters: DataFrame, parked: str) -> DataFrame:
    """Each dead letter as the original message, to the queue that it came from; without an origin, to ``parked``."""
    origin = F.variant_get(F.col("properties")["originalDestination"], "$", "string")
    return (
        letters.withColumn("destination", F.coalesce(origin, F.lit(parked)))
        .withColumn("properties", F.map_filter("properties", lambda name, _: ~name.isin(*REASONS)))
        .drop("delivery_count", "redelivered")
    )


def main(url: str, folder: str, queue: str = "ActiveMQ.DLQ") -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # or the workers are whatever python3 is on the PATH
    spark = SparkSession.builder.master("local[2]").config("spark.ui.showConsoleProgress", "false").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    letters = (
        spark.readStream.format("jms")
        .option("url", url)
        .option("walLocation", f"{folder}/segments")
        .option("propertiesType", "variant")  # an int stays an int, if the protocol has types
        .option("deadLetterQueue", f"{queue}.parked")  # messages that cannot become rows
        .load(queue)
    )
    query = (
        returned(letters, f"{queue}.parked")
        .writeStream.format("jms")
        .option("url", url)
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    print(f"{sum(batch['numInputRows'] for batch in query.recentProgress)} dead letters were sent back")
    spark.stop()


def make_dead_letters(url: str) -> None:
    """Fail on some messages, so that there is something to send back."""
    with (
        redelivery.connect(
            url,
            redelivery_policy=RedeliveryPolicy(maximum_redeliveries=0),
            dead_letter_strategy=SharedDeadLetterStrategy("ActiveMQ.DLQ"),
        ) as connection,
        connection.session("transacted") as session,
    ):
        for queue, count in (("orders", 3), ("payments", 2)):
            with session.consumer(queue) as consumer:
                for number in range(count):
                    session.producer(queue).send(f"{queue} {number}", properties={"colour": "red"})
                session.commit()
                for _ in range(count):
                    consumer.receive(timeout=10)
                    session.rollback(cause=TimeoutError("the bank did not answer"))


if __name__ == "__main__":
    if len(sys.argv) > 2:
        main(*sys.argv[1:4])
    elif len(sys.argv) == 2:
        sys.exit(__doc__)
    else:
        with EmbeddedBroker("example", stomp_port=0) as broker, TemporaryDirectory(ignore_cleanup_errors=True) as place:
            make_dead_letters(broker.stomp_url)
            print(f"{broker.queue_depth('ActiveMQ.DLQ')} dead letters")
            main(broker.stomp_url, place)
            for name in ("orders", "payments", "ActiveMQ.DLQ"):
                print(f"{name}: {[message.body for message in broker.messages(name)]}")
