"""Sources of more than one queue, as a user of Spark writes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from tests.conformance.foreign import Foreign
from tests.run import again
from tests.spark.place import Place
from tests.spark.sources.test_failover_source import Dying

from redelivery.broker import EmbeddedBroker

_TRIES = 3

pytestmark = [pytest.mark.together("spark"), pytest.mark.timeout(400)]


@pytest.fixture
def stomp(broker: EmbeddedBroker, tmp_path: Path) -> Place:
    return Place(broker, tmp_path / "wal", "stomp")


def drained(spark: Any, place: Place, checkpoint: Path, **options: str) -> Counter[tuple[str, str]]:
    """The bodies and destinations of all rows of an `availableNow` query, by the number of their batch once."""
    given = {"url": place.url, "walLocation": str(place.folder), "availableNowIdle": "300 ms", **options}
    found: dict[int, list[tuple[str, str]]] = {}

    def keep(batch: Any, number: int) -> None:
        found[number] = [(row.body, row.destination) for row in batch.collect()]

    for _ in again.spark_tries(_TRIES):
        stream = spark.readStream.format("jms").options(**given).load()
        writer = stream.selectExpr("string(body) AS body", "destination").writeStream.foreachBatch(keep)
        query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        try:
            query.awaitTermination(120)
            break
        except StreamingQueryException as error:
            if again.TOO_SLOW not in str(error):
                raise
        finally:
            query.stop()
    return Counter(row for rows in found.values() for row in rows)


def test_two_queues(spark: Any, stomp: Place, tmp_path: Path) -> None:
    stomp.send("a", "b")
    stomp.send("c", queue="invoices")
    found = drained(spark, stomp, tmp_path / "two", destinations="orders,invoices")
    assert found == Counter([("a", "queue://orders"), ("b", "queue://orders"), ("c", "queue://invoices")])


@pytest.mark.long_form
@pytest.mark.parametrize(
    "given", [{}, {"shared": "true", "receiver": "executor", "numPartitions": "2"}], ids=["durable", "shared"]
)
def test_a_topic(spark: Any, stomp: Place, tmp_path: Path, given: dict[str, str]) -> None:
    named = {"destinations": "topic://news", "subscription": "audit", **given}
    assert drained(spark, stomp, tmp_path / "kept", **named) == Counter()
    stomp.send("a", "b", queue="topic://news")
    found = drained(spark, stomp, tmp_path / "kept", **named)
    assert found == Counter([("a", "topic://news"), ("b", "topic://news")])


@pytest.mark.long_form
def test_a_pattern(spark: Any, stomp: Place, tmp_path: Path) -> None:
    stomp.send("a", queue="shop.orders")
    stomp.send("b", queue="shop.eu.orders")
    stomp.send("c", queue="office.orders")
    found = drained(spark, stomp, tmp_path / "pattern", destinations="shop.>")
    assert found == Counter([("a", "queue://shop.orders"), ("b", "queue://shop.eu.orders")])


@pytest.fixture
def two(tmp_path: Path) -> Iterator[list[Dying]]:
    """Brokers in processes of their own, which keep their messages."""
    with ExitStack() as opened:
        made = [Dying(name, "stomp", tmp_path) for name in ("a", "b")]
        for each in made:
            opened.callback(each.kill)
        yield made


@pytest.mark.parametrize(
    "given", [pytest.param({}, marks=pytest.mark.long_form), {"receiver": "executor"}], ids=["driver", "executor"]
)
def test_a_stream_goes_on_at_the_other_broker(
    spark: Any, two: list[Dying], tmp_path: Path, given: dict[str, str]
) -> None:
    """The broker that it reads from is killed, and later the other one: each message is a row once."""
    url = f"failover:({two[0].url},{two[1].url})?randomize=false&maxReconnectDelay=200"
    options = {"url": url, "walLocation": str(tmp_path / "wal"), "maxReconnectTime": "60 s", "pollInterval": "500 ms"}
    found: dict[int, list[str]] = {}

    def keep(batch: Any, number: int) -> None:
        found[number] = [row.body for row in batch.collect()]

    def rows() -> Counter[str]:
        return Counter(body for bodies in found.values() for body in bodies)

    stream = spark.readStream.format("jms").options(**options, **given).load("orders")
    writer = stream.selectExpr("string(body) AS body").writeStream.foreachBatch(keep)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    expected: list[str] = []
    try:
        for living, dead in ((0, None), (1, 0), (0, 1)):
            if dead is not None:
                two[dead].kill()
            more = [f"{living} {len(expected) + number}" for number in range(10)]
            foreign = Foreign("stomp", "activemq", two[living].url)
            foreign.send("orders", *(f"persistent:true\n\n{body}".encode() for body in more))
            expected.extend(more)
            until(lambda: rows() == Counter(expected), query)
            if dead is not None:
                two[dead].start()
    finally:
        query.stop()
    assert rows() == Counter(expected)


def until(done: Callable[[], bool], query: Any) -> None:
    end = monotonic() + 90
    while not done():
        assert query.isActive, query.exception()
        assert monotonic() < end, "the rows have not come"
        sleep(0.1)


def test_what_the_broker_cannot_do_is_said_by_load(spark: Any, stomp: Place) -> None:
    given = {"url": stomp.url, "walLocation": str(stomp.folder), "dialect": "rabbitmq!"}
    with pytest.raises(Exception, match=r"RabbitMQ.* has no durable subscriptions"):
        spark.readStream.format("jms").options(**given, subscription="audit").load("topic://news")
