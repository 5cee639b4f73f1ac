"""When `trigger(availableNow=True)` of `receiver=driver` ends: the queue was empty, as far as the receiver has seen."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.run.gate import Gate
from tests.spark.place import Place
from tests.spark.streams import ALL, drained, readers

from redelivery.broker import EmbeddedBroker
from redelivery.spark.log.wal import Wal
from redelivery.spark.read.driver import DriverStreamReader

Made = Callable[..., DriverStreamReader]
IDLE = "60 ms"


@pytest.fixture
def place(broker: EmbeddedBroker, tmp_path: Path) -> Place:
    return Place(broker, tmp_path, "stomp")


@pytest.fixture
def reader(place: Place) -> Iterator[Made]:
    with readers(DriverStreamReader, place, availableNowIdle=IDLE) as made:
        yield made


def found_empty(stream: DriverStreamReader) -> dict[str, Any]:
    """The offset where it has looked at the queue, and found nothing."""
    start = stream.initialOffset()
    stream.prepareForTriggerAvailableNow()
    assert stream.latestOffset(start, ALL) == start
    return start


def test_a_message_that_is_still_being_made_durable_has_come(
    place: Place, reader: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = reader()
    start = found_empty(stream)
    publish, publishing = Wal.publish, threading.Event()

    def slow(self: Wal, *segment: Any) -> bool:
        publishing.set()
        time.sleep(0.3)  # several times the idle time
        return publish(self, *segment)

    monkeypatch.setattr(Wal, "publish", slow)
    place.send("a")
    assert publishing.wait(30)  # the first segment of a process imports much
    assert drained(stream, start)[0] == ["a"]
    assert place.left() == []


def test_a_connection_that_is_away_has_not_found_the_queue_empty(place: Place, reader: Made) -> None:
    url = urlsplit(place.url)
    with Gate(str(url.hostname), int(url.port or 0)) as gate:
        stream = reader(url=f"stomp://127.0.0.1:{gate.port}")
        start = found_empty(stream)
        gate.shut(0.4)
        place.send("a")
        assert drained(stream, start)[0] == ["a"]


def test_a_redelivery_that_is_dropped_is_a_message_that_has_come(place: Place, reader: Made) -> None:
    stream = reader()
    start = found_empty(stream)
    place.broker.faults.drop("COMMIT")
    place.send("a")
    assert drained(stream, start)[0] == ["a"]
    assert place.left() == []
