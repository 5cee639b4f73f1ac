"""Selectors: checked when they are given, evaluated by the broker, and in nobody's way."""

from __future__ import annotations

from queue import SimpleQueue
from typing import Any

import pytest
from tests.conformance.stage import SOON, Stage, bodies, nothing_comes, receive, receive_all

from redelivery import AckMode, InvalidSelectorError, UnsupportedError

evaluated = pytest.mark.needs("selectors", refused=UnsupportedError)
RED, BLUE = "colour = 'red'", "colour = 'blue'"


def send(stage: Stage, text: str, **options: Any) -> None:
    """A capital letter is red, a small one blue."""
    for body in text:
        stage.send(body, properties={"colour": "red" if body.isupper() else "blue"}, **options)


@pytest.mark.parametrize("what", ["consumer", "browser"])
def test_a_bad_selector_is_refused_before_anything_is_sent(stage: Stage, what: str) -> None:
    """By this side, which knows the place, also where the broker would evaluate none or accept it."""
    session = stage.session(AckMode.AUTO)
    for selector, place in (("colour = = 'red'", 9), ("colour LIKE 5", 12), ("n BETWEEN 1", 11)):
        with pytest.raises(InvalidSelectorError) as caught:
            getattr(session, what)(stage.queue, selector=selector)
        assert caught.value.position == place, "the broker would not tell"
    send(stage, "a")
    assert receive(session.consumer(stage.queue)).body == "a"


@evaluated
def test_a_pattern_that_would_keep_the_broker_busy_is_refused(stage: Stage) -> None:
    session = stage.session(AckMode.AUTO)
    most = session._core.epoch.transport.peer.capabilities.most_wildcards
    if most:
        with pytest.raises(UnsupportedError, match=f"use at most {most}"):
            session.consumer(stage.queue, selector=f"colour LIKE '{'%' * (most + 1)}'")
    consumer = session.consumer(stage.queue, selector=f"colour LIKE '{'%e' + '%' * 31}'")
    send(stage, "aA")
    assert bodies(receive_all(consumer, 2)) == ["a", "A"]


@evaluated
def test_each_consumer_gets_what_it_selects_whatever_stands_before_it(stage: Stage) -> None:
    send(stage, "aAbBC")
    session = stage.session(AckMode.CLIENT)
    red = session.consumer(stage.queue, selector=RED, prefetch=1)
    assert bodies(receive_all(red, 3)) == ["A", "B", "C"]
    blue = session.consumer(stage.queue, selector=BLUE)
    assert bodies(receive_all(blue, 2)) == ["a", "b"]
    session.acknowledge()
    assert nothing_comes(red, blue)


@evaluated
def test_what_is_rolled_back_is_redelivered_to_its_consumer_in_order(stage: Stage) -> None:
    send(stage, "aABC")
    session = stage.session(AckMode.TRANSACTED)
    red = session.consumer(stage.queue, selector=RED)
    assert bodies(receive_all(red, 2)) == ["A", "B"]
    session.rollback()
    again = receive_all(red, 3)
    assert [(message.body, message.delivery_count) for message in again] == [("A", 2), ("B", 2), ("C", 1)]
    session.commit()
    assert nothing_comes(red)
    session.close()
    assert stage.left_bodies(at_least=1) == ["a"]


@evaluated
def test_what_a_closed_session_had_is_redelivered_to_who_selects_it(stage: Stage) -> None:
    send(stage, "aAB")
    one = stage.session(AckMode.CLIENT)
    assert receive(one.consumer(stage.queue, selector=RED)).body == "A"
    one.close()
    other = stage.session(AckMode.AUTO)
    assert sorted(bodies(receive_all(other.consumer(stage.queue, selector=RED), 2))) == ["A", "B"]
    other.close()
    assert stage.left_bodies(at_least=1) == ["a"]


@evaluated
def test_receive_nowait_gets_what_is_there_and_selected(stage: Stage) -> None:
    send(stage, "aAbB")
    consumer = stage.session(AckMode.AUTO).consumer(stage.queue, selector=RED)
    assert receive(consumer).body == "A"
    while (message := consumer.receive_nowait()) is None:  # over some protocols it is still on its way
        pass
    assert message.body == "B"
    assert consumer.receive_nowait() is None
    assert stage.left_bodies(at_least=2) == ["a", "b"]


@evaluated
def test_a_listener_hears_what_it_selects(stage: Stage) -> None:
    heard: SimpleQueue[str] = SimpleQueue()
    session = stage.session(AckMode.AUTO)
    session.consumer(stage.queue, selector=RED).listen(lambda message: heard.put(message.body))
    send(stage, "aAbBC")
    assert [heard.get(timeout=SOON) for _ in range(3)] == ["A", "B", "C"]
    session.close()
    assert stage.left_bodies(at_least=2) == ["a", "b"]
    assert heard.empty()


@pytest.mark.needs("numbers in selectors")
@evaluated
def test_numbers_are_compared_as_numbers(stage: Stage) -> None:
    for number in (5, 10, 50):
        stage.send(str(number), properties={"n": number, "half": number / 2})
    session = stage.session(AckMode.AUTO)
    assert bodies(receive_all(session.consumer(stage.queue, selector="n > 9 AND half < 10.0"), 1)) == ["10"]
    assert bodies(receive_all(session.consumer(stage.queue, selector="n BETWEEN 4 AND 6"), 1)) == ["5"]
    assert stage.left_bodies(at_least=1) == ["50"]


@evaluated
def test_headers_are_selected_by_jms_names(stage: Stage) -> None:
    stage.send("plain")
    stage.send("urgent", priority=9, type="car", correlation_id="c1")
    session = stage.session(AckMode.AUTO)
    for selector in ("JMSPriority > 8", "JMSType = 'car'", "JMSCorrelationID = 'c1'", "JMSTimestamp > 1"):
        found = session.consumer(stage.queue, selector=f"{selector} AND JMSPriority <> 4")
        message = found.receive(timeout=SOON)
        assert message is not None, selector
        assert message.body == "urgent"
        found.close()
        stage.send("urgent", priority=9, type="car", correlation_id="c1")
    assert bodies(receive_all(session.consumer(stage.queue, selector="JMSType IS NULL"), 1)) == ["plain"]
