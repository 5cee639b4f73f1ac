"""What Spark makes of a segment that is gone or damaged: a query that fails, or the rows that are left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from tests.run import again
from tests.spark.place import Place
from tests.spark.streams import ALL, readers, rows
from tests.spark.test_damage import empty, missing, truncated

from redelivery.broker import EmbeddedBroker
from redelivery.spark.read.driver import DriverStreamReader
from redelivery.spark.read.executor import ExecutorStreamReader

pytestmark = pytest.mark.timeout(700)

_TRIES = 5
BODIES = [f"{number:03}" for number in range(500)]


@pytest.fixture
def place(broker: EmbeddedBroker, tmp_path: Path) -> Place:
    return Place(broker, tmp_path / "wal", "stomp")


def received(place: Place, receiver: str) -> list[Path]:
    """Five segments that no batch has been committed of."""
    place.send(*BODIES)
    kind = DriverStreamReader if receiver == "driver" else ExecutorStreamReader
    with readers(kind, place, receiver=receiver) as make:
        stream = make(segmentRows=100) if receiver == "driver" else make(numPartitions=5, maxMessagesPerBatch=500)
        stream.prepareForTriggerAvailableNow()
        start = stream.initialOffset()
        assert len(rows(stream, start, stream.latestOffset(start, ALL))) == 500
    return sorted((place.folder / "seg").glob("*.arrow"))


def query(spark: Any, place: Place, receiver: str, folder: Path, **options: str) -> Any:
    """The rows of an AvailableNow query, or the error that it ended with."""
    for number in again.spark_tries(_TRIES):
        found = _query(spark, place, receiver, folder.with_name(f"{folder.name}_{number}"), **options)
        if not isinstance(found, StreamingQueryException) or again.TOO_SLOW not in str(found):
            break
    return found


def _query(spark: Any, place: Place, receiver: str, folder: Path, **options: str) -> Any:
    given = {"url": place.url, "walLocation": str(place.folder), "receiver": receiver, "availableNowIdle": "300 ms"}
    stream = spark.readStream.format("jms").options(**given, **options).load("orders")
    writer = stream.selectExpr("string(body) AS body").writeStream.format("memory").queryName(folder.name)
    running = writer.option("checkpointLocation", str(folder)).trigger(availableNow=True).start()
    try:
        running.awaitTermination(120)
    except StreamingQueryException as error:
        return error
    finally:
        running.stop()
    return sorted(row.body for row in spark.table(folder.name).collect())


def cases() -> Iterator[Any]:
    """One of each receiver in the short form."""
    for damage, which in ((missing, 3), (truncated, 0), (empty, 4)):
        for receiver in ("driver", "executor"):
            first = (damage, receiver) in ((missing, "driver"), (truncated, "executor"))
            name = f"{damage.__name__}-{receiver}"
            yield pytest.param(damage, which, receiver, id=name, marks=() if first else pytest.mark.long_form)


@pytest.mark.parametrize(("damage", "which", "receiver"), [*cases()])
def test_available_now_does_not_call_a_part_a_success(
    spark: Any, place: Place, tmp_path: Path, damage: Callable[[Path], None], which: int, receiver: str
) -> None:
    segment = received(place, receiver)[which]
    damage(segment)
    failed = query(spark, place, receiver, tmp_path / f"fails_{receiver}_{which}")
    assert isinstance(failed, StreamingQueryException), failed
    assert "DataLossError" in str(failed), str(failed)
    assert str(segment) in str(failed)
    found = query(spark, place, receiver, tmp_path / f"goes_{receiver}_{which}", failOnDataLoss="false")
    assert not isinstance(found, StreamingQueryException), str(found)
    assert found == BODIES[: which * 100] + BODIES[which * 100 + 100 :]


@pytest.mark.long_form
def test_a_second_query_on_one_wal_location_is_refused(spark: Any, place: Place, tmp_path: Path) -> None:
    given = {"url": place.url, "walLocation": str(place.folder)}
    stream = spark.readStream.format("jms").options(**given).load("orders")
    first = (
        stream.writeStream.format("memory").queryName("first").option("checkpointLocation", str(tmp_path / "first"))
    ).start()
    try:
        place.send("a")
        for _ in range(600):
            if spark.table("first").count():
                break
            first.awaitTermination(0.1)
        refused = query(spark, place, "driver", tmp_path / "second")
        assert isinstance(refused, StreamingQueryException), refused
        assert "is in use by another query that runs" in str(refused), str(refused)
        assert first.isActive
        place.send("b")
        for _ in range(600):
            if spark.table("first").count() == 2:
                break
            first.awaitTermination(0.1)
    finally:
        first.stop()
    assert sorted(bytes(row.body) for row in spark.table("first").collect()) == [b"a", b"b"]
    place.send("c")
    assert query(spark, place, "driver", tmp_path / "third")[-1:] == ["c"]
