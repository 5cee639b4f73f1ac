"""Sends that survive a loss: sent again with an id by which the broker drops what it has."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

import pytest
from tests.conformance.outage import OUTAGE, Outage
from tests.conformance.stage import NOTHING, Stage, receive, soon
from tests.run.again import may_hide

from redelivery import AckMode, InDoubtError, JMSError, ReconnectPolicy, TransactionRolledBackError, UnsupportedError
from redelivery.events import ConnectionLost, InDoubt, Reconnected

pytestmark = pytest.mark.needs("duplicate ids", refused=UnsupportedError)


def connect(outage: Outage, **options: Any) -> Any:
    return outage.connect(deduplicate_sends=True, **options)


@contextmanager
def answers_lost(outage: Outage) -> Iterator[None]:
    """What is asked meanwhile reaches the broker, and its answer does not come; then the connection is reset."""
    outage.gate.deafen()
    timer = threading.Timer(OUTAGE, outage.gate.shut, (OUTAGE,))
    timer.start()
    yield
    timer.join()


@contextmanager
def faults(outage: Outage) -> Iterator[None]:
    """The connection is reset again and again; not before the last loss has been seen."""
    ended = threading.Event()

    def fail() -> None:
        while not ended.wait(0.05):
            seen = len(outage.seen(Reconnected))
            outage.gate.shut(0.02)
            while len(outage.seen(Reconnected)) == seen and not ended.wait(0.01):
                pass

    thread = threading.Thread(target=fail)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_a_send_whose_answer_is_lost_is_sent_once(stage: Stage, outage: Outage) -> None:
    with connect(outage).session() as session, answers_lost(outage):
        producer = session.producer(stage.queue)
        producer.send("one")
        producer.send("two")
    assert stage.left_bodies(at_least=2) == ["one", "two"]
    assert not outage.seen(InDoubt)


def test_asynchronous_sends_whose_answers_are_lost_are_sent_once_and_in_order(stage: Stage, outage: Outage) -> None:
    bodies = [str(number) for number in range(50)]
    with connect(outage).session() as session, answers_lost(outage):
        producer = session.producer(stage.queue)
        futures = [producer.send_async(body) for body in bodies]
        called = threading.Event()
        futures[-1].add_done_callback(lambda _: called.set())
        assert [future.result(soon()).body for future in futures] == bodies
        assert called.wait(soon())
    assert stage.left_bodies(at_least=50) == bodies


def test_futures_that_nobody_waits_for_are_sent_again_too(stage: Stage, outage: Outage) -> None:
    with connect(outage).session() as session, answers_lost(outage):
        producer = session.producer(stage.queue)
        futures = [producer.send_async(str(number)) for number in range(5)]
        end = monotonic() + soon()
        while not all(future.done() for future in futures):
            assert monotonic() < end
            threading.Event().wait(0.01)
    assert stage.left_bodies(at_least=5) == ["0", "1", "2", "3", "4"]


def test_a_commit_whose_answer_is_lost_is_a_commit(stage: Stage, outage: Outage) -> None:
    with connect(outage).session("transacted") as session:
        producer = session.producer(stage.queue)
        producer.send("one")
        producer.send("two")
        with answers_lost(outage):
            session.commit()
        producer.send("three")
        session.commit()
    assert stage.left_bodies(at_least=3) == ["one", "two", "three"]
    assert not outage.seen(InDoubt)


def test_a_transaction_that_has_only_sent_outlives_a_loss(stage: Stage, outage: Outage) -> None:
    with connect(outage).session("transacted") as session:
        producer = session.producer(stage.queue)
        producer.send("one")
        outage.begin()
        producer.send("two")
        session.commit()
        producer.send("rolled back")
        outage.begin()
        session.rollback()
        producer.send("three")
        session.commit()
    assert stage.left_bodies(at_least=3) == ["one", "two", "three"]


@may_hide
def test_a_transaction_that_has_received_is_rolled_back_all_the_same(stage: Stage, outage: Outage) -> None:
    stage.send("in")
    with connect(outage).session("transacted") as session:
        consumer, producer = session.consumer(stage.queue), session.producer(stage.beside("out"))
        receive(consumer)
        producer.send("out")
        outage.begin()
        with pytest.raises(TransactionRolledBackError, match="the connection was lost"):
            session.commit()
        producer.send("out")
        assert receive(consumer).body == "in"
        session.commit()
    assert stage.left_bodies(stage.beside("out"), at_least=1) == ["out"]


@pytest.mark.parametrize("work", ["send", "send_async", "commit"])
def test_nothing_is_lost_or_doubled_while_the_connection_breaks_again_and_again(
    stage: Stage, outage: Outage, work: str
) -> None:
    bodies = [str(number) for number in range(120)]
    transacted = work == "commit"
    with connect(outage).session("transacted" if transacted else "auto") as session, faults(outage):
        producer = session.producer(stage.queue)
        send: Callable[[str], object] = producer.send_async if work == "send_async" else producer.send
        sent = []
        for number, body in enumerate(bodies):
            sent.append(send(body))
            threading.Event().wait(0.005)
            if transacted and number % 3 == 2:
                session.commit()
        if work == "send_async":
            assert [future.result(soon()).body for future in sent] == bodies  # type: ignore[attr-defined]  # futures
    assert len(outage.seen(Reconnected)) >= 2
    assert not outage.seen(InDoubt)
    left = stage.left_bodies(at_least=120)
    if stage.late:  # what a lost connection had sent may come late, behind what was sent after it
        left.sort(key=int)
    assert left == bodies


def test_the_broker_has_a_while_to_store_what_it_had_read(stage: Stage, outage: Outage) -> None:
    """Since it is there again: it may have been stopped until then."""
    with connect(outage).session() as session:
        outage.begin(OUTAGE)
        session.producer(stage.queue).send("one")
    (lost,), (back,) = outage.seen(ConnectionLost), outage.seen(Reconnected)
    assert (back.at - lost.at).total_seconds() >= OUTAGE + 0.05
    assert stage.left_bodies(at_least=1) == ["one"]


@pytest.mark.parametrize("work", ["send", "send_async", "commit"])
def test_a_broker_that_stores_slowly_has_twice_as_long(stage: Stage, outage: Outage, work: str) -> None:
    with connect(outage).session("transacted" if work == "commit" else "auto") as session:
        producer = session.producer(stage.queue)
        producer.send("first")  # so that nothing is asked any more about the queue
        if work == "commit":
            session.commit()
            producer.send("one")  # which may wait for the broker, too
        outage.gate.stall(0.4)
        if work == "commit":
            session.commit()
        elif work == "send":
            producer.send("one")
        else:
            producer.send_async("one").result(soon())
        outage.begin(0.01)
        producer.send("two")
        if work == "commit":
            session.commit()
    (lost,), (back,) = outage.seen(ConnectionLost), outage.seen(Reconnected)
    assert (back.at - lost.at).total_seconds() >= 0.6
    assert stage.left_bodies(at_least=3) == ["first", "one", "two"]


def test_where_no_other_connection_comes_it_is_in_doubt(stage: Stage, outage: Outage) -> None:
    connection = connect(outage, reconnect=ReconnectPolicy(maximum_delay=0.05, maximum_attempts=2))
    session = connection.session()
    producer = session.producer(stage.queue)
    producer.send("first")  # so that nothing is asked any more about the queue
    outage.gate.deafen()
    future = producer.send_async("one")
    outage.gate.shut()
    with pytest.raises(InDoubtError):
        future.result(soon())
    with pytest.raises(JMSError):
        session.producer(stage.queue).send("two")


def test_what_is_received_is_forwarded_without_its_id(stage: Stage, outage: Outage) -> None:
    with connect(outage).session() as session:
        session.producer(stage.queue).send("forwarded")
    session = stage.session(AckMode.AUTO)
    consumer = session.consumer(stage.queue)
    session.producer(stage.queue).send(receive(consumer))
    assert receive(consumer).body == "forwarded"


def test_a_message_that_is_sent_twice_is_two(stage: Stage, outage: Outage) -> None:
    with connect(outage).session(AckMode.AUTO) as session:
        producer = session.producer(stage.queue)
        message = producer.send("again")
        producer.send(message)
        consumer = session.consumer(stage.queue)
        first = receive(consumer)
        producer.send(first)
        assert [receive(consumer).body for _ in range(2)] == ["again", "again"]
        assert consumer.receive(NOTHING) is None
