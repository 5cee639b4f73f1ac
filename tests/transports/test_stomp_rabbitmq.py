"""The rules of the STOMP transport on a real RabbitMQ: what it means by a frame, and what we do about it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.transports.live import Place, bodies, held, numbers
from tests.transports.scripted import TIMEOUT, text

from redelivery import AckMode
from redelivery.model.destinations import Queue, Topic
from redelivery.model.errors import (
    ConnectionLostError,
    InDoubtError,
    InvalidDestinationError,
    JMSError,
    SecurityError,
    UnsupportedError,
)
from redelivery.model.messages import Message
from redelivery.testing.brokers.real import RealBroker
from redelivery.transports.finding import found
from redelivery.transports.seam import Pending
from redelivery.transports.wire.clock import monotonic, utc_now


@pytest.fixture
def place(rabbitmq: RealBroker) -> Iterator[Place]:
    with ExitStack() as opened:
        yield Place(rabbitmq.stomp_url, opened)


def test_its_default_virtual_host_is_found_without_an_option(place: Place) -> None:
    """It has none of the URL's host's name and refuses CONNECT; then its default one is named."""
    peer = place.client().transport.peer
    assert (peer.dialect, peer.provider_name, peer.provider_version[0].isdigit()) == ("rabbitmq", "RabbitMQ", True)
    assert place.client(dialect="rabbitmq").transport.peer.dialect == "rabbitmq"


def test_a_virtual_host_that_is_named_is_not_replaced(place: Place) -> None:
    with pytest.raises(SecurityError, match="Virtual host 'nowhere'"):
        place.client(params={"wireFormat.host": "nowhere"})
    with pytest.raises(SecurityError, match="Access refused"):
        place.client(password="wrong")  # noqa: S106  # of nobody


@pytest.mark.parametrize("body", ["tëxt \U0001f600", "", b"by\0tes", b"plain", b"", None])
def test_a_body_comes_back_as_it_was_sent(place: Place, body: object) -> None:
    session = place.client().session()
    session.attach(place.queue)
    properties = {"plain": "v", "od:d\nname": "a\\b:c\r\n", "empty": "", "space": " x "}
    message = Message(body, properties=properties, correlation_id="c:1", reply_to="topic://r", type="ty", group_id="g")
    sent = text(message, place.queue, priority=7, timestamp=utc_now(), expiration=utc_now() + timedelta(seconds=60))
    assert session.send(sent) is None
    delivery = session.receive()
    got = Message.received(delivery, 0, None)
    assert (got.body, type(got.body)) == (body, type(body))
    assert got.properties == properties
    assert (got.correlation_id, got.reply_to, got.type, got.priority) == ("c:1", Topic("r"), "ty", 7)
    assert (got.persistent, got.destination, got.redelivered, got.group_id) == (True, Queue(place.queue), False, "g")
    assert sent.message_id is not None
    assert got.message_id == sent.message_id
    assert got.expiration == sent.expiration or abs((got.expiration or utc_now()) - (sent.expiration or utc_now())) < (
        timedelta(milliseconds=2)
    )
    assert got.timestamp is not None
    assert abs(got.timestamp - utc_now()) < timedelta(seconds=30)
    session.channel.accept([delivery], batched=False)


def test_an_expired_message_does_not_come(place: Place) -> None:
    place.fill("soon gone", expiration=utc_now() + timedelta(seconds=0.2))
    place.fill("stays")
    place.client().session().receive(0.4)
    assert bodies(place.left(at_least=1)) == ["stays"]


@pytest.mark.parametrize("name", ["a b", "slash/and%sign", "ümlaut", "a:b", "plus+and@"])
def test_a_name_may_hold_what_a_url_may_not(place: Place, name: str) -> None:
    queue = place.name(name)
    place.fill("x", queue=queue)
    (delivery,) = place.left(queue, at_least=1)
    assert delivery.header("destination") == Queue(queue)


def test_topics_have_patterns_and_queues_have_none(place: Place) -> None:
    session = place.client().session()
    session.attach(Topic(f"{place.queue}.*.end"))
    session.attach(Topic(f"{place.queue}.>"))
    assert session.send(text("x", Topic(f"{place.queue}.a.end"))) is None
    found = session.receive_many(2)
    assert [each.header("destination") for each in found] == [Topic(f"{place.queue}.a.end")] * 2
    with pytest.raises(UnsupportedError, match="pattern"):
        session.attach(f"{place.queue}.>")


@pytest.mark.parametrize("prefetch", [1, 2, 10])
def test_a_small_window_is_kept_and_does_not_stall(place: Place, prefetch: int) -> None:
    place.fill(*numbers(60))
    session = place.client().session(AckMode.TRANSACTED)
    session.attach(place.queue, window=prefetch)
    first = session.receive()
    until = monotonic() + TIMEOUT
    while len(session.inbox) + 1 < prefetch and monotonic() < until:
        session.transport.wait(session.waiter, 0.1)
    session.transport.wait(session.waiter, 0.2)
    assert len(session.inbox) + 1 == prefetch
    session.channel.dispatched(first)
    assert bodies([first, *held(session, 59)]) == numbers(60)


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


def test_a_refused_send_leaves_the_commit_in_doubt_and_acknowledges_nothing(place: Place) -> None:
    """The COMMIT is confirmed all the same, and what came before the refused SEND is done."""
    out = place.name("out")
    _, session, delivery = place.holding()
    session.channel.send(text("first", out), transacted=True, pending=None)
    work = session.channel._work  # type: ignore[attr-defined]  # no destination of ours is refused there
    session.channel._outbox.write(  # type: ignore[attr-defined]  # as above
        f"SEND\ndestination:/exchange/{place.queue}/k\ntransaction:{work.name}\n\nx\0".encode()
    )
    session.channel.send(text("last", out), transacted=True, pending=None)
    with pytest.raises(InDoubtError, match="not all confirmed") as caught:
        session.do(session.channel.commit([delivery]))
    assert isinstance(caught.value.__cause__, InvalidDestinationError | ConnectionLostError)
    assert caught.value.transaction_id
    assert bodies(place.left(out, at_least=1)) == ["first"]
    assert bodies(place.left(at_least=1)) == ["in"]


def test_poison_is_a_nack_that_does_not_requeue_where_the_broker_is_set_up_for_it(place: Place) -> None:
    """`BrokerDeadLetterStrategy(configured=True)` says so. Here a queue is declared with a dead-letter exchange."""
    target, queue = place.name("dead"), f"{place.queue}.declared"
    place.left(target)
    client = place.client()
    known = client.transport._dialect
    assert known is not None
    client.transport._dialect = replace(known, queue_prefix="/amq/queue/")  # a queue that is not declared by its name
    session = client.session()
    session.channel._outbox.write(  # type: ignore[attr-defined]  # what an administrator does
        (
            f"SUBSCRIBE\nid:admin\nack:client\ndestination:/queue/{queue}\nx-dead-letter-exchange:\n"
            f"x-dead-letter-routing-key:{target}\nauto-delete:true\n\n\0"
        ).encode()
    )
    session.attach(queue)
    session.channel._outbox.write(b"UNSUBSCRIBE\nid:admin\n\n\0")  # type: ignore[attr-defined]  # as above
    assert session.send(text("bad", queue)) is None
    session.do(session.channel.poison(session.receive(), "why", None))
    (letter,) = place.left(target, at_least=1)
    assert letter.body() == "bad"
    assert letter.properties()["x-first-death-reason"] == "rejected"
    assert letter.properties()["x-first-death-queue"] == queue
    record = Message.received(letter, 0, None).dead_letter
    assert record is not None
    assert (record.origin, record.cause, record.expired) == (Queue(queue), "rejected", False)
    replay = Message.received(letter, 0, None).copy()
    assert place.client().session().send(text(replay, place.queue)) is None  # that is shown, and not sent again
    assert not place.left(at_least=1)[0].properties()


def test_a_crash_between_the_copy_and_the_ack_is_a_duplicate_never_a_loss(place: Place) -> None:
    place.fill("bad")
    target = place.name("dead")
    client = place.client()
    session = client.session()
    session.attach(place.queue)
    copy = text("bad", target)
    session.do(found(session.channel.finder, copy.destination))
    flow = session.channel.poison(session.receive(), "why", copy)
    pending = next(flow)
    assert isinstance(pending, Pending)
    while not pending.done:
        client.transport.wait(session.waiter, TIMEOUT)
    client.transport.abort()  # confirmed, not acknowledged
    with pytest.raises(JMSError):
        flow.send(None)
    assert (bodies(place.left(target, at_least=1)), bodies(place.left(at_least=1))) == (["bad"], ["bad"])


def test_a_closed_consumer_releases_what_it_has_though_unsubscribe_keeps_it(place: Place) -> None:
    place.fill(*numbers(30))
    session = place.client().session(AckMode.TRANSACTED)
    link = session.attach(place.queue, window=10)
    batch = held(session, 3)
    session.do(session.channel.commit(batch))
    session.do(session.channel.detach(link))
    assert sorted(bodies(place.left(at_least=27)), key=int) == numbers(30)[3:]  # while the connection lives


def test_a_closed_session_releases_a_batch_larger_than_the_window(place: Place) -> None:
    place.fill(*numbers(300))
    session = place.client().session(AckMode.TRANSACTED)
    session.attach(place.queue, window=10)
    held(session, 200)
    session.do(session.channel.close())
    again = place.left(at_least=300)
    assert sorted(bodies(again), key=int) == numbers(300)
    assert all(each.wire_count() == 2 for each in again if int(each.body()) < 200)


def test_an_id_of_a_lost_connection_is_never_sent(place: Place) -> None:
    """There it would acknowledge another message: only the number in it counts."""
    place.fill("x", "y")
    client = place.client()
    session = client.session()
    session.attach(place.queue)
    stale = session.receive()
    client.transport.abort()
    again = place.client().session()
    again.attach(place.queue)
    assert again.receive() is not None
    with pytest.raises(ConnectionLostError):
        again.channel.accept([stale], batched=False)
    again.do(again.channel.close())
    assert sorted(bodies(place.left(at_least=2))) == ["x", "y"]


@pytest.mark.parametrize("options", [{"selector": "a = 1"}, {"no_local": True}])
def test_what_it_ignores_is_refused(place: Place, options: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedError):
        place.client().session().attach(place.queue, **options)
    with pytest.raises(UnsupportedError):
        place.client().session().send(text("x", place.queue, delivery_time=utc_now() + timedelta(seconds=9)))
    assert not place.client().transport.peer.capabilities.browse


def test_confirmations_are_matched_by_their_number(place: Place) -> None:
    """That of a SEND may come after later frames' answers."""
    place.fill(*numbers(500))
    session = place.client().session()
    session.attach(place.queue)
    for at in range(500):
        delivery = session.receive()
        assert delivery.body() == str(at)
        session.channel.accept([delivery], batched=True)
        if at % 50 == 0:
            assert session.send(text("more", place.name("out"))) is None
    session.do(session.channel.close())
    assert place.left() == []
