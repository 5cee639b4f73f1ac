"""A connection by a broker's file: ``policies=``, and ``dead_letter_strategies=``, which is a part of it."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.client.gated import Site
from tests.client.shell import Bench, receive
from tests.policies.readers.documents import address_settings, read, written

import redelivery
from redelivery import (
    AckMode,
    ConfigError,
    DeadLetterStrategyMap,
    DiscardingDeadLetterStrategy,
    IndividualDeadLetterStrategy,
    RedeliveryPolicy,
    SharedDeadLetterStrategy,
)
from redelivery.broker import EmbeddedBroker
from redelivery.testing.brokers.real import RealBroker

SETTINGS: dict[str, dict[str, object]] = {
    "short.#": {"dead_letter_address": "Short.Dead", "max_delivery_attempts": 2},
    "short.kept": {"dead_letter_address": "Kept.Dead"},
}
FILE = address_settings(**SETTINGS)
STRATEGIES = DeadLetterStrategyMap(
    {
        "orders.>": SharedDeadLetterStrategy("Orders.Dead"),
        "orders.own": IndividualDeadLetterStrategy(queue_prefix="Own."),
        "queue://news": DiscardingDeadLetterStrategy(report_interval=0),
        "topic://news": SharedDeadLetterStrategy("News.Dead"),
    },
    default=SharedDeadLetterStrategy("Else.Dead"),
)
AT_ONCE = RedeliveryPolicy(maximum_redeliveries=0)
PLACES = ("Orders.Dead", "Own.orders.own", "News.Dead", "Else.Dead", "ActiveMQ.DLQ")


def dead(bench: Bench) -> dict[str, list[Any]]:
    found = {each: [message.body for message in bench.broker.messages(each)] for each in PLACES}
    return {name: bodies for name, bodies in found.items() if bodies}


def test_each_destination_of_a_connection_has_its_own_strategy(bench: Bench) -> None:
    connection = bench.connect(redelivery_policy=AT_ONCE, dead_letter_strategies=STRATEGIES)
    for queue in ("orders.a", "orders.own", "news", "else"):
        bench.send(queue, queue=queue)
        with connection.session(AckMode.TRANSACTED) as session:
            receive(session.consumer(queue))
            session.rollback()
    assert dead(bench) == {"Orders.Dead": ["orders.a"], "Own.orders.own": ["orders.own"], "Else.Dead": ["else"]}


def test_one_batch_has_those_of_each_of_its_messages(bench: Bench) -> None:
    """A session with several consumers rolls all of them back, and a wildcard consumer has many queues."""
    session = bench.connect(redelivery_policy=AT_ONCE, dead_letter_strategies=STRATEGIES).session(AckMode.TRANSACTED)
    consumers = [session.consumer(each) for each in ("orders.*", "else", "topic://news")]
    for queue in ("orders.a", "orders.own", "else", "topic://news"):
        bench.send(queue, queue=queue)
    bodies = sorted(receive(consumers[number]).body for number in (0, 0, 1, 2))
    assert bodies == ["else", "orders.a", "orders.own", "topic://news"]
    session.rollback()
    assert dead(bench) == {
        "Orders.Dead": ["orders.a"],
        "Own.orders.own": ["orders.own"],
        "Else.Dead": ["else"],
        "News.Dead": ["topic://news"],
    }


def test_a_durable_subscription_has_that_of_its_topic(bench: Bench) -> None:
    connection = bench.connect(redelivery_policy=AT_ONCE, dead_letter_strategies=STRATEGIES, client_id="c")
    session = connection.session(AckMode.TRANSACTED)
    consumer = session.durable_consumer("topic://news", "sub")
    bench.send("m", queue="topic://news")
    receive(consumer)
    session.rollback()
    assert dead(bench) == {"News.Dead": ["m"]}


def test_a_browser_dead_letters_nothing(bench: Bench) -> None:
    session = bench.connect(redelivery_policy=AT_ONCE, dead_letter_strategies=STRATEGIES).session()
    bench.send("m", queue="orders.a")
    assert [each.body for each in session.browser("orders.a")] == ["m"]
    assert dead(bench) == {}


def test_a_container_s_failures_go_where_their_queue_says(bench: Bench) -> None:
    connection = bench.connect(redelivery_policy=AT_ONCE, dead_letter_strategies=dict(STRATEGIES))

    def fail(message: object) -> None:
        raise ValueError(message)

    bench.send("m", queue="orders.own")
    with connection.listener_container("orders.own", fail):
        bench.broker.wait_for("Own.orders.own", depth=1, timeout=10)


def test_reading_and_connecting_is_one_line(bench: Bench, tmp_path: Path) -> None:
    path = written(tmp_path, "broker.xml", FILE)
    with redelivery.connect(bench.broker.vm_url, policies=redelivery.policies.read(path)) as connection:
        for queue, attempts in (("short.a", 2), ("short.kept", 2), ("any", 10)):
            bench.send(queue, queue=queue)
            with connection.session(AckMode.TRANSACTED) as session:
                consumer = session.consumer(queue)
                for number in range(1, attempts + 1):
                    assert receive(consumer).delivery_count == number
                    session.rollback()
                assert consumer.receive(0) is None
    left = {each: len(bench.broker.messages(each)) for each in ("Short.Dead", "Kept.Dead", "any", "ActiveMQ.DLQ")}
    assert left == {"Short.Dead": 1, "Kept.Dead": 1, "any": 0, "ActiveMQ.DLQ": 0}


def test_asyncio_does_the_same(bench: Bench) -> None:
    async def fails_once() -> None:
        async with (
            redelivery.aio.connect(bench.broker.vm_url, policies=read(FILE)) as connection,
            connection.session(AckMode.TRANSACTED) as session,
            session.consumer("short.a") as consumer,
        ):
            for _ in range(2):
                await consumer.receive(timeout=10)
                await session.rollback()

    bench.send("m", queue="short.a")
    asyncio.run(fails_once())
    assert [each.body for each in bench.broker.messages("Short.Dead")] == ["m"]


@pytest.mark.parametrize("make", [redelivery.ConnectionFactory, redelivery.aio.ConnectionFactory, redelivery.App])
def test_whatever_takes_the_options_of_a_connection_takes_these(make: Any) -> None:
    policies = read(FILE)
    options = make("stomp://a", policies=policies)._options
    assert options.dead_letter_strategies == policies.dead_letter_strategies
    assert options.redelivery_policies.policy_for("short.a").maximum_redeliveries == 1
    assert make("stomp://a", dead_letter_strategies=STRATEGIES)._options.dead_letter_strategies is STRATEGIES
    for name in ("policies", "dead_letter_strategies"):
        with pytest.raises(ConfigError, match=name):
            make("stomp://a", **{name: 3})


def test_an_app_takes_them_over_to_another_broker(bench: Bench) -> None:
    app = redelivery.App("stomp://a", policies=read(FILE)).connecting(bench.broker.vm_url)
    assert app._options.dead_letter_strategies == read(FILE).dead_letter_strategies


def test_after_a_loss_each_destination_has_its_strategy_again(opened: ExitStack) -> None:
    site = Site("stomp", opened)
    url = f"failover:({site.url})?initialReconnectDelay=10"
    connection = opened.enter_context(
        redelivery.connect(url, redelivery_policy=AT_ONCE, dead_letter_strategies=STRATEGIES)
    )
    session = connection.session(AckMode.TRANSACTED)
    consumers = {each: session.consumer(each) for each in ("orders.*", "else")}
    for number, expected in enumerate(({"Orders.Dead": 1, "Else.Dead": 1}, {"Orders.Dead": 2, "Else.Dead": 2})):
        if number:
            site.gate.shut()
            site.gate.open()
        for name in ("orders.a", "else"):
            site.broker.send(name, f"{name} {number}")
        for consumer in consumers.values():
            receive(consumer)
        session.rollback()
        assert {each: site.broker.queue_depth(each) for each in expected} == expected


def test_the_queue_that_it_was_consumed_from_counts_and_not_the_one_in_its_header() -> None:
    """A broker that moves a message leaves ``to`` as it was: what failed in a dead-letter queue went there again."""
    proton = pytest.importorskip("proton")
    utils = pytest.importorskip("proton.utils")
    strategies = {"parked": SharedDeadLetterStrategy("Parked.Dead"), "orders": SharedDeadLetterStrategy("parked")}
    with EmbeddedBroker("moved", amqp_port=0) as broker:
        raw = utils.BlockingConnection(broker.amqp_url, timeout=10)
        raw.create_sender("parked").send(proton.Message(address="queue://orders", body="m", durable=True))
        raw.close()
        options: dict[str, Any] = {"redelivery_policy": AT_ONCE, "dead_letter_strategies": strategies}
        with (
            redelivery.connect(broker.amqp_url, **options) as connection,
            connection.session(AckMode.TRANSACTED) as session,
        ):
            message = receive(session.consumer("parked"))
            assert str(message.destination) == "queue://orders"
            session.rollback()
        assert (broker.queue_depth("parked"), broker.queue_depth("Parked.Dead")) == (0, 1)


@pytest.mark.parametrize("protocol", ["stomp", "amqp"])
def test_a_composite_consumer_has_the_entries_of_each_of_its_queues(
    redelivery_activemq: RealBroker, protocol: str
) -> None:
    """ActiveMQ alone has them: a message counts by the queue that it was on."""
    pytest.importorskip("proton")
    url = redelivery_activemq.stomp_url if protocol == "stomp" else redelivery_activemq.amqp_url
    once, thrice, place = (f"composite.{protocol}.{each}.{uuid4().hex[:8]}" for each in ("once", "thrice", "dead"))
    twice_more = RedeliveryPolicy(maximum_redeliveries=2, initial_redelivery_delay=0, redelivery_delay=0)
    with redelivery.connect(
        url,
        redelivery_policies={once: AT_ONCE, thrice: twice_more},
        dead_letter_strategies={once: DiscardingDeadLetterStrategy(), thrice: SharedDeadLetterStrategy(place)},
    ) as connection:
        with connection.session() as session:
            for name in (once, thrice):
                session.producer(name).send(name)
        deliveries = dict.fromkeys((once, thrice), 0)
        with connection.session(AckMode.TRANSACTED) as session:
            consumer = session.consumer(f"{once},{thrice}")
            while (message := consumer.receive(0.5 if sum(deliveries.values()) >= 4 else 10)) is not None:
                deliveries[message.body] += 1
                session.rollback()
        assert deliveries == {once: 1, thrice: 3}
        with connection.session() as session:
            assert receive(session.consumer(place)).body == thrice
