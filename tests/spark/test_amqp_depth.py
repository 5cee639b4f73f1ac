"""The queue's depth in the progress, without Spark, asked of somebody who answers as a broker would, or does not."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from tests.spark.managing import Manager, askers, says, says_all, says_nothing, until
from tests.spark.place import QUEUE, Place

from redelivery import Message, Queue, Topic
from redelivery.broker import EmbeddedBroker
from redelivery.spark.options.query import SourceOptions
from redelivery.spark.read.driver import DriverStreamReader
from redelivery.spark.read.executor import ExecutorStreamReader
from redelivery.spark.read.inspect.depth import QueueDepth, read_depth
from redelivery.transports.dialects.detect import depth_question
from redelivery.transports.wire.clock import monotonic

Made = Callable[..., QueueDepth]
RIGHT = says("[7]")


@pytest.fixture
def place(broker: EmbeddedBroker, tmp_path: Path) -> Place:
    return Place(broker, tmp_path, "amqp")


@pytest.fixture
def options(place: Place) -> SourceOptions:
    """What answers on the embedded broker is taken for Artemis."""
    return place.options(dialect="artemis!")


@pytest.fixture
def depth(options: SourceOptions) -> Iterator[Made]:
    """Makes them impatient; each is closed at the end, and leaves nothing."""
    with ExitStack() as opened:

        def make(given: SourceOptions = options, *, every: float = 0.01, patience: float = 5.0) -> QueueDepth:
            made = QueueDepth(given, every=every, patience=patience)
            opened.callback(made.close)
            return made

        yield make
    assert askers() == []


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the connector says; that a connection was lost, the client says."""
    own = [each for each in caplog.records if each.name.startswith("redelivery.spark")]
    return [each.getMessage() for each in own if each.levelno >= logging.WARNING]


@pytest.mark.parametrize("kind", [DriverStreamReader, ExecutorStreamReader])
def test_the_report_has_the_depth(kind: Any, options: SourceOptions, broker: EmbeddedBroker) -> None:
    with Manager(broker, RIGHT):
        stream = kind(replace(options, poll_interval=0.1))
        try:
            stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
            until(lambda: stream.reportLatestOffset().get("queueDepth") == 7)
            json.dumps(stream.reportLatestOffset())  # what Spark does with it
        finally:
            stream.stop()
    assert askers() == []


