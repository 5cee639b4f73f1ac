"""Never run: `make check` type-checks it, so that the public names keep the types that users see."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from datetime import datetime, timedelta
from typing import assert_type

import redelivery
from redelivery import AckMode, Message, RedeliveryPolicy, RedeliveryPolicyMap
from redelivery.broker import EmbeddedBroker


def connections() -> None:
    connection = redelivery.connect("vm://x", connect_timeout=timedelta(seconds=1), request_timeout=2, prefetch=10)
    assert_type(connection, redelivery.Connection)
    factory = redelivery.ConnectionFactory("vm://x", redelivery_policy=RedeliveryPolicy(maximum_redeliveries=1))
    with factory.create_connection(start=False) as other:
        assert_type(other.client_id, str | None)
        assert_type(other.metadata.provider_name, str)
    redelivery.connect("vm://x", redelivery_policies={"orders.>": RedeliveryPolicy()})
    redelivery.connect("vm://x", dead_letter_strategies={"orders.>": redelivery.SharedDeadLetterStrategy("Dead")})
    redelivery.connect("vm://x", policies=redelivery.policies.read("broker.xml"))
    redelivery.connect("vm://x", policies="broker.xml")  # type: ignore[arg-type]  # what it says is to be read first
    redelivery.connect(7)  # type: ignore[arg-type]  # a URL is a str
    redelivery.connect("vm://x", retries=3)  # type: ignore[call-arg]  # there is no such option


def sessions(connection: redelivery.Connection) -> None:
    for mode in (AckMode.AUTO, "client", 4):
        assert_type(connection.session(mode), redelivery.Session)
    with connection.session("transacted") as session, session.transaction() as same:
        assert_type(same, redelivery.Session)
        session.rollback(cause=ValueError("why"))


def messages(session: redelivery.Session) -> None:
    consumer = session.consumer("orders", prefetch=0, redelivery_policy=RedeliveryPolicy())
    assert_type(consumer.receive(timeout=1), Message | None)
    assert_type(consumer.receive_many(10, 0.5), list[Message])
    assert_type(iter(consumer), Iterator[Message])
    assert_type(session.durable_consumer("topic://news", "daily", selector="a = 1", no_local=True), redelivery.Consumer)
    assert_type(session.shared_consumer(session.topic("news"), "desks", prefetch=1), redelivery.Consumer)
    assert_type(session.shared_durable_consumer("topic://news", "desks"), redelivery.Consumer)
    session.durable_consumer("topic://news")  # type: ignore[call-overload]  # a subscription has a name
    session.unsubscribe("daily")
    session.declare("orders", type="quorum", arguments={"x-max-length": 9}, dead_letters="dead", maximum_redeliveries=5)
    assert_type(session.delete(session.queue("orders")), int | None)
    producer = session.producer(session.queue("orders"), ttl=timedelta(minutes=1))
    sent = producer.send({"a": 1}, properties={"colour": "red"}, ttl=None)
    assert_type(sent, Message)
    assert_type(sent.timestamp, datetime | None)
    assert_type(sent.delivery_count, int)
    assert_type(producer.send_async(b"bytes"), Future[Message])


def publishing(connection: redelivery.Connection, message: Message) -> None:
    with connection.publisher() as publisher:
        assert_type(publisher, redelivery.Publisher)
        assert_type(publisher.send("body", "orders", properties={"a": 1}, ttl=1), Message)
        publisher.send("body", "orders", headers={})  # type: ignore[call-arg]  # they are called properties
    letter = message.dead_letter
    assert_type(letter, redelivery.DeadLetterInfo | None)
    if letter is not None:
        assert_type(letter.origin, redelivery.Destination | None)
        assert_type(letter.count, int | None)
        assert_type(letter.passport, redelivery.Passport | None)
    redelivery.connect("vm://x", application="shop 2.4", passport=lambda passport: passport)
    redelivery.connect("vm://x", passport="no")  # type: ignore[arg-type]  # a bool, or a function that redacts one
    assert_type(redelivery.__version__, str)


async def coroutine(message: Message) -> None:
    assert_type(message.delivery_count, int)


def listeners(connection: redelivery.Connection, consumer: redelivery.Consumer) -> None:
    consumer.listen(print)
    consumer.listen(lambda message: print(message.body))
    consumer.listen(None)
    consumer.listen(coroutine)  # type: ignore[arg-type]  # a coroutine function is never awaited here
    assert_type(connection.wait(timedelta(seconds=1)), bool)


def policies() -> None:
    policies = RedeliveryPolicyMap({"orders.>": RedeliveryPolicy()}, default=RedeliveryPolicy())
    assert_type(policies.policy_for("orders.new"), RedeliveryPolicy)
    assert_type(RedeliveryPolicy().delay(1), float)
    assert_type(RedeliveryPolicy().exceeded(1), bool)


def broker() -> None:
    with EmbeddedBroker(name="test") as embedded:
        assert_type(embedded.queue_depth("orders"), int)
        assert_type(embedded.messages("ActiveMQ.DLQ"), list[Message])
        assert_type(embedded.send("orders", "body", priority=9), Message)
        embedded.wait_for(redelivery.Queue("orders"), depth=1, timeout=timedelta(seconds=1))


async def asyncio() -> None:
    connection = await redelivery.aio.connect("vm://x", prefetch=10, connect_timeout=timedelta(seconds=1))
    assert_type(connection, redelivery.aio.Connection)
    async with connection.session("transacted") as session, session.consumer("orders") as consumer:
        assert_type(session, redelivery.aio.Session)
        assert_type(await consumer.receive(timeout=1), redelivery.aio.Message | None)
        assert_type(await consumer.receive_many(10, 0.5), list[redelivery.aio.Message])
        async for message in consumer:
            assert_type(message, redelivery.aio.Message)
            await message.acknowledge()
        async with session.transaction() as same:
            assert_type(same, redelivery.aio.Session)
        producer = await session.producer()
        assert_type(await producer.send("a", "orders", ttl=1), Message)
        async with session.browser("orders") as browser:
            assert_type([message async for message in browser], list[redelivery.aio.Message])
    redelivery.aio.connect("vm://x", retries=3)  # type: ignore[call-arg]  # there is no such option
