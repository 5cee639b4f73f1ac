"""The embedded broker with the files of brokers that only count: Qpid's old Java broker, Broker-J, RabbitMQ."""

from __future__ import annotations

import json

import pytest
from tests.broker.rules.failing import Bench
from tests.policies.readers.documents import read
from tests.policies.readers.test_qpid_files import CONFIG, HOSTS

from redelivery.broker.engine.rules.rules import Manner
from redelivery.policies.brokers.policies import BrokerPolicies

promise = pytest.mark.promise


def qpid() -> BrokerPolicies:
    return read(CONFIG.replace("<virtualhosts>${conf}/virtualhosts.xml</virtualhosts>", HOSTS))


def broker_j(**queue: object) -> BrokerPolicies:
    host = {"name": "default", "type": "TestMemory", "queues": [{"name": "q", **queue}, {"name": "q_DLQ"}]}
    return read(json.dumps({"name": "broker", "virtualhostnodes": [{"name": "default", "virtualhosts": [host]}]}))


@promise("qpid-maximum")
@promise("qpid-names")
@promise("qpid-levels")
@pytest.mark.parametrize(
    ("queue", "deliveries", "dead"), [("dev-only-main-queue", 3, True), ("localhost-queue", 5, True)]
)
def test_qpid_gives_up_when_the_count_has_reached_the_maximum(queue: str, deliveries: int, dead: bool) -> None:
    bench = Bench(qpid())
    bench.send(queue)
    assert bench.fail(queue) == deliveries
    assert len(bench.letters(f"{queue}_DLQ")) == dead


@promise("qpid-levels")
def test_qpid_has_no_limit_where_the_nearest_level_says_zero() -> None:
    bench = Bench(qpid())
    bench.send("dev-only-other-queue")
    assert bench.fail("dev-only-other-queue", most=50) == 50


@promise("qpid-maximum")
def test_qpid_discards_without_a_dead_letter_queue() -> None:
    bench = Bench(read("<broker><maximumDeliveryCount>2</maximumDeliveryCount></broker>"))
    bench.send()
    assert bench.fail() == 2
    assert bench.letters("q_DLQ") == []


@promise("qpid-rollback-only")
def test_qpid_does_not_charge_a_client_that_only_closes_its_connection() -> None:
    bench = Bench(qpid())
    bench.send("localhost-queue")
    for manner in (Manner.CLOSED, Manner.LOST, Manner.DISCONNECTED):
        assert bench.close("localhost-queue", times=20, manner=manner) == 20


@promise("seen-broker-j-maximum")
@promise("seen-broker-j-closing")
@pytest.mark.parametrize("seen", [True, False])
@pytest.mark.parametrize("manner", [Manner.CLOSED, Manner.LOST, Manner.DISCONNECTED])
def test_broker_j_charges_the_end_of_a_consumer_also_for_what_was_only_prefetched(manner: Manner, seen: bool) -> None:
    bench = Bench(broker_j(maximumDeliveryAttempts=3, alternateBinding={"destination": "q_DLQ"}))
    bench.send()
    assert bench.close(times=20, manner=manner, seen=seen) == 3
    (letter,) = bench.letters("q_DLQ")
    assert dict(letter.properties) == {}  # nothing says where it comes from


@promise("seen-broker-j-discarded")
def test_broker_j_redelivers_what_is_rejected_and_counts_it() -> None:
    bench = Bench(broker_j(maximumDeliveryAttempts=3))
    bench.send()
    assert bench.fail(manner=Manner.REJECTED) == 3
    assert bench.letters("q_DLQ") == []  # discarded: there is no alternate binding


def test_rabbitmq_counts_in_quorum_queues_and_dead_letters_what_is_rejected() -> None:
    arguments = {
        "x-queue-type": "quorum",
        "x-delivery-limit": 2,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "dead",
    }
    queues = [{"name": "q", "vhost": "/", "arguments": arguments}, {"name": "dead", "vhost": "/"}]
    policies = read(json.dumps({"queues": queues}), format="rabbitmq")
    bench = Bench(policies)
    bench.send(body="1")
    assert bench.fail() == 3
    bench.send(body="2")
    assert bench.fail(manner=Manner.NACKED) == 1
    assert [each.body for each in bench.letters("dead")] == ["1", "2"]


def test_rabbitmq_s_exchange_leads_to_several_queues_or_to_none() -> None:
    arguments = {"x-dead-letter-exchange": "dlx"}
    bindings = [("orders.#", "dead"), ("#", "audit"), ("other", "never")]
    document = {
        "queues": [{"name": name, "vhost": "/", "arguments": arguments} for name in ("orders.new", "lost")]
        + [{"name": name, "vhost": "/"} for _, name in bindings],
        "exchanges": [{"name": "dlx", "vhost": "/", "type": "topic"}],
        "bindings": [
            {"source": "dlx", "vhost": "/", "destination": queue, "destination_type": "queue", "routing_key": key}
            for key, queue in bindings
        ],
    }
    bench = Bench(read(json.dumps(document), format="rabbitmq"))
    bench.send("orders.new", body="1")
    assert bench.fail("orders.new", manner=Manner.NACKED) == 1
    assert [[each.body for each in bench.letters(queue)] for queue in ("dead", "audit", "never")] == [["1"], ["1"], []]


