"""What a test asks of the embedded broker without a connection: send, and wait for a depth."""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from typing import Any

import pytest

import redelivery
from redelivery import ConfigError, InvalidDestinationError, Message, MessageFormatError, Queue, RequestTimeoutError
from redelivery.broker import EmbeddedBroker


def test_send_is_a_producers(redelivery_broker: EmbeddedBroker) -> None:
    options: Any = {"correlation_id": "c", "reply_to": "replies", "type": "t", "group_id": "g"}
    sent = redelivery_broker.send(
        "orders", {"n": 1}, properties={"p": 2}, priority=9, persistent=False, ttl=60, **options
    )
    with redelivery.connect(redelivery_broker.vm_url) as connection, connection.session() as session:
        found = session.consumer("orders").receive(timeout=5)
    assert found is not None
    assert (found.body, found.properties["p"], found.priority, found.persistent) == ({"n": 1}, 2, 9, False)
    assert (found.correlation_id, found.reply_to, found.type, found.group_id) == ("c", Queue("replies"), "t", "g")
    assert found.message_id == sent.message_id
    assert found.expiration is not None
    assert found.timestamp is not None
    assert found.expiration - found.timestamp == timedelta(seconds=60)


def test_send_takes_a_received_message_too(redelivery_broker: EmbeddedBroker) -> None:
    redelivery_broker.send("orders", Message("x", properties={"a": 1}))
    (found,) = redelivery_broker.messages("orders")
    redelivery_broker.send(Queue("again"), found, properties={"b": 2})
    (again,) = redelivery_broker.messages(Queue("again"))
    assert (again.body, again.properties["a"], again.properties["b"]) == ("x", 1, 2)


def test_send_wakes_a_consumer_and_delays(redelivery_broker: EmbeddedBroker) -> None:
    with redelivery.connect(redelivery_broker.stomp_url) as connection, connection.session() as session:
        consumer = session.consumer("orders")
        redelivery_broker.send("orders", "late", delivery_delay=0.2)
        redelivery_broker.send("orders", "soon")
        assert [consumer.receive_body(str, timeout=5) for _ in range(2)] == ["soon", "late"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"destination": "/queue/orders"}, InvalidDestinationError),
        ({"destination": "orders.>"}, InvalidDestinationError),
        ({"destination": None}, InvalidDestinationError),
        ({"body_or_message": object()}, MessageFormatError),
        ({"priority": 10}, ConfigError),
        ({"persistent": 1}, ConfigError),
        ({"ttl": -1}, ConfigError),
        ({"delivery_delay": "x"}, ConfigError),
    ],
)
def test_send_refuses_bad_arguments(
    redelivery_broker: EmbeddedBroker, arguments: dict[str, object], error: type
) -> None:
    send = redelivery_broker.send
    given: Any = {"destination": "orders", "body_or_message": "x", **arguments}
    with pytest.raises(error):
        send(**given)
    assert redelivery_broker.queue_depth("orders") == 0


def test_wait_for_returns_as_soon_as_the_queue_is_empty(redelivery_broker: EmbeddedBroker) -> None:
    redelivery_broker.send("orders", "x")
    with redelivery.connect(redelivery_broker.stomp_url) as connection, connection.session() as session:
        taken = threading.Event()

        def listener(_: Message) -> None:
            taken.wait(5)

        session.consumer("orders").listen(listener)
        with pytest.raises(RequestTimeoutError, match=r"^queue://orders holds 1 message after 0\.1 s, not 0$"):
            redelivery_broker.wait_for("orders", timeout=0.1)
        began = time.monotonic()
        threading.Timer(0.1, taken.set).start()
        redelivery_broker.wait_for("orders", depth=0, timeout=20)
        assert time.monotonic() - began < 10


def test_wait_for_a_depth(redelivery_broker: EmbeddedBroker) -> None:
    redelivery_broker.wait_for("orders")
    waiting = threading.Thread(target=redelivery_broker.wait_for, args=("orders",), kwargs={"depth": 3, "timeout": 20})
    waiting.start()
    for number in range(3):
        redelivery_broker.send("orders", str(number))
    waiting.join(20)
    assert not waiting.is_alive()
    with pytest.raises(TimeoutError, match="holds 3 messages after 0 s, not 2"):
        redelivery_broker.wait_for(Queue("orders"), depth=2, timeout=0)
    with pytest.raises(InvalidDestinationError):
        redelivery_broker.wait_for("topic://news")
    with pytest.raises(ConfigError):
        redelivery_broker.wait_for("orders", depth=-1)


def test_wait_for_ends_with_the_broker() -> None:
    with EmbeddedBroker("ends") as broker:
        broker.send("orders", "x")
        threading.Timer(0.1, broker.close).start()
        began = time.monotonic()
        with pytest.raises(redelivery.IllegalStateError, match="is closed"):
            broker.wait_for("orders", timeout=20)
        assert time.monotonic() - began < 10


@pytest.mark.parametrize(("given", "meant"), [("port", "stomp_port"), ("amqp", "amqp_port"), ("file", "store")])
def test_a_wrong_keyword_is_answered_with_the_right_one(given: str, meant: str) -> None:
    options: Any = {given: 0}
    with pytest.raises(TypeError, match=rf"^EmbeddedBroker\(\) got .*{given!r}; did you mean {meant!r}\?$"):
        EmbeddedBroker("shop", **options)
