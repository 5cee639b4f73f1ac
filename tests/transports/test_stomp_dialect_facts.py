"""Facts of the tables for which no other test would notice that they are wrong; `dialect_fields_stomp` says which."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from tests.transports.live import Place, bodies, held, numbers, raw_send
from tests.transports.scripted import TIMEOUT, Client, ScriptedBroker, text, with_messages

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.model.destinations import Queue, Topic
from redelivery.model.errors import MessageFormatError, TransactionRolledBackError
from redelivery.model.messages import Message
from redelivery.model.modes import AckMode
from redelivery.transports.seam import Pending
from redelivery.transports.stomp.connection.subscriptions import PLAIN

HORNETQ = "HornetQ/2.5.0.SNAPSHOT (Wild Hornet, 124) HornetQ Messaging Engine"
RESTRICTED: dict[str, Any] = {"username": "restricted", "password": "restricted"}


@pytest.fixture
def broker(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The fixture of the broker that the case names; the embedded one is new."""
    if request.param == "embedded":
        with EmbeddedBroker(f"facts-{uuid4().hex}", stomp_port=0) as opened:
            yield opened
    else:
        yield request.getfixturevalue(request.param)


@pytest.fixture
def place(broker: Any) -> Iterator[Place]:
    with ExitStack() as opened:
        yield Place(broker.stomp_url, opened)


