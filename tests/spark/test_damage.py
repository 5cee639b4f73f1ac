"""Segments that are missing or damaged: an error that names the file, or one that is left out and counted.

Missing with its mark and without, truncated, empty, changed bytes; the first, the middle and the last; with
`failOnDataLoss` and without; for both receivers: no case passes in silence.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.spark.place import QUEUE, Place, damaged
from tests.spark.streams import ALL, drained, readers, rows

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.spark.log.damage import DataLossError
from redelivery.spark.read.driver import DriverStreamReader
from redelivery.spark.read.executor import ExecutorStreamReader

BODIES = [f"{number:02}" for number in range(30)]
Reader = DriverStreamReader | ExecutorStreamReader


def missing(path: Path) -> None:
    """Its mark too."""
    for each in path.parent.glob(f"{path.stem}.*"):
        each.unlink()


def only_mark_left(path: Path) -> None:
    path.unlink()


def truncated(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def overwritten(path: Path) -> None:
    content = bytearray(path.read_bytes())
    begin, end = len(content) * 3 // 10, len(content) * 7 // 10
    content[begin:end] = b"\xff" * (end - begin)
    path.write_bytes(content)


_DAMAGES = (missing, only_mark_left, truncated, empty, overwritten)
DAMAGES = pytest.mark.parametrize("damage", _DAMAGES, ids=lambda each: each.__name__)
_SHORT = {(missing, 2), (only_mark_left, 0), (truncated, 2), (empty, 0), (overwritten, 2)}
CASES = damaged(_DAMAGES, _SHORT)
RECEIVERS = pytest.mark.parametrize("kind", [DriverStreamReader, ExecutorStreamReader], ids=["driver", "executor"])


@pytest.fixture
def place(broker: EmbeddedBroker, tmp_path: Path) -> Place:
    return Place(broker, tmp_path, "stomp")


@pytest.fixture
def make(place: Place, kind: type[Reader]) -> Iterator[Callable[..., Any]]:
    receiver = "driver" if kind is DriverStreamReader else "executor"
    with readers(kind, place, receiver=receiver) as made:
        yield made


def three_segments(place: Place, make: Callable[..., Any], kind: type[Reader]) -> list[Path]:
    """Received, durable and acknowledged; no batch has been committed, and the query has ended."""
    place.send(*BODIES)
    if kind is DriverStreamReader:
        stream = make(segmentRows=10)
        stream.prepareForTriggerAvailableNow()
    else:
        stream = make(numPartitions=3, maxMessagesPerBatch=30)
    start = stream.initialOffset()
    assert rows(stream, start, stream.latestOffset(start, ALL)) == BODIES
    stream.stop()
    assert place.left() == []
    segments = sorted((place.folder / "seg").glob("*.arrow"))
    assert len(segments) == len(list((place.folder / "seg").glob("*.ok"))) == 3
    return segments


@RECEIVERS
@CASES
@pytest.mark.in_turns("fail")
@pytest.mark.parametrize("fail", [True, False])
def test_is_reported(
    place: Place,
    make: Callable[..., Any],
    kind: type[Reader],
    damage: Callable[[Path], None],
    which: int,
    fail: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    segment = three_segments(place, make, kind)[which]
    damage(segment)
    stream = make(failOnDataLoss=str(fail))
    start = stream.initialOffset()
    stream.prepareForTriggerAvailableNow()
    if fail:
        for _ in range(2):  # asked again it says so again
            with pytest.raises(DataLossError, match=rf"{segment} is (gone|empty|damaged).*failOnDataLoss=false"):
                rows(stream, start, stream.latestOffset(start, ALL))
        return
    with caplog.at_level(logging.ERROR):
        found, end = drained(stream, start)
    assert found == BODIES[: which * 10] + BODIES[which * 10 + 10 :]
    assert str(segment) in caplog.text
    assert "failOnDataLoss=false" in caplog.text
    report = stream.reportLatestOffset()
    assert report is not None
    assert report["lostSegments"] == 1
    place.send("later")
    assert drained(stream, end)[0] == ["later"]


@RECEIVERS
@DAMAGES
@pytest.mark.in_turns("fail")
@pytest.mark.parametrize("fail", [True, False])
def test_of_a_batch_that_was_planned_is_reported_when_it_is_read(
    place: Place,
    make: Callable[..., Any],
    kind: type[Reader],
    damage: Callable[[Path], None],
    fail: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As Spark repeats it after a restart; it asks for no latest offset then."""
    segments = three_segments(place, make, kind)
    stream = make(failOnDataLoss=str(fail), numPartitions=3, maxMessagesPerBatch=30)
    start = stream.initialOffset()
    stream.prepareForTriggerAvailableNow()
    end = stream.latestOffset(start, ALL)
    damage(segments[1])
    if fail:
        with pytest.raises(DataLossError, match=rf"{segments[1]} is (gone|empty|damaged)"):
            rows(stream, start, end)
        return
    with caplog.at_level(logging.ERROR):
        assert rows(stream, start, end) == BODIES[:10] + BODIES[20:]
    assert str(segments[1]) in caplog.text
    stream.commit(end)
    report = stream.reportLatestOffset()
    assert report is not None
    assert report["lostSegments"] == 1, "a task has found it"


@pytest.mark.parametrize("kind", [DriverStreamReader])
@pytest.mark.in_turns("fail")
@pytest.mark.parametrize("fail", [True, False])
def test_a_gap_that_opens_while_the_query_runs(
    place: Place, make: Callable[..., Any], kind: type[Reader], fail: bool
) -> None:
    del kind
    stream = make(segmentRows=10, failOnDataLoss=str(fail))
    start = stream.initialOffset()
    stream.prepareForTriggerAvailableNow()
    assert stream.latestOffset(start, ALL) == start
    with redelivery.connect(place.broker.vm_url) as connection, connection.session("transacted") as session:
        for body in BODIES:  # at once, so that no pause of the sender ends a segment
            session.producer(QUEUE).send(body)
        session.commit()
    lanes = stream._lanes
    known = lanes.wait_for_rows(0, 10.0, 30, until_idle=True)
    assert sorted(known) == [1, 2, 3]
    lanes._segments.pop(2)  # as one that a lane has not reported, because it died
    assert stream._end(0, lanes._segments, 1000) == 1, "it is there: it will be reported"
    segment = place.folder / "seg" / "000000000002-0000.arrow"
    segment.unlink()
    if fail:
        with pytest.raises(DataLossError, match=rf"{segment} is gone"):
            stream._end(0, lanes._segments, 1000)
    else:
        assert stream._end(0, lanes._segments, 1000) == 3
        assert stream.lost == 1


@pytest.mark.parametrize("kind", [DriverStreamReader])
def test_a_segment_that_is_cut_off_before_its_session_was_known_to_commit(
    place: Place, make: Callable[..., Any], kind: type[Reader]
) -> None:
    """Its ids cannot be read either, which must not end the query a second time."""
    segments = three_segments(place, make, kind)
    truncated(segments[1])
    next(segments[1].parent.glob(f"{segments[1].stem}*.ok")).unlink()
    stream = make(failOnDataLoss="false")
    assert drained(stream, stream.initialOffset())[0] == BODIES[:10] + BODIES[20:]
