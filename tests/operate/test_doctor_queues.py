"""Which queues the doctor looks at, what it sees of them, and what it says where it cannot."""

from __future__ import annotations

import pytest
from tests.policies.readers.documents import address_settings, classic, policy_entries, read

import redelivery
from redelivery.broker import BrokerConfig, EmbeddedBroker
from redelivery.client.options import ConnectionKeywords
from redelivery.operate.doctor import inspect
from redelivery.operate.doctor.chosen import choose
from redelivery.operate.doctor.configured import check_rules, check_version
from redelivery.operate.doctor.doctor import examine
from redelivery.operate.doctor.findings import Report
from redelivery.operate.doctor.observed import ObservedQueue, check_queues
from redelivery.policies.brokers.formats import read_url

INDIVIDUAL = "<deadLetterStrategy><individualDeadLetterStrategy{}/></deadLetterStrategy>"
OWN = INDIVIDUAL.format(' queuePrefix="DLQ."')
ORDERS = classic(policy_entries(f'<policyEntry queue="orders">{OWN}</policyEntry>'))

CLASSIC: ConnectionKeywords = {"dialect": "activemq"}  # which lists no queues over STOMP, so that they are browsed


def said(report: Report, check: str) -> list[str]:
    return [each.what for each in report.findings if each.check == check]


def test_queues_and_dead_letter_queues_that_the_file_names_are_looked_at() -> None:
    with EmbeddedBroker(stomp_port=0) as broker:
        for _ in range(3):
            broker.send("DLQ.orders", "lost")
        report = examine(broker.stomp_url, ORDERS, watch=0)
    assert said(report, "dead-letters") == ["3 dead letters are in DLQ.orders, and nobody reads them"]
    assert {"orders", "DLQ.orders"} <= set(choose(ORDERS, ()).queues)


def test_a_dead_letter_topic_hides_no_queue() -> None:
    to_topics = INDIVIDUAL.format(' useQueueForQueueMessages="false"')
    rules = classic(policy_entries(f'<policyEntry queue="orders">{to_topics}</policyEntry>'))
    assert str(rules.explain("orders").dead_letter).startswith("topic://")
    with EmbeddedBroker(stomp_port=0) as broker:
        broker.send("ActiveMQ.DLQ", "lost")
        report = examine(broker.stomp_url, rules, watch=0)
    assert said(report, "dead-letters") == ["1 dead letter is in ActiveMQ.DLQ, and nobody reads them"]
    assert not [each for each in report.unchecked if "depth" in each]


def test_a_dead_letter_queue_of_a_pattern_is_looked_at_where_all_share_it() -> None:
    shared = choose(read(address_settings(**{"orders.#": {"dead_letter_address": "DLA"}})), ())
    assert shared.dead_letters == {"ActiveMQ.DLQ", "DLA"}
    each_its_own = {"dead_letter_address": "DLA", "auto_create_dead_letter_resources": "true"}
    alone = choose(read(address_settings(**{"orders.#": each_its_own, "stock": each_its_own})), ())
    assert alone.dead_letters == {"ActiveMQ.DLQ", "DLQ.stock", "DLA"}  # and each queue that is made on this address
    assert "DLA" not in alone.queues


def test_more_queues_than_can_be_looked_at_are_counted() -> None:
    many = read(address_settings(**{f"q{number}": {} for number in range(201)}))
    found = choose(many, (redelivery.Queue("mine"),))
    assert (len(found.queues), found.more, found.queues[0]) == (200, 3, "mine")  # and ActiveMQ.DLQ


def test_a_queue_that_cannot_be_browsed_is_one_line_and_the_others_are_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    depth = inspect._depth

    def refusing(connection: redelivery.Connection, name: str, *bounds: int) -> tuple[int, list[redelivery.Message]]:
        if name == "secret":
            raise redelivery.SecurityError("you may not")
        return depth(connection, name, *bounds)

    monkeypatch.setattr(inspect, "_depth", refusing)
    with EmbeddedBroker(stomp_port=0) as broker:
        broker.send("ActiveMQ.DLQ", "lost")
        report = examine(broker.stomp_url, ORDERS, queues=["secret"], watch=0, options=CLASSIC)
    assert said(report, "dead-letters") == ["1 dead letter is in ActiveMQ.DLQ"]
    assert [each for each in report.unchecked if "secret" in each] == ["the depth of secret: you may not"]


