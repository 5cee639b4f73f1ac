"""Asynchronous delivery: who is called when, and what becomes of a callback that raises."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from tests.client.recorder import Recorder, fail_once_on
from tests.client.shell import SOON, Bench, eventually

import redelivery
from redelivery import AckMode, Message, RedeliveryPolicy

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


@AT_ONCE
def test_one_that_raises_gets_the_message_again_and_is_counted(
    bench: Bench, mode: AckMode, caplog: pytest.LogCaptureFixture
) -> None:
    """JMS 3.1, `MessageListener`: redelivered with flag and count; the provider says so in the log."""
    recorder = Recorder(fail_once_on("m1"))
    session, consumer = bench.consuming(mode)
    with caplog.at_level(logging.INFO, logger="redelivery"):
        consumer.listen(recorder)
        bench.send("m1", "m2")
        recorder.wait_for(3)
    assert recorder.seen == [("m1", 1), ("m1", 2), ("m2", 1)]
    assert session._loop.failures == 1
    (record,) = [each for each in caplog.records if each.name == "redelivery.messages"]
    assert ": redelivery 1 of 6 in " in record.message
    eventually(lambda: bench.left == [])
    assert bench.dead == []


@AT_ONCE
def test_one_that_always_raises_ends_in_the_dead_letter_queue_with_the_cause(bench: Bench, mode: AckMode) -> None:
    def act(message: Message) -> None:
        if message.body == "bad":
            raise ValueError(f"attempt {message.delivery_count}")

    recorder = Recorder(act)
    _, consumer = bench.consuming(
        mode, redelivery_policy=RedeliveryPolicy(maximum_redeliveries=2, initial_redelivery_delay=0, redelivery_delay=0)
    )
    consumer.listen(recorder)
    bench.send("bad", "good")
    recorder.wait_for(4)
    assert recorder.seen == [("bad", 1), ("bad", 2), ("bad", 3), ("good", 1)]
    (dead,) = bench.broker.messages("ActiveMQ.DLQ")
    assert str(dead.properties["dlqDeliveryFailureCause"]).endswith("cause:ValueError: attempt 3")


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


def test_individual_rolls_back_all_unacknowledged(bench: Bench) -> None:
    """individual-listener-throw."""
    failing = fail_once_on("m3")

    def act(message: Message) -> None:
        failing(message)
        if message.body == "m2":
            message.acknowledge()

    recorder = Recorder(act)
    _, consumer = bench.consuming(AckMode.INDIVIDUAL)
    consumer.listen(recorder)
    bench.send("m1", "m2", "m3")
    recorder.wait_for(5)
    assert recorder.seen == [("m1", 1), ("m2", 1), ("m3", 1), ("m1", 2), ("m3", 2)]
    eventually(lambda: bench.left == ["m1", "m3"])


@AT_ONCE
def test_recover_inside_a_callback(bench: Bench, mode: AckMode) -> None:
    """listener-auto-recover: no acknowledgement, counted once."""
    session, consumer = bench.consuming(mode)
    recorder = Recorder(lambda message: session.recover() if message.delivery_count == 1 else None)
    consumer.listen(recorder)
    bench.send("m1")
    recorder.wait_for(2)
    assert recorder.seen == [("m1", 1), ("m1", 2)]
    eventually(lambda: bench.left == [])


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


def test_one_that_fails_does_not_hold_up_the_other_consumer(bench: Bench) -> None:
    """listener-two-consumers."""
    session = bench.connect(redelivery_policy=RedeliveryPolicy(initial_redelivery_delay=60)).session()
    failing, other = Recorder(fail_once_on("a1")), Recorder()
    qa, qb = session.consumer("qa"), session.consumer("qb")
    qa.listen(failing)
    qb.listen(other)
    bench.send("a1", "a2", queue="qa")
    failing.wait_for(1)
    bench.send("b1", "b2", queue="qb")
    other.wait_for(2)
    assert failing.bodies == ["a1"]


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
