"""Classic's limits of headers over STOMP: what is beyond them is refused before it is sent, and all else goes on."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

import redelivery
from redelivery import ConnectionLostError, JMSError, MessageFormatError
from redelivery.model.destinations import Queue
from redelivery.model.messages import Message
from redelivery.testing.brokers.real import RealBroker
from redelivery.transports.dialects.activemq import STOMP
from redelivery.transports.dialects.dialect import StompDialect
from redelivery.transports.stomp.codec.sends import SendEncoder

LONGEST, MOST = STOMP.max_header, STOMP.max_headers
AT_LIMIT = {"p": "x" * (LONGEST - len("p:"))}
TOO_LONG = {"p": "x" * (LONGEST - len("p:") + 2)}
TOO_MANY = {f"p{number}": "x" for number in range(MOST)}


def encode(dialect: StompDialect = STOMP, **message: Any) -> bytes:
    made = Message("body", **message)
    made.stamp(destination=Queue("orders"))
    return SendEncoder("1.2", dialect).encode(made)[0]


def test_a_header_at_the_limit_is_encoded_and_one_beyond_is_not() -> None:
    assert max(map(len, encode(properties=AT_LIMIT).split(b"\n"))) == LONGEST
    with pytest.raises(MessageFormatError, match=r"'p' takes 10242 bytes: .* at more than 10240; put it into the body"):
        encode(properties=TOO_LONG)
    with pytest.raises(MessageFormatError, match="'p' takes"):  # escapes count as they are written
        encode(properties={"p": ":" * (LONGEST // 2)})
    with pytest.raises(MessageFormatError, match="'p' takes"):
        encode(properties={"p": "ü" * (LONGEST // 2)})
    with pytest.raises(MessageFormatError, match="'correlation-id' takes"):
        encode(correlation_id="x" * LONGEST)


def test_too_many_headers_are_refused_and_so_is_the_name_of_a_destination() -> None:
    with pytest.raises(MessageFormatError, match=r"has 10\d\d headers and properties: .* at more than 1000"):
        encode(properties=TOO_MANY)
    made = Message("body")
    made.stamp(destination=Queue("x" * LONGEST))
    with pytest.raises(MessageFormatError, match="'destination' takes"):
        SendEncoder("1.2", STOMP).encode(made)


def test_many_properties_of_a_sum_beyond_it_are_fine() -> None:
    assert len(encode(properties={f"p{number}": "x" * 1000 for number in range(100)})) > 100_000


def test_a_broker_without_limits_takes_them() -> None:
    free = replace(STOMP, max_header=0, max_headers=0)
    assert len(encode(free, properties={**TOO_LONG, **TOO_MANY})) > LONGEST


def test_the_connection_stays(activemq: RealBroker) -> None:
    queue = f"limits.{uuid4().hex}"
    with redelivery.connect(activemq.stomp_url) as connection, connection.session("transacted") as session:
        producer = session.producer(queue)
        producer.send("at the limit", properties=AT_LIMIT)
        for properties in (TOO_LONG, TOO_MANY):
            with pytest.raises(MessageFormatError):
                producer.send("beyond", properties=properties)
        session.commit()
        found = session.consumer(queue).receive(timeout=10)
        assert found is not None
        assert (found.body, found.properties["p"]) == ("at the limit", AT_LIMIT["p"])
        session.commit()


@pytest.mark.parametrize("properties", [TOO_LONG, {**TOO_MANY, "q": "x", "r": "x"}])
def test_the_limits_are_the_brokers_own(activemq: RealBroker, properties: dict[str, str]) -> None:
    """What `max_header` and `max_headers` of the dialect keep from it would end the connection."""
    reported: list[str] = []
    ended = threading.Event()

    def listener(error: JMSError) -> None:
        reported.append(str(error))
        if isinstance(error, ConnectionLostError):
            ended.set()

    with redelivery.connect(activemq.stomp_url, exception_listener=listener) as connection:
        transport: Any = connection._core.transport
        transport._dialect = replace(transport._dialect, max_header=0, max_headers=0)
        producer = connection.session().producer(f"limits.{uuid4().hex}")
        with pytest.raises(JMSError):  # of the loss, or of what it takes the rest of the frame for
            producer.send("beyond", properties=properties)
        assert ended.wait(10)
    assert any("maximum" in each for each in reported)
