"""A queue that is deleted under its consumer, on real brokers: `receive` raises what the broker says."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from queue import SimpleQueue
from uuid import uuid4

import pytest
from tests.transports.amqp091 import Amqp091

import redelivery
from redelivery import Connection, ConnectionLostError, JMSError, Message
from redelivery.testing.brokers.real import RealBroker

SOON = 10.0


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


def ended(opened: ExitStack, url: str, delete: Callable[[str], None]) -> tuple[JMSError, Connection]:
    """What a receive raises that waits while the queue is deleted."""
    queue = f"ended.{uuid4().hex}"
    connection = opened.enter_context(redelivery.connect(url, exception_listener=lambda _: None))
    consumer = connection.session("client").consumer(queue)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(consumer.receive, SOON)
        delete(queue)
        error = waiting.exception(SOON)
    assert isinstance(error, JMSError), error
    with pytest.raises(JMSError):
        consumer.receive(0)
    assert consumer.closed or not connection.connected
    return error, connection


def ask(url: str, node: str, body: object, properties: dict[str, str]) -> dict[str, object]:
    """A request to a broker's management node; the properties of its answer."""
    with redelivery.connect(url) as connection, connection.session() as session:
        inbox = session.temporary_queue()
        answers = session.consumer(inbox)
        session.producer(node, persistent=False).send(body, properties=properties, reply_to=inbox)
        answer = answers.receive(SOON)
        assert answer is not None
        return dict(answer.properties)


def delete_on_artemis(url: str, queue: str) -> None:
    operation = {"_AMQ_ResourceName": "broker", "_AMQ_OperationName": "destroyQueue"}
    answer = ask(url, "activemq.management", json.dumps([queue, True]), operation)
    assert answer["_AMQ_OperationSucceeded"] is True


def test_artemis_over_amqp(artemis: RealBroker, opened: ExitStack) -> None:
    error, connection = ended(opened, artemis.amqp_url, lambda queue: delete_on_artemis(artemis.amqp_url, queue))
    assert "the broker has ended the consumer" in str(error)
    assert "amqp:resource-deleted: Queue deleted" in str(error)
    assert connection.connected


def test_artemis_over_stomp(artemis: RealBroker, opened: ExitStack) -> None:
    """There every ERROR ends the connection."""
    error, _ = ended(opened, artemis.stomp_url, lambda queue: delete_on_artemis(artemis.amqp_url, queue))
    assert isinstance(error, ConnectionLostError)
    assert "disconnected by server" in str(error)


def delete_on_broker_j(url: str, queue: str) -> None:
    operation = {"operation": "DELETE", "type": "org.apache.qpid.Queue", "index": "object-path", "key": queue}
    assert ask(url, "$management", {}, operation)["statusCode"] == 204


def test_broker_j(qpid: RealBroker, opened: ExitStack) -> None:
    error, connection = ended(opened, qpid.amqp_url, lambda queue: delete_on_broker_j(qpid.amqp_url, queue))
    assert "amqp:resource-deleted" in str(error)
    assert connection.connected


def delete_on_rabbitmq(url: str, queue: str) -> None:
    with Amqp091(url) as client:
        client.delete(queue)


def test_rabbitmq_over_stomp(rabbitmq: RealBroker, opened: ExitStack) -> None:
    error, connection = ended(opened, rabbitmq.stomp_url, lambda queue: delete_on_rabbitmq(rabbitmq.amqp_url, queue))
    assert "the broker has ended the consumer" in str(error)
    assert "Server cancelled subscription" in str(error)
    assert connection.connected


def test_rabbitmq_over_amqp(rabbitmq: RealBroker, opened: ExitStack) -> None:
    """RabbitMQ 3.10 resets the connection."""
    error, _ = ended(opened, rabbitmq.amqp_url, lambda queue: delete_on_rabbitmq(rabbitmq.amqp_url, queue))
    assert isinstance(error, ConnectionLostError)


def hears_again(opened: ExitStack, url: str, delete: Callable[[str], None]) -> None:
    """A listener whose queue is deleted, and made again by who sends to it, hears what comes then."""
    queue, heard = f"ended.{uuid4().hex}", SimpleQueue[object]()
    policy = redelivery.ReconnectPolicy(maximum_delay=0.2)
    connection = opened.enter_context(redelivery.connect(url, reconnect=policy, exception_listener=lambda _: None))

    def hear(message: Message) -> None:
        heard.put(message.body)
        message.acknowledge()

    connection.session("client").consumer(queue).listen(hear)
    for body in ("before", "after", "after that"):
        with connection.session() as session:
            session.producer(queue).send(body)
        assert heard.get(timeout=SOON) == body
        delete(queue)
        assert not connection.wait(0.5)


def test_a_listener_on_artemis(artemis: RealBroker, opened: ExitStack) -> None:
    hears_again(opened, artemis.amqp_url, lambda queue: delete_on_artemis(artemis.amqp_url, queue))


@pytest.mark.parametrize("protocol", ["stomp", "amqp"])
def test_a_listener_on_rabbitmq(rabbitmq: RealBroker, opened: ExitStack, protocol: str) -> None:
    url = rabbitmq.stomp_url if protocol == "stomp" else rabbitmq.amqp_url
    hears_again(opened, url, lambda queue: delete_on_rabbitmq(rabbitmq.amqp_url, queue))
