"""What brokers put on a dead-letter queue by themselves, as `message.dead_letter` reads it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from typing import Any

import pytest
from tests.run.again import may_hide

import redelivery
from redelivery import BrokerDeadLetterStrategy, Message, Passport, Queue, RedeliveryPolicy, SharedDeadLetterStrategy
from redelivery.model.content.dead_letters import DeadLetterInfo
from redelivery.testing.brokers.real import RealBroker

SOON = 10.0
ATTEMPTS = 10  # of Artemis and HornetQ, as the tests' brokers are set up


@pytest.fixture
def queue() -> str:
    return f"own.dead.{uuid.uuid4().hex[:8]}"


def send(url: str, queue: str) -> None:
    with redelivery.connect(url) as connection, connection.session() as session:
        session.producer(queue).send("x", properties={"ref": queue})


def letter(url: str, dead_letters: str, ref: str) -> tuple[DeadLetterInfo | None, Mapping[str, object]]:
    with redelivery.connect(url) as connection, connection.session("individual") as session:
        consumer = session.consumer(dead_letters)
        while (message := consumer.receive(timeout=SOON)) is not None:
            if message.properties.get("ref") == ref:
                found = message.dead_letter, message.properties
                message.acknowledge()
                return found
    raise AssertionError(f"{ref} is not on {dead_letters}")


@pytest.mark.parametrize("protocol", ["stomp", "amqp"])
def test_artemis_after_it_was_rejected(artemis: RealBroker, queue: str, protocol: str) -> None:
    pytest.importorskip("proton")
    send(artemis.amqp_url, queue)
    policy, strategy = RedeliveryPolicy(maximum_redeliveries=0), BrokerDeadLetterStrategy(configured=True)
    options: Any = {"redelivery_policy": policy, "dead_letter_strategy": strategy}
    with redelivery.connect(artemis.amqp_url, **options) as connection, connection.session("client") as session:
        assert session.consumer(queue).receive(timeout=SOON) is not None
        session.recover(cause=ValueError("bad"))
    found, _ = letter(getattr(artemis, f"{protocol}_url"), "DLQ", queue)
    assert found == DeadLetterInfo(Queue(queue))


@may_hide
@pytest.mark.parametrize("name", ["artemis", "hornetq"])
def test_after_too_many_lost_connections(request: pytest.FixtureRequest, queue: str, name: str) -> None:
    url = request.getfixturevalue(name).stomp_url
    send(url, queue)
    for _ in range(ATTEMPTS + 2):
        connection = redelivery.connect(url)
        message = connection.session("client").consumer(queue).receive(timeout=5)  # until the loss is noticed
        connection._core.transport.abort()
        connection.close()
        if message is None:
            break
    found, _ = letter(url, "DLQ", queue)
    assert found is not None
    assert found.origin == Queue(queue)


def test_classic_with_a_nack(activemq: RealBroker, queue: str) -> None:
    send(activemq.stomp_url, queue)
    policy = RedeliveryPolicy(maximum_redeliveries=0)
    connection = redelivery.connect(activemq.stomp_url, redelivery_policy=policy)
    with connection, connection.session("client") as session:
        assert session.consumer(queue).receive(timeout=SOON) is not None
        session.recover()
    found, properties = letter(activemq.stomp_url, "ActiveMQ.DLQ", queue)
    assert found == DeadLetterInfo(Queue(queue))
    assert properties["original-destination"] == f"/queue/{queue}"


def test_classic_with_what_expired_at_the_broker(activemq: RealBroker, queue: str) -> None:
    with redelivery.connect(activemq.stomp_url) as connection, connection.session() as session:
        session.producer(queue).send("x", properties={"ref": queue}, ttl=0.1)
        time.sleep(0.2)  # the broker's clock, not ours
        assert session.consumer(queue).receive(timeout=0.3) is None
    found, _ = letter(activemq.stomp_url, "ActiveMQ.DLQ", queue)
    assert found is not None
    assert (found.origin, found.expired) == (Queue(queue), True)
    assert str(found.cause).startswith("Message Expired. Expiration:")


def test_a_received_letter_can_be_read_after_its_connection_is_closed(activemq: RealBroker, queue: str) -> None:
    send(activemq.stomp_url, queue)
    with redelivery.connect(activemq.stomp_url) as connection, connection.session() as session:
        message = session.consumer(queue).receive(timeout=SOON)
    assert isinstance(message, Message)
    assert message.dead_letter is None


@pytest.mark.parametrize(("sent", "read"), [("stomp", "amqp"), ("amqp", "stomp")])
@pytest.mark.parametrize("name", ["activemq", "artemis"])
def test_a_passport_is_read_over_the_other_protocol(
    request: pytest.FixtureRequest, queue: str, name: str, sent: str, read: str
) -> None:
    pytest.importorskip("proton")
    broker, dead_letters = request.getfixturevalue(name), f"{queue}.dead"
    url, made = getattr(broker, f"{sent}_url"), list[Passport]()

    def keep(passport: Passport) -> Passport:
        made.append(passport)
        return passport

    options: Any = {"redelivery_policy": RedeliveryPolicy(maximum_redeliveries=0), "passport": keep}
    strategy = SharedDeadLetterStrategy(dead_letters)
    connection = redelivery.connect(url, dead_letter_strategy=strategy, **options)
    with connection, connection.session("client") as session:
        session.producer(queue).send("x", properties={"ref": queue})
        assert session.consumer(queue).receive(timeout=SOON) is not None
        session.recover(cause=ValueError("\U0001f600\\:\n" * 100))
    with redelivery.connect(getattr(broker, f"{read}_url")) as connection, connection.session("client") as session:
        message = session.consumer(dead_letters).receive(timeout=SOON)
        assert message is not None
        assert message.dead_letter is not None
        assert message.dead_letter.passport == made[-1]
    with redelivery.connect(url) as connection, connection.session() as session:  # who sent it can take it
        assert session.consumer(dead_letters).receive(timeout=SOON) is not None
