"""What the short form has of ActiveMQ Classic 6, which has the whole conformance suite in the long one."""

from __future__ import annotations

from uuid import uuid4

import pytest

import redelivery
from redelivery import BrokerDeadLetterStrategy, RedeliveryPolicy
from redelivery.testing.brokers.real import RealBroker


@pytest.mark.parametrize("protocol", ["stomp", "amqp"])
def test_a_map_is_redelivered_dead_lettered_by_the_broker_and_browsed(activemq6: RealBroker, protocol: str) -> None:
    queue = f"individual.six.{uuid4().hex}"
    with redelivery.connect(
        getattr(activemq6, f"{protocol}_url"),
        redelivery_policy=RedeliveryPolicy(maximum_redeliveries=1, initial_redelivery_delay=0),
        dead_letter_strategy=BrokerDeadLetterStrategy(),
    ) as connection:
        assert connection.dialect == "activemq"
        with connection.session("transacted") as session:
            session.producer(queue).send({"count": 5}, properties={"kind": "map"})
            session.producer(queue).send("late", delivery_delay=0.2)
            session.commit()
            consumer = session.consumer(queue)
            seen = []
            for _ in range(2):
                message = consumer.receive(timeout=10)
                assert message is not None
                seen.append((message.body, message.properties["kind"], message.delivery_count))
                session.rollback()
            assert seen == [({"count": 5}, "map", 1), ({"count": 5}, "map", 2)]
            message = consumer.receive(timeout=10)
            assert message is not None
            assert message.body == "late"
            session.commit()
            assert [each.body for each in session.browser(f"DLQ.{queue}", selector="kind = 'map'")] == [{"count": 5}]
            letter = session.consumer(f"DLQ.{queue}").receive(timeout=10)
            assert letter is not None
            session.commit()


@pytest.mark.parametrize("protocol", ["stomp", "amqp"])
def test_each_session_consumes_its_own_temporary_queue(activemq6: RealBroker, protocol: str) -> None:
    """It refuses another connection's, and over STOMP each session is one to it."""
    with redelivery.connect(getattr(activemq6, f"{protocol}_url")) as connection:
        sessions = [connection.session() for _ in range(3)]
        queues = [session.temporary_queue() for session in sessions]
        consumers = [session.consumer(queue) for session, queue in zip(sessions, queues, strict=True)]
        for queue in queues:
            sessions[0].producer(queue).send(queue.name)
        assert [each.receive_body(str, timeout=10) for each in consumers] == [queue.name for queue in queues]
