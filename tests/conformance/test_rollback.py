"""commit() and rollback() (JMS 3.1, `Session.rollback`)."""

from __future__ import annotations

import pytest
from tests.conformance.stage import Stage, bodies, nothing_comes, receive, receive_all

from redelivery import AckMode, IllegalStateError


@pytest.mark.promise("classic-redelivered")
def test_r7_rollback_destroys_what_was_sent_and_recovers_what_was_received(stage: Stage) -> None:
    target = stage.beside("target")
    stage.send("a", "b")
    session, consumer = stage.consuming(AckMode.TRANSACTED)
    producer = session.producer(target)
    for message in receive_all(consumer, 2):
        producer.send(f"from {message.body}")
    session.rollback()
    again = receive_all(consumer, 2)
    assert [(message.body, message.delivery_count, message.redelivered) for message in again] == [
        ("a", 2, True),
        ("b", 2, True),
    ]
    session.commit()
    session.close()
    assert stage.left(target) == []
    assert stage.left() == []


def test_r7_commit_makes_sends_and_receives_one(stage: Stage) -> None:
    target = stage.beside("target")
    stage.send("a")
    session, consumer = stage.consuming(AckMode.TRANSACTED)
    session.producer(target).send(receive(consumer).body + "!")
    session.commit()
    session.close()
    assert stage.left() == []
    assert stage.left_bodies(target, at_least=1) == ["a!"]


def test_r7_nothing_sent_is_seen_before_commit(stage: Stage) -> None:
    session = stage.session(AckMode.TRANSACTED)
    session.producer(stage.queue).send("a")
    _, consumer = stage.consuming(AckMode.AUTO)
    assert nothing_comes(consumer)
    session.commit()
    assert receive(consumer).body == "a"


def test_r7_the_next_transaction_starts_at_once(stage: Stage) -> None:
    stage.send("a", "b", "c")
    session, consumer = stage.consuming(AckMode.TRANSACTED)
    assert receive(consumer).body == "a"
    session.commit()
    assert receive(consumer).body == "b"
    session.rollback()
    assert bodies(receive_all(consumer, 2)) == ["b", "c"]
    session.commit()
    session.close()
    assert stage.left() == []


def test_r7_rollback_again_and_again_keeps_the_order(stage: Stage) -> None:
    stage.send("a", "b", "c", "d")
    session, consumer = stage.consuming(AckMode.TRANSACTED)
    for taken in (1, 3, 2, 4):
        assert bodies(receive_all(consumer, taken)) == ["a", "b", "c", "d"][:taken]
        session.rollback()
    assert [message.delivery_count for message in receive_all(consumer, 4)] == [5, 4, 3, 2]
    session.commit()


def test_rollback_of_nothing_is_harmless(stage: Stage) -> None:
    stage.send("a")
    session, consumer = stage.consuming(AckMode.TRANSACTED)
    session.rollback()
    session.commit()
    assert receive(consumer).delivery_count == 1


def test_transaction_block_commits_on_success(stage: Stage) -> None:
    stage.send("a")
    session, consumer = stage.consuming(AckMode.TRANSACTED)
    with session.transaction() as same:
        assert same is session
        receive(consumer)
    session.close()
    assert stage.left() == []


def test_transaction_block_rolls_back_on_an_exception_and_raises_it(stage: Stage) -> None:
    stage.send("a")
    session, consumer = stage.consuming(AckMode.TRANSACTED)

    def fail() -> None:
        with session.transaction():
            raise ZeroDivisionError(receive(consumer).body)

    with pytest.raises(ZeroDivisionError, match="a"):
        fail()
    assert receive(consumer).delivery_count == 2


def test_transaction_blocks_do_not_nest(stage: Stage) -> None:
    stage.send("a")
    session, consumer = stage.consuming(AckMode.TRANSACTED)
    with session.transaction():
        receive(consumer)
        with pytest.raises(IllegalStateError, match="does not nest"), session.transaction():
            pytest.fail("not reached")
    session.close()
    assert stage.left() == []
