"""`message.dead_letter` tells the same of a dead letter on every pair, whether we made it or the broker."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.conformance.stage import SOON, Stage, receive

import redelivery
from redelivery import AckMode, BrokerDeadLetterStrategy, Message, Queue, RedeliveryPolicy, SharedDeadLetterStrategy

AT_ONCE = RedeliveryPolicy(maximum_redeliveries=1, initial_redelivery_delay=0.01, redelivery_delay=0.01)


def fail(stage: Stage, **options: object) -> None:
    """A message that fails twice, and so becomes a dead letter."""
    session, consumer = stage.consuming(AckMode.CLIENT, redelivery_policy=AT_ONCE, **options)
    stage.send("x")
    for _ in range(2):
        assert receive(consumer).dead_letter is None
        session.recover(cause=ValueError("bad order"))
    session.close()


def found(stage: Stage, queue: str) -> Message:
    """The test's own dead letter; nothing else is taken."""
    with redelivery.connect(stage.pair.url) as connection, connection.session(AckMode.INDIVIDUAL) as session:
        consumer = session.consumer(queue)
        while (message := consumer.receive(timeout=SOON)) is not None:
            if message.properties.get("ref") == stage.queue:
                _ = message.body, message.dead_letter
                message.acknowledge()
                return message
    raise AssertionError(f"no dead letter of {stage.queue} on {queue}")


def test_a_copy_says_all(stage: Stage) -> None:
    queue = f"{stage.queue}.dead"
    began = datetime.now(UTC) - timedelta(milliseconds=1)
    fail(stage, dead_letter_strategy=SharedDeadLetterStrategy(queue))
    letter = found(stage, queue).dead_letter
    assert letter is not None
    assert (letter.origin, letter.exception, letter.count) == (Queue(stage.queue), "ValueError: bad order", 2)
    assert str(letter.cause).startswith("Delivery[2] exceeds redelivery policy limit:")
    assert letter.at is not None
    assert began <= letter.at <= datetime.now(UTC)
    assert not letter.expired


@pytest.mark.promise("classic-poison")
def test_the_brokers_own_says_its_origin(stage: Stage) -> None:
    """Where the broker takes poison by itself; elsewhere it is a copy of ours."""
    fail(stage, dead_letter_strategy=BrokerDeadLetterStrategy())
    letter = found(stage, "ActiveMQ.DLQ").dead_letter
    assert letter is not None
    assert (letter.origin, letter.expired) == (Queue(stage.queue), False)
