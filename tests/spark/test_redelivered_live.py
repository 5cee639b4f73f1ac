"""A message that a broker delivers again has the digest that it had: else a commit in doubt would give two rows."""

from __future__ import annotations

import uuid

import pytest
from tests.conformance.foreign import Foreign, binary, section
from tests.run.again import may_hide

import redelivery
from redelivery import AckMode
from redelivery.spark.rows.columns import Columns
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


def received(url: str, queue: str, count: int) -> tuple[Columns, list[bool]]:
    """So many messages, and their flags; the connection is lost before any is acknowledged."""
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
        return columns, flags
    finally:
        connection._core.transport.abort()
        connection.close()


def keys(columns: Columns) -> list[str]:
    return sorted(map(repr, columns.keys))


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
    assert keys(again) == keys(first)
    assert not any(before)
    assert len(flags) == len(BODIES)
    with redelivery.connect(url) as connection, connection.session() as session:
        consumer = session.consumer(queue)
        while consumer.receive(timeout=1) is not None:
            pass


@may_hide
@pytest.mark.parametrize(
    ("broker", "protocol"), [*PAIRS, ("rabbitmq", "amqp 0-9-1"), ("rabbitmq4", "stomp"), ("rabbitmq4", "amqp")]
)
def test_what_another_client_sent_is_known_again(request: pytest.FixtureRequest, broker: str, protocol: str) -> None:
    """One that gives no id: what has neither id nor time is known by what the broker says of its deliveries."""
    real: RealBroker = request.getfixturevalue(broker)
    queue = f"again-{uuid.uuid4().hex[:12]}"
    foreign = Foreign(protocol, broker, getattr(real, f"{protocol.partition(' ')[0]}_url"))
    url = real.stomp_url if protocol == "amqp 0-9-1" else getattr(real, f"{protocol}_url")
    with redelivery.connect(url) as connection, connection.session() as session:
        session.consumer(queue).receive(timeout=0.1)  # which makes it
    if protocol == "amqp 0-9-1":
        for _ in range(4):
            foreign.publish(queue, b"tick", {})
    else:
        foreign.send(queue, *[section(0x75, binary(b"tick")) if protocol == "amqp" else b"\ntick"] * 4)
    first, before = received(url, queue, 4)
    again, _ = received(url, queue, 4)
    assert keys(again) == keys(first)
    assert not any(before)
    assert len({repr(each) for each in again.keys}) in (1, 4)
    nameless = set(range(4)) if first.keys[0][0] is None else set()
    assert set(first.new) in (nameless, set())
    assert again.new == frozenset()
    with redelivery.connect(url) as connection, connection.session() as session:
        consumer = session.consumer(queue)
        while consumer.receive(timeout=1) is not None:
            pass
