"""Destinations and the addresses of AMQP nodes, as each broker writes them."""

from __future__ import annotations

import pytest

from redelivery.model.destinations import Destination, Queue, SubscriptionName, TemporaryQueue, TemporaryTopic, Topic
from redelivery.model.errors import UnsupportedError
from redelivery.transports.amqp.codec.names import capability, from_address, kind_of, to_address
from redelivery.transports.amqp.links.subscriptions import subscription_name
from redelivery.transports.dialects import activemq, artemis, qpid, rabbitmq
from redelivery.transports.dialects.amqp import AmqpDialect

CLASSIC, ARTEMIS, QPID, RABBITMQ = activemq.AMQP, artemis.AMQP, qpid.AMQP, rabbitmq.AMQP
RABBITMQ_4 = rabbitmq.AMQP_4


@pytest.mark.parametrize(
    ("destination", "dialect", "address"),
    [
        (Queue("orders.eu"), CLASSIC, "orders.eu"),
        (Queue("orders.eu"), ARTEMIS, "orders.eu"),
        (Queue("orders.eu"), QPID, "orders.eu"),
        (Queue("orders.eu"), RABBITMQ, "/queue/orders.eu"),
        (Topic("news"), CLASSIC, "topic://news"),
        (Topic("news"), ARTEMIS, "news"),
        (Topic("news"), QPID, "amq.topic/news"),
        (Topic("news"), RABBITMQ, "/topic/news"),
        (Queue("é :/x"), ARTEMIS, "é :/x"),
        (TemporaryQueue("temp-queue://ID:1"), CLASSIC, "temp-queue://ID:1"),
        (TemporaryTopic("temp-topic://ID:1"), CLASSIC, "temp-topic://ID:1"),
        (TemporaryQueue("TempQueue1"), QPID, "TempQueue1"),
        (TemporaryTopic("t"), QPID, "t"),
        (Queue("é%/x"), RABBITMQ_4, "/queues/%C3%A9%25%2Fx"),
        (Queue("a/b"), RABBITMQ, "/queue/a%2Fb"),
        (Topic("news.a/b"), RABBITMQ_4, "/exchanges/amq.topic/news.a%2Fb"),
    ],
)
def test_addresses_both_ways(destination: Destination, dialect: AmqpDialect, address: str) -> None:
    assert to_address(destination, dialect) == address
    assert from_address(address, kind_of(destination), dialect) == destination
    assert from_address(address, None, dialect, like=destination) == destination


@pytest.mark.parametrize(
    ("name", "dialect", "address"),
    [
        ("a.>", CLASSIC, "topic://a.>"),
        ("a.#", CLASSIC, "topic://a.>"),
        ("a.>", ARTEMIS, "a.#"),
        ("a.*.#", ARTEMIS, "a.*.#"),
        ("a.*.>", QPID, "amq.topic/a.*.#"),
        (">", RABBITMQ, "/topic/#"),
        ("a>.b#", ARTEMIS, "a>.b#"),
    ],
)
def test_patterns_have_the_brokers_wildcards(name: str, dialect: AmqpDialect, address: str) -> None:
    assert to_address(Topic(name), dialect) == address


@pytest.mark.parametrize(
    ("address", "kind", "like", "expected"),
    [
        ("a", None, None, Queue("a")),
        ("a", None, Topic("t"), Topic("a")),
        ("a", None, TemporaryQueue("t"), TemporaryQueue("a")),
        ("a", 0, Topic("t"), Queue("a")),
        ("a", 1, Queue("q"), Topic("a")),
        ("a", 7, Topic("t"), Topic("a")),
        ("queue://a", None, Topic("t"), Queue("a")),
        ("topic://a", None, Queue("q"), Topic("a")),
        ("topic://a", 1, Queue("q"), Topic("a")),
        ("topic://a", 0, Queue("q"), Queue("topic://a")),  # the annotation is surer than the text
        ("temp-queue://ID:1", None, Topic("t"), TemporaryQueue("temp-queue://ID:1")),
        ("temp-queue://ID:1", 0, Topic("t"), TemporaryQueue("temp-queue://ID:1")),
        ("temp-topic://ID:1", 3, Queue("q"), TemporaryTopic("temp-topic://ID:1")),
        ("", None, Queue("q"), None),
        ("queue://", None, Queue("q"), None),
        (" a", 1, Queue("q"), None),
    ],
)
def test_addresses_that_others_wrote(
    address: str, kind: int | None, like: Destination | None, expected: Destination | None
) -> None:
    assert from_address(address, kind, CLASSIC, like) == expected


def test_rabbitmqs_name_of_a_queue_that_is_there_is_that_queue() -> None:
    assert from_address("/amq/queue/orders.eu", 0, RABBITMQ) == Queue("orders.eu")
    assert to_address(Queue("orders.eu"), RABBITMQ) == "/queue/orders.eu"


def test_capabilities_are_the_dialects() -> None:
    destinations = (Queue("q"), Topic("t"), TemporaryQueue("q"), TemporaryTopic("t"))
    named = ["queue", "topic", "temporary-queue", "temporary-topic"]
    assert [capability(destination, CLASSIC) for destination in destinations] == named
    assert [capability(destination, QPID) for destination in destinations] == [None, None, "temporary-queue", None]
    assert [capability(destination, RABBITMQ) for destination in destinations] == [None] * 4
    assert [capability(destination, RABBITMQ_4) for destination in destinations] == [None] * 4


def test_what_is_neither_queue_nor_topic_has_no_address() -> None:
    with pytest.raises(UnsupportedError, match="only queues and topics"):
        to_address(Destination("x"), CLASSIC)


@pytest.mark.parametrize(
    ("durable", "shared", "client_id", "names"),
    [
        (True, False, True, ["sub"]),
        (True, True, True, ["sub", "sub|2", "sub|3"]),
        (True, True, False, ["sub|global", "sub|global2"]),
        (False, True, True, ["sub|volatile1", "sub|volatile2"]),
        (False, True, False, ["sub|global-volatile1", "sub|global-volatile2"]),
    ],
)
def test_links_to_subscriptions_are_named_as_qpid_jms_names_them(
    durable: bool, shared: bool, client_id: bool, names: list[str]
) -> None:
    named = SubscriptionName("sub", durable=durable, shared=shared)
    taken: list[str] = []
    for name in names:
        assert subscription_name(named, taken, client_id=client_id) == name
        taken.append(name)


def test_a_subscription_s_name_that_brokers_would_cut_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="cannot have"):
        subscription_name(SubscriptionName("a|b", durable=True, shared=False), (), client_id=True)
