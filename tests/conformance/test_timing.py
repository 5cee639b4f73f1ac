"""Expiry, delayed delivery, stop and start, and time-outs that are kept."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from time import monotonic

import pytest
from tests.conformance.pairs import CLASSIC, DEAD_LETTERS
from tests.conformance.stage import NOTHING, SOON, Stage, bodies, in_time, nothing_comes, receive

from redelivery import AckMode, RedeliveryPolicy, UnsupportedError


@pytest.fixture
def expiring(stage: Stage) -> Iterator[Stage]:
    """What Classic dead-letters of AMQP is taken away: it would cut off the next test that looks there over STOMP."""
    yield stage
    if stage.pair.kind.protocol == "amqp" and stage.pair.kind.broker in CLASSIC:
        from tests.traces import amqp_reader  # needs proton, as the pair does

        amqp_reader.empty(stage.pair.url, DEAD_LETTERS)


def test_expired_message_is_not_delivered(expiring: Stage) -> None:
    expiring.send("gone", ttl=0.05)
    expiring.send("here")
    threading.Event().wait(0.2)
    _, consumer = expiring.consuming(AckMode.AUTO)
    assert receive(consumer).body == "here"
    assert nothing_comes(consumer)


@pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.CLIENT, AckMode.TRANSACTED])
def test_message_that_expires_in_the_prefetch_is_not_delivered(expiring: Stage, mode: AckMode) -> None:
    expiring.send("first")
    session, consumer = expiring.consuming(mode)
    receive(consumer).acknowledge()
    expiring.send("gone", ttl=0.3)
    expiring.send("here")
    threading.Event().wait(0.6)
    message = receive(consumer)
    assert message.body == "here"
    message.acknowledge()
    if session.transacted:
        session.commit()
    session.close()
    assert expiring.left() == []


def test_message_that_expires_during_the_redelivery_delay_is_not_delivered(expiring: Stage) -> None:
    policy = RedeliveryPolicy(initial_redelivery_delay=2.5, redelivery_delay=2.5)
    session, consumer = expiring.consuming(AckMode.TRANSACTED, redelivery_policy=policy)
    expiring.send("gone", ttl=2.0)
    assert receive(consumer).body == "gone"
    expiring.send("here")
    session.rollback()
    assert receive(consumer).body == "here"
    session.commit()
    session.close()
    assert expiring.left() == []


@pytest.mark.needs("delayed delivery", refused=UnsupportedError)
def test_message_is_not_delivered_before_its_delivery_time(stage: Stage) -> None:
    session, consumer = stage.consuming(AckMode.AUTO)
    producer = session.producer(stage.queue)
    producer.send("before")
    assert receive(consumer).body == "before"
    began = monotonic()
    producer.send("late", delivery_delay=timedelta(seconds=2))
    producer.send("now")
    assert receive(consumer).body == "now"
    assert consumer.receive(timeout=0.3) is None
    assert receive(consumer).body == "late"
    assert monotonic() - began > 1.9


def test_nothing_is_delivered_by_a_stopped_connection(stage: Stage) -> None:
    stage.send("a", "b")
    connection = stage.connect(start=False)
    consumer = connection.session().consumer(stage.queue)
    assert nothing_comes(consumer)
    connection.start()
    assert receive(consumer).body == "a"
    connection.stop()
    assert nothing_comes(consumer)
    connection.start()
    assert receive(consumer).body == "b"


@pytest.mark.everywhere_in_long_form
def test_a_stopped_connection_can_send(stage: Stage) -> None:
    stage.connect(start=False).session().producer(stage.queue).send("a")
    assert stage.left_bodies(at_least=1) == ["a"]


@pytest.mark.everywhere_in_long_form
def test_stop_waits_for_the_running_listener(stage: Stage) -> None:
    entered, leave = threading.Event(), threading.Event()
    left: list[bool] = []
    connection = stage.connect()
    consumer = connection.session().consumer(stage.queue)

    def callback(_: object) -> None:
        entered.set()
        leave.wait(SOON)
        left.append(True)

    consumer.listen(callback)
    stage.send("a", "b")
    assert entered.wait(SOON)
    threading.Timer(0.2, leave.set).start()
    connection.stop()
    assert left == [True]
    threading.Event().wait(NOTHING)
    assert left == [True]


@pytest.mark.everywhere_in_long_form
def test_receive_keeps_its_time_out(stage: Stage) -> None:
    _, consumer = stage.consuming(AckMode.AUTO)
    timeouts = (0.0, 0.25)

    def waited() -> list[float]:
        times = []
        for timeout in timeouts:
            began = monotonic()
            assert consumer.receive(timeout=timeout) is None
            times.append(monotonic() - began)
        return times

    in_time(timeouts, waited, early=0.01, late=0.5)
    assert consumer.receive_nowait() is None
    assert consumer.receive_many(5, timeout=0.05) == []


@pytest.mark.everywhere_in_long_form
def test_receive_without_a_time_out_waits_and_ends_at_close(stage: Stage) -> None:
    _, consumer = stage.consuming(AckMode.AUTO)
    results: list[object] = []
    thread = threading.Thread(target=lambda: results.append(consumer.receive()))
    thread.start()
    threading.Event().wait(0.2)
    assert results == []
    consumer.close()
    thread.join(SOON)
    assert results == [None]


def test_receive_without_a_time_out_returns_what_comes_later(stage: Stage) -> None:
    _, consumer = stage.consuming(AckMode.AUTO)
    timer = threading.Timer(0.2, stage.send, ["late"])
    timer.start()
    message = consumer.receive()
    timer.join()
    assert message is not None
    assert message.body == "late"


@pytest.mark.needs("arrival order whatever the priority")
def test_higher_priority_does_not_overtake_in_the_client(stage: Stage) -> None:
    """Classic keeps the order of arrival unless its queue is told otherwise; so does the client."""
    stage.send("low", priority=1)
    stage.send("high", priority=9)
    _, consumer = stage.consuming(AckMode.AUTO)
    assert bodies([receive(consumer), receive(consumer)]) == ["low", "high"]
