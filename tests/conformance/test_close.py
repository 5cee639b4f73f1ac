"""Closing sessions, consumers and connections (JMS 3.1, `Session.close`), also with work pending (deferred close)."""

from __future__ import annotations

from threading import Thread

import pytest
from tests.conformance.stage import SOON, Stage, bodies, nothing_comes, numbered, receive, receive_all

from redelivery import AckMode, IllegalStateError


def test_r10_closing_a_transacted_session_rolls_back(stage: Stage) -> None:
    target = stage.beside("target")
    stage.send("a")
    session, consumer = stage.consuming(AckMode.TRANSACTED)
    session.producer(target).send(receive(consumer).body)
    session.close()
    assert stage.left_bodies(at_least=1) == ["a"]
    assert stage.left(target) == []


@pytest.mark.parametrize("mode", [AckMode.CLIENT, AckMode.INDIVIDUAL])
def test_r10_closing_a_session_acknowledges_nothing(stage: Stage, mode: AckMode) -> None:
    stage.send("a", "b")
    session, consumer = stage.consuming(mode)
    receive_all(consumer, 2)
    session.close()
    assert stage.left_bodies(at_least=2) == ["a", "b"]


def test_r10_closing_the_connection_rolls_back_its_sessions(stage: Stage) -> None:
    queues = [stage.beside(body) for body in "ab"]  # of one queue a window of 1 may take both: it moves on
    for queue, body in zip(queues, "ab", strict=True):
        stage.send(body, queue=queue)
    connection = stage.connect()
    consumers = [connection.session(AckMode.TRANSACTED).consumer(queue) for queue in queues]
    assert bodies([receive(consumer) for consumer in consumers]) == ["a", "b"]
    connection.close()
    assert [stage.left_bodies(queue, at_least=1) for queue in queues] == [["a"], ["b"]]


def test_deferred_close_a_commit_after_it_takes_what_the_consumer_delivered(stage: Stage) -> None:
    stage.send(*numbered(10))
    session, consumer = stage.consuming(AckMode.TRANSACTED)
    assert bodies(receive_all(consumer, 4)) == numbered(10)[:4]
    consumer.close()
    session.commit()
    session.close()
    assert stage.left_bodies(at_least=6) == numbered(10)[4:]


def test_deferred_close_an_acknowledge_after_it_takes_what_the_consumer_delivered(stage: Stage) -> None:
    stage.send(*numbered(10))
    session, consumer = stage.consuming(AckMode.CLIENT)
    message = receive_all(consumer, 4)[-1]
    consumer.close()
    message.acknowledge()
    session.close()
    assert stage.left_bodies(at_least=6) == numbered(10)[4:]


@pytest.mark.everywhere_in_long_form
def test_deferred_close_individual_messages_can_be_acknowledged_after_it(stage: Stage) -> None:
    stage.send("a", "b", "c", "d")
    session, consumer = stage.consuming(AckMode.INDIVIDUAL)
    first, second, third = receive_all(consumer, 3)
    second.acknowledge()
    consumer.close()
    first.acknowledge()
    again = session.consumer(stage.queue)
    received = receive_all(again, 1)
    assert bodies(received) == ["d"]  # what was prefetched; the third is held still
    received[0].acknowledge()
    third.acknowledge()
    session.close()
    assert stage.left_bodies() == []


@pytest.mark.everywhere_in_long_form
def test_deferred_close_individual_messages_that_are_not_acknowledged_stay(stage: Stage) -> None:
    stage.send("a", "b", "c")
    session, consumer = stage.consuming(AckMode.INDIVIDUAL)
    first, second = receive_all(consumer, 2)
    consumer.close()
    second.acknowledge()
    first.acknowledge()
    session.close()
    assert stage.left_bodies(at_least=1) == ["c"]


def test_deferred_close_a_rollback_after_it_gives_the_messages_back(stage: Stage) -> None:
    stage.send("a", "b", "c")
    session, consumer = stage.consuming(AckMode.TRANSACTED)
    receive_all(consumer, 2)
    consumer.close()
    session.rollback()
    again = session.consumer(stage.queue)
    received = receive_all(again, 3)
    assert bodies(received) == ["a", "b", "c"]
    assert [message.redelivered for message in received] == [True, True, received[2].redelivered]
    session.commit()
    session.close()
    assert stage.left() == []


