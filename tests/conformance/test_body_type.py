"""``body_type=``: what a consumer receives, and what becomes of a message whose body cannot become that type."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from tests.client.shell import eventually
from tests.conformance.stage import NOTHING, SOON, Stage, nothing_comes, receive

from redelivery import AckMode, Message, MessageFormatError, SharedDeadLetterStrategy

MODES = [AckMode.AUTO, AckMode.DUPS_OK, AckMode.CLIENT, AckMode.INDIVIDUAL, AckMode.TRANSACTED]
AT_ONCE = MODES[:2]
HELD = MODES[2:]
BROKEN = '{"id": 2, "items": [{"price": "much"}]}'


@dataclass
class Item:
    price: float


@dataclass
class Order:
    id: int
    items: list[Item]


def order(number: int) -> str:
    return json.dumps({"id": number, "items": [{"price": number}]})


def typed(stage: Stage, mode: AckMode, **options: Any) -> tuple[Any, Any]:
    session = stage.session(mode, **options)
    return session, session.consumer(stage.queue, body_type=Order)


def settle(session: Any, message: Any) -> None:
    if session.transacted:
        session.commit()
    elif session.ack_mode in HELD:
        message.acknowledge()


def refusal(call: Any) -> MessageFormatError:
    with pytest.raises(MessageFormatError) as raised:
        call()
    return raised.value


@pytest.mark.parametrize("mode", MODES)
def test_a_body_becomes_the_type_in_each_way_to_receive(stage: Stage, mode: AckMode) -> None:
    stage.send(*map(order, range(5)))
    session, consumer = typed(stage, mode)
    first = receive(consumer)
    assert first.body == Order(0, [Item(0.0)])
    assert json.loads(first.raw_body) == json.loads(order(0))
    assert first.copy().body == order(0)
    found = [each for _ in range(4) for each in consumer.receive_many(2, 0.5)][:4]
    assert [each.body.id for each in found] == [1, 2, 3, 4]
    for each in (first, *found):
        settle(session, each)
    assert consumer.receive(timeout=NOTHING) is None
    session.close()
    assert stage.left() == []


def test_bytes_and_a_map_become_the_type(stage: Stage) -> None:
    stage.send(order(1).encode())
    _, consumer = typed(stage, AckMode.AUTO)
    assert receive(consumer).body == Order(1, [Item(1.0)])


@pytest.mark.needs("map", refused=MessageFormatError)
def test_a_map_becomes_the_type(stage: Stage) -> None:
    stage.send({"price": 2.5})
    session = stage.session(AckMode.AUTO)
    found = receive(session.consumer(stage.queue, body_type=dict[str, Any])).body
    assert list(found) == ["price"]
    assert float(found["price"]) == 2.5


@pytest.mark.parametrize("mode", HELD)
def test_one_that_does_not_fit_is_unacknowledged_and_in_the_error(stage: Stage, mode: AckMode) -> None:
    stage.send(order(1), BROKEN, order(3))
    session, consumer = typed(stage, mode)
    first = receive(consumer)
    error = refusal(lambda: consumer.receive(timeout=SOON))
    assert "items[0].price: it is a string, not a number" in str(error)
    assert f"queue://{stage.said(stage.queue)}" in str(error)
    assert (error.message.body, error.message.delivery_count) == (BROKEN, 1)
    if error.message.message_id is not None:
        assert error.message.message_id in str(error)
    assert receive(consumer).body.id == 3
    if session.transacted:
        session.rollback()
    else:
        session.recover()
    again = receive(consumer)
    assert (again.body.id, again.delivery_count) == (1, 2)
    again_error = refusal(lambda: consumer.receive(timeout=SOON))
    assert again_error.message.delivery_count == 2
    third = receive(consumer)
    assert first.body == again.body
    for each in (again, again_error.message, third) if mode is AckMode.INDIVIDUAL else (third,):
        stage_settle(session, each)
    session.close()
    assert stage.left() == []


def stage_settle(session: Any, message: Any) -> None:
    """Acknowledge what is asyncio's too."""
    if session.ack_mode is AckMode.INDIVIDUAL:
        session.acknowledge(message)
    elif session.transacted:
        session.commit()
    else:
        session.acknowledge()


