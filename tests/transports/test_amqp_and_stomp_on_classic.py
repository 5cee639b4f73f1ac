"""What of a message goes from one protocol to the other on a real ActiveMQ Classic."""

from __future__ import annotations

from uuid import uuid4

import pytest

import redelivery
from redelivery import AckMode, ConnectionLostError, InDoubtError, Message
from redelivery.testing.brokers.real import RealBroker


@pytest.fixture
def queue() -> str:
    return f"protocols.{uuid4().hex}"


def send(url: str, queue: str) -> None:
    with redelivery.connect(url) as connection, connection.session() as session:
        session.producer(queue).send("sent")


def received(url: str, queue: str) -> Message:
    with redelivery.connect(url) as connection, connection.session() as session:
        message = session.consumer(queue).receive(timeout=10)
        assert message is not None
        return message


def test_what_comes_over_stomp_is_consumed_over_amqp(activemq: RealBroker, queue: str) -> None:
    send(activemq.stomp_url, queue)
    message = received(activemq.amqp_url, queue)
    assert (message.body, message.delivery_count) == ("sent", 1)


def test_what_comes_over_amqp_cannot_be_acknowledged_over_stomp_and_is_not_lost(
    activemq: RealBroker, queue: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Classic reads the ACK's message id as one of its own, fails at it, and hangs up (NumberFormatException).

    The error, and one warning when such a message comes, say what to do (`amqp_bodies` of the dialect).
    """
    send(activemq.amqp_url, queue)
    send(activemq.amqp_url, queue)
    with redelivery.connect(activemq.stomp_url) as connection, connection.session(AckMode.TRANSACTED) as session:
        message = session.consumer(queue).receive(timeout=10)
        assert message is not None
        assert isinstance(message.body, bytes)  # the whole message, as AMQP encodes it
        with pytest.raises((ConnectionLostError, InDoubtError)) as caught:
            session.commit()
    hint = f"sent over AMQP is acknowledged over STOMP, and one of queue://{queue} was: use amqp:// for it"
    assert hint in f"{caught.value} {caught.value.__cause__}"
    assert len([each for each in caplog.messages if "has AMQP's bytes for a body" in each and hint in each]) == 1
    assert received(activemq.amqp_url, queue).body == "sent"


def test_bytes_that_are_no_amqp_message_are_not_warned_of(
    activemq: RealBroker, queue: str, caplog: pytest.LogCaptureFixture
) -> None:
    with redelivery.connect(activemq.stomp_url) as connection, connection.session() as session:
        consumer = session.consumer(queue)
        for body in (b"\x00S", b"\x00Sy", b"\x00", b"S"):
            session.producer(queue).send(body)
            assert consumer.receive_body(bytes, timeout=10) == body
    assert "AMQP's bytes" not in caplog.text