@pytest.mark.parametrize("kind", [DriverStreamReader, ExecutorStreamReader])
@pytest.mark.parametrize("protocol", ["stomp", "amqp"])
def test_the_embedded_broker_does_not_report_it(
    kind: Any, protocol: str, broker: EmbeddedBroker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Manager(broker, RIGHT) as manager:
        stream = kind(Place(broker, tmp_path, protocol).options(pollInterval="100 ms"))
        try:
            stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
            until(lambda: askers() == [])
            assert "queueDepth" not in stream.reportLatestOffset()
        finally:
            stream.stop()
    assert (manager.requests, warnings(caplog)) == ([], [])


@pytest.mark.parametrize("other", [Topic("news"), Queue("orders.>"), Queue("orders.*.eu")])
def test_only_one_queue_has_a_depth(other: Any, depth: Made, options: SourceOptions) -> None:
    given = replace(options, destinations=(other,))
    made = depth(given)
    assert (askers(), made.report()) == ([], {})


@pytest.mark.parametrize("name", [QUEUE, "news::orders"])
def test_it_asks_for_its_own_queue(name: str, depth: Made, options: SourceOptions, broker: EmbeddedBroker) -> None:
    with Manager(broker, RIGHT) as manager:
        depth(replace(options, destinations=(Queue(name),)))
        manager.wait_for(1)
        found = {key: manager.requests[0].properties[key] for key in ("_AMQ_ResourceName", "_AMQ_Attribute")}
        assert found == {"_AMQ_ResourceName": "queue.orders", "_AMQ_Attribute": "messageCount"}


def test_it_follows_what_the_broker_says(depth: Made, broker: EmbeddedBroker) -> None:
    with Manager(broker, RIGHT, says("[5]"), says("[0]")):
        made = depth()
        until(lambda: made.report() == {"queueDepth": 0})


def test_it_asks_once_a_second(options: SourceOptions, broker: EmbeddedBroker) -> None:
    with Manager(broker, RIGHT) as manager:
        made = QueueDepth(options)
        for _ in range(100):
            made.report()
        manager.wait_for(3)
        made.close()
    first, second, third = manager.times[:3]
    assert min(second - first, third - second) > 0.95


def test_one_question_is_open_and_given_up_after_a_while(depth: Made, broker: EmbeddedBroker) -> None:
    with Manager(broker, says_nothing, RIGHT) as manager:
        made = depth(patience=0.5)
        manager.wait_for(1)
        assert made.report() == {}
        manager.wait_for(2)
        assert manager.times[1] - manager.times[0] > 0.45
        first, second = (request.correlation_id for request in manager.requests[:2])
        assert first != second  # what is late is nobody's answer
        until(lambda: made.report() == {"queueDepth": 7})


def test_an_end_does_not_wait_for_the_answer(depth: Made, broker: EmbeddedBroker) -> None:
    with Manager(broker, says_nothing) as manager:
        made = depth(patience=60)
        manager.wait_for(1)
        made.close()
        assert askers() == []


def test_where_nobody_answers_no_questions_pile_up(
    depth: Made, broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    with Manager(broker, says_nothing) as manager:
        depth(patience=0.1)
        until(lambda: askers() == [])
        assert len(manager.requests) == 5
    (said,) = warnings(caplog)
    assert "no reply came from activemq.management within 0.1 s" in said


def test_a_broker_that_falls_silent_is_not_believed_any_more(depth: Made, broker: EmbeddedBroker) -> None:
    with Manager(broker, RIGHT, says_nothing):
        made = depth(patience=0.5)
        until(lambda: made.report() == {"queueDepth": 7})
        until(lambda: made.report() == {})


def test_the_answer_to_another_question_is_none(depth: Made, broker: EmbeddedBroker) -> None:
    with Manager(broker, says_all(says("[99]", correlation_id="other"), RIGHT)):
        made = depth(every=60)
        until(lambda: made.report() != {})
        assert made.report() == {"queueDepth": 7}


@pytest.mark.parametrize(
    "answer",
    [
        Message("[7]"),
        Message("[7]", properties={"_AMQ_OperationSucceeded": False}),
        *(
            Message(body, properties={"_AMQ_OperationSucceeded": True})
            for body in (
                "7",
                "[]",
                "[7, 8]",
                '["7"]',
                "[true]",
                "[-1]",
                "[7.5]",
                "{}",
                "no JSON",
                "",
                b"[7]",
                None,
                [7],
            )
        ),
    ],
)
def test_what_artemis_says_otherwise_is_no_number(answer: Message) -> None:
    question = depth_question("artemis")
    assert question is not None
    assert read_depth(question, answer) is None


@pytest.mark.parametrize(
    ("status", "body", "number"),
    [
        (200, {"queueDepthMessages": 7, "queueDepthBytes": 700}, 7),
        (404, {"queueDepthMessages": 7}, None),
        (200, {"queueDepthBytes": 700}, None),
        (200, {"queueDepthMessages": None}, None),
        (200, "7", None),
        (200, None, None),
    ],
)
def test_what_broker_j_says(status: int, body: Any, number: int | None) -> None:
    question = depth_question("qpid")
    assert question is not None
    assert read_depth(question, Message(body, properties={"statusCode": status})) == number


def test_answers_without_a_number_are_logged_once_and_asked_again(
    depth: Made, broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    with Manager(broker, *[says("Cannot find resource", succeeded=False)] * 12, RIGHT) as manager:
        made = depth()
        manager.wait_for(12)
        assert made.report() == {}
        until(lambda: made.report() == {"queueDepth": 7})
    (said,) = warnings(caplog)
    assert "queue://orders" in said
    assert "Cannot find resource" in said


def test_a_queue_that_is_made_a_moment_later_is_no_fault(
    depth: Made, broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    with Manager(broker, says("Cannot find resource", succeeded=False), RIGHT):
        made = depth()
        until(lambda: made.report() == {"queueDepth": 7})
    assert warnings(caplog) == []


def test_who_is_refused_does_not_ask_again(
    depth: Made, broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.faults.error("SEND", "you may not manage")
    with Manager(broker, RIGHT) as manager:
        made = depth()
        until(lambda: askers() == [])
        assert (made.report(), manager.requests) == ({}, [])
    (said,) = warnings(caplog)
    assert "you may not manage" in said


@pytest.mark.parametrize("nth", [1, 3])  # a question and its answer are two
def test_a_lost_connection_is_made_anew(
    nth: int, depth: Made, broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    with Manager(broker, RIGHT, RIGHT, says("[3]")):
        fault = broker.faults.drop_after("SEND", nth=nth)
        made = depth()
        assert fault.wait(10)
        until(lambda: made.report() == {"queueDepth": 3})
    assert warnings(caplog) == []


def test_a_refusal_by_a_broker_that_has_answered_before_is_not_the_end(
    depth: Made, broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    with Manager(broker, RIGHT, says("[3]")):
        fault = broker.faults.error("SEND", "not yet started", nth=3)
        made = depth()
        assert fault.wait(10)
        until(lambda: made.report() == {"queueDepth": 3})
    assert warnings(caplog) == []


def test_without_a_broker_there_is_no_depth_and_no_fault(
    depth: Made, broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture
) -> None:
    with Manager(broker, RIGHT):
        made = depth()
        until(lambda: made.report() == {"queueDepth": 7})
    broker.close()
    until(lambda: made.report() == {})
    made.close()
    made.close()
    assert (askers(), warnings(caplog)) == ([], [])


def test_nobody_waits_for_a_port_that_does_not_answer(place: Place) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        began = monotonic()
        made = QueueDepth(place.options(url=f"amqp://127.0.0.1:{port}", maxReconnectTime="4 s"))
        assert made.report() == {}
        made.close()
        assert monotonic() - began < 3.5  # it connects for 4
        until(lambda: askers() == [])
