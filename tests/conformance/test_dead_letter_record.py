"""`message.dead_letter` tells the same of a dead letter on every pair, whether we made it or the broker."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.conformance.stage import SOON, Stage, receive

import redelivery
from redelivery import (
    AckMode,
    BrokerDeadLetterStrategy,
    Message,
    Passport,
    Queue,
    RedeliveryPolicy,
    SharedDeadLetterStrategy,
)
from redelivery.model.passport import read_passport, write_passport

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
    queue = stage.beside("dead")
    began = datetime.now(UTC) - timedelta(milliseconds=1)
    fail(stage, dead_letter_strategy=SharedDeadLetterStrategy(queue))
    letter = found(stage, queue).dead_letter
    assert letter is not None
    assert letter.origin == Queue(stage.said(stage.queue))
    assert (letter.exception, letter.count) == ("ValueError: bad order", 2)
    assert str(letter.cause).startswith("Delivery[2] exceeds redelivery policy limit:")
    assert letter.at is not None
    assert began <= letter.at <= datetime.now(UTC)
    assert not letter.expired


def raised(error: Exception) -> Exception:
    try:
        raise error
    except Exception as raised:  # noqa: BLE001 - it has a traceback now
        return raised


@pytest.mark.parametrize("text", ["bad order", "\U0001f600\0\x1b[31m \\:\r\n" * 900], ids=["short", "huge"])
def test_a_copy_has_its_passport_as_it_was_written(stage: Stage, text: str) -> None:
    """Of 4,096 bytes, with what a protocol would have to escape."""
    queue, made = stage.beside("dead"), list[Passport]()

    def keep(passport: Passport) -> Passport:
        made.append(passport)
        return passport

    strategy = SharedDeadLetterStrategy(queue)
    options = {"redelivery_policy": AT_ONCE, "dead_letter_strategy": strategy, "passport": keep}
    session, consumer = stage.consuming(AckMode.CLIENT, application="shop 2.4", **options)
    stage.send("x")
    for _ in range(2):
        receive(consumer)
        session.recover(cause=raised(LookupError(text)))
    session.close()
    message = found(stage, queue)
    assert message.dead_letter is not None
    passport = message.dead_letter.passport
    assert passport is not None
    written = write_passport(made[-1])
    assert message.properties["dlqPassport"] == written
    assert passport == read_passport(written)
    assert (passport.exception, passport.application) == ("LookupError", "shop 2.4")
    assert passport.frame == f"{__name__}:raised"
    assert [each.number for each in passport.attempts] == [1, 2]
    assert passport == made[-1] or len(text) > 1000


@pytest.mark.promise("classic-poison")
def test_the_brokers_own_says_its_origin(stage: Stage) -> None:
    """Where the broker takes poison by itself; elsewhere it is a copy of ours."""
    fail(stage, dead_letter_strategy=BrokerDeadLetterStrategy())
    letter = found(stage, "ActiveMQ.DLQ").dead_letter
    assert letter is not None
    assert (letter.origin, letter.expired) == (Queue(stage.said(stage.queue)), False)
