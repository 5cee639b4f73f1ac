"""A message that a broker delivers again has the digest that it had: else a commit in doubt would give two rows."""

from __future__ import annotations

import uuid

import pytest
from tests.run.again import may_hide

import redelivery
from redelivery import AckMode
from redelivery.spark.rows.columns import Columns
from redelivery.spark.rows.digests import Key
from redelivery.testing.brokers.real import RealBroker

BODIES = ["text", "", b"bytes", None]
PAIRS = [
    ("activemq", "stomp"),
    ("activemq", "amqp"),
    ("artemis", "stomp"),
    ("artemis", "amqp"),
    ("qpid", "amqp"),
    ("rabbitmq", "stomp"),
    ("rabbitmq", "amqp"),
    ("hornetq", "stomp"),
]


def received(url: str, queue: str, count: int) -> tuple[list[Key], list[bool]]:
    """The keys of so many messages, and their flags; the connection is lost before any is acknowledged."""
    connection = redelivery.connect(url)
    try:
        mode = AckMode.TRANSACTED if connection.metadata.capabilities.transactions else AckMode.CLIENT
        session = connection.session(mode)
        columns, flags = Columns(), []
        consumer = session.consumer(queue)
        for _ in range(count):
            message = consumer.receive(timeout=20)
            assert message is not None
            columns.add(message)
            flags.append(message.redelivered)
        return columns.keys, flags
    finally:
        connection._core.transport.abort()
        connection.close()


@may_hide
@pytest.mark.parametrize(("broker", "protocol"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
def test_it_is_known_again(request: pytest.FixtureRequest, broker: str, protocol: str) -> None:
    real: RealBroker = request.getfixturevalue(broker)
    url, queue = getattr(real, f"{protocol}_url"), f"again-{uuid.uuid4().hex[:12]}"
    with redelivery.connect(url) as connection, connection.session() as session:
        producer = session.producer(queue)
        for body in BODIES:
            producer.send(body, properties={"n": 1, "t": "ü", "f": 1.5}, correlation_id="c", type="kind")
    first, before = received(url, queue, len(BODIES))
    again, flags = received(url, queue, len(BODIES))
    assert sorted(map(repr, again)) == sorted(map(repr, first))
    assert not any(before)
    assert len(flags) == len(BODIES)
    with redelivery.connect(url) as connection, connection.session() as session:
        consumer = session.consumer(queue)
        while consumer.receive(timeout=1) is not None:
            pass
