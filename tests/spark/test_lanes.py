"""Lanes are processes: what users print there, and what happens when one cannot be understood or goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.spark.place import Place
from tests.spark.streams import ALL, drained, readers

from redelivery.model.errors import JMSError
from redelivery.spark.log.store.interface import StoreError
from redelivery.spark.log.wal import Wal
from redelivery.spark.read.driver import DriverStreamReader
from redelivery.spark.read.lane_process import ProcessLane

Made = Callable[..., DriverStreamReader]

pytestmark = [pytest.mark.timeout(120), pytest.mark.in_turns("place")]


@pytest.fixture
def reader(place: Place) -> Iterator[Made]:
    with readers(DriverStreamReader, place, lanes=2) as made:
        yield made


def test_what_a_converter_prints_goes_to_the_error_output_and_not_between_the_processes(
    place: Place, reader: Made, capfd: pytest.CaptureFixture[str]
) -> None:
    place.send(*map(str, range(20)))
    stream = reader(converter="tests.spark.place:print_body", availableNowIdle="1 s")
    found, _ = drained(stream, stream.initialOffset())
    assert sorted(found, key=int) == [*map(str, range(20))]
    stream.stop()
    said = capfd.readouterr()
    assert "converting 7\n" in said.err
    assert "a program says 7\n" in said.err
    assert said.out == ""


def test_a_converter_that_reads_its_input_gets_none(place: Place, reader: Made) -> None:
    place.send("a")
    stream = reader(converter="tests.spark.place:ask", availableNowIdle="1 s")
    assert drained(stream, stream.initialOffset())[0] == ["a: ''"]


def test_a_converter_that_ends_its_process_ends_the_query_with_its_words(place: Place, reader: Made) -> None:
    place.send("a")
    stream = reader(converter="tests.spark.place:leave")
    with pytest.raises(JMSError, match="the receiver failed: SystemExit: I cannot stand a"):
        _until_it_fails(stream, stream.initialOffset())


def test_a_reader_of_a_lane_that_fails_ends_the_query_with_its_cause(
    place: Place, reader: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It asks the store about a segment that another lane wrote, and the store fails."""
    original = ProcessLane._hear

    def hear(self: ProcessLane, line: str) -> Any:
        original(self, line)
        raise StoreError("the disk is gone")

    monkeypatch.setattr(ProcessLane, "_hear", hear)
    place.send("a")
    stream = reader()
    start = stream.initialOffset()
    with pytest.raises(JMSError, match=r"a lane could not be followed: StoreError: the disk is gone"):
        _until_it_fails(stream, start)


def test_a_lane_that_says_what_nobody_understands_ends_the_query(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[JMSError] = []
    monkeypatch.setattr("redelivery.spark.read.lane_process._COMMAND", ("-c", _TALKS_NONSENSE))
    wal = Wal.open(place.wal().store)
    lane = ProcessLane(place.options(lanes=2), wal, 0, 1, found=lambda *_: None, failed=failures.append)
    lane._reader.join(30)
    lane.stop()
    lane.join(10)
    assert len(failures) == 1
    assert "a lane could not be followed: JSONDecodeError" in str(failures[0])


_TALKS_NONSENSE = "import os, sys; os.write(int(sys.argv[1]), b'nonsense\\n')"


def _until_it_fails(stream: DriverStreamReader, start: Any) -> None:
    for _ in range(20):
        end = stream.latestOffset(start, ALL)
        stream.commit(end)
        start = end
