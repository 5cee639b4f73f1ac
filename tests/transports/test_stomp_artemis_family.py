"""What Artemis and HornetQ have in common over STOMP, on the real ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from uuid import uuid4

import pytest
from tests.conformance.stage import LATE
from tests.run.again import may_hide
from tests.transports.live import Place, bodies, exhaust, held, numbers
from tests.transports.scripted import TIMEOUT, as_destination, text

import redelivery
from redelivery import AckMode, BrokerDeadLetterStrategy, SharedDeadLetterStrategy
from redelivery.model.destinations import Queue, Topic
from redelivery.model.errors import UnsupportedError
from redelivery.model.messages import Message
from redelivery.testing.brokers.real import RealBroker
from redelivery.transports.finding import found
from redelivery.transports.seam import Pending
from redelivery.transports.stomp.codec.frames import encode
from redelivery.transports.wire.clock import monotonic, utc_now

DUPLICATE_ID = {"artemis": "_AMQ_DUPL_ID", "hornetq": "_HQ_DUPL_ID"}


@pytest.fixture(params=["artemis", "hornetq"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with ExitStack() as opened:
        yield Place(request.getfixturevalue(request.param).stomp_url, opened)


@pytest.mark.parametrize("body", ["tëxt \U0001f600", "", b"by\0tes", b"plain", b"", None])
def test_a_body_comes_back_as_it_was_sent(place: Place, body: object) -> None:
    session = place.client().session()
    session.attach(place.queue)
    properties = {"plain": "v", "od:d\nname": "a\\b:c\r\n", "empty": "", "space": " x "}
    message = Message(
        body,
        properties=properties,
        correlation_id="c:1",
        reply_to="topic://r",
        type="ty",
        group_id="g",
        group_sequence=7,
    )
    assert session.send(text(message, place.queue, priority=7)) is None
    delivery = session.receive()
    got = Message.received(delivery, 0, None)
    assert (got.body, type(got.body)) == (body, type(body))
    assert got.properties == properties
    assert (got.correlation_id, got.reply_to, got.type, got.priority) == ("c:1", Topic("r"), "ty", 7)
    assert (got.group_id, got.group_sequence) == ("g", 7)
    assert (got.persistent, got.destination, got.redelivered) == (True, Queue(place.queue), False)
    assert abs(got.timestamp.timestamp() - utc_now().timestamp()) < 60 if got.timestamp else False
    session.channel.accept([delivery], batched=False)


def test_what_others_send_is_text_where_it_can_be(place: Place) -> None:
    client = place.client()
    session = client.session()
    session.attach(place.queue)
    dialect = session.channel._dialect  # type: ignore[attr-defined]  # to write what a plain client writes
    for body in (b"text", b"\xff\0"):
        headers = {"destination": f"{dialect.queue_prefix}{place.queue}", "content-length": str(len(body))}
        frame = encode("SEND", {**headers, **dict(dialect.send_to_queue)}, body)
        session.channel._outbox.write(frame)  # type: ignore[attr-defined]  # as above
    first, second = session.receive_many(2)
    assert (first.body(), second.body()) == ("text", b"\xff\0")
    session.channel.accept([first, second], batched=False)


def test_no_local_leaves_out_what_the_connection_itself_sends(place: Place) -> None:
    session = place.client().session()
    session.attach(Topic(place.queue), no_local=True)
    assert session.send(text("own", Topic(place.queue))) is None
    assert place.client().session().send(text("others", Topic(place.queue))) is None
    assert session.receive().body() == "others"


def test_no_local_holds_though_the_connection_subscribes_without_it(hornetq: RealBroker) -> None:
    """HornetQ forgets it for the whole socket; a condition on who has sent a message stands beside it."""
    topic = f"topic://local.{uuid4().hex}"
    with redelivery.connect(hornetq.stomp_url) as connection, connection.session() as session:
        without = session.consumer(topic, no_local=True)
        others = session.consumer(topic)
        session.producer(topic).send("own")
        assert others.receive(timeout=10) is not None
        assert without.receive(timeout=0.3) is None


def test_a_delayed_message_comes_later(place: Place) -> None:
    session = place.client().session()
    session.attach(place.queue)
    began = monotonic()
    assert session.send(text("later", place.queue, delivery_time=utc_now() + timedelta(seconds=0.6))) is None
    delivery = session.receive()
    assert monotonic() - began > 0.4
    assert delivery.properties() == {}
    session.channel.accept([delivery], batched=False)


@may_hide
def test_the_flag_is_all_that_is_said_of_the_count(place: Place) -> None:
    place.fill("x")
    client = place.client()
    session = client.session()
    session.attach(place.queue)
    first = session.receive()
    client.transport.abort()
    (again,) = place.left(at_least=1)
    assert (first.wire_count(), again.wire_count()) == (1, 2)
    assert first.header("message_id") == again.header("message_id")


def test_a_name_is_a_queue_and_a_topic_which_are_two(place: Place) -> None:
    session = place.client().session()
    session.attach(Topic(place.queue))
    session.attach(Queue(place.queue))
    assert session.send(text("to the queue", Queue(place.queue))) is None
    assert session.send(text("to the topic", Topic(place.queue))) is None
    found = session.receive_many(2)
    assert {each.body(): each.header("destination") for each in found} == {
        "to the queue": Queue(place.queue),
        "to the topic": Topic(place.queue),
    }
    session.channel.accept(found, batched=False)
    assert session.receive(0.2) is None


def test_a_pattern_of_topics_takes_from_all_and_one_of_queues_is_refused(place: Place) -> None:
    session = place.client().session()
    session.attach(Topic(f"{place.queue}.>"))
    assert session.send(text("deep", Topic(f"{place.queue}.a.b"))) is None
    delivery = session.receive()
    assert (delivery.body(), delivery.header("destination")) == ("deep", Topic(f"{place.queue}.a.b"))
    with pytest.raises(UnsupportedError, match="pattern"):
        session.attach(f"{place.queue}.>")


def test_a_rollback_leaves_what_no_transaction_could_release(place: Place) -> None:
    """An ACK in a transaction counts at once there: nothing of the batch may have been acknowledged."""
    client = place.client()
    count = {"artemis": 150, "hornetq": 20}[client.transport.peer.dialect]  # HornetQ may hold back more than 10 KiB
    place.fill(*numbers(count))
    session = client.session(AckMode.TRANSACTED)
    session.attach(place.queue, window=10)
    held(session, count)
    session.do(session.channel.rollback())
    session.do(session.channel.close())
    assert bodies(place.left(at_least=count)) == numbers(count)


def test_poison_is_never_left_to_a_nack(place: Place) -> None:
    """NACK is ACK there: not even where the user says that the broker is set up for dead letters."""
    place.fill("bad")
    exhaust(place, 3, dead_letter_strategy=BrokerDeadLetterStrategy(configured=True))
    assert place.left() == []
    place.fill("other")
    session = place.client().session()
    session.attach(place.queue)
    with pytest.raises(UnsupportedError, match="NACK may delete"):
        session.do(session.channel.poison(session.receive(), "why", None))
    session.do(session.channel.close())
    assert bodies(place.left(at_least=1)) == ["other"]


@may_hide
def test_a_crash_between_the_copy_and_the_ack_leaves_one_copy(place: Place) -> None:
    """The broker drops the second, which has the same duplicate id."""
    place.fill("bad", "other")
    target = place.name("dead")
    for last in (False, True):
        client = place.client()
        session = client.session()
        session.attach(place.queue)
        delivery, other = session.receive_many(2)
        assert (delivery.body(), other.body()) == ("bad", "other")
        session.do(found(session.channel.finder, as_destination(target)))
        flow = session.channel.poison(delivery, "why", text(Message(delivery.body()), target))
        if last:
            session.do(flow)
            session.do(session.channel.close())
        else:
            pending = next(flow)
            assert isinstance(pending, Pending)
            while not pending.done:
                client.transport.wait(session.waiter, TIMEOUT)
            client.transport.abort()  # confirmed, not acknowledged
    assert bodies(place.left(target, at_least=1)) == ["bad"]
    assert bodies(place.left(at_least=1)) == ["other"]


def test_a_replayed_dead_letter_can_be_dead_lettered_again(place: Place) -> None:
    """The duplicate id does not travel with the copy of a received message: the next copy would vanish."""
    place.fill("bad")
    target = place.name("dead")
    for _ in range(2):
        exhaust(place, 3, dead_letter_strategy=SharedDeadLetterStrategy(dead_letter_queue=target))
        (letter,) = place.left(target, at_least=1)
        assert DUPLICATE_ID[place.client().transport.peer.dialect] not in letter.properties()
        with place.connect() as connection, connection.session() as session:
            session.producer(place.queue).send(Message.received(letter, 0, None))
    assert bodies(place.left(at_least=1)) == ["bad"]


def test_a_duplicate_id_can_be_given_and_is_not_shown(place: Place) -> None:
    name = DUPLICATE_ID[place.client().transport.peer.dialect]
    with place.connect() as connection, connection.session() as session:
        producer = session.producer(place.queue)
        for body, identifier in (("one", "1"), ("one again", "1"), ("two", "2")):
            producer.send(body, properties={name: identifier})
    left = place.left(at_least=2)
    assert bodies(left) == ["one", "two"]
    assert [name in each.properties() for each in left] == [False, False]


def test_a_producers_own_ack_and_flag_mean_nothing(place: Place) -> None:
    client = place.client()
    session = client.session()
    session.attach(place.queue)
    dialect = session.channel._dialect  # type: ignore[attr-defined]  # to write what another client may send
    headers = {"destination": f"{dialect.queue_prefix}{place.queue}", "ack": "evil", "redelivered": "true"}
    frame = encode("SEND", {**headers, **dict(dialect.send_to_queue)}, b"x")
    session.channel._outbox.write(frame)  # type: ignore[attr-defined]  # as above
    delivery = session.receive()
    assert delivery.wire_count() == 1
    session.channel.accept([delivery], batched=False)
    session.do(session.channel.close())
    assert client.lost == []
    assert place.left() == []


def test_browsing_is_not_offered(place: Place) -> None:
    assert not place.client().transport.peer.capabilities.browse


@pytest.mark.long_form
@may_hide
def test_a_loss_while_answers_are_under_way_is_noticed_within_half_a_minute(place: Place) -> None:
    """One in about fifteen keeps Artemis for 10 s from noticing any other."""
    for _ in range(20):
        sending = place.client()
        session = sending.session()
        answers = [Pending(session.waiter) for _ in range(30)]
        for answer in answers:
            session.channel.send(text("x", place.name("filled")), transacted=False, pending=answer)
        sending.transport.abort()
        client, _, _ = place.holding()
        client.transport.abort()
        next_one = place.client().session()
        next_one.attach(place.queue)
        delivery = next_one.receive(LATE)
        assert delivery is not None
        next_one.channel.accept([delivery], batched=False)
        next_one.do(next_one.channel.close())


@pytest.mark.long_form
@pytest.mark.timeout(120)
def test_a_silent_client_is_not_thrown_out(place: Place) -> None:
    """Without any heart-beats it ends the connection after 60 seconds."""
    client = place.client(heartbeat=0.0)
    session = client.session()
    session.attach(place.queue)
    assert session.receive(65) is None
    assert client.lost == []
    assert session.send(text("x", place.queue)) is None
