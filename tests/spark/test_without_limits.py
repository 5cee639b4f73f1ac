"""The reader of Spark 4.0 and 4.1, asked as they ask (their calls were recorded with 4.0.1 and 4.1.1)."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.spark.place import Place, texts

from redelivery.broker import EmbeddedBroker
from redelivery.model.errors import ConfigError
from redelivery.spark.read.driver import DriverStreamReader
from redelivery.spark.read.executor import ExecutorStreamReader
from redelivery.spark.read.without_limits import UnlimitedStreamReader

Make = Callable[..., UnlimitedStreamReader]
KINDS = {"driver": DriverStreamReader, "executor": ExecutorStreamReader}
BODIES = [f"{number:02}" for number in range(30)]


@pytest.fixture
def place(broker: EmbeddedBroker, tmp_path: Path) -> Place:
    return Place(broker, tmp_path, "stomp")


@pytest.fixture(params=list(KINDS))
def make(request: pytest.FixtureRequest, place: Place) -> Iterator[Make]:
    """Makes the reader of one run of a query; all are stopped at the end."""
    small = {"maxMessagesPerBatch": 10, "pollInterval": "500 ms"}
    small |= {"segmentRows": 5} if request.param == "driver" else {"maxReceiveTime": "2 s"}
    with ExitStack() as opened:

        def made(**options: object) -> UnlimitedStreamReader:
            given = place.options(**{"receiver": request.param, **small, **options})
            reader = UnlimitedStreamReader(KINDS[request.param](given))
            opened.callback(reader.stop)
            return reader

        yield made


def plan(reader: UnlimitedStreamReader, start: Any, end: Any) -> list[str]:
    """The rows of a batch, each partition read by a pickled copy, as in a task."""
    read = pickle.loads(pickle.dumps(reader.read))  # noqa: S301  # our own
    return [text for partition in reader.partitions(start, end) for text in texts(read(partition))]


def resumed(reader: UnlimitedStreamReader, seen: Any) -> UnlimitedStreamReader:
    """What Spark says first at a restart: the last offset of its checkpoint, as an empty range."""
    assert list(reader.partitions(seen, seen)) == []
    return reader


def to_its_end(reader: UnlimitedStreamReader, start: Any) -> list[str]:
    """The rows of all batches, until nothing comes."""
    found: list[str] = []
    while (end := reader.latestOffset()) != start:
        reader.commit(start)
        rows = plan(reader, start, end)
        assert len(rows) <= 10  # maxMessagesPerBatch
        found += rows
        start = end
    return found


def test_spark_4_1_asks_without_arguments() -> None:
    assert not inspect.signature(UnlimitedStreamReader.latestOffset).parameters.keys() - {"self"}


def test_a_new_query_is_asked_for_its_beginning_after_its_end(place: Place, make: Make) -> None:
    place.send(*BODIES)
    reader = make()
    end = reader.latestOffset()
    start = reader.initialOffset()
    assert plan(reader, start, end) == BODIES[:10]
    assert to_its_end(reader, end) == BODIES[10:]
    assert place.left() == []


def test_the_first_question_takes_what_is_there_and_not_a_first_segment(place: Place, make: Make) -> None:
    place.send(*BODIES)
    reader = make(maxMessagesPerBatch=100)
    end = reader.latestOffset()
    assert plan(reader, reader.initialOffset(), end) == BODIES


def test_the_first_question_of_a_queue_that_is_never_empty_ends(place: Place, make: Make) -> None:
    place.send("a")
    reader = make(availableNowIdle="60 s", availableNowMaxTime="3 s")
    end = reader.latestOffset()
    assert plan(reader, reader.initialOffset(), end) == ["a"]


@pytest.mark.parametrize("died", ["before its tasks", "in its tasks", "before the commit"])
def test_a_batch_that_was_not_finished_has_the_same_rows_and_the_next_one_the_next(
    place: Place, make: Make, died: str
) -> None:
    place.send(*BODIES)
    first = make()
    end = first.latestOffset()
    start = first.initialOffset()
    if died != "before its tasks":
        assert plan(first, start, end) == BODIES[:10]
    first.stop()
    second = resumed(make(), end)
    if died != "before the commit":
        assert plan(second, start, end) == BODIES[:10]
    assert to_its_end(second, end) == BODIES[10:]
    assert place.left() == []


def test_an_end_that_spark_has_not_written_down_is_read_by_the_next_run(place: Place, make: Make) -> None:
    place.send(*BODIES)
    first = make()
    first.latestOffset()  # and dies before the checkpoint has it
    first.stop()
    second = make()
    end = second.latestOffset()
    rows = plan(second, second.initialOffset(), end)
    assert rows + to_its_end(second, end) == BODIES


def test_a_query_whose_queue_is_empty_ends_where_it_began(place: Place, make: Make) -> None:
    reader = make()
    start = reader.latestOffset()
    assert start == reader.initialOffset()
    place.send("a")
    assert to_its_end(reader, start) == ["a"]


def test_sparks_wrapper_for_available_now_is_refused_in_a_new_query(place: Place, make: Make) -> None:
    place.send("a")
    reader = make()
    reader.latestOffset()  # what it is to end with
    with pytest.raises(ConfigError, match=r"triggerAvailableNowWrapper\.enabled is set"):
        reader.latestOffset()  # what its progress is to show
    reader.stop()
    again = make()
    assert plan(again, again.initialOffset(), again.latestOffset()) == ["a"]


@pytest.mark.parametrize("more", [True, False])
def test_sparks_wrapper_for_available_now_is_refused_at_a_restart(place: Place, make: Make, more: bool) -> None:
    place.send("a")
    first = make()
    end = first.latestOffset()
    assert plan(first, first.initialOffset(), end) == ["a"]
    first.stop()
    if more:
        place.send("b")
    second = make()
    second.latestOffset()  # before it knows where the checkpoint is
    with pytest.raises(ConfigError, match=r"triggerAvailableNowWrapper\.enabled is set"):
        second.partitions(end, end)
    second.stop()
    third = resumed(make(), end)
    assert to_its_end(third, end) == (["b"] if more else [])