@promise("seen-broker-j-maximum")
@promise("seen-broker-j-levels")
def test_broker_j_the_queue_comes_before_the_virtual_host_and_that_before_the_broker() -> None:
    queues: list[dict[str, object]] = [{"name": "own", "maximumDeliveryAttempts": 2}, {"name": "of-host"}]
    queues.append({"name": "off", "maximumDeliveryAttempts": 0})
    host = {"name": "h", "type": "TestMemory", "queues": queues, "context": {"queue.maximumDeliveryAttempts": "4"}}
    nodes = [{"name": "h", "virtualhosts": [host]}]
    context = {"queue.maximumDeliveryAttempts": "6"}
    for of_host, deliveries in (("4", 4), (None, 6)):
        host["context"] = {} if of_host is None else {"queue.maximumDeliveryAttempts": of_host}
        bench = Bench(read(json.dumps({"name": "b", "virtualhostnodes": nodes, "context": context})))
        for queue, expected in (("own", 2), ("of-host", deliveries)):
            bench.send(queue)
            assert bench.fail(queue) == expected
        bench.send("off")
        assert bench.fail("off", most=20) == 20


@promise("seen-broker-j-this-name")
def test_broker_j_a_placeholder_in_the_default_alternate_binding_does_not_route() -> None:
    binding = '{"destination": "${this:name}_DLQ", "attributes": {}}'
    context = {"queue.maximumDeliveryAttempts": "2", "queue.defaultAlternateBinding": binding}
    host = {"name": "h", "type": "TestMemory", "queues": [{"name": "q"}, {"name": "q_DLQ"}], "context": context}
    bench = Bench(read(json.dumps({"name": "b", "virtualhostnodes": [{"name": "h", "virtualhosts": [host]}]})))
    bench.send()
    assert bench.fail() == 2
    assert bench.letters("q_DLQ") == []


@promise("qpid-arguments")
def test_the_arguments_of_a_declared_queue() -> None:
    queue = {"name": "q", "arguments": {"x-qpid-maximum-delivery-count": 4, "x-qpid-dlq-enabled": True}}
    bench = Bench(read(json.dumps({"queues": [queue, {"name": "q_DLQ"}]})))
    bench.send()
    assert bench.fail() == 4
    assert len(bench.letters("q_DLQ")) == 1


@pytest.mark.parametrize(("own", "letters"), [(0, 1), (100, 0)])
def test_broker_j_what_expires_by_its_queue_lives_on_in_the_alternate_binding_and_by_its_sender_does_not(
    own: int, letters: int
) -> None:
    queue = {
        "maximumMessageTtl": 300,
        "expiryPolicy": "ROUTE_TO_ALTERNATE",
        "alternateBinding": {"destination": "q_DLQ"},
    }
    bench = Bench(broker_j(**queue))
    bench.send(expiration=bench.now + own if own else 0)
    bench.pass_time(300)
    assert bench.engine.depth("q") == 0
    assert len(bench.letters("q_DLQ")) == letters
    bench.pass_time(10_000)
    assert len(bench.letters("q_DLQ")) == letters


@pytest.mark.timeout(10)
@pytest.mark.parametrize("second", ["q", "r"])
def test_broker_j_what_expires_does_not_go_round_for_ever(second: str) -> None:
    queues = [
        {"name": name, "expiryPolicy": "ROUTE_TO_ALTERNATE", "alternateBinding": {"destination": to}}
        for name, to in (("q", second), ("r", "q"), ("first", "q"))
    ]
    bench = Bench(read(json.dumps({"modelVersion": "9.0", "name": "h", "queues": queues})))
    bench.send("first", expiration=bench.now + 100)
    bench.pass_time(100)
    assert [bench.engine.depth(each) for each in ("first", "q", "r")] == [0, 0, 0]


@pytest.mark.parametrize("own", [0, 100])
def test_rabbitmq_what_expires_is_dead_lettered_and_expires_no_more(own: int) -> None:
    arguments = {"x-message-ttl": 300, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    queues = [{"name": "q", "vhost": "/", "arguments": arguments}, {"name": "dead", "vhost": "/"}]
    bench = Bench(read(json.dumps({"queues": queues}), format="rabbitmq"))
    bench.send(expiration=bench.now + own if own else 0)
    bench.pass_time(300)
    (letter,) = bench.letters("dead")
    assert letter.expiration == 0
