"""Refusals in the words of real brokers, with what those leave out: the name, the class, the way out."""

from __future__ import annotations

from typing import Any

import pytest

import redelivery
from redelivery import InvalidDestinationError, InvalidSelectorError, JMSError
from redelivery.client.operations.send import refused_send
from redelivery.model.destinations import Queue
from redelivery.model.messages import Message
from redelivery.testing.brokers.real import RealBroker
from redelivery.transports.stomp.codec.errors import broker_error as stomp_error
from redelivery.transports.stomp.codec.frames import Frame


class Condition:
    def __init__(self, name: str, description: str) -> None:
        self.name, self.description = name, description


def test_a_bad_selector_over_amqp_on_classic(activemq: RealBroker) -> None:
    pytest.importorskip("proton")
    with redelivery.connect(activemq.amqp_url) as connection, connection.session() as session:
        with pytest.raises(InvalidSelectorError, match="a = = b"):
            session.consumer("refused.one", selector="a = = b")
        session.producer("refused.one").send("the session goes on")
        assert session.consumer("refused.one").receive(timeout=10) is not None


def test_hornetq_does_not_say_which_destination() -> None:
    error = stomp_error(Frame(b"ERROR\nmessage:HQ339001\\c Destination doesnt exist\\c {0}\n", b""))
    assert type(error) is InvalidDestinationError
    message = Message("x")
    message.stamp(destination=Queue("orders"))
    named = refused_send(message, error)
    assert type(named) is InvalidDestinationError
    assert str(named) == "send to queue://orders: the broker says: HQ339001: Destination doesnt exist"
    assert refused_send(message, named) is named  # once


def test_broker_j_in_memory_takes_no_persistent_message() -> None:
    pytest.importorskip("proton")
    from redelivery.transports.amqp.codec.errors import broker_error as amqp_error

    said: Any = Condition("amqp:precondition-failed", "Non-durable message store cannot accept durable message.")
    error = amqp_error(said, "sending to queue://orders")
    assert isinstance(error, JMSError)
    assert str(error).endswith("durable message. Use send(…, persistent=False): it keeps nothing.")


def test_another_bad_field_is_no_bad_selector() -> None:
    pytest.importorskip("proton")
    from redelivery.transports.amqp.codec.errors import broker_error as amqp_error

    said: Any = Condition("amqp:invalid-field", "what?")
    assert type(amqp_error(said, "sending to queue://orders")) is JMSError
