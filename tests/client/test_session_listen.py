"""Asynchronous delivery: who is called when, and what becomes of a callback that raises."""

from __future__ import annotations

from typing import Any

import pytest
from tests.client.recorder import Recorder, fail_once_on
from tests.client.shell import SOON, Bench, eventually

import redelivery
from redelivery import AckMode

MODES = pytest.mark.parametrize("mode", list(AckMode), ids=lambda mode: mode.name)
AT_ONCE = pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.DUPS_OK], ids=lambda mode: mode.name)


@AT_ONCE
def test_a_message_is_acknowledged_after_its_callback_and_not_before(bench: Bench, mode: AckMode) -> None:
    left: list[list[Any]] = []
    recorder = Recorder(lambda _: left.append(bench.left))
    _, consumer = bench.consuming(mode)
    consumer.listen(recorder)
    bench.send("m1", "m2")
    recorder.wait_for(2)
    assert "m1" in left[0]
    eventually(lambda: bench.left == [])


@pytest.mark.parametrize("mode", [AckMode.CLIENT, AckMode.TRANSACTED], ids=lambda mode: mode.name)
def test_elsewhere_the_next_message_follows_and_the_application_decides(
    bench: Bench, mode: AckMode, caplog: pytest.LogCaptureFixture
) -> None:
    """JMS 3.1, `MessageListener`, listener-transacted-throw."""
    recorder = Recorder(fail_once_on("m1"))
    session, consumer = bench.consuming(mode)
    consumer.listen(recorder)
    bench.send("m1", "m2")
    recorder.wait_for(2)
    assert recorder.seen == [("m1", 1), ("m2", 1)]
    assert bench.left == ["m1", "m2"]
    assert f"a {mode.name} session must roll back or recover itself" in caplog.text
    consumer.listen(None)
    session.rollback() if session.transacted else session.recover()
    assert [(each.body, each.delivery_count) for each in consumer.receive_many(2, SOON)] == [("m1", 2), ("m2", 2)]


def range_of(prefix: str) -> list[str]:
    return [f"{prefix}{number:02}" for number in range(20)]


def test_no_consumer_starves_another(bench: Bench) -> None:
    bench.send(*range_of("a"))
    bench.send("b", queue="other")
    connection = bench.connect(start=False)
    session = connection.session()
    recorder = Recorder()
    consumers = [session.consumer(bench.queue), session.consumer("other")]
    for consumer in consumers:
        consumer.listen(recorder)
    connection.start()
    recorder.wait_for(21)
    assert "b" in recorder.bodies[:3]


def test_a_broker_that_refuses_something_between_callbacks_ends_nothing(bench: Bench) -> None:
    """The goodbye of one consumer fails: it goes to the exception listener, the other one goes on."""
    reported: list[redelivery.JMSError] = []
    session = bench.connect(exception_listener=reported.append).session()
    leaving, staying = session.consumer("qa"), session.consumer("qb")
    first, other = Recorder(lambda _: leaving.close()), Recorder()
    leaving.listen(first)
    staying.listen(other)
    bench.broker.faults.error("UNSUBSCRIBE", "not now")
    bench.send("a1", queue="qa")
    first.wait_for(1)
    bench.send("b1", "b2", queue="qb")
    other.wait_for(2)
    eventually(lambda: reported)
    assert "not now" in str(reported[0])
    eventually(lambda: bench.broker.queue_depth("qb") == 0)