def test_deferred_close_unseen_messages_go_to_others_at_the_end_of_the_transaction(stage: Stage) -> None:
    stage.send(*numbered(50))
    session, consumer = stage.consuming(AckMode.TRANSACTED)
    receive(consumer)
    consumer.close()
    session.commit()
    _, other = stage.consuming(AckMode.AUTO)
    assert sorted(bodies(receive_all(other, 49))) == numbered(50)[1:]


def test_deferred_close_many_consumers_in_one_transaction(stage: Stage) -> None:
    stage.send(*numbered(12))
    session = stage.session(AckMode.TRANSACTED)
    taken = []
    for _ in range(4):
        consumer = session.consumer(stage.queue, prefetch=3)
        taken.append(receive(consumer).body)
        consumer.close()
    session.commit()
    session.close()
    assert sorted(taken + stage.left_bodies(at_least=8)) == numbered(12)


def test_a_consumer_closed_with_nothing_pending_releases_its_prefetch(stage: Stage) -> None:
    stage.send(*numbered(5))
    session, consumer = stage.consuming(AckMode.AUTO)
    assert receive(consumer).body == "m0001"
    consumer.close()
    again = session.consumer(stage.queue)
    assert bodies(receive_all(again, 4)) == numbered(5)[1:]


@pytest.mark.everywhere_in_long_form
def test_r11_acknowledge_after_the_session_was_closed_is_refused(stage: Stage) -> None:
    stage.send("a")
    session, consumer = stage.consuming(AckMode.CLIENT)
    message = receive(consumer)
    session.close()
    with pytest.raises(IllegalStateError, match="closed"):
        message.acknowledge()


@pytest.mark.everywhere_in_long_form
def test_closed_objects_refuse_and_say_so(stage: Stage) -> None:
    connection = stage.connect()
    session = connection.session(AckMode.TRANSACTED)
    consumer, producer = session.consumer(stage.queue), session.producer(stage.queue)
    consumer.close()
    with pytest.raises(IllegalStateError, match="closed"):
        consumer.receive(timeout=SOON)
    producer.close()
    with pytest.raises(IllegalStateError, match="closed"):
        producer.send("a")
    session.close()
    for call in (session.commit, session.rollback, lambda: session.consumer(stage.queue)):
        with pytest.raises(IllegalStateError, match="closed"):
            call()
    connection.close()
    with pytest.raises(IllegalStateError, match="closed"):
        connection.session()
    assert (connection.closed, session.closed) == (True, True)


@pytest.mark.everywhere_in_long_form
def test_closing_twice_is_harmless(stage: Stage) -> None:
    connection = stage.connect()
    session, other = connection.session(), connection.session(AckMode.TRANSACTED)
    consumer, producer = session.consumer(stage.queue), session.producer(stage.queue)
    for closable in (consumer, producer, session, connection, other, connection, session):
        closable.close()
        closable.close()


@pytest.mark.everywhere_in_long_form
def test_iteration_ends_when_the_consumer_is_closed(stage: Stage) -> None:
    stage.send("a", "b")
    _, consumer = stage.consuming(AckMode.AUTO)
    seen = []
    for message in consumer:
        seen.append(message.body)
        if message.body == "b":
            consumer.close()
    assert seen == ["a", "b"]
    assert stage.left() == []


def test_a_session_goes_on_after_one_of_its_consumers_closed(stage: Stage) -> None:
    stage.send("a", "b")
    session, consumer = stage.consuming(AckMode.TRANSACTED)
    other = session.consumer(stage.beside("other"))
    receive(consumer)
    consumer.close()
    assert nothing_comes(other)
    session.commit()
    stage.send("x", queue=stage.beside("other"))
    assert receive(other).body == "x"


def test_after_a_close_every_asynchronous_send_is_answered(stage: Stage) -> None:
    """Also where nobody asks for the results before; and the close is not held up until its time-out."""
    session = stage.session(AckMode.AUTO, close_timeout=60.0)
    producer = session.producer(stage.queue)
    futures = [producer.send_async(f"m{number}") for number in range(20)]
    closing = Thread(target=session.close)
    closing.start()
    closing.join(SOON)
    assert not closing.is_alive()
    assert [future.done() for future in futures] == [True] * 20
    assert [future.exception(0) for future in futures] == [None] * 20
    assert len(stage.left(at_least=20)) == 20
