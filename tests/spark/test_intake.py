"""One session of the source: what it receives, and what becomes of it when anything fails."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from tests.spark.place import QUEUE, Place, texts

from redelivery import ConfigError, ConnectError, UnsupportedError
from redelivery.spark.bad_messages import BadMessageError
from redelivery.spark.intake import Fill, Intake, load_converter

CONVERTER = "tests.spark.place:shout"


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def intake(place: Place, opened: ExitStack, ids: frozenset[str] = frozenset(), **options: object) -> Intake:
    return opened.enter_context(Intake(place.options(**options), lambda: ids, prefetch=100))


def filled(source: Intake, rows: int = 1000, linger: float = 0.05, **how: Any) -> Fill:
    """The next fill that has anything, whatever was lost before."""
    return next(fill for _ in range(20) if (fill := source.fill(rows, linger, **how)) is not None)


def test_what_is_confirmed_is_gone_and_the_rest_stays(place: Place, opened: ExitStack) -> None:
    place.send(*"abcde")
    source = intake(place, opened)
    fill = filled(source, rows=3)
    assert (texts(fill.batches), fill.rows, fill.received, fill.duplicates) == (["a", "b", "c"], 3, 3, 0)
    assert source.confirm()
    assert texts(filled(source).batches) == ["d", "e"]
    source.close()
    assert place.left() == ["d", "e"]


def test_nothing_there_is_none(place: Place, opened: ExitStack) -> None:
    assert intake(place, opened).fill(10, 0.01) is None


def test_a_fill_ends_when_nothing_more_comes(place: Place, opened: ExitStack) -> None:
    place.send("a")
    source = intake(place, opened)
    sender = threading.Timer(0.1, place.send, ["b"])
    sender.start()
    assert texts(filled(source, linger=5, rows=2).batches) == ["a", "b"]
    sender.join()


def test_a_hurry_takes_what_is_there(place: Place, opened: ExitStack) -> None:
    place.send("a", "b")
    source = intake(place, opened)
    assert texts(filled(source, linger=30, hurry=lambda: True).batches) == ["a", "b"]


def test_a_fill_has_a_longest_time(place: Place, opened: ExitStack) -> None:
    place.send(*map(str, range(300)))
    source = intake(place, opened, ackChunk=10)
    fill = filled(source, linger=30, longest=0.0)
    assert 1 <= fill.received <= 11


@pytest.mark.parametrize("command", ["ACK", "COMMIT"])
def test_what_stands_in_a_segment_in_doubt_is_dropped_when_it_comes_again(
    place: Place, opened: ExitStack, command: str
) -> None:
    place.send(*"abc")
    known: set[str] = set()
    source = opened.enter_context(Intake(place.options(), lambda: frozenset(known), prefetch=100))
    first = filled(source)
    place.broker.faults.drop(command)
    assert not source.confirm()  # the connection is lost before the broker has committed
    known.update(first.batches[0].column("message_id").to_pylist())
    place.send("d")
    second = filled(source, rows=4, linger=2)
    assert (texts(second.batches), second.rows, second.duplicates) == (["d"], 1, 3)
    assert source.confirm()
    assert place.left() == []
    assert (source.counts["inDoubt"], source.counts["duplicates"]) == (1, 3)


def test_without_dedupe_they_come_twice(place: Place, opened: ExitStack) -> None:
    place.send("a")
    source = opened.enter_context(Intake(place.options(dedupe="off"), _never, prefetch=100))
    filled(source)
    place.broker.faults.drop("COMMIT")
    assert not source.confirm()
    assert texts(filled(source).batches) == ["a"]


def _never() -> frozenset[str]:
    raise AssertionError("nobody asks without dedupe")


def test_a_lost_connection_is_made_anew(place: Place, opened: ExitStack) -> None:
    place.send("a", "b")
    place.broker.faults.drop_after("SUBSCRIBE")
    source = intake(place, opened)
    assert texts(filled(source, rows=2, linger=1).batches) == ["a", "b"]
    assert source.counts["connections"] == 1  # the one that was lost before it was of use does not count


def test_a_broker_that_stays_away_is_named(place: Place, opened: ExitStack) -> None:
    place.broker.close()
    source = intake(place, opened, maxReconnectTime="1 s")
    with pytest.raises(ConnectError, match=r"127\.0\.0\.1.*maxReconnectTime"):
        source.fill(1, 0.1)


def test_a_stop_ends_the_waiting_for_a_broker(place: Place, opened: ExitStack) -> None:
    place.broker.close()
    stopped = threading.Event()
    source = opened.enter_context(Intake(place.options(maxReconnectTime="1 h"), frozenset, prefetch=1, stopped=stopped))
    timer = threading.Timer(0.3, stopped.set)
    timer.start()
    with pytest.raises(ConnectError):
        source.fill(1, 0.1)
    timer.join()


def test_a_converter_makes_the_body(place: Place, opened: ExitStack) -> None:
    place.send("a")
    assert texts(filled(intake(place, opened, converter=CONVERTER)).batches) == ["A"]


@pytest.mark.parametrize("path", ["no.such.module:f", "tests.spark.place:absent"])
def test_a_converter_that_is_not_there_is_named(path: str) -> None:
    with pytest.raises(ConfigError, match=path):
        load_converter(path)


def test_bad_messages_can_fail_the_query(place: Place, opened: ExitStack) -> None:
    place.send("a", "bad 1")
    source = intake(place, opened, converter=CONVERTER, badMessages="fail")
    with pytest.raises(BadMessageError, match=r"queue://orders.*ValueError: no bad 1.*badMessages=fail"):
        filled(source, rows=2)
    source.close()
    assert place.left() == ["a", "bad 1"]


def test_bad_messages_can_be_dropped(place: Place, opened: ExitStack) -> None:
    place.send("a", "bad 1", "b")
    source = intake(place, opened, converter=CONVERTER, badMessages="drop")
    fill = filled(source, rows=3)
    assert (texts(fill.batches), fill.received) == (["A", "B"], 3)
    assert source.confirm()
    assert (place.left(), place.left("ActiveMQ.DLQ"), source.counts["dropped"]) == ([], [], 1)


def test_bad_messages_can_be_rows(place: Place, opened: ExitStack) -> None:
    place.send("a", "bad 1")
    source = intake(place, opened, converter=CONVERTER, badMessages="permissive")
    (batch,) = filled(source, rows=2).batches
    assert batch.column("_error").to_pylist() == [None, "ValueError: no bad 1"]
    assert batch.column("body").to_pylist() == [b"A", b"bad 1"]


def test_bad_messages_are_dead_letters_in_the_same_transaction(place: Place, opened: ExitStack) -> None:
    place.send("a", "bad 1", "b", properties={"kind": "test"})
    source = intake(place, opened, converter=CONVERTER)
    assert texts(filled(source, rows=3).batches) == ["A", "B"]
    assert place.left("ActiveMQ.DLQ") == []  # not before the commit
    assert source.confirm()
    (dead,) = place.broker.messages("ActiveMQ.DLQ")
    assert dead.body == "bad 1"
    assert dead.properties["dlqDeliveryFailureCause"] == "ValueError: no bad 1"
    assert dead.properties["originalDestination"] == "queue://orders"
    assert dead.properties["kind"] == "test"
    assert (place.left(), source.counts["deadLetters"]) == ([], 1)


def test_bad_messages_come_again_by_the_policy_where_there_is_one(place: Place, opened: ExitStack) -> None:
    place.send("a", "b", "bad 1", "c", "bad 2", "d")
    source = intake(place, opened, converter=CONVERTER, maxRedeliveries=2, redeliveryDelay="10 ms")
    rows: list[str] = []
    for _ in range(40):
        fill = source.fill(100, 0.05)
        if fill is not None:
            rows += texts(fill.batches)
            assert source.confirm()
        if len(rows) == 4:
            break
    assert rows == ["A", "B", "C", "D"]
    source.close()
    dead = place.broker.messages("ActiveMQ.DLQ")
    assert [each.body for each in dead] == ["bad 1", "bad 2"]
    assert (place.left(), source.counts["deadLetters"]) == ([], 2)


def test_exhausted_messages_are_dead_letters(place: Place) -> None:
    place.send("a")
    deliveries = 0
    while not place.left("ActiveMQ.DLQ"):
        with ExitStack() as run:
            source = intake(place, run, maxRedeliveries=1, redeliveryDelay=0)
            deliveries += source.fill(1, 0.1) is not None  # and is never confirmed
    assert (place.left("ActiveMQ.DLQ"), place.left(), deliveries) == (["a"], [], 2)


def test_a_selector_that_the_broker_does_not_know_is_refused(place: Place, opened: ExitStack) -> None:
    with pytest.raises(UnsupportedError, match="selectors"):
        intake(place, opened, selector="n = 2").fill(1, 0.1)


def test_the_destination_is_where_the_options_say(place: Place, opened: ExitStack) -> None:
    place.send("x", queue="another")
    assert texts(filled(intake(place, opened, destination="another")).batches) == ["x"]
    assert QUEUE != "another"
