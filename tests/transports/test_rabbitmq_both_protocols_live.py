"""What is sent over one protocol of RabbitMQ is received over the other as what it was, and so is its dead letter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

import redelivery
from redelivery import MessageFormatError, RedeliveryPolicy, SharedDeadLetterStrategy
from redelivery.testing.brokers.real import RealBroker

SOON = 10.0
pytestmark = pytest.mark.in_turns("broker")
ONCE = RedeliveryPolicy(maximum_redeliveries=0)
OVER_AMQP: tuple[Any, ...] = ("ä chair", "", b"\x00\xff", {"a": 1, "b": "c"}, [1, "two", b"\x03"], None)


@pytest.fixture(params=["rabbitmq", "rabbitmq4"])
def broker(request: pytest.FixtureRequest) -> RealBroker:
    pytest.importorskip("proton", reason="AMQP is missing")
    broker: RealBroker = request.getfixturevalue(f"redelivery_{request.param}")
    return broker


@pytest.fixture
def queue(broker: RealBroker) -> Iterator[str]:
    name = f"both.{uuid4().hex}"
    yield name
    for each in (name, f"{name}.dead"):
        received(broker.stomp_url, each)


def send(url: str, queue: str, *bodies: Any) -> None:
    with redelivery.connect(url) as connection, connection.session() as session:
        for each in bodies:
            session.producer(queue).send(each)


def received(url: str, queue: str, number: int = 0, **options: Any) -> list[Any]:
    """The bodies of so many, and of what else is there."""
    with redelivery.connect(url) as connection, connection.session() as session:
        consumer = session.consumer(queue, **options)
        first = [message for _ in range(number) if (message := consumer.receive(timeout=SOON)) is not None]
        return [message.body for message in (*first, *consumer.receive_many(100, timeout=0.1))]


def test_what_was_sent_over_amqp_is_received_over_stomp(broker: RealBroker, queue: str) -> None:
    send(broker.amqp_url, queue, *OVER_AMQP)
    assert received(broker.stomp_url, queue, len(OVER_AMQP)) == list(OVER_AMQP)


def test_so_is_what_another_client_has_sent(redelivery_rabbitmq4: RealBroker, queue: str) -> None:
    """As python-qpid-proton writes it, without an annotation that says what it is."""
    proton = pytest.importorskip("proton")
    from proton.utils import BlockingConnection

    send(redelivery_rabbitmq4.amqp_url, queue, "makes the queue")
    place = redelivery_rabbitmq4.amqp_url.replace("guest:guest@", "")
    other = BlockingConnection(place, user="guest", password="guest", allowed_mechs="PLAIN")  # noqa: S106  # the broker's own
    sender = other.create_sender(f"/queues/{queue}")
    for body in ("x", b"y", {"k": 1}, [1, 2]):
        sender.send(proton.Message(body=body))
    sender.send(proton.Message(body="p", properties={"n": 1}))
    other.close()
    assert received(redelivery_rabbitmq4.stomp_url, queue, 6) == ["makes the queue", "x", b"y", {"k": 1}, [1, 2], "p"]


def test_what_was_sent_over_stomp_is_received_over_amqp(redelivery_rabbitmq4: RealBroker, queue: str) -> None:
    """RabbitMQ 3 leaves out the header that says what it is: there it is bytes."""
    bodies = ("ä chair", b"\x00\xff", None)
    send(redelivery_rabbitmq4.stomp_url, queue, *bodies)
    assert received(redelivery_rabbitmq4.amqp_url, queue, len(bodies)) == list(bodies)


@pytest.mark.parametrize("reader", ["stomp", "amqp"])
@pytest.mark.parametrize("worker", ["stomp", "amqp"])
def test_a_dead_letter_of_it_is_what_it_was(broker: RealBroker, queue: str, worker: str, reader: str) -> None:
    send(broker.amqp_url, queue, *OVER_AMQP)
    letters = SharedDeadLetterStrategy(f"{queue}.dead")
    with (
        redelivery.connect(broker.urls[worker], redelivery_policy=ONCE, dead_letter_strategy=letters) as connection,
        connection.session("client") as session,
    ):
        consumer = session.consumer(queue)
        for _ in OVER_AMQP:
            assert consumer.receive(timeout=SOON) is not None
            session.recover(ValueError("no"))
        assert consumer.receive(timeout=0.2) is None
    assert received(broker.urls[reader], f"{queue}.dead", len(OVER_AMQP)) == list(OVER_AMQP)


@pytest.mark.parametrize(("bodies", "expected"), [("text", "ä chair"), ("bytes", "ä chair".encode())])
def test_a_consumer_may_take_all_for_one_kind(broker: RealBroker, queue: str, bodies: str, expected: object) -> None:
    send(broker.amqp_url, queue, "ä chair")
    assert received(broker.stomp_url, queue, 1, bodies=bodies) == [expected]


def test_what_looks_like_it_and_cannot_be_read_says_so(redelivery_rabbitmq4: RealBroker, queue: str) -> None:
    url = redelivery_rabbitmq4.stomp_url
    with redelivery.connect(url) as connection, connection.session() as session:
        session.producer(queue).send(b"\x00Sw\xa1\xff", type="amqp-1.0")
        session.producer(queue).send("plain", type="amqp-1.0")
        consumer = session.consumer(queue)
        broken, plain = consumer.receive(timeout=SOON), consumer.receive(timeout=SOON)
    assert broken is not None
    assert plain is not None
    assert (broken.raw_body, plain.body, plain.type) == (b"\x00Sw\xa1\xff", "plain", "amqp-1.0")
    with pytest.raises(MessageFormatError):
        _ = broken.body
