"""The rules of the STOMP transport on a real ActiveMQ Artemis: what it means by a frame, and what we do about it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from tests.transports.live import Place, bodies, held, numbers
from tests.transports.scripted import TIMEOUT, text

import redelivery
from redelivery import AckMode
from redelivery.model.destinations import Topic
from redelivery.model.errors import ConnectionLostError, InvalidSelectorError, ResourceAllocationError
from redelivery.model.messages import Message
from redelivery.testing.brokers.real import RealBroker
from redelivery.transports.stomp.connection.subscriptions import PLAIN


@pytest.fixture
def place(artemis: RealBroker) -> Iterator[Place]:
    with ExitStack() as opened:
        yield Place(artemis.stomp_url, opened)


def test_an_address_that_is_full_says_so(place: Place) -> None:
    """It gives no reason: the same answer means that the user may not send there, which the text says."""
    with place.connect() as connection, connection.session() as session:
        producer = session.producer(f"full.{place.queue}")
        with pytest.raises(ResourceAllocationError, match="the address is full, or this user may not send to it"):
            [producer.send("x" * 2000) for _ in range(200)]


@pytest.mark.parametrize("prefetch", [1, 10])
def test_a_small_window_is_kept_and_does_not_stall(place: Place, prefetch: int) -> None:
    place.fill(*["x" * 2000] * 30)
    session = place.client().session(AckMode.TRANSACTED)
    session.attach(place.queue, window=prefetch)
    first = session.receive()
    for _ in range(3):
        session.transport.wait(session.waiter, 0.1)
    assert len(session.inbox) + 1 <= prefetch  # it counts bytes, 1 KiB a message; 1 is one message
    session.channel.dispatched(first)
    assert len({first, *held(session, 29)}) == 30


def test_a_batch_of_a_topic_does_not_stall_and_nothing_comes_twice(place: Place) -> None:
    topic = Topic(place.queue)
    session = place.client().session(AckMode.TRANSACTED)
    session.attach(topic, window=2)
    producer = place.client().session()
    for at in range(300):
        producer.channel.send(text(str(at), topic), transacted=False, pending=None)
    batch = held(session, 300)
    assert bodies(batch) == numbers(300)
    session.do(session.channel.commit(batch))
    assert session.receive(0.3) is None


def test_every_error_ends_the_connection_and_the_call_says_why(place: Place) -> None:
    client = place.client()
    with pytest.raises(InvalidSelectorError, match="Invalid selector"):
        client.session().attach(place.queue, selector="a = = b")
    assert client.lost_event.wait(TIMEOUT)
    assert "Invalid selector" in str(client.lost[0])
    client = place.client()
    session = client.session()
    session.attach(place.queue)
    place.fill("x")
    delivery = session.receive()
    session.channel.accept([delivery], batched=False)
    session.channel._outbox.write(delivery.subscription.ack(delivery, PLAIN))  # type: ignore[attr-defined]  # twice
    with pytest.raises(ConnectionLostError):
        session.receive()
    assert client.lost


def test_a_message_that_it_cannot_convert_harms_no_other_connection(place: Place, artemis: RealBroker) -> None:
    """Where the client closed first, it noticed no lost STOMP connection any more, after about twenty of them."""
    with redelivery.connect(artemis.amqp_url) as connection, connection.session() as session:
        for number in range(60):
            place.fill("first", queue=place.name(str(number)))
            session.producer(place.name(str(number))).send([b"bytes in a stream"])
    for number in range(60):
        consuming = place.client().session()
        consuming.attach(place.name(str(number)))
        with pytest.raises(ConnectionLostError, match="the broker says: consumer with ID"):  # the rest may be cut off
            consuming.receive_many(2)
    place.forget()  # nor can a plain consumer take them
    assert any(loss_is_noticed(place) for _ in range(3))  # it may hide one message


def loss_is_noticed(place: Place) -> bool:
    """Whether what a lost connection had is delivered again sooner than its silence is noticed, which takes 20 s."""
    place.fill("held")
    client = place.client()
    session = client.session()
    session.attach(place.queue)
    session.receive()
    client.transport.abort()
    next_one = place.client().session()
    next_one.attach(place.queue)
    delivery = next_one.receive(15)
    if delivery is None:
        return False
    next_one.channel.accept([delivery], batched=False)
    next_one.do(next_one.channel.close())
    return True


def test_a_selector_compares_numbers_and_knows_jms_names(place: Place) -> None:
    session = place.client().session()
    session.attach(place.queue, selector="n > 5 AND colour = 'JMSPriority' AND JMSPriority = 7")
    for n, colour, priority in ((4, "JMSPriority", 7), (10, "red", 7), (10, "JMSPriority", 4), (10, "JMSPriority", 7)):
        message = Message(f"{n} {colour}", properties={"n": n, "colour": colour})
        assert session.send(text(message, place.queue, priority=priority)) is None
    wanted = session.receive()
    assert wanted.body() == "10 JMSPriority"
    assert session.receive(0.2) is None
    session.channel.accept([wanted], batched=False)
    session.do(session.channel.close())
    assert len(place.left(at_least=3)) == 3
