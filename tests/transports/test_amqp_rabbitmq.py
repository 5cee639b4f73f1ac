"""The rules of the AMQP transport on a real RabbitMQ."""

from __future__ import annotations

from uuid import uuid4

import pytest

import redelivery
from redelivery import AckMode, JMSError
from redelivery.testing.brokers.real import RealBroker

pytest.importorskip("proton")


def test_a_consumer_that_is_closed_while_messages_come_is_closed_at_once(rabbitmq: RealBroker) -> None:
    """RabbitMQ stops a session's writer with the session: an end in the middle of transfers was never answered.

    Each consumer is closed after its first message of 60, when the others are on their way; some of 200 hung.
    """
    errors: list[JMSError] = []
    queue, bodies = uuid4().hex, [f"{number:02}" for number in range(60)]
    with redelivery.connect(rabbitmq.amqp_url, request_timeout=3, exception_listener=errors.append) as connection:
        with connection.session() as session:
            producer = session.producer(queue)
            for body in bodies:
                producer.send(body, persistent=False)
        for _ in range(200):
            with connection.session(AckMode.CLIENT) as session:
                consumer = session.consumer(queue)
                message = consumer.receive(timeout=10)
                assert message is not None
                assert message.body == bodies[0]
                consumer.close()
        with connection.session() as session:
            consumer = session.consumer(queue)
            assert [message.body for message in consumer.receive_many(len(bodies), timeout=10)] == bodies
    assert errors == []
