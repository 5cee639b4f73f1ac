"""Copies of a checkpoint and of walLocation that were made while the query ran: in which order they can be used."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.spark.place import Place
from tests.spark.streams import ALL, drained, readers, rows

from redelivery.broker import EmbeddedBroker
from redelivery.spark.log.damage import DataLossError
from redelivery.spark.read.driver import DriverStreamReader
from redelivery.spark.read.executor import ExecutorStreamReader

KINDS: dict[str, type[Any]] = {
    "driver": DriverStreamReader,
    "lanes": DriverStreamReader,
    "executor": ExecutorStreamReader,
}


@pytest.fixture(params=["driver", pytest.param("lanes", marks=pytest.mark.long_form), "executor"])
def receiver(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def place(broker: EmbeddedBroker, tmp_path: Path) -> Place:
    return Place(broker, tmp_path / "wal", "stomp")


@pytest.fixture
def make(place: Place, receiver: str) -> Iterator[Callable[..., Any]]:
    with readers(KINDS[receiver], place, **of(receiver)) as made:
        yield made


def of(receiver: str) -> dict[str, object]:
    """The options of a receiver."""
    return {"lanes": 2} if receiver == "lanes" else {"receiver": receiver}


def batch(place: Place, reader: Any, start: Any, body: str) -> tuple[Any, Any]:
    """What a checkpoint says after a batch that Spark has planned, and not yet reported as done."""
    place.send(body)
    end = reader.latestOffset(start, ALL)
    assert rows(reader, start, end) == [body]
    return start, end


def restored(place: Place, copy: Path, receiver: str, **options: object) -> Any:
    """A reader on the copy, as a query that is started from its checkpoint."""
    return KINDS[receiver](Place(place.broker, copy, "stomp").options(**of(receiver), **options))


def test_the_checkpoint_first_then_wal_location(place: Place, make: Any, receiver: str, tmp_path: Path) -> None:
    """With as many batches kept as are done between the two: each row comes, none is missed."""
    reader = make(retainBatches=3)
    reader.prepareForTriggerAvailableNow()
    checkpoint = batch(place, reader, reader.initialOffset(), "one")  # is copied here
    _, end = checkpoint
    for body in ("two", "three"):
        reader.commit(end)
        _, end = batch(place, reader, end, body)
    shutil.copytree(place.folder, tmp_path / "copy")
    reader.stop()
    again = restored(place, tmp_path / "copy", receiver, retainBatches=3)
    try:
        assert rows(again, *checkpoint) == ["one"]
        place.send("four")  # of receiver=executor an unfinished batch comes with the next message
        assert drained(again, checkpoint[1])[0] == ["two", "three", "four"]
    finally:
        again.stop()


def test_with_too_few_batches_kept_the_checkpoint_is_too_old(
    place: Place, make: Any, receiver: str, tmp_path: Path
) -> None:
    reader = make(retainBatches=1)
    reader.prepareForTriggerAvailableNow()
    checkpoint = batch(place, reader, reader.initialOffset(), "one")
    _, end = checkpoint
    for body in ("two", "three", "four"):
        reader.commit(end)
        _, end = batch(place, reader, end, body)
    shutil.copytree(place.folder, tmp_path / "copy")
    reader.stop()
    again = restored(place, tmp_path / "copy", receiver)
    try:
        with pytest.raises(DataLossError):
            rows(again, *checkpoint)
    finally:
        again.stop()


@pytest.mark.in_turns("fail")
@pytest.mark.parametrize("fail", [True, False])
def test_wal_location_first_lacks_what_the_checkpoint_names(
    place: Place, make: Any, receiver: str, fail: bool, tmp_path: Path
) -> None:
    """So the other order is the right one. What comes meanwhile is no part of the batch that is gone."""
    reader = make(retainBatches=3)
    reader.prepareForTriggerAvailableNow()
    _, end = batch(place, reader, reader.initialOffset(), "one")
    shutil.copytree(place.folder, tmp_path / "copy")
    reader.commit(end)
    checkpoint = batch(place, reader, end, "two")
    reader.stop()
    place.send("later")
    for _ in range(2):  # started again it says so again
        again = restored(place, tmp_path / "copy", receiver, failOnDataLoss=fail)
        try:
            if fail:
                with pytest.raises(
                    DataLossError, match=r"copy/seg/000000000002-0000.arrow is gone.*failOnDataLoss=false"
                ):
                    rows(again, *checkpoint)
                continue
            assert rows(again, *checkpoint) == []
        finally:
            again.stop()
    if not fail:
        again = restored(place, tmp_path / "copy", receiver, failOnDataLoss=fail)
        try:
            assert rows(again, *checkpoint) == []
            assert drained(again, checkpoint[1])[0] == ["later"]
        finally:
            again.stop()


@pytest.mark.in_turns("fail")
@pytest.mark.parametrize("fail", [True, False])
@pytest.mark.parametrize("behind", [1, 3])
def test_a_batch_that_is_done_is_missed_too(
    place: Place, make: Any, receiver: str, fail: bool, behind: int, tmp_path: Path
) -> None:
    """Spark goes on behind it, and what was pending when the log was lost is not there."""
    reader = make()
    reader.prepareForTriggerAvailableNow()
    _, end = batch(place, reader, reader.initialOffset(), "one")
    shutil.copytree(place.folder, tmp_path / "copy")
    for number in range(behind):
        reader.commit(end)
        _, end = batch(place, reader, end, f"more {number}")
    reader.stop()
    place.send("later")
    again = restored(place, tmp_path / "copy", receiver, failOnDataLoss=fail)
    again.prepareForTriggerAvailableNow()
    try:
        if fail:
            for _ in range(2):
                with pytest.raises(
                    DataLossError, match=r"is gone \(the checkpoint names batch \d, and the log ends with 1"
                ):
                    again.latestOffset(end, ALL)
            return
        assert drained(again, end)[0] == ["later"]
        assert again.reportLatestOffset()["lostSegments"] >= 1
    finally:
        again.stop()
    again = restored(place, tmp_path / "copy", receiver)  # it has gone on, so nothing is missed any more
    try:
        place.send("and later")
        start = again.initialOffset()
        assert drained(again, start)[0][-1] == "and later"
    finally:
        again.stop()


def test_a_log_of_an_older_release_says_nothing_of_plans(
    place: Place, make: Any, receiver: str, tmp_path: Path
) -> None:
    """Nor does one that an older release has gone on with."""
    reader = make()
    reader.prepareForTriggerAvailableNow()
    _, end = batch(place, reader, reader.initialOffset(), "one")
    reader.commit(end)
    start, end = batch(place, reader, end, "two")
    reader.stop()
    for left in (0, 1, 2):
        copy = tmp_path / str(left)
        shutil.copytree(place.folder, copy)
        for each in sorted((copy / "plans").glob("*"))[left:]:
            each.unlink()
        again = restored(place, copy, receiver)
        try:
            if left < 2:  # 0 and 1 are not above what is committed
                assert rows(again, start, end) == ["two"]
        finally:
            again.stop()
