"""Browsers: what a queue holds is shown in order, again and again, and stays there."""

from __future__ import annotations

from typing import Any

import pytest
from tests.conformance.stage import NOTHING, Stage, numbered, receive, receive_all

from redelivery import AckMode, JMSError, PrefetchPolicy, Queue, QueueBrowser, UnsupportedError

pytestmark = pytest.mark.needs("browsing", refused=UnsupportedError)
MANY = 450  # more than a page of Classic's (200), several windows


def shown(browser: QueueBrowser) -> list[Any]:
    return [message.body for message in browser]


@pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.CLIENT, AckMode.INDIVIDUAL], ids=lambda mode: mode.name)
def test_each_iteration_shows_everything_in_order_and_takes_nothing(stage: Stage, mode: AckMode) -> None:
    stage.send("a", "b", "c")
    with stage.session(mode).browser(stage.queue) as browser:
        assert browser.queue == Queue(stage.queue)
        assert shown(browser) == ["a", "b", "c"]
        stage.send("d")
        assert shown(browser) == ["a", "b", "c", "d"]
    assert stage.left_bodies(at_least=4) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("window", [1, 7, 100, None])
def test_a_queue_of_many_windows_is_shown_whole(stage: Stage, window: int | None) -> None:
    stage.send(*numbered(MANY))
    session = stage.session(AckMode.AUTO, prefetch=PrefetchPolicy(browser=window))
    for _ in range(2):
        assert shown(session.browser(stage.queue)) == list(numbered(MANY))
    assert stage.left_bodies(at_least=MANY) == list(numbered(MANY))


def test_an_empty_queue_ends_at_once(stage: Stage) -> None:
    stage.send("taken")
    assert stage.left_bodies(at_least=1) == ["taken"]
    assert shown(stage.session(AckMode.AUTO).browser(stage.queue)) == []


def test_the_messages_are_whole(stage: Stage) -> None:
    stage.send("text", correlation_id="c", properties={"colour": "red"}, priority=4)
    (message,) = stage.session(AckMode.AUTO).browser(stage.queue)
    assert (message.body, message.correlation_id, message.properties["colour"]) == ("text", "c", "red")
    assert message.destination == Queue(stage.said(stage.queue))
    assert (message.delivery_count, message.redelivered) == (1, False)
    assert message.copy().body == "text"
    assert stage.left_bodies(at_least=1) == ["text"]


def test_acknowledging_has_no_effect(stage: Stage) -> None:
    stage.send("a", "b")
    session = stage.session(AckMode.CLIENT)
    for message in session.browser(stage.queue):
        message.acknowledge()
    session.acknowledge()
    session.close()
    assert stage.left_bodies(at_least=2) == ["a", "b"]


def test_an_open_transaction_goes_on(stage: Stage) -> None:
    stage.send("a", "b", "c")
    session, consumer = stage.consuming(AckMode.TRANSACTED, prefetch=1)
    assert receive(consumer).body == "a"
    session.producer(stage.queue).send("sent")
    first = shown(session.browser(stage.queue))
    assert first[-1] == "c"  # whether what a consumer holds ("a", and "b" on its way) is shown is the broker's choice
    assert first == sorted(first)
    session.rollback()
    assert [message.body for message in receive_all(consumer, 2)] == ["a", "b"]
    session.producer(stage.queue).send("sent")
    shown(session.browser(stage.queue))
    session.commit()
    session.close()
    assert stage.left_bodies(at_least=2) == ["c", "sent"]


def test_a_browser_and_a_consumer_of_one_session_side_by_side(stage: Stage) -> None:
    stage.send("a", "b", "c")
    other = stage.beside("other")
    stage.send(*numbered(150), queue=other)
    session, consumer = stage.consuming(AckMode.AUTO)
    seen = []
    for message in session.browser(other):
        seen.append(message.body)
        if len(seen) in (1, 75, 150):
            receive(consumer)
    assert seen == list(numbered(150))
    assert stage.left_bodies() == []
    assert stage.left_bodies(other, at_least=150) == seen


def test_an_iteration_that_is_left_in_the_middle_holds_nothing_back(stage: Stage) -> None:
    stage.send(*numbered(120))
    session, consumer = stage.consuming(AckMode.AUTO, prefetch=PrefetchPolicy(browser=10))
    for _ in session.browser(stage.queue):
        break
    assert [message.body for message in receive_all(consumer, 120)] == list(numbered(120))
    assert consumer.receive(timeout=NOTHING) is None


@pytest.mark.needs("selectors", refused=UnsupportedError)
def test_a_selector_chooses(stage: Stage) -> None:
    stage.send("a", "b", properties={"colour": "red"})
    stage.send("c", properties={"colour": "blue"})
    session = stage.session(AckMode.AUTO)
    assert shown(session.browser(stage.queue, selector="colour = 'red'")) == ["a", "b"]
    assert shown(session.browser(stage.queue, selector="colour = 'green'")) == []
    with pytest.raises(JMSError):
        shown(session.browser(stage.queue, selector="= = ="))
    assert stage.left_bodies(at_least=3) == ["a", "b", "c"]


@pytest.mark.needs("delayed delivery", refused=UnsupportedError)
def test_a_delayed_message_is_not_shown_before_its_time(stage: Stage) -> None:
    session = stage.session(AckMode.AUTO)
    session.producer(stage.queue).send("later", delivery_delay=600)
    session.producer(stage.queue).send("now")
    assert shown(session.browser(stage.queue)) == ["now"]
