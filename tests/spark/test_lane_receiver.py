"""The loop of `receiver=driver`: under which number a segment is published."""

from __future__ import annotations

import gc
import shutil
from pathlib import Path

import pytest
from tests.spark.place import Place, texts

from redelivery.broker import EmbeddedBroker
from redelivery.spark.log.segments import Extent, segment_batches
from redelivery.spark.log.store.interface import StoreError
from redelivery.spark.read.lane import LaneControl, LaneReceiver

OTHERS = None


@pytest.fixture
def place(broker: EmbeddedBroker, tmp_path: Path) -> Place:
    return Place(broker, tmp_path, "stomp")


def run(place: Place, head: int = 0) -> list[tuple[int, int | None]]:
    """One receiver until its queue is empty: the numbers of segments that it has found, and their rows."""
    wal, control = place.wal(), LaneControl()
    found: list[tuple[int, int | None]] = []

    def note(seq: int, extent: Extent | None) -> None:
        if seq != 0:
            found.append((seq, OTHERS if extent is None else extent.rows))
        elif extent is None:
            control.stop()

    LaneReceiver(place.options(), wal, head, wal._epochs.take("test"), control, note).run()
    return found


def body_of(place: Place, seq: int) -> list[str]:
    return texts(segment_batches(place.wal().reader(seq, 0)))


def test_a_segment_takes_the_next_number_that_is_free(place: Place) -> None:
    place.send("a")
    assert run(place) == [(1, 1)]
    place.send("b")
    assert run(place) == [(1, OTHERS), (2, 1)]  # it did not know of the first
    assert (body_of(place, 1), body_of(place, 2)) == (["a"], ["b"])


def test_what_was_imported_is_left_out_of_collections_while_a_lane_receives(place: Place) -> None:
    place.send("a")
    wal, control, frozen = place.wal(), LaneControl(), list[int]()

    def note(*_: object) -> None:
        frozen.append(gc.get_freeze_count())
        control.stop()

    before = gc.get_freeze_count()
    gc.unfreeze()
    try:
        LaneReceiver(place.options(), wal, 0, wal._epochs.take("test"), control, note).run()
        after = gc.get_freeze_count()
    finally:
        if before:  # as tests/conftest.py has it
            gc.freeze()
    assert frozen[0] > 1000
    assert after == 0


def test_the_number_of_a_segment_that_is_gone_is_not_taken_again(place: Place) -> None:
    place.send("a")
    run(place)
    place.wal().commit_driver(1, 0)  # read, committed and deleted
    place.send("b")
    assert run(place) == [(2, 1)]
    assert body_of(place, 2) == ["b"]


@pytest.mark.parametrize("what", ["all", "all but the folders", "the epochs"])
def test_nothing_is_acknowledged_into_a_log_that_was_deleted(place: Place, what: str) -> None:
    """By somebody, or by the life-cycle rule of an object store, while the query runs."""
    place.send("a", "b")
    wal, control = place.wal(), LaneControl()
    receiver = LaneReceiver(place.options(), wal, 0, wal._epochs.take("test"), control, lambda *_: control.stop())
    if what == "all":
        shutil.rmtree(place.folder)
    else:
        for each in place.folder.glob("**/*" if what == "all but the folders" else "epochs/*"):
            if each.is_file():
                each.unlink()
    with pytest.raises(StoreError, match="walLocation was deleted or emptied while the query ran; restore it from"):
        receiver.run()
    place.broker.wait_for(place.options().destinations[0], depth=2)
    assert place.folder.exists() is (what != "all")


def test_a_number_that_is_used_up_while_we_write_is_left(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.send("a")
    wal = place.wal()
    publish = type(wal).publish

    def late(_: object, seq: int, part: int, data: bytes) -> bool:
        monkeypatch.undo()
        wal.publish(1, 0, data)  # another lane's, read, committed and deleted meanwhile
        wal.confirm(1, 0)
        wal.commit_driver(1, 0)
        return publish(wal, seq, part, data)

    monkeypatch.setattr(type(wal), "publish", late)
    assert run(place)[-1] == (2, 1)
    assert body_of(place, 2) == ["a"]


def test_a_segment_that_another_lane_has_reported_is_not_written_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.send("a")
    wal = place.wal()
    publish = type(wal).publish

    def slow(_: object, seq: int, part: int, data: bytes) -> bool:
        monkeypatch.undo()
        published = publish(wal, seq, part, data)
        wal.commit_driver(1, 0)  # another lane was refused, reported it, and it was read
        return published

    monkeypatch.setattr(type(wal), "publish", slow)
    assert run(place) == []
    assert place.wal().segments() == []
    assert place.left() == []


def test_what_an_earlier_receiver_publishes_late_is_found(place: Place) -> None:
    place.send("a")
    run(place)
    assert run(place) == [(1, OTHERS)]
    assert run(place, head=1) == []
