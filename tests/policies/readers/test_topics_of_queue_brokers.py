"""A topic that has a queue's name, where the rules are for queues: the queues of its subscriptions have other names."""

from __future__ import annotations

import json

import pytest
from tests.policies.readers.documents import read
from tests.policies.readers.rabbitmq_site import site, until

import redelivery
from redelivery import Queue, RedeliveryPolicy, SharedDeadLetterStrategy, Topic
from redelivery.operate.convert import convert
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.testing.brokers.real import RealBroker

LEVEL = {"dead-letter-exchange": "", "dead-letter-routing-key": "dead"}


def rabbitmq(pattern: str = "^orders$", **host: str) -> BrokerPolicies:
    document = {
        "rabbitmq_version": "4.0.5",
        "vhosts": [{"name": "/", **host}],
        "queues": [
            {"name": name, "vhost": "/", "durable": True, "arguments": {"x-queue-type": "quorum"}}
            for name in ("orders", "dead")
        ],
        "policies": [{"name": "p", "vhost": "/", "pattern": pattern, "apply-to": "queues", "definition": LEVEL}],
    }
    return read(json.dumps(document), "definitions.json")


def broker_j() -> BrokerPolicies:
    queues = [
        {"name": "orders", "maximumDeliveryAttempts": 3, "alternateBinding": {"destination": "dead"}},
        {"name": "dead", "maximumDeliveryAttempts": 0},
    ]
    return read(json.dumps({"name": "default", "type": "BDB", "queues": queues}), "default.json")


QPID = """\
<virtualhosts><virtualhost><name>a</name><a><queues><queue><name>orders</name><orders>
<deadLetterQueues>true</deadLetterQueues><maximumDeliveryCount>3</maximumDeliveryCount>
</orders></queue></queues></a></virtualhost></virtualhosts>"""


@pytest.mark.parametrize(
    "found", [rabbitmq(), broker_j(), read(QPID, "virtualhosts.xml")], ids=lambda each: each.format
)
def test_it_has_not_the_rules_of_that_queue(found: BrokerPolicies) -> None:
    target = "orders_DLQ" if found.format == "qpid" else "dead"
    assert found.explain("orders").dead_letter == target
    assert found.explain("topic://orders").dead_letter is None
    strategies, policies = found.dead_letter_strategies, found.redelivery_policies
    assert strategies.strategy_for("orders") != strategies.strategy_for("topic://orders")
    assert strategies.strategy_for("topic://orders") == strategies.strategy_for("topic://else")
    assert (
        policies.policy_for("topic://orders") == policies.policy_for("topic://else") == policies.policy_for(Topic("x"))
    )
    made = convert(found, "artemis")
    assert not [line for line in made.lost if "queues and topics alike" in line]


def test_a_policy_for_all_queues_is_for_those_of_subscriptions_too() -> None:
    found = rabbitmq(".*")
    assert found.explain("topic://orders").dead_letter == "dead"
    assert found.dead_letter_strategies.strategy_for("topic://news") == SharedDeadLetterStrategy(
        Queue("dead"), process_non_persistent=True
    )


def test_the_queue_of_a_subscription_is_never_a_quorum_queue() -> None:
    found = rabbitmq(default_queue_type="quorum")
    policies = found.redelivery_policies
    assert policies.policy_for(Queue("else")).maximum_redeliveries == 20
    assert policies.policy_for(Topic("else")) == RedeliveryPolicy()


def test_a_program_has_it_so_too() -> None:
    text = convert(rabbitmq(), "python").text
    assert "'queue://orders'" in text


@pytest.mark.long_form
@pytest.mark.parametrize("name", ["rabbitmq", "rabbitmq4"])
def test_a_subscription_has_no_policy_of_a_queue_of_its_topic_s_name(name: str, request: pytest.FixtureRequest) -> None:
    broker: RealBroker = request.getfixturevalue(f"redelivery_{name}")
    protocol = "amqp" if name == "rabbitmq4" else "stomp"
    with site(broker, "topics", default="classic") as at:
        at.call("PUT", "queues", "orders", body={"durable": True})
        policy = {"pattern": "^orders$", "apply-to": "queues", "definition": LEVEL}
        at.call("PUT", "policies", "p", body=policy)
        with (
            redelivery.connect(broker.urls[protocol], vhost=at.vhost) as connection,
            connection.session() as session,
            session.consumer("topic://orders"),
        ):

            def definitions() -> list[object]:
                found = {each["name"]: each.get("effective_policy_definition") for each in at.call("GET", "queues")}
                return [found.pop("orders", None), *found.values()]

            until(lambda: definitions() in ([LEVEL, {}], [LEVEL, []]))  # its statistics are late
