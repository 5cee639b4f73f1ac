"""What an observer is given means the same on every pair, and its order is the order of what happened."""

from __future__ import annotations

from datetime import timedelta
from queue import SimpleQueue

import pytest
from tests.conformance.lives import Lives
from tests.conformance.stage import SOON, Stage, bodies, nothing_comes, receive

from redelivery import AckMode, DiscardingDeadLetterStrategy, Message, RedeliveryPolicy, SharedDeadLetterStrategy
from redelivery.events import (
    Acknowledged,
    Committed,
    Connected,
    ConnectionClosed,
    DeadLettered,
    Delivered,
    Discarded,
    Released,
    RolledBack,
    Sent,
)
from redelivery.transports.wire.clock import utc_now

ONCE = RedeliveryPolicy(maximum_redeliveries=1, initial_redelivery_delay=0.05, redelivery_delay=0.05)


def kinds(lives: Lives, *classes: type[object]) -> list[str]:
    return [type(event).__name__ for event in lives.of(*classes)]


@pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.DUPS_OK])
def test_what_is_acknowledged_at_once(stage: Stage, mode: AckMode) -> None:
    stage.send("one")
    lives = Lives()
    _, consumer = stage.consuming(mode, observer=lives)
    message = receive(consumer)
    assert kinds(lives) == ["Delivered", "Acknowledged"]
    delivered = lives.of(Delivered)[0]
    assert isinstance(delivered, Delivered)
    assert delivered.message_id == message.message_id
    assert delivered.destination == message.destination
    assert delivered.delivery_count == 1


def test_acknowledged_by_the_application(stage: Stage) -> None:
    stage.send("one", "two")
    lives = Lives()
    _, consumer = stage.consuming(AckMode.INDIVIDUAL, observer=lives)
    first, second = receive(consumer), receive(consumer)
    second.acknowledge()
    first.acknowledge()
    first.acknowledge()
    acknowledged = [event.message_id for event in lives.of(Acknowledged) if isinstance(event, Acknowledged)]
    assert kinds(lives) == ["Delivered", "Delivered", "Acknowledged", "Acknowledged"]
    assert acknowledged == [second.message_id, first.message_id]


def test_a_message_that_fails_until_it_is_a_dead_letter(stage: Stage) -> None:
    stage.send("bad")
    lives, cause = Lives(), ValueError("bad order")
    session, consumer = stage.consuming(
        AckMode.TRANSACTED, observer=lives, redelivery_policy=ONCE, dead_letter_strategy=SharedDeadLetterStrategy()
    )
    for _ in range(2):
        receive(consumer)
        before = utc_now()
        session.rollback(cause=cause)
    assert nothing_comes(consumer)
    assert kinds(lives) == ["Delivered", "RolledBack", "Delivered", "DeadLettered"]
    _, failed, _, dead = lives.of()
    assert isinstance(failed, RolledBack)
    assert isinstance(dead, DeadLettered)
    assert failed.cause is dead.cause is cause
    assert failed.again_at < before + timedelta(seconds=0.05)  # the first, for which the second delivery waited
    assert (failed.delivery_count, dead.delivery_count) == (1, 2)
    assert "bad order" in dead.reason
    assert str(dead.dead_letter_destination) == "queue://ActiveMQ.DLQ"
    assert bodies(stage.dead_letters(at_least=1)) == ["bad"]


def test_a_message_that_is_discarded(stage: Stage) -> None:
    stage.send("bad")
    lives = Lives()
    policy = RedeliveryPolicy(maximum_redeliveries=0)
    session, consumer = stage.consuming(
        AckMode.TRANSACTED,
        observer=lives,
        redelivery_policy=policy,
        dead_letter_strategy=DiscardingDeadLetterStrategy(),
    )
    receive(consumer)
    session.rollback()
    assert kinds(lives) == ["Delivered", "Discarded"]
    assert isinstance(lives.of(Discarded)[0], Discarded)


def test_a_transaction(stage: Stage) -> None:
    stage.send("one", "two")
    lives = Lives()
    session, consumer = stage.consuming(AckMode.TRANSACTED, observer=lives)
    receive(consumer), receive(consumer)
    sent = session.producer(stage.beside("next")).send("three")
    session.commit()
    after_commit = kinds(lives, Sent, Committed, Acknowledged)
    assert after_commit == ["Sent", "Acknowledged", "Acknowledged", "Committed"]
    first = lives.of(Sent)[0]
    assert isinstance(first, Sent)
    assert (first.message is sent, first.confirmed) == (True, False)
    assert lives.of(Committed) == [Committed(first.session, sent=1, received=2)]
    stage.left(stage.beside("next"), at_least=1)


def test_sends(stage: Stage) -> None:
    lives = Lives()
    producer = stage.session(AckMode.AUTO, observer=lives).producer(stage.queue)
    producer.send("confirmed")
    producer.send("written", persistent=False)
    assert [event.confirmed for event in lives.of(Sent) if isinstance(event, Sent)] == [True, False]
    stage.left(at_least=2)


def test_what_was_held_at_the_close_is_released(stage: Stage) -> None:
    stage.send("one")
    lives = Lives()
    session, consumer = stage.consuming(AckMode.CLIENT, observer=lives)
    receive(consumer)
    session.close()
    assert kinds(lives) == ["Delivered", "Released"]
    assert isinstance(lives.of(Released)[0], Released)
    assert stage.left_bodies(at_least=1) == ["one"]


def test_a_listener_that_raises(stage: Stage) -> None:
    stage.send("good", "bad")
    lives = Lives()
    calls: SimpleQueue[None] = SimpleQueue()
    session, consumer = stage.consuming(
        AckMode.AUTO, observer=lives, redelivery_policy=ONCE, dead_letter_strategy=SharedDeadLetterStrategy()
    )

    def callback(message: Message) -> None:
        calls.put(None)
        if message.body == "bad":
            raise ValueError(message.body)

    consumer.listen(callback)
    for _ in range(3):
        calls.get(timeout=SOON)
    session.close()
    good, bad = ["Delivered", "Acknowledged"], ["Delivered", "RolledBack", "Delivered", "DeadLettered"]
    assert kinds(lives) == good + bad
    assert bodies(stage.dead_letters(at_least=1)) == ["bad"]


def test_the_connection(stage: Stage) -> None:
    lives = Lives()
    connection = stage.connect(observer=lives)
    connection.close()
    connected, closed = lives.of(Connected, ConnectionClosed)
    assert isinstance(connected, Connected)
    assert connected.metadata == connection.metadata
    assert closed == ConnectionClosed(connection.url)