def test_many_queues_that_cannot_be_browsed_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(_: redelivery.Connection, name: str, *_bounds: int) -> int:
        raise redelivery.SecurityError(f"you may not look at {name}")

    monkeypatch.setattr(inspect, "_depth", refusing)
    with EmbeddedBroker(stomp_port=0) as broker:
        report = examine(broker.stomp_url, queues=[f"q{number}" for number in range(6)], watch=0, options=CLASSIC)
    assert [each for each in report.unchecked if "depth" in each] == [
        "the depths of q0, q1, q2 and 4 more queues: you may not look at q0"  # ActiveMQ.DLQ is the seventh
    ]


def test_the_embedded_broker_reports_its_own_process_its_consumers_and_its_rules() -> None:
    losing = read(address_settings(**{"#": {"max_delivery_attempts": 3}}))
    with EmbeddedBroker("doctored", config=BrokerConfig(rules=losing.rules)) as broker:
        broker.send("orders", "waiting")
        with redelivery.connect(broker.vm_url) as connection, connection.session() as session:
            alone = examine(broker.vm_url, watch=0)
            with session.consumer("orders"):
                consumed = examine(broker.vm_url, watch=0)
    assert said(alone, "backlog") == ["1 message is in orders, which has no consumer"]
    assert said(consumed, "backlog") == []
    assert said(alone, "removed") == [">: a message is removed after 3 deliveries (no dead-letter-address is set)"]
    assert alone.unchecked == ()


def test_the_strategies_of_an_embedded_broker_are_its_rules() -> None:
    config = BrokerConfig(dead_letter_strategies={"gone.>": redelivery.DiscardingDeadLetterStrategy()})
    with EmbeddedBroker("discarding", config=config) as broker:
        report = examine(broker.vm_url, watch=0)
    assert [each.partition(":")[0] for each in said(report, "removed")] == ["gone.>"]


@pytest.mark.parametrize(
    ("query", "client", "prefetch"),
    [
        ("", None, 100),
        ("?jms.prefetchPolicy.all=7", None, 7),
        ("?jms.prefetchPolicy.all=1", None, None),
        ("?jms.prefetchPolicy.all=7", "tcp://a:1?jms.prefetchPolicy.queuePrefetch=30", 30),
        ("?jms.prefetchPolicy.all=7", "failover:(tcp://a:1)", 1000),
        ("", "stomp://a:1", 100),
    ],
)
def test_the_prefetch_is_that_of_the_url_or_of_the_client(query: str, client: str | None, prefetch: int | None) -> None:
    safe = read(address_settings(**{"#": {"dead_letter_address": "DLQ"}}))
    with EmbeddedBroker(stomp_port=0, config=BrokerConfig(rules=safe.rules)) as broker:
        report = examine(broker.stomp_url + query, safe, client=None if client is None else read_url(client), watch=0)
    shown = [f"to up to {prefetch} prefetched messages" in each for each in said(report, "prefetch")]
    assert shown == ([] if prefetch is None else [True])


def test_many_queues_that_are_alike_are_one_finding() -> None:
    few, many = (
        list(check_rules(read(address_settings(**{f"q{n}": {"max_delivery_attempts": 3} for n in range(number)})), ()))
        for number in (5, 9)
    )
    assert len(few) == 6
    assert [each.what for each in many] == [
        "queue://q0, queue://q1, queue://q2 and 6 more: a message is removed after 3 deliveries "
        "(no dead-letter-address is set)",
        "any other queue: a message is removed after 10 deliveries (no dead-letter-address is set)",
    ]


def test_the_version_of_rabbitmq_says_whether_quorum_queues_have_a_limit() -> None:
    (finding,) = check_version("rabbitmq", "3.10.8")
    assert finding.what.startswith("RabbitMQ 3.10.8: a quorum queue without a delivery-limit has none")
    assert list(check_version("rabbitmq", "4.1.0")) == []
    assert list(check_version("artemis", "3.0")) == []


def test_messages_of_a_queue_that_is_made_for_dead_letters_are_dead_letters() -> None:
    """Also where its name does not say so; and so are expired ones. Artemis' counts are below 0 at times."""
    made = {"dead_letter_address": "LOST", "auto_create_dead_letter_resources": "true", "dead_letter_queue_prefix": ""}
    rules = read(address_settings(**{"#": {**made, "dead_letter_queue_suffix": ".gone", "expiry_address": "Late"}}))
    dead = choose(rules, ()).dead_letters
    seen = {
        "orders.gone": ObservedQueue("orders.gone", 2, 0, "LOST"),
        "Late": ObservedQueue("Late", 1, 0, "Late"),
        "orders": ObservedQueue("orders", -1, 0, "orders"),
    }
    found = list(check_queues(seen, seen, dead))
    assert sorted(each.what for each in found) == [
        "1 dead letter is in Late, and nobody reads them",
        "2 dead letters are in orders.gone, and nobody reads them",
    ]
    assert all("send them again" in each.do for each in found)
