"""What one session of a connection commits or dead-letters takes nothing from what another one holds."""

from __future__ import annotations

import pytest
from tests.conformance.stage import Stage, bodies, numbered, receive, receive_all

from redelivery import AckMode, JMSError, RedeliveryPolicy, SharedDeadLetterStrategy

AT_ONCE = RedeliveryPolicy(maximum_redeliveries=5, initial_redelivery_delay=0, redelivery_delay=0)
LATER = RedeliveryPolicy(maximum_redeliveries=5, initial_redelivery_delay=0.3, redelivery_delay=0.3)
NEVER = RedeliveryPolicy(maximum_redeliveries=0)


@pytest.mark.parametrize("other", ["made before", "made later", "dead-letters by copy"])
def test_what_a_session_enlisted_is_acknowledged_whatever_another_one_ends(stage: Stage, other: str) -> None:
    """On Classic some ACKs are in the transaction before the commit; a COMMIT of the same socket would forget them."""
    count, queue = 10, stage.beside("other")
    stage.send(*numbered(count))
    stage.send("x", queue=queue)
    errors: list[JMSError] = []
    connection = stage.connect(
        redelivery_policy=AT_ONCE,
        dead_letter_strategy=SharedDeadLetterStrategy(stage.beside("dlq")),
        exception_listener=errors.append,
    )
    mine = connection.session(AckMode.TRANSACTED)
    mode = AckMode.INDIVIDUAL if other == "dead-letters by copy" else AckMode.TRANSACTED
    beside = None if other == "made later" else connection.session(mode)
    consumer = mine.consumer(stage.queue, prefetch=count)
    receive_all(consumer, count)
    beside = beside or connection.session(mode)
    receive(beside.consumer(queue, redelivery_policy=NEVER))
    beside.recover() if mode == AckMode.INDIVIDUAL else beside.commit()
    mine.rollback()
    assert bodies(receive_all(consumer, count)) == numbered(count)
    mine.commit()
    connection.close()
    assert (stage.left_bodies(), stage.left_bodies(queue), errors) == ([], [], [])
    assert stage.left_bodies(stage.beside("dlq")) == (["x"] if mode == AckMode.INDIVIDUAL else [])


def test_what_a_session_has_parked_is_acknowledged_though_another_one_commits(stage: Stage) -> None:
    count, queue = 20, stage.beside("other")
    stage.send(*numbered(count))
    stage.send("x", queue=queue)
    errors: list[JMSError] = []
    connection = stage.connect(redelivery_policy=LATER, non_blocking_redelivery=True, exception_listener=errors.append)
    mine, beside = (connection.session(AckMode.TRANSACTED) for _ in range(2))
    consumer, other = mine.consumer(stage.queue, prefetch=count), beside.consumer(queue)
    receive_all(consumer, count)
    mine.rollback()
    receive(other)
    beside.commit()
    done = []
    for _ in range(count):
        done.append(receive(consumer).body)
        mine.commit()
    assert sorted(done) == numbered(count)
    connection.close()
    assert (stage.left_bodies(), errors) == ([], [])