def on(*brokers: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("broker", brokers, indirect=True)


CLASSIC = on("activemq", "embedded")


def restricted(place: Place, broker: Any) -> tuple[Client, str]:
    """A client for which a SEND to the place's queue is refused, and a queue that it may send to."""
    if isinstance(broker, EmbeddedBroker):
        broker.faults.error("SEND", "User restricted is not authorized to write", nth=2)
        return place.client(), place.name("allowed")
    return place.client(**RESTRICTED), f"allowed.{place.queue}"


@CLASSIC
def test_what_a_plain_client_sends_is_text_or_bytes(place: Place) -> None:
    session = place.client().session()
    session.attach(place.queue)
    raw_send(session, place.queue, b"text", {})
    raw_send(session, place.queue, b"bytes", {"content-length": "5"})
    found = session.receive_many(2)
    assert bodies(found) == ["text", b"bytes"]
    session.channel.accept(found, batched=False)


@on("rabbitmq")
def test_the_content_type_says_what_a_body_is(place: Place) -> None:
    """Not what is in it: without a content type each body is text, and one that is not UTF-8 cannot be read."""
    session = place.client().session()
    session.attach(place.queue)
    for body in (b"\x08\x01", b"\x08\xff"):
        for content_type in ("application/octet-stream", "application/x-protobuf", "text/plain; charset=latin-1", ""):
            head = {"content-type": content_type} if content_type else {}
            raw_send(session, place.queue, body, {"content-length": "2", **head})
    found = session.receive_many(8)
    assert bodies(found[:7]) == [b"\x08\x01", b"\x08\x01", "\x08\x01", "\x08\x01", b"\x08\xff", b"\x08\xff", "\x08ÿ"]
    with pytest.raises(MessageFormatError, match=r"not UTF-8 .*bodies='bytes'"):
        found[7].body()
    assert [each.raw_body().data() for each in found] == [b"\x08\x01"] * 4 + [b"\x08\xff"] * 4
    session.channel.accept(found, batched=False)


@on("activemq", "embedded", "artemis", "hornetq", "rabbitmq")
def test_a_consumer_may_take_all_bodies_for_text_or_for_bytes(place: Place) -> None:
    for wish, taken in (("bytes", [b"ab", b"cd", b"ef"]), ("text", ["ab", "cd", "ef"])):
        with place.connect() as connection, connection.session() as session:
            producer = session.producer(place.queue)
            producer.send("ab")
            producer.send(b"cd")
            raw_send(session._core.epoch, place.queue, b"ef", {})
            consumer = session.consumer(place.queue, bodies=wish)
            found = consumer.receive_many(3, timeout=TIMEOUT)
            assert sorted(each.body for each in found) == taken  # nobody waited for the last one
            assert sorted(each.copy().body for each in found) == taken


@CLASSIC
def test_what_jms_and_the_broker_write_is_no_property(place: Place) -> None:
    session = place.client().session()
    session.attach(place.queue)
    message = Message("x", properties={"n": "1"}, correlation_id="c", reply_to="r", type="t", group_id="g")
    assert session.send(text(message, place.queue, priority=7, timestamp=1, expiration=None)) is None
    delivery = session.receive()
    assert dict(delivery.properties()) == {"n": "1"}
    session.channel.accept([delivery], batched=False)


@on("activemq", "embedded", "artemis", "hornetq", "rabbitmq")
def test_destinations_are_named_as_other_clients_of_the_broker_name_them(place: Place) -> None:
    client = place.client()
    queues, topics, kinds = {
        "artemis": ("", "", ("destination-type:ANYCAST\n", "destination-type:MULTICAST\n")),
        "hornetq": ("jms.queue.", "jms.topic.", ("", "")),
    }.get(client.transport.peer.dialect, ("/queue/", "/topic/", ("", "")))
    session: Any = client.session()
    session.attach(Topic(place.queue))
    session.attach(Queue(place.queue))
    for prefix, kind, body in ((queues, kinds[0], "queue"), (topics, kinds[1], "topic")):
        session.channel._outbox.write(f"SEND\ndestination:{prefix}{place.queue}\n{kind}\n{body}\0".encode())
    found = session.receive_many(2)
    assert None not in found
    assert sorted((str(each.header("destination")), each.payload) for each in found) == [
        (f"queue://{place.queue}", b"queue"),
        (f"topic://{place.queue}", b"topic"),
    ]
    session.channel.accept(found, batched=False)


@CLASSIC
@pytest.mark.parametrize("prefetch", [5, None])
def test_the_window_is_what_was_asked_for(place: Place, prefetch: int | None) -> None:
    place.fill(*numbers(130))
    session = place.client().session()
    session.attach(place.queue, window=prefetch)
    taken: list[Any] = []
    while (delivery := session.receive(TIMEOUT if len(taken) < (prefetch or 100) else 0.3)) is not None:
        taken.append(delivery)
    assert len(taken) == (prefetch or 100)


@CLASSIC
def test_no_local_leaves_out_what_the_session_itself_publishes(place: Place) -> None:
    """On Classic the header is for a queue: of a topic a selector of ours leaves it out, whichever session sends."""
    client = place.client()
    target = Queue(place.queue) if client.transport.peer.dialect == "activemq" else Topic(place.queue)
    session = client.session()
    session.attach(target, no_local=True)
    assert session.send(text("ours", target)) is None
    assert session.receive(0.3) is None


@CLASSIC
def test_a_batch_enters_its_transaction_before_the_commit(place: Place) -> None:
    place.fill(*numbers(20))
    client = place.client()
    session = client.session(AckMode.TRANSACTED)
    session.attach(place.queue, window=4)
    batch = held(session, 20)
    session.do(session.channel.commit(batch))
    session.do(session.channel.close())
    assert (place.left(), client.errors) == ([], [])


@CLASSIC
@pytest.mark.parametrize("prefetch", [4, 1000])
def test_a_batch_beyond_a_page_does_not_stall_whatever_the_window(place: Place, prefetch: int) -> None:
    """Classic pages a backlog by 200, and then sleeps until an ACK comes."""
    place.fill(*numbers(450))
    session = place.client().session(AckMode.TRANSACTED)
    session.attach(place.queue, window=prefetch)
    batch = held(session, 450)
    assert bodies(batch) == numbers(450)
    session.do(session.channel.commit(batch))


@on("activemq", "embedded")
def test_what_the_wire_format_allows_is_delivered_and_one_more_is_refused_here(place: Place) -> None:
    """They end the connection at a header of more than 10 KiB or at more than 1000 headers."""
    session = place.client().session()
    for name in ("longest", "most"):
        properties = {"k": "v" * (10 * 1024 - 2)} if name == "longest" else {f"k{at}": "v" for at in range(990)}
        assert session.send(text(Message("x", properties=properties), place.queue)) is None
        more = {"k": "v" * (10 * 1024 - 1)} if name == "longest" else {f"k{at}": "v" for at in range(1001)}
        with pytest.raises(MessageFormatError):
            session.send(text(Message("x", properties=more), place.queue))
    assert len(place.left(at_least=2)) == 2


@on("activemq", "embedded", "artemis", "hornetq")
def test_a_send_in_a_transaction_is_answered_before_the_commit(place: Place, broker: Any) -> None:
    """Where the broker would commit the rest, or hangs up: what is refused is known before COMMIT is written."""
    client, allowed = restricted(place, broker)
    session = client.session(AckMode.TRANSACTED)
    session.channel.send(text("yes", allowed), transacted=True, pending=None)
    session.channel.send(text("no", place.queue), transacted=True, pending=None)
    session.channel.send(text("yes", allowed), transacted=True, pending=None)
    with pytest.raises(TransactionRolledBackError, match="a send in the transaction failed"):
        session.do(session.channel.commit([]))
    assert place.left(allowed) == []


@on("activemq", "embedded", "hornetq")
def test_an_error_that_answers_nobody_fails_no_call(place: Place) -> None:
    """Where one that answers a call says so, one that does not is about an ACK."""
    client = place.client()
    session: Any = client.session()
    session.attach(place.queue)
    assert session.send(text("first", place.queue)) is None
    delivery = session.receive()
    session.channel.accept([delivery], batched=False)
    session.channel._outbox.write(delivery.subscription.ack(delivery, PLAIN))  # once more
    answers = [Pending(session.waiter) for _ in range(40)]
    for at, answer in enumerate(answers):
        session.channel.send(text(str(at), place.queue), transacted=False, pending=answer)
    for answer in answers:
        while not answer.done:
            client.transport.wait(session.waiter, TIMEOUT)
    assert [answer.error for answer in answers] == [None] * 40
    assert len(client.errors) == 1


@on("activemq", "embedded", "artemis")
def test_a_property_may_ask_for_a_delay_and_is_not_shown(place: Place) -> None:
    place.fill(Message("later", properties={"AMQ_SCHEDULED_DELAY": "2000"}))
    assert place.left(wait=0.1) == []
    (delivery,) = place.left(at_least=1)
    assert delivery.properties() == {}


@on("artemis", "hornetq")
def test_where_a_dead_letter_of_the_broker_came_from_is_shown(place: Place) -> None:
    name = {"artemis": "_AMQ_ORIG_ADDRESS", "hornetq": "_HQ_ORIG_ADDRESS"}[place.client().transport.peer.dialect]
    session = place.client().session()
    session.attach(place.queue)
    raw_send(session, place.queue, b"x", {name: "somewhere"})
    delivery = session.receive()
    assert delivery.properties() == {name: "somewhere"}
    session.channel.accept([delivery], batched=False)
    replay = Message.received(delivery, 0, None).copy()
    assert session.send(text(replay, place.queue)) is None  # not sent again
    delivery = session.receive()
    assert delivery.properties() == {}
    session.channel.accept([delivery], batched=False)


@on("artemis")
def test_a_small_window_lets_messages_of_a_kilobyte_through(place: Place) -> None:
    place.fill(*["x" * 500] * 10)
    session = place.client().session()
    session.attach(place.queue, window=4)
    found = session.receive_many(4)
    assert None not in found
    session.channel.accept(found, batched=False)


@on("artemis")
def test_a_default_window_holds_hundreds_of_messages(place: Place) -> None:
    """So that further subscriptions are rare: Artemis may lose sight of a message of each when the connection drops."""
    place.fill(*["x" * 1000] * 300)
    session = place.client().session(AckMode.TRANSACTED)
    session.attach(place.queue)
    batch = held(session, 300)
    assert [len(each) for each in session.channel._subscriptions.values()] == [1]  # type: ignore[attr-defined]
    session.do(session.channel.commit(batch))


@on("artemis")
def test_the_kind_that_a_client_over_amqp_has_named(place: Place, broker: Any) -> None:
    pytest.importorskip("proton")
    with redelivery.connect(broker.amqp_url) as connection, connection.session() as session:
        for body in ("text", b"bytes"):
            session.producer(place.queue).send(body)
    assert bodies(place.left(at_least=2)) == ["text", b"bytes"]


@on("artemis")
def test_the_group_of_a_client_over_amqp(place: Place, broker: Any) -> None:
    pytest.importorskip("proton")
    with redelivery.connect(broker.amqp_url) as connection, connection.session() as session:
        session.producer(place.queue).send(Message("x", group_id="g", group_sequence=7))
    (delivery,) = place.left(at_least=1)
    assert (delivery.header("group_id"), delivery.header("group_sequence")) == ("g", 7)


@on("artemis", "rabbitmq")
def test_the_id_that_a_client_over_amqp_has_given(place: Place, broker: Any) -> None:
    pytest.importorskip("proton")
    place.left()  # on RabbitMQ the queue is made by who consumes
    with redelivery.connect(broker.amqp_url) as connection, connection.session() as session:
        sent = session.producer(place.queue).send("x", properties={"name": "värde"})
    (delivery,) = place.left(at_least=1)
    got = Message.received(delivery, 0, None)
    if place.client().transport.peer.dialect == "artemis":
        assert (got.message_id, dict(got.properties)) == (sent.message_id, {"name": "värde"})
    else:
        assert dict(got.properties) == {}  # they are in a header of AMQP's own bytes, which hides no other


@on("rabbitmq")
def test_a_quorum_queue_counts(place: Place) -> None:
    """Its classic queues say only whether a message was delivered before."""
    client = place.client()
    known = client.transport._dialect
    assert known is not None
    client.transport._dialect = replace(known, queue_prefix="/amq/queue/")  # a queue that is not declared by its name
    session: Any = client.session()
    session.channel._outbox.write(  # what an administrator does
        (
            f"SUBSCRIBE\nid:admin\nack:client-individual\ndestination:/queue/{place.queue}\nx-queue-type:quorum\n"
            "durable:true\nauto-delete:false\n\n\0UNSUBSCRIBE\nid:admin\ndurable:true\n\n\0"
        ).encode()
    )
    session.attach(place.queue)
    assert session.send(text("x", place.queue)) is None
    for count in (1, 2, 3):
        delivery = session.receive()
        assert delivery.wire_count() == count
        session.channel._outbox.write(b"N" + delivery.subscription.ack(delivery, PLAIN))
    session.channel.accept([session.receive()], batched=False)
    session.do(session.channel.close())
    place.forget()


@pytest.mark.parametrize("server", ["ActiveMQ-Artemis/2.44.0 ActiveMQ Artemis", HORNETQ, "ActiveMQ/5.18.3"])
def test_who_is_thrown_out_for_silence_beats_though_no_heart_beats_are_wanted(server: str) -> None:
    """Artemis and HornetQ hang up after 60 s: a beat every 30 s at the latest, looked at three times as often."""
    with (
        ScriptedBroker(with_messages(0, lambda _: None, server)) as broker,
        Client(broker.port, heartbeat=0.0) as client,
    ):
        client.session().attach()
        assert client.transport._first is not None
        due = client.transport._first.protocol.next_deadline(0.0)
        assert due == (None if server == "ActiveMQ/5.18.3" else pytest.approx(10.0))


def test_batched_acknowledgements_leave_before_the_window_is_full() -> None:
    """HornetQ's is 10 KiB whatever the application asks for: half of it is five messages of 1 KiB."""
    with ScriptedBroker(with_messages(5, lambda _: None, HORNETQ)) as broker, Client(broker.port) as client:
        session: Any = client.session()
        session.attach()
        for delivery in session.receive_many(5):
            session.channel.accept([delivery], batched=True)
        assert session.channel._outbox._waiting == []
