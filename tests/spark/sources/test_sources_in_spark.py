"""Sources of more than one queue, as a user of Spark writes them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.run import again
from tests.spark.place import Place

from redelivery.broker import EmbeddedBroker

_TRIES = 3

pytestmark = [pytest.mark.together("spark"), pytest.mark.timeout(400)]


@pytest.fixture
def stomp(broker: EmbeddedBroker, tmp_path: Path) -> Place:
    return Place(broker, tmp_path / "wal", "stomp")


def drained(spark: Any, place: Place, folder: Path, **options: str) -> Counter[tuple[str, str]]:
    """The bodies and destinations of all rows of an `availableNow` query."""
    given = {"url": place.url, "walLocation": str(place.folder), "availableNowIdle": "300 ms", **options}
    name = folder.name
    for number in again.spark_tries(_TRIES):
        stream = spark.readStream.format("jms").options(**given).load()
        writer = stream.selectExpr("string(body) AS body", "destination").writeStream.format("memory")
        name = f"{folder.name}_{number}"
        running = writer.queryName(name).option("checkpointLocation", str(folder.with_name(name)))
        query = running.trigger(availableNow=True).start()
        try:
            query.awaitTermination(120)
            break
        except Exception as error:
            if again.TOO_SLOW not in str(error):
                raise
        finally:
            query.stop()
    return Counter((row.body, row.destination) for row in spark.table(name).collect())


def test_two_queues(spark: Any, stomp: Place, tmp_path: Path) -> None:
    stomp.send("a", "b")
    stomp.send("c", queue="invoices")
    found = drained(spark, stomp, tmp_path / "two", destinations="orders,invoices")
    assert found == Counter([("a", "queue://orders"), ("b", "queue://orders"), ("c", "queue://invoices")])
