"""Sessions with wires of their own on a real ActiveMQ Classic."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from uuid import uuid4

import pytest
from tests.transports.live import AT_ONCE

import redelivery
from redelivery import AckMode, Connection, Topic
from redelivery.testing.brokers.real import RealBroker

SOON = 5.0


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


def connect(activemq: RealBroker, opened: ExitStack, **options: Any) -> Connection:
    return opened.enter_context(redelivery.connect(activemq.stomp_url, redelivery_policy=AT_ONCE, **options))


@pytest.mark.parametrize("selector", [None, "n = '1' OR n = '2'"])
def test_no_local_leaves_out_what_any_session_of_the_connection_publishes(
    activemq: RealBroker, opened: ExitStack, selector: str | None
) -> None:
    topic = Topic(f"wires.{uuid4().hex}")
    connection = connect(activemq, opened)
    sessions = [connection.session() for _ in range(3)]
    consumers = [
        session.consumer(topic, no_local=no_local, selector=selector)
        for session, no_local in zip(sessions, (True, True, False), strict=True)
    ]
    for session in sessions:
        session.producer(topic).send("ours", properties={"n": "1"})
    connect(activemq, opened).session().producer(topic).send("theirs", properties={"n": "2"})
    for consumer in consumers[:2]:
        message = consumer.receive(SOON)
        assert message is not None
        assert message.body == "theirs"
        assert consumer.receive(0.3) is None
    found = [message for _ in range(4) if (message := consumers[2].receive(SOON)) is not None]
    assert [each.body for each in found] == ["ours", "ours", "ours", "theirs"]
    assert [dict(each.properties) for each in found] == [{"n": "1"}] * 3 + [{"n": "2"}]  # nothing of ours is seen


def test_sessions_beside_one_with_a_client_id(activemq: RealBroker, opened: ExitStack) -> None:
    connection = connect(activemq, opened, client_id=uuid4().hex)
    queue = f"wires.{uuid4().hex}"
    for number in range(3):
        connection.session(AckMode.TRANSACTED)
        with connection.session() as session:
            session.producer(queue).send(str(number))
            message = session.consumer(queue).receive(SOON)
            assert message is not None
            assert message.body == str(number)


def test_a_browser_looks_on_its_session_s_wire_and_takes_nothing(activemq: RealBroker, opened: ExitStack) -> None:
    queue = f"wires.{uuid4().hex}"
    connection = connect(activemq, opened)
    connection.session()
    session = connection.session(AckMode.TRANSACTED)
    producer = session.producer(queue)
    for number in range(5):
        producer.send(str(number))
    session.commit()
    assert [message.body for message in session.browser(queue)] == list("01234")
    consumer = session.consumer(queue)
    assert [message.body for _ in range(5) if (message := consumer.receive(SOON)) is not None] == list("01234")
    session.commit()
    assert [message.body for message in session.browser(queue)] == []
