"""Counts and flags (JMS 3.1, §3.4.7 and §3.5.11) in every acknowledgement mode."""

from __future__ import annotations

import pytest
from tests.conformance.stage import Stage, nothing_comes, receive

from redelivery import AckMode

RETURNING = [AckMode.TRANSACTED, AckMode.CLIENT, AckMode.INDIVIDUAL]


@pytest.mark.parametrize("mode", AckMode)
def test_r1_first_delivery_has_count_1_and_no_flag(stage: Stage, mode: AckMode) -> None:
    stage.send("a")
    _, consumer = stage.consuming(mode)
    message = receive(consumer)
    assert (message.body, message.delivery_count, message.redelivered) == ("a", 1, False)


@pytest.mark.parametrize("mode", RETURNING)
def test_r1_each_local_redelivery_has_the_flag_and_one_more(stage: Stage, mode: AckMode) -> None:
    stage.send("a")
    session, consumer = stage.consuming(mode)
    seen = []
    for _ in range(4):
        message = receive(consumer)
        seen.append((message.body, message.delivery_count, message.redelivered))
        session.rollback() if session.transacted else session.recover()
    assert seen == [("a", 1, False), ("a", 2, True), ("a", 3, True), ("a", 4, True)]


@pytest.mark.needs("redelivered after a close")
@pytest.mark.parametrize("mode", RETURNING)
def test_r2_delivered_and_not_acknowledged_comes_to_the_next_client_with_the_flag(stage: Stage, mode: AckMode) -> None:
    stage.send("a")
    session, consumer = stage.consuming(mode)
    receive(consumer)
    session.close()
    (message,) = stage.left(at_least=1)
    assert (message.body, message.redelivered) == ("a", True)
    assert message.delivery_count >= 2


@pytest.mark.parametrize("mode", AckMode)
def test_r13_an_acknowledged_message_never_comes_again(stage: Stage, mode: AckMode) -> None:
    stage.send("a", "b")
    session, consumer = stage.consuming(mode)
    for body in ("a", "b"):
        message = receive(consumer)
        assert message.body == body
        message.acknowledge()
    if session.transacted:
        session.commit()
    assert nothing_comes(consumer)
    session.close()
    assert stage.left() == []
    assert stage.dead_letters() == []
