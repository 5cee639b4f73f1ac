"""What stands in a dead-letter queue, and what does not: the broker's own strategies and the client's."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.conformance.stage import Stage, bodies, nothing_comes, receive

from redelivery import AckMode, MessageFormatError, RedeliveryPolicy, SharedDeadLetterStrategy

NEVER = RedeliveryPolicy(maximum_redeliveries=0, initial_redelivery_delay=0.0, redelivery_delay=0.0)
KINDS_OF_BODY = pytest.mark.parametrize(
    "body",
    [
        pytest.param("text", id="text"),
        pytest.param(b"bytes\0", id="bytes"),
        pytest.param({"map": "yes"}, id="map", marks=pytest.mark.needs("map", refused=MessageFormatError)),
        pytest.param(None, id="none"),
    ],
)


def poison(stage: Stage, queue: str | None = None, **options: object) -> None:
    """Receive once, roll back, and so exceed a policy of no redeliveries."""
    session = stage.session(AckMode.TRANSACTED, redelivery_policy=NEVER, **options)
    consumer = session.consumer(queue or stage.queue)
    receive(consumer)
    session.rollback()
    assert nothing_comes(consumer)
    session.close()


@pytest.mark.promise("classic-individual")
@pytest.mark.needs("individual dead letters")
def test_the_brokers_own_individual_strategy_is_obeyed(stage: Stage) -> None:
    queue = stage.under("individual")
    stage.send("bad", queue=queue)
    poison(stage, queue)
    assert bodies(stage.dead_letters(f"DLQ.{queue}", at_least=1)) == ["bad"]
    assert stage.dead_letters() == []


@pytest.mark.promise("classic-non-persistent")
def test_a_poisoned_non_persistent_message_is_dropped(stage: Stage) -> None:
    stage.send("bad", persistent=False)
    poison(stage)
    assert stage.left() == []
    assert stage.dead_letters() == []


@pytest.mark.parametrize("wanted", [False, True])
def test_the_shared_strategy_takes_non_persistent_messages_where_asked(stage: Stage, wanted: bool) -> None:
    stage.send("bad", persistent=False)
    poison(stage, dead_letter_strategy=SharedDeadLetterStrategy(process_non_persistent=wanted))
    letters = stage.dead_letters(at_least=int(wanted))
    assert bodies(letters) == (["bad"] if wanted else [])
    assert all(letter.persistent for letter in letters)


def test_a_dead_letter_does_not_expire_with_its_message(stage: Stage) -> None:
    stage.send("bad", ttl=30)
    poison(stage, dead_letter_strategy=SharedDeadLetterStrategy())
    (letter,) = stage.dead_letters(at_least=1)
    assert letter.expiration is None
    expired = datetime.fromtimestamp(int(str(letter.properties["originalExpiration"])) / 1000, UTC)
    assert 10 < (expired - datetime.now(UTC)).total_seconds() < 31


def test_a_dead_letter_expires_where_the_strategy_says_so(stage: Stage) -> None:
    stage.send("bad")
    poison(stage, dead_letter_strategy=SharedDeadLetterStrategy(expiration=60))
    (letter,) = stage.dead_letters(at_least=1)
    assert letter.expiration is not None
    assert 40 < (letter.expiration - datetime.now(UTC)).total_seconds() < 61


@KINDS_OF_BODY
def test_a_copied_dead_letter_keeps_the_kind_of_its_body(stage: Stage, body: object) -> None:
    stage.send(body)
    poison(stage, dead_letter_strategy=SharedDeadLetterStrategy())
    (letter,) = stage.dead_letters(at_least=1)
    assert letter.body == body
    assert type(letter.body) is type(body)


@KINDS_OF_BODY
def test_the_brokers_dead_letter_keeps_the_kind_of_its_body(stage: Stage, body: object) -> None:
    stage.send(body)
    poison(stage)
    (letter,) = stage.dead_letters(at_least=1)
    assert letter.body == body
    assert type(letter.body) is type(body)


def test_poison_in_the_middle_of_a_batch_concerns_nobody_else(stage: Stage) -> None:
    stage.send("a", "bad", "c")
    policy = RedeliveryPolicy(maximum_redeliveries=1, initial_redelivery_delay=0.0, redelivery_delay=0.0)
    session = stage.session(AckMode.INDIVIDUAL, redelivery_policy=policy)
    consumer = session.consumer(stage.queue)
    for message in (receive(consumer) for _ in ("a", "bad", "bad", "c")):
        if message.body != "bad":
            message.acknowledge()
        else:
            session.recover(cause=ValueError("always"))
    assert nothing_comes(consumer)
    session.close()
    assert bodies(stage.dead_letters(at_least=1)) == ["bad"]
    assert stage.left() == []
