"""recover() (JMS 3.1, `Session.recover`)."""

from __future__ import annotations

import pytest
from tests.conformance.stage import Stage, bodies, nothing_comes, receive, receive_all

from redelivery import AckMode, IllegalStateError, RedeliveryPolicy


@pytest.mark.promise("classic-redelivered")
def test_r6_client_recover_starts_again_from_the_first_unacknowledged(stage: Stage) -> None:
    stage.send("a", "b", "c", "d")
    session, consumer = stage.consuming(AckMode.CLIENT)
    receive(consumer).acknowledge()
    assert bodies(receive_all(consumer, 2)) == ["b", "c"]
    session.recover()
    again = receive_all(consumer, 3)
    assert bodies(again) == ["b", "c", "d"]
    assert [message.delivery_count for message in again] == [2, 2, 1]
    assert [message.redelivered for message in again] == [True, True, False]
    session.acknowledge()
    session.close()
    assert stage.left() == []


def test_r6_recover_concerns_every_consumer_of_the_session(stage: Stage) -> None:
    other = stage.beside("other")
    stage.send("a")
    stage.send("x", queue=other)
    session, consumer = stage.consuming(AckMode.CLIENT)
    second = session.consumer(other)
    receive(consumer)
    receive(second)
    session.recover()
    assert receive(second).delivery_count == 2
    assert receive(consumer).delivery_count == 2


def test_r6_individual_recover_brings_back_the_unacknowledged_only(stage: Stage) -> None:
    stage.send("a", "b", "c")
    session, consumer = stage.consuming(AckMode.INDIVIDUAL)
    receive_all(consumer, 3)[1].acknowledge()
    session.recover()
    assert bodies(receive_all(consumer, 2)) == ["a", "c"]
    assert nothing_comes(consumer)


@pytest.mark.everywhere_in_long_form
def test_r6_recover_of_a_transacted_session_is_refused(stage: Stage) -> None:
    with pytest.raises(IllegalStateError, match="rollback"):
        stage.session(AckMode.TRANSACTED).recover()


@pytest.mark.everywhere_in_long_form
def test_r6_recover_waits_the_redelivery_delay(stage: Stage) -> None:
    stage.send("a")
    policy = RedeliveryPolicy(initial_redelivery_delay=1.0, redelivery_delay=1.0)
    session, consumer = stage.consuming(AckMode.CLIENT, redelivery_policy=policy)
    receive(consumer)
    session.recover()
    assert consumer.receive(timeout=0.3) is None
    assert receive(consumer).delivery_count == 2


def test_acknowledge_of_an_object_from_before_recover_does_not_acknowledge(stage: Stage) -> None:
    stage.send("a")
    session, consumer = stage.consuming(AckMode.CLIENT)
    stale = receive(consumer)
    session.recover()
    stale.acknowledge()
    assert receive(consumer).delivery_count == 2
    session.close()
    assert stage.left_bodies(at_least=1) == ["a"]
