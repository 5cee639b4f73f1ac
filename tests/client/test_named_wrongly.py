"""What would have no effect, or another than was meant, is refused or warned of at a send, in both shells."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

import redelivery
from redelivery import InvalidDestinationError, Message, MessageFormatError
from redelivery.broker import EmbeddedBroker


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(f"wrong-{uuid4().hex}") as broker:
        yield broker


def send(broker: EmbeddedBroker, **options: Any) -> None:
    with redelivery.connect(broker.vm_url) as connection, connection.session() as session:
        session.producer("orders").send("x", **options)


def send_by_default(broker: EmbeddedBroker, **options: Any) -> None:
    with redelivery.connect(broker.vm_url) as connection, connection.session() as session:
        session.producer("orders", **options).send("x")


def publish(broker: EmbeddedBroker, **options: Any) -> None:
    with redelivery.connect(broker.vm_url) as connection, connection.publisher() as publisher:
        publisher.send("x", "orders", **options)


def send_awaited(broker: EmbeddedBroker, **options: Any) -> None:
    async def awaited() -> None:
        async with (
            await redelivery.aio.connect(broker.vm_url) as connection,
            connection.session() as session,
            session.producer("orders") as producer,
        ):
            await producer.send("x", **options)

    asyncio.run(awaited())


WAYS = [send, send_by_default, publish, send_awaited]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["ttl", "delivery_delay"])
def test_seconds_that_were_probably_meant_as_milliseconds_are_warned_of(
    broker: EmbeddedBroker, way: Any, name: str
) -> None:
    with pytest.warns(
        UserWarning, match=rf"^{name}=60000 is 16.7 hours, as it is in seconds; .* pass timedelta"
    ) as warned:
        way(broker, **{name: 60_000})
    assert {each.filename for each in warned} == {__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        way(broker, **{name: 3600})
        way(broker, **{name: timedelta(days=1)})
        way(broker, **{name: None})


def test_a_line_warns_once(broker: EmbeddedBroker) -> None:
    with warnings.catch_warnings(record=True) as warned, redelivery.connect(broker.vm_url) as connection:
        warnings.simplefilter("default")
        with connection.session() as session:
            producer = session.producer("orders")
            for _ in range(3):
                producer.send("x", ttl=86_400)
    assert len(warned) == 1


@pytest.mark.parametrize("way", [send, publish, send_awaited])
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("JMSPriority", "property 'JMSPriority' is one of JMS's headers: write priority= instead"),
        ("JMSExpiration", "write ttl= instead"),
        ("JMSMessageID", "the provider sets it"),
    ],
)
def test_a_header_is_not_a_property(broker: EmbeddedBroker, way: Any, name: str, says: str) -> None:
    with pytest.raises(MessageFormatError, match=says):
        way(broker, properties={"a": 1, name: 5})
    with pytest.raises(MessageFormatError, match=says):
        Message("x", properties={name: 5})
    assert broker.queue_depth("orders") == 0


def test_a_header_that_others_have_sent_as_a_property_goes_on_with_the_message(broker: EmbeddedBroker) -> None:
    message = Message("x")
    message.properties = {"JMSPriority": "high"}
    with redelivery.connect(broker.vm_url) as connection, connection.session() as session:
        session.producer("orders").send(message)
        received = session.consumer("orders").receive(timeout=5)
        assert received is not None
        session.producer("on").send(received)
    assert [each.properties["JMSPriority"] for each in broker.messages("on")] == ["high"]


@pytest.mark.parametrize("name", ["topic:news", "queue:orders", "/exchange/a/b", "/amq/queue/x", "/temp-queue/x"])
def test_a_name_as_others_write_it_is_refused_by_every_call(broker: EmbeddedBroker, name: str) -> None:
    with redelivery.connect(broker.vm_url) as connection, connection.session() as session:
        calls: tuple[Any, ...] = (
            session.consumer,
            session.producer,
            session.browser,
            session.queue,
            session.topic,
            lambda name: session.producer().send("x", name),
            lambda name: connection.listener_container(name, print),
        )
        for call in calls:
            with pytest.raises(InvalidDestinationError, match=r"write '|session\.temporary_queue"):
                call(name)
        for make in (
            lambda name: redelivery.RedeliveryPolicyMap({name: redelivery.RedeliveryPolicy()}),
            redelivery.SharedDeadLetterStrategy,
        ):
            with pytest.raises(redelivery.ConfigError, match=r"write '|session\.temporary_queue"):
                make(name)
        redelivery.RedeliveryPolicyMap({str(redelivery.Queue(name)): redelivery.RedeliveryPolicy()})
        assert session.consumer(redelivery.Queue(name)).receive(timeout=0) is None  # who means it says so