@pytest.mark.everywhere_in_long_form
@pytest.mark.parametrize("mode", HELD)
def test_a_rollback_without_a_cause_gives_the_reason_to_the_dead_letter(stage: Stage, mode: AckMode) -> None:
    stage.send(BROKEN)
    dead = stage.beside("dead")
    session, consumer = typed(stage, mode, dead_letter_strategy=SharedDeadLetterStrategy(dead))
    for _ in range(7):
        refusal(lambda: consumer.receive(timeout=SOON))
        session.rollback() if session.transacted else session.recover()
    assert consumer.receive(timeout=NOTHING) is None
    (letter,) = stage.left(dead, at_least=1)
    assert letter.body == BROKEN
    assert "items[0].price: it is a string" in str(letter.dead_letter and letter.dead_letter.cause)


@pytest.mark.parametrize("mode", AT_ONCE)
def test_one_that_does_not_fit_is_redelivered_and_dead_lettered_by_its_policy(stage: Stage, mode: AckMode) -> None:
    stage.send(order(1), BROKEN, order(3))
    dead = stage.beside("dead")
    _, consumer = typed(stage, mode, dead_letter_strategy=SharedDeadLetterStrategy(dead))
    assert receive(consumer).body.id == 1
    counts = [refusal(lambda: consumer.receive(timeout=SOON)).message.delivery_count for _ in range(7)]
    assert counts == [1, 2, 3, 4, 5, 6, 7]
    assert receive(consumer).body.id == 3
    assert nothing_comes(consumer)
    (letter,) = stage.left(dead, at_least=1)
    assert letter.body == BROKEN
    assert "items[0].price: it is a string" in str(letter.dead_letter and letter.dead_letter.cause)


@pytest.mark.parametrize("mode", AT_ONCE)
def test_a_session_that_ends_then_has_lost_nothing(stage: Stage, mode: AckMode) -> None:
    stage.send(BROKEN)
    session, consumer = typed(stage, mode)
    refusal(lambda: consumer.receive(timeout=SOON))
    session.close()
    assert stage.left_bodies(at_least=1) == [BROKEN]


@pytest.mark.everywhere_in_long_form
@pytest.mark.parametrize("mode", MODES)
def test_a_list_ends_before_one_that_does_not_fit(stage: Stage, mode: AckMode) -> None:
    stage.send(order(1), order(2), BROKEN, order(4))
    session, consumer = typed(stage, mode)
    found: list[Message] = []
    while len(found) < 2:
        found += consumer.receive_many(4, SOON)
    assert [each.body.id for each in found] == [1, 2]
    error = refusal(lambda: consumer.receive_many(4, SOON))
    assert error.message.body == BROKEN
    session.close()
    left = stage.left_bodies(at_least=2)
    assert left == [BROKEN, order(4)] if mode in AT_ONCE else set(left) == {order(1), order(2), BROKEN, order(4)}


@pytest.mark.everywhere_in_long_form
@pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.INDIVIDUAL])
def test_a_listener_is_given_the_type_and_one_that_does_not_fit_fails(stage: Stage, mode: AckMode) -> None:
    dead = stage.beside("dead")
    got: list[Any] = []
    session, consumer = typed(stage, mode, dead_letter_strategy=SharedDeadLetterStrategy(dead))

    def listen(message: Any) -> None:
        if mode is AckMode.INDIVIDUAL:
            message.acknowledge()
        got.append(message.body)

    consumer.listen(listen)
    stage.send(order(1), BROKEN, order(3))
    eventually(lambda: [each.id for each in got] == [1, 3])
    assert [each.body for each in stage.left(dead, at_least=1)] == [BROKEN]
    session.close()
    assert stage.left() == []
