"""When a message counts as consumed (JMS 3.1, §6.2.10 and `Message.acknowledge`; INDIVIDUAL is ActiveMQ's)."""

from __future__ import annotations

from time import monotonic

import pytest
from tests.conformance.stage import NOTHING, SOON, Stage, bodies, nothing_comes, numbered, receive, receive_all

from redelivery import AckMode, IllegalStateError, Message


def test_r3_auto_acknowledges_when_receive_returns(stage: Stage) -> None:
    stage.send("a", "b")
    session, consumer = stage.consuming(AckMode.AUTO)
    assert receive(consumer).body == "a"
    session.close()
    assert stage.left_bodies(at_least=1) == ["b"]


def test_r3_auto_acknowledges_a_list_before_it_is_handed_over(stage: Stage) -> None:
    stage.send(*numbered(5))
    session, consumer = stage.consuming(AckMode.AUTO)
    assert bodies(consumer.receive_many(3, timeout=SOON)) == numbered(3)
    session.close()
    assert stage.left_bodies(at_least=2) == numbered(5)[3:]


@pytest.mark.everywhere_in_long_form
def test_receive_many_returns_what_has_come_when_the_time_is_over(stage: Stage) -> None:
    stage.send("a", "b")
    _, consumer = stage.consuming(AckMode.AUTO)
    assert bodies(consumer.receive_many(3, timeout=5 * NOTHING)) == ["a", "b"]
    assert consumer.receive_many(3, timeout=0) == []


@pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.DUPS_OK, AckMode.INDIVIDUAL])
def test_receive_many_does_not_wait_for_what_the_window_keeps_back(stage: Stage, mode: AckMode) -> None:
    """Nothing is acknowledged before the list is handed over, and the list is larger than the prefetch."""
    sent = [f"{number:1000}" for number in range(30)]
    stage.send(*sent)
    session, consumer = stage.consuming(mode, prefetch=3)
    began, got = monotonic(), list[Message]()
    while len(got) < len(sent):
        found = consumer.receive_many(len(sent) - len(got), timeout=3 * SOON)
        assert found
        got += found
        if mode is AckMode.INDIVIDUAL:
            for message in found:
                message.acknowledge()
    assert monotonic() - began < 2 * SOON, "it has waited for the rest, which was there"
    assert bodies(got) == sent
    session.close()
    assert stage.left() == []


@pytest.mark.needs("lists beyond the window")
@pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.DUPS_OK, AckMode.INDIVIDUAL])
def test_receive_many_makes_a_list_that_is_larger_than_the_window(stage: Stage, mode: AckMode) -> None:
    sent = [f"{number:1000}" for number in range(30)]
    stage.send(*sent)
    session, consumer = stage.consuming(mode, prefetch=3)
    found = consumer.receive_many(len(sent), timeout=3 * SOON)
    assert bodies(found) == sent
    for message in found if mode is AckMode.INDIVIDUAL else ():
        message.acknowledge()
    session.close()
    assert stage.left() == []


def test_r3_auto_never_comes_again_after_recover(stage: Stage) -> None:
    stage.send("a")
    session, consumer = stage.consuming(AckMode.AUTO)
    receive(consumer)
    session.recover()
    assert nothing_comes(consumer)


def test_r4_dups_ok_acknowledges_late_but_before_close(stage: Stage) -> None:
    stage.send(*numbered(150))
    session, consumer = stage.consuming(AckMode.DUPS_OK)
    assert bodies(receive_all(consumer, 149)) == numbered(149)
    session.close()
    assert stage.left_bodies(at_least=1) == numbered(150)[149:]


def test_r5_client_acknowledges_all_that_the_session_has_delivered(stage: Stage) -> None:
    other = stage.beside("other")
    stage.send("a", "b", "c")
    stage.send("x", "y", queue=other)
    session, consumer = stage.consuming(AckMode.CLIENT)
    second = session.consumer(other)
    first = receive(consumer)
    assert bodies([receive(consumer), receive(second)]) == ["b", "x"]
    first.acknowledge()
    session.close()
    assert stage.left_bodies(at_least=1) == ["c"]
    assert stage.left_bodies(other, at_least=1) == ["y"]


def test_r5_session_acknowledge_is_the_same(stage: Stage) -> None:
    stage.send("a", "b", "c")
    session, consumer = stage.consuming(AckMode.CLIENT)
    receive_all(consumer, 2)
    session.acknowledge()
    session.close()
    assert stage.left_bodies(at_least=1) == ["c"]


@pytest.mark.everywhere_in_long_form
@pytest.mark.parametrize("mode", [AckMode.CLIENT, AckMode.INDIVIDUAL])
def test_a_message_of_a_list_is_acknowledged_as_any_other(stage: Stage, mode: AckMode) -> None:
    stage.send("a", "b", "c")
    session, consumer = stage.consuming(mode)
    messages = consumer.receive_many(2, timeout=SOON)
    for message in messages:
        message.acknowledge()
    session.close()
    assert stage.left_bodies(at_least=1) == ["c"]


@pytest.mark.everywhere_in_long_form
@pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.DUPS_OK])
def test_r5_acknowledge_is_ignored_where_the_session_does_it(stage: Stage, mode: AckMode) -> None:
    stage.send("a")
    _, consumer = stage.consuming(mode)
    receive(consumer).acknowledge()
    assert nothing_comes(consumer)


@pytest.mark.everywhere_in_long_form
def test_r5_acknowledge_is_ignored_in_a_transaction(stage: Stage) -> None:
    stage.send("a")
    session, consumer = stage.consuming(AckMode.TRANSACTED)
    receive(consumer).acknowledge()
    session.rollback()
    assert receive(consumer).delivery_count == 2


def test_individual_acknowledges_that_message_only(stage: Stage) -> None:
    stage.send("a", "b", "c")
    session, consumer = stage.consuming(AckMode.INDIVIDUAL)
    receive_all(consumer, 3)[1].acknowledge()
    session.close()
    assert stage.left_bodies(at_least=2) == ["a", "c"]


def test_individual_acknowledged_twice_is_harmless(stage: Stage) -> None:
    stage.send("a", "b")
    session, consumer = stage.consuming(AckMode.INDIVIDUAL)
    message = receive(consumer)
    message.acknowledge()
    message.acknowledge()
    assert receive(consumer).body == "b"
    session.close()
    assert stage.left_bodies(at_least=1) == ["b"]


@pytest.mark.everywhere_in_long_form
@pytest.mark.parametrize("mode", AckMode)
def test_commit_and_rollback_belong_to_transacted_sessions(stage: Stage, mode: AckMode) -> None:
    session = stage.session(mode)
    if mode == AckMode.TRANSACTED:
        session.commit()
        session.rollback()
        return
    for call in (session.commit, session.rollback):
        with pytest.raises(IllegalStateError, match="TRANSACTED"):
            call()
