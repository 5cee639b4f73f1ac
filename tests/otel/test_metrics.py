"""Numbers: how many messages were sent, consumed, redelivered and dead-lettered, and how long work took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from uuid import uuid4

import pytest
from tests.client.shell import SOON, eventually, receive
from tests.otel.collected import Collected, context, linked
from tests.run.gate import Gate

import redelivery
from redelivery import ConfigError, Message, ReconnectPolicy, RedeliveryPolicy
from redelivery.broker import EmbeddedBroker
from redelivery.events import Event

FAST = RedeliveryPolicy(initial_redelivery_delay=0.01, redelivery_delay=0.01, maximum_redeliveries=1)


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(f"otel-{uuid4().hex}", stomp_port=0) as broker:
        yield broker


def only(points: list[tuple[Mapping[str, Any], Any]]) -> tuple[dict[str, Any], Any]:
    ((attributes, value),) = points
    return {name: attributes[name] for name in attributes if not name.startswith("server.")}, value


def test_messages_and_durations(broker: EmbeddedBroker) -> None:
    seen = Collected()
    with redelivery.connect(broker.stomp_url, observer=seen.observer) as connection, connection.session() as session:
        producer, consumer = session.producer("orders"), session.consumer("orders")
        for _ in range(3):
            producer.send("two chairs")
            receive(consumer)
    system = {"messaging.system": "redelivery", "messaging.destination.name": "orders"}
    sending, receiving = ({**system, "messaging.operation.name": name} for name in ("send", "receive"))
    assert only(seen.numbers("messaging.client.sent.messages")) == (sending, 3)
    assert only(seen.numbers("messaging.client.consumed.messages")) == (receiving, 3)
    durations = seen.numbers("messaging.client.operation.duration")
    assert [only([each]) for each in durations] == [
        ({**sending, "messaging.operation.type": "send"}, 3),
        ({**receiving, "messaging.operation.type": "receive"}, 3),
    ]


def test_failures(broker: EmbeddedBroker) -> None:
    events: list[Event] = []
    seen = Collected(also=events.append)

    def handler(_: Message) -> None:
        raise ValueError("no stock")

    with redelivery.connect(broker.stomp_url, observer=seen.observer, redelivery_policy=FAST) as connection:
        connection.publisher().send("two chairs", "orders")
        with connection.listener_container("orders", handler):
            eventually(lambda: broker.queue_depth("ActiveMQ.DLQ") == 1)
    failed = {"messaging.system": "redelivery", "messaging.destination.name": "orders", "error.type": "ValueError"}
    assert only(seen.numbers("redelivery.redeliveries")) == (failed, 1)
    assert only(seen.numbers("redelivery.dead_letters")) == (failed, 1)
    processing = {**failed, "messaging.operation.name": "process"}
    assert only(seen.numbers("messaging.process.duration")) == (processing, 2)
    assert [type(each).__name__ for each in events][:2] == ["Connected", "Sent"]


def test_reconnects(broker: EmbeddedBroker) -> None:
    seen, port = Collected(), int(broker.stomp_url.rpartition(":")[2])
    with (
        Gate("127.0.0.1", port) as gate,
        redelivery.connect(
            f"stomp://127.0.0.1:{gate.port}", observer=seen.observer, reconnect=ReconnectPolicy()
        ) as connection,
        connection.session("client") as session,
    ):
        session.producer("orders").send("two chairs")
        consumer = session.consumer("orders")
        receive(consumer)
        gate.shut(0.05)
        assert consumer.receive(timeout=SOON) is not None
    url = {"redelivery.url": f"stomp://127.0.0.1:{gate.port}"}
    lost, value = only(seen.numbers("redelivery.connections.lost"))
    assert ({"redelivery.url": lost["redelivery.url"]}, value) == (url, 1)
    assert only(seen.numbers("redelivery.reconnects")) == (url, 1)
    first, again = (span for span in seen.spans if span.name == "receive orders")
    assert linked(again)[1] == context(first).span_id  # also where the broker redelivers


def test_a_temporary_destination_is_no_attribute_of_a_number() -> None:
    pytest.importorskip("proton")
    seen = Collected()
    with (
        EmbeddedBroker(f"otel-{uuid4().hex}", amqp_port=0) as broker,
        redelivery.connect(broker.amqp_url, observer=seen.observer) as connection,
        connection.session() as session,
    ):
        replies = session.temporary_queue()
        session.producer(replies).send("yes")
    assert "messaging.destination.name" not in seen.numbers("messaging.client.sent.messages")[0][0]
    assert (seen.span("send").attributes or {})["messaging.destination.temporary"] is True


def test_what_is_given_each_event_too_must_take_one() -> None:
    wrong: Any
    for wrong in (5, redelivery.otel.observer):
        with pytest.raises(ConfigError, match=r"^observer"):
            redelivery.otel.observer(also=wrong)
