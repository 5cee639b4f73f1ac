"""`minMessagesPerBatch` and `maxTriggerDelay`: as Kafka's source means them, for both receivers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.spark.place import QUEUE, Place
from tests.spark.streams import ALL, drained, readers, rows

from redelivery import ConfigError
from redelivery.broker import EmbeddedBroker
from redelivery.spark.options.query import SourceOptions
from redelivery.spark.read.driver import DriverStreamReader
from redelivery.spark.read.executor import ExecutorStreamReader
from redelivery.spark.read.stream import TriggerDelay

Make = Callable[..., Any]

pytestmark = pytest.mark.in_turns("place")


@pytest.fixture(params=["stomp", "amqp"])
def place(broker: EmbeddedBroker, tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    return Place(broker, tmp_path, request.param)


@pytest.fixture(params=["driver", "executor"])
def make(place: Place, request: pytest.FixtureRequest) -> Iterator[Make]:
    kind: Any = DriverStreamReader if request.param == "driver" else ExecutorStreamReader
    with readers(kind, place, receiver=request.param, pollInterval="200 ms", minMessagesPerBatch=5) as made:
        yield made


def batch(reader: Any, start: Any, looks: int = 20) -> tuple[list[str], Any]:
    """The first batch of several looks, each of `pollInterval`."""
    for _ in range(looks):
        if (end := reader.latestOffset(start, ALL)) != start:
            found = rows(reader, start, end)
            reader.commit(end)
            return found, end
    return [], start


def test_a_batch_waits_for_enough_messages_but_the_first_one(place: Place, make: Make) -> None:
    reader = make()
    place.send("a")
    found, start = batch(reader, reader.initialOffset())
    assert found == ["a"]
    place.send("b", "c", "d", "e")
    assert batch(reader, start, 3) == ([], start)
    place.send("f")
    found, start = batch(reader, start)
    assert sorted(found) == ["b", "c", "d", "e", "f"]


def test_the_delay_ends_the_waiting(place: Place, make: Make) -> None:
    reader = make(maxTriggerDelay="1 s")
    place.send("a")
    _, start = batch(reader, reader.initialOffset())
    place.send("b")
    assert batch(reader, start)[0] == ["b"]


def test_a_restart_does_not_wait_for_what_is_pending(place: Place, make: Make) -> None:
    reader = make()
    place.send("a")
    _, start = batch(reader, reader.initialOffset())
    place.send("b")
    assert batch(reader, start, 2) == ([], start)
    reader.stop()
    assert batch(make(), start)[0] == ["b"]


def test_available_now_does_not_wait(place: Place, make: Make) -> None:
    reader = make()
    place.send("a", "b")
    assert sorted(drained(reader, reader.initialOffset())[0]) == ["a", "b"]


def test_a_full_store_does_not_wait(place: Place) -> None:
    with readers(DriverStreamReader, place, pollInterval="200 ms", segmentBytes=300, maxPendingBytes=600) as made:
        reader = made(minMessagesPerBatch=1000, segmentRows=1)
        place.send("a")
        _, start = batch(reader, reader.initialOffset())
        place.send(*"bcdefgh")
        assert batch(reader, start)[0], "receiving pauses at maxPendingBytes, so no more would come"


def test_the_delay_is_counted_from_the_last_batch(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("redelivery.spark.read.stream.monotonic", lambda: now[0])
    delay = TriggerDelay(place.options(minMessagesPerBatch=7))
    assert delay.least() == 1
    delay.planned()
    now[0] += 899.9
    assert delay.least() == 7
    now[0] += 0.1
    assert delay.least() == 1


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"maxTriggerDelay": "1 min"}, "maxTriggerDelay has no effect without minMessagesPerBatch"),
        ({"minMessagesPerBatch": "60000"}, "minMessagesPerBatch=60000 is more than maxMessagesPerBatch=50000"),
        (
            {"minOffsetsPerTrigger": "20", "maxPendingRows": "10"},
            "minMessagesPerBatch=20 is more than maxPendingRows=10",
        ),
        ({"minMessagesPerBatch": "5", "maxTriggerDelay": "soon"}, "maxTriggerDelay='soon' is not a duration"),
    ],
)
def test_options_that_cannot_be(options: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        SourceOptions.parse({"url": "stomp://h", "destination": QUEUE, "walLocation": "/nowhere", **options})
