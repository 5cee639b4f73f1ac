"""The rules of the STOMP transport on a real HornetQ: what it means by a frame, and what we do about it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from tests.transports.live import Place, bodies, held
from tests.transports.scripted import TIMEOUT, text

from redelivery import AckMode
from redelivery.model.destinations import Topic
from redelivery.model.errors import InvalidSelectorError, UnsupportedError
from redelivery.model.messages import Message
from redelivery.testing.brokers.real import RealBroker
from redelivery.transports.stomp.connection.subscriptions import PLAIN


@pytest.fixture
def place(hornetq: RealBroker) -> Iterator[Place]:
    with ExitStack() as opened:
        yield Place(hornetq.stomp_url, opened)


def test_the_window_is_the_brokers_own(place: Place) -> None:
    """10 KiB, whatever is asked for: it has no header for it."""
    place.fill(*["x" * 1000] * 30)
    session = place.client().session()
    session.attach(place.queue, window=1)
    taken: list[Any] = []
    while (delivery := session.receive(TIMEOUT if len(taken) < 9 else 0.5)) is not None:
        taken.append(delivery)
    assert len(taken) == 9


def test_a_batch_of_ten_kilobytes_needs_a_further_subscription(place: Place) -> None:
    place.fill(*["x" * 2000] * 5)
    session = place.client().session(AckMode.TRANSACTED)
    session.attach(place.queue, window=100)
    (window,) = session.channel._windows.values()  # type: ignore[attr-defined]  # of the STOMP channel
    batch = held(session, 4)
    assert len(window.subscriptions) == 1
    batch += held(session, 1)
    assert len(window.subscriptions) == 2
    session.do(session.channel.commit(batch))


def test_a_batch_of_a_topic_may_be_larger_than_the_window(place: Place) -> None:
    """Its consumer subscribes with ack:auto, and no ACK is sent."""
    topic = Topic(place.queue)
    client = place.client()
    session = client.session(AckMode.TRANSACTED)
    session.attach(topic)
    producer = place.client().session()
    for at in range(60):
        producer.channel.send(text(str(at), topic), transacted=False, pending=None)
    batch: list[Any] = []
    while len(batch) < 60:
        batch.append(session.receive())
        session.channel.dispatched(batch[-1])
    session.do(session.channel.commit(batch))
    producer.channel.send(text("next", topic), transacted=False, pending=None)
    last = session.receive()
    assert last.body() == "next"
    session.channel.accept([last], batched=False)
    assert client.errors == []


def test_an_error_answers_its_call_and_the_connection_lives(place: Place) -> None:
    client = place.client()
    session = client.session()
    with pytest.raises(InvalidSelectorError, match="Invalid filter"):
        session.attach(place.queue, selector="a = = b")
    place.fill("x")
    session.attach(place.queue)
    delivery = session.receive()
    session.channel.accept([delivery], batched=False)
    session.channel._outbox.write(delivery.subscription.ack(delivery, PLAIN))  # type: ignore[attr-defined]  # twice
    assert session.send(text("y", place.queue)) is None
    session.channel.accept([session.receive()], batched=False)
    assert client.lost == []
    assert "failed to ack" in str(client.errors[0])


@pytest.mark.parametrize("body", ["x" * 50_001, "é" * 50_001, b"x" * 100_001])
def test_a_body_that_it_would_confirm_and_lose_is_refused(place: Place, body: str | bytes) -> None:
    session = place.client().session()
    with pytest.raises(UnsupportedError, match="would confirm a body"):
        session.send(text(body, place.queue))
    assert session.send(text(body[:-1], place.queue)) is None
    assert bodies(place.left(at_least=1)) == [body[:-1]]


def test_what_is_not_persistent_is_marked_by_a_property_of_ours(place: Place) -> None:
    """The broker does not say: what is not known to be otherwise is dead-lettered, and not dropped."""
    place.fill("kept")
    place.fill("not kept", persistent=False)
    assert [each.header("persistent") for each in place.left(at_least=2)] == [True, False]
    client = place.client()
    session = client.session()
    session.attach(place.queue)
    session.channel._outbox.write(  # type: ignore[attr-defined]  # as another client may send it
        f"SEND\ndestination:jms.queue.{place.queue}\n\nx\0".encode()
    )
    delivery = session.receive()
    assert (delivery.header("persistent"), delivery.properties()) == (True, {})
    session.channel.accept([delivery], batched=False)


def test_a_selector_compares_texts_and_knows_jms_names(place: Place) -> None:
    session = place.client().session()
    session.attach(place.queue, selector="colour = 'JMSPriority' AND JMSPriority = 7")
    for colour, priority in (("red", 7), ("JMSPriority", 4), ("JMSPriority", 7)):
        message = Message(f"{colour} {priority}", properties={"colour": colour})
        assert session.send(text(message, place.queue, priority=priority)) is None
    wanted = session.receive()
    assert wanted.body() == "JMSPriority 7"
    assert session.receive(0.2) is None
    session.channel.accept([wanted], batched=False)
    session.do(session.channel.close())
    assert len(place.left(at_least=2)) == 2
