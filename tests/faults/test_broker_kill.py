"""kill -9 of ActiveMQ: every call says so clearly, nothing hangs, nothing committed is lost after its restart."""

from __future__ import annotations

import threading
from time import monotonic

import pytest
from tests.conformance.blocking import AsyncioStage
from tests.conformance.stage import SOON, Stage, bodies, numbered, receive, receive_all

from redelivery import AckMode, ConnectionLostError, InDoubtError, JMSError, TransactionRolledBackError
from redelivery.testing.brokers.real import RealBroker


@pytest.fixture(params=[Stage, pytest.param(AsyncioStage, marks=pytest.mark.long_form)], ids=["threads", "asyncio"])
def stage_class(request: pytest.FixtureRequest) -> type[Stage]:
    """By both drivers."""
    driver: type[Stage] = request.param
    return driver


def test_receive_that_waits_raises_and_all_is_there_after_the_restart(stage: Stage, killable: RealBroker) -> None:
    stage.send(*numbered(10))
    heard: list[JMSError] = []
    connection = stage.connect(exception_listener=heard.append)
    session = connection.session(AckMode.TRANSACTED)
    consumer = session.consumer(stage.queue)
    receive_all(consumer, 10)
    threading.Timer(0.3, killable.kill).start()
    began = monotonic()
    with pytest.raises(ConnectionLostError):
        consumer.receive(timeout=30)
    assert monotonic() - began < SOON
    with pytest.raises((ConnectionLostError, TransactionRolledBackError)):
        session.commit()
    began = monotonic()
    connection.close()
    assert monotonic() - began < SOON
    assert not connection.connected
    assert len(heard) == 1
    assert isinstance(heard[0], ConnectionLostError)
    killable.restart()
    assert stage.left_bodies(at_least=10) == numbered(10)


def test_every_call_on_a_lost_connection_raises_at_once(stage: Stage, killable: RealBroker) -> None:
    opened = []
    for mode in AckMode:
        queue = f"{stage.queue}.{mode.name}"
        stage.send("a", queue=queue)
        connection = stage.connect()
        session = connection.session(mode)
        consumer, producer = session.consumer(queue), session.producer(queue)
        opened.append((mode, connection, session, consumer, producer, receive(consumer)))
    killable.kill()
    for mode, connection, session, consumer, producer, message in opened:
        began = monotonic()
        with pytest.raises(ConnectionLostError):
            consumer.receive(timeout=30)
        with pytest.raises(JMSError):
            producer.send("b")
        with pytest.raises(JMSError):
            session.consumer("another")
        if mode in {AckMode.CLIENT, AckMode.INDIVIDUAL}:
            with pytest.raises(JMSError):
                message.acknowledge()
        session.close()
        connection.close()
        assert monotonic() - began < SOON, mode


def test_what_was_committed_before_stays_and_nothing_else(stage: Stage, killable: RealBroker) -> None:
    target = f"{stage.queue}.target"
    stage.send(*numbered(40))
    session, consumer = stage.consuming(AckMode.TRANSACTED)
    producer = session.producer(target)
    committed: list[str] = []
    doubtful: list[str] = []
    reported: list[list[str]] = []
    timer = threading.Timer(0.05, killable.kill)
    timer.start()
    try:
        for _ in range(20):
            batch = bodies(receive_all(consumer, 2))
            for body in batch:
                producer.send(body)
            doubtful = batch
            session.commit()
            committed += batch
            doubtful = []
    except (ConnectionLostError, TransactionRolledBackError):
        doubtful = []
    except InDoubtError as error:
        reported = [bodies(error.received), bodies(error.sent)]
    timer.join()
    killable.kill()
    killable.restart()
    assert reported in ([], [doubtful, doubtful])
    moved = stage.left_bodies(target, at_least=len(committed))
    left = stage.left_bodies(at_least=40 - len(moved))
    assert sorted(moved + left) == numbered(40)
    assert moved in (committed, committed + doubtful)


def test_listener_stops_and_the_exception_listener_hears_it_once(stage: Stage, killable: RealBroker) -> None:
    reported = threading.Event()
    heard: list[JMSError] = []

    def hear(error: JMSError) -> None:
        heard.append(error)
        reported.set()

    connection = stage.connect(exception_listener=hear)
    seen: list[str] = []
    connection.session().consumer(stage.queue).listen(lambda message: seen.append(message.body))
    killable.kill()
    assert reported.wait(SOON)
    connection.close()
    assert [type(error) for error in heard] == [ConnectionLostError]
    assert seen == []


def test_a_new_connection_works_after_the_restart(stage: Stage, killable: RealBroker) -> None:
    stage.send("a")
    killable.kill()
    with pytest.raises(ConnectionError):
        stage.connect(connect_timeout=2)
    killable.restart()
    _, consumer = stage.consuming(AckMode.AUTO)
    assert receive(consumer).body == "a"
