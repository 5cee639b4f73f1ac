"""The cases of test_damage.py on object stores: in memory each of them, over HTTP with an S3 emulator the same.

A store keeps no empty names and no half objects of its own, so the damage is done by deleting and putting anew.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("fsspec")

from fsspec.implementations.memory import MemoryFileSystem
from tests.spark.place import Place, damaged
from tests.spark.streams import ALL, drained, readers, rows

from redelivery.spark.log.damage import DataLossError
from redelivery.spark.log.store.interface import SegmentStore
from redelivery.spark.log.store.opening import open_store
from redelivery.spark.read.driver import DriverStreamReader
from redelivery.spark.read.executor import ExecutorStreamReader

_S3 = [name for name in ("s3fs", "moto", "flask") if importlib.util.find_spec(name) is None]
BODIES = [f"{number:02}" for number in range(30)]

pytestmark = pytest.mark.together("S3")  # one emulator


def missing(store: SegmentStore, name: str) -> None:
    """Its mark too."""
    stem = name.removesuffix("arrow")
    for each in store.list("seg"):
        if f"seg/{each}".startswith(stem):
            store.delete(f"seg/{each}")


def only_mark_left(store: SegmentStore, name: str) -> None:
    store.delete(name)


def truncated(store: SegmentStore, name: str) -> None:
    content = store.get(name)
    assert content
    store.delete(name)
    store.put_if_absent(name, content[: len(content) // 2])


def empty(store: SegmentStore, name: str) -> None:
    store.delete(name)
    store.put_if_absent(name, b"")


def overwritten(store: SegmentStore, name: str) -> None:
    content = bytearray(store.get(name) or b"")
    begin, end = len(content) * 3 // 10, len(content) * 7 // 10
    content[begin:end] = b"\xff" * (end - begin)
    store.delete(name)
    store.put_if_absent(name, content)


_SHORT = {(missing, 2), (only_mark_left, 1), (truncated, 0), (empty, 2), (overwritten, 1)}


@pytest.fixture(
    params=[
        "memory",
        pytest.param(
            "s3",
            marks=[pytest.mark.skipif(bool(_S3), reason=f"not installed: {', '.join(_S3)}"), pytest.mark.long_form],
        ),
    ]
)
def location(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    """The options that name it."""
    if request.param == "memory":
        monkeypatch.setattr(MemoryFileSystem, "redelivery_durable", True, raising=False)  # for as long as the test
        return {"walLocation": f"memory://{uuid.uuid4().hex}"}
    options = json.dumps(request.getfixturevalue("s3"))
    return {"walLocation": f"s3://wal/{uuid.uuid4().hex}", "storageOptions": options}


@pytest.fixture
def place(broker: Any, tmp_path: Any) -> Place:
    return Place(broker, tmp_path, "stomp")


@pytest.fixture
def make(place: Place, location: Mapping[str, str], receiver: str) -> Iterator[Callable[..., Any]]:
    kind: Any = DriverStreamReader if receiver == "driver" else ExecutorStreamReader
    with readers(kind, place, receiver=receiver, **location) as made:
        yield made


@pytest.mark.parametrize("receiver", ["driver", "executor"])
@damaged((missing, only_mark_left, truncated, empty, overwritten), _SHORT)
@pytest.mark.in_turns("fail")
@pytest.mark.parametrize("fail", [True, False])
def test_is_reported(
    place: Place,
    make: Callable[..., Any],
    location: Mapping[str, str],
    receiver: str,
    damage: Callable[[SegmentStore, str], None],
    which: int,
    fail: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    place.send(*BODIES)
    stream = make(segmentRows=10) if receiver == "driver" else make(numPartitions=3, maxMessagesPerBatch=30)
    if receiver == "driver":
        stream.prepareForTriggerAvailableNow()
    start = stream.initialOffset()
    assert rows(stream, start, stream.latestOffset(start, ALL)) == BODIES
    stream.stop()
    assert place.left() == []

    store = open_store(location["walLocation"], json.loads(location.get("storageOptions", "{}")))
    segments = [name for name in store.list("seg") if name.endswith(".arrow")]
    assert len(segments) == 3
    segment = f"seg/{segments[which]}"
    damage(store, segment)

    stream = make(failOnDataLoss=str(fail))
    start = stream.initialOffset()
    stream.prepareForTriggerAvailableNow()
    if fail:
        for _ in range(2):  # asked again it says so again
            wanted = rf"{store.location}/{segment} is (gone|empty|damaged).*failOnDataLoss=false"
            with pytest.raises(DataLossError, match=wanted):
                rows(stream, start, stream.latestOffset(start, ALL))
        return
    with caplog.at_level(logging.ERROR):
        found, _ = drained(stream, start)
    assert found == BODIES[: which * 10] + BODIES[which * 10 + 10 :]
    assert f"{store.location}/{segment}" in caplog.text
    report = stream.reportLatestOffset()
    assert report is not None
    assert report["lostSegments"] == 1
