"""Transactions that the broker refuses, in part or as a whole; nothing is ever half committed."""

from __future__ import annotations

import pytest
from tests.conformance.stage import Stage, bodies, numbered, receive, receive_all

from redelivery import (
    AckMode,
    JMSError,
    RedeliveryPolicy,
    ResourceAllocationError,
    SecurityError,
    TransactionRolledBackError,
)

RESTRICTED = {"username": "restricted", "password": "restricted"}
beyond_the_window = pytest.mark.needs("batches beyond the window")
LIVES = pytest.mark.needs("a connection that survives a refusal")


def test_everything_of_one_session_commits_as_one(stage: Stage) -> None:
    targets = [stage.beside(f"target{number}") for number in range(3)]
    stage.send(*numbered(18))
    session, consumer = stage.consuming(AckMode.TRANSACTED)
    producers = [session.producer(target) for target in targets]
    for index, message in enumerate(receive_all(consumer, 18)):
        producers[index % 3].send(message.body)
    session.commit()
    session.close()
    assert stage.left() == []
    assert sorted(body for target in targets for body in stage.left_bodies(target, at_least=6)) == numbered(18)


@pytest.mark.parametrize("count", [1, pytest.param(60, marks=beyond_the_window)])
def test_another_sessions_commit_does_not_take_what_a_rollback_releases(stage: Stage, count: int) -> None:
    """Classic's COMMIT forgets what the other sessions of the connection have acknowledged in their transactions."""
    other = stage.beside("other")
    stage.send(*numbered(count))
    stage.send(*numbered(count), queue=other)
    errors: list[JMSError] = []
    at_once = RedeliveryPolicy(initial_redelivery_delay=0, redelivery_delay=0)
    connection = stage.connect(redelivery_policy=at_once, exception_listener=errors.append)
    mine, others = (connection.session(AckMode.TRANSACTED) for _ in range(2))
    consumer, beside = mine.consumer(stage.queue, prefetch=10), others.consumer(other, prefetch=10)
    assert bodies(receive_all(consumer, count)) == numbered(count)
    receive_all(beside, count)
    others.commit()
    mine.rollback()
    assert bodies(receive_all(consumer, count)) == numbered(count)
    mine.commit()
    connection.close()
    assert (stage.left_bodies(), stage.left_bodies(other), errors) == ([], [], [])


def test_two_sessions_of_one_connection_do_not_mix_their_transactions(stage: Stage) -> None:
    target = stage.beside("target")
    queues = [stage.beside(body) for body in "ab"]  # of one queue a window of 1 may take both: it moves on
    for queue, body in zip(queues, "ab", strict=True):
        stage.send(body, queue=queue)
    connection = stage.connect()
    sessions = [connection.session(AckMode.TRANSACTED) for _ in queues]
    consumers = [session.consumer(queue) for session, queue in zip(sessions, queues, strict=True)]
    taken = [receive(consumer).body for consumer in consumers]
    for session, body in zip(sessions, taken, strict=True):
        session.producer(target).send(body)
    sessions[0].commit()
    sessions[1].close()
    consumers[0].close()
    assert stage.left_bodies(target, at_least=1) == taken[:1]
    assert (stage.left_bodies(queues[0]), stage.left_bodies(queues[1], at_least=1)) == ([], ["b"])


@LIVES
@pytest.mark.needs("refusals")
def test_a_refused_send_outside_a_transaction_raises_and_the_connection_lives(stage: Stage) -> None:
    session = stage.session(AckMode.AUTO, **RESTRICTED)
    producer = session.producer()
    with pytest.raises(SecurityError, match="denied"):
        producer.send("a", stage.under("denied"))
    producer.send("b", stage.under("allowed"))
    session.close()
    assert stage.left_bodies(stage.under("allowed"), at_least=1) == ["b"]


@LIVES
@pytest.mark.needs("refusals")
def test_a_send_to_a_full_queue_raises_and_the_connection_lives(stage: Stage) -> None:
    full = stage.under("full")
    session = stage.session(AckMode.AUTO)
    producer = session.producer()
    sent = 0

    def fill() -> None:
        nonlocal sent
        for _ in range(200):
            producer.send("x" * 2000, full)
            sent += 1

    with pytest.raises(ResourceAllocationError):
        fill()
    producer.send("b", stage.queue)
    assert stage.left_bodies(at_least=1) == ["b"]
    assert len(stage.left(full, at_least=sent)) == sent


@pytest.mark.needs("refusals")
def test_a_refused_send_commits_nothing_whatever_becomes_of_the_connection(stage: Stage) -> None:
    allowed = stage.under("allowed")
    stage.send("a", "b")
    session = stage.session(AckMode.TRANSACTED, **RESTRICTED)
    consumer, producer = session.consumer(stage.queue), session.producer()
    receive_all(consumer, 2)

    def send_and_commit() -> None:
        for target in (allowed, stage.under("denied"), allowed):
            producer.send("copy", target)
        session.commit()

    with pytest.raises(JMSError):
        send_and_commit()
    session.close()
    assert sorted(stage.left_bodies(at_least=2)) == ["a", "b"]
    assert stage.left(allowed) == []


@LIVES
@pytest.mark.needs("refusals")
@pytest.mark.parametrize("refused_at", [0, 1, 2])
def test_a_refused_send_rolls_the_whole_transaction_back(stage: Stage, refused_at: int) -> None:
    """Classic answers the send with an error and commits the rest, so the client must not let it."""
    allowed = stage.under("allowed")
    stage.send("a", "b")
    session = stage.session(AckMode.TRANSACTED, **RESTRICTED)
    consumer, producer = session.consumer(stage.queue), session.producer()
    received = receive_all(consumer, 2)
    targets = [allowed, allowed, allowed]
    targets[refused_at] = stage.under("denied")
    for target in targets:
        producer.send("copy", target)
    with pytest.raises(TransactionRolledBackError) as raised:
        session.commit()
    assert isinstance(raised.value.__cause__, JMSError)
    again = receive_all(consumer, 2)
    assert bodies(again) == bodies(received)
    assert [message.delivery_count for message in again] == [2, 2]
    producer.send("copy", allowed)
    session.commit()
    session.close()
    assert stage.left() == []
    assert stage.left_bodies(allowed, at_least=1) == ["copy"]


@LIVES
@pytest.mark.needs("refusals")
@beyond_the_window
def test_a_refused_send_after_a_batch_larger_than_the_window(stage: Stage) -> None:
    allowed = stage.under("allowed")
    stage.send(*numbered(401))
    session = stage.session(AckMode.TRANSACTED, **RESTRICTED)
    consumer, producer = session.consumer(stage.queue), session.producer()
    for message in receive_all(consumer, 401):
        producer.send(message.body, allowed)
    producer.send("no", stage.under("denied"))
    with pytest.raises(TransactionRolledBackError):
        session.commit()
    assert bodies(receive_all(consumer, 401)) == numbered(401)
    session.commit()
    session.close()
    assert stage.left() == []
    assert stage.left(allowed) == []


@LIVES
@pytest.mark.needs("refusals")
def test_a_refused_consumer_raises_and_the_connection_lives(stage: Stage) -> None:
    session = stage.session(AckMode.AUTO)
    with pytest.raises(JMSError):
        session.consumer(stage.queue, selector="colour = ")
    stage.send("a")
    assert receive(session.consumer(stage.queue)).body == "a"
