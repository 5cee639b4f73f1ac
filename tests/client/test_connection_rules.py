"""The rules of a connection: what its keywords, a file and its URL say together, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.client.test_broker_policies import AT_ONCE, FILE, STRATEGIES
from tests.policies.readers.documents import classic, policy_entries, read

import redelivery
from redelivery import (
    BrokerDeadLetterStrategy,
    ConfigError,
    DiscardingDeadLetterStrategy,
    PrefetchPolicy,
    Queue,
    RedeliveryPolicyMap,
    SharedDeadLetterStrategy,
)
from redelivery.client.options import merge_options
from redelivery.policies.brokers.clients.url.rules import ClientRules
from redelivery.policies.brokers.formats import read_url
from redelivery.policies.brokers.policies import BrokerPolicies

SHARED = SharedDeadLetterStrategy("Shared.Dead")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"dead_letter_strategy": SHARED, "dead_letter_strategies": STRATEGIES}, r"dead_letter_strategy .*not both"),
        ({"policies": read(FILE), "dead_letter_strategy": SHARED}, r"policies= and dead_letter_strategy= were given"),
        ({"policies": read(FILE), "dead_letter_strategies": STRATEGIES}, r"redelivery_policies=policies\.redelivery_p"),
        ({"policies": read(FILE), "redelivery_policy": AT_ONCE}, r"dead_letter_strategies=policies\.dead_letter_strat"),
        ({"policies": read(FILE), "redelivery_policies": {}}, r"file.xml says the same: give policies= alone, or "),
        ({"policies": BrokerPolicies("x.xml", "spring", ClientRules(returning=True))}, r"so read its broker's file$"),
        ({"policies": "broker.xml"}, r"not a str: policies=redelivery\.policies\.read\('broker\.xml'\)$"),
        ({"policies": Path("conf/broker.xml")}, r"not a \w*Path: policies=redelivery\.policies\.read\('conf/broker"),
        ({"policies": read(FILE).rules}, r"not a ArtemisRules: policies=redelivery\.policies\.read\('broker\.xml'\)"),
        ({"policies": redelivery.policies}, r"policies must be a BrokerPolicies, not a module"),
        ({"policies": RedeliveryPolicyMap({})}, r"not a RedeliveryPolicyMap: that is redelivery_policies="),
        ({"policies": STRATEGIES}, r"not a DeadLetterStrategyMap: that is dead_letter_strategies="),
        ({"dead_letter_strategies": SHARED}, r"not a SharedDeadLetterStrategy: that is dead_letter_strategy="),
        ({"dead_letter_strategies": read(FILE)}, r"not a BrokerPolicies: that is policies="),
        ({"dead_letter_strategies": RedeliveryPolicyMap({})}, r"that is redelivery_policies="),
        (
            {"dead_letter_strategies": {"orders": AT_ONCE}},
            r"'orders': RedeliveryPolicy.* is not a dead-letter strategy",
        ),
        ({"dead_letter_strategies": {"a.>.b": SHARED}}, r"'a\.>\.b': '>' or '#' can only be the last word"),
        ({"dead_letter_strategy": STRATEGIES}, r"not a DeadLetterStrategyMap: that is dead_letter_strategies="),
        ({"dead_letter_strategy": {"orders": SHARED}}, r"must be a DeadLetterStrategy, not a dict"),
        ({"dead_letter_strategy": type(SHARED)}, r"Strategy, not a class: write SharedDeadLetterStrategy\(…\)$"),
        ({"redelivery_policy": type(AT_ONCE)}, r"not a class: write RedeliveryPolicy\(…\)$"),
        ({"redelivery_policies": read(FILE)}, r"not a BrokerPolicies: that is policies="),
        ({"redelivery_policies": STRATEGIES}, r"not a DeadLetterStrategyMap: that is dead_letter_strategies="),
        ({"redelivery_policy": RedeliveryPolicyMap({})}, r"not a RedeliveryPolicyMap: that is redelivery_policies="),
    ],
)
def test_what_does_not_fit_is_refused_with_what_to_write(options: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        merge_options("stomp://a", **options)


URL = "stomp://a?jms.redeliveryPolicy.maximumRedeliveries=7&jms.prefetchPolicy.all=9&jms.nonBlockingRedelivery=true"
PLUGIN = """
<plugins><redeliveryPlugin><redeliveryPolicyMap><redeliveryPolicyMap><redeliveryPolicyEntries>
  <redeliveryPolicy queue="resent" maximumRedeliveries="2"/>
</redeliveryPolicyEntries></redeliveryPolicyMap></redeliveryPolicyMap></redeliveryPlugin></plugins>
"""


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        (read(FILE), {"short.a": 1, "any": 9}),
        (classic(policy_entries('<policyEntry queue="a"/>')), {"a": 7, "any": 7}),
        (classic(PLUGIN), {"resent": 2, "any": 7}),
        (read('{"queues": [{"name": "q", "arguments": {"x-queue-type": "quorum"}}], "policies": []}'), {"any": 7}),
        (read_url("tcp://a:1?jms.redeliveryPolicy.maximumRedeliveries=3"), {"any": 3}),
    ],
)
def test_the_url_says_what_a_file_leaves_to_the_client(policies: Any, expected: dict[str, int]) -> None:
    options = merge_options(URL, policies=policies)
    found = {each: options.redelivery_policies.policy_for(each).maximum_redeliveries for each in expected}
    assert found == expected
    assert (options.prefetch, options.non_blocking_redelivery) == (PrefetchPolicy.of(9), True)


def test_the_url_says_what_a_map_has_no_default_for() -> None:
    given = {"orders": AT_ONCE}
    for policies, expected in ((given, 7), (RedeliveryPolicyMap(given), 7), (RedeliveryPolicyMap(given, AT_ONCE), 0)):
        found = merge_options(URL, redelivery_policies=policies).redelivery_policies
        assert found.policy_for("orders").maximum_redeliveries == 0
        assert found.policy_for("else").maximum_redeliveries == expected


def test_a_client_s_configuration_has_its_prefetch_too_unless_it_is_given() -> None:
    policies = read_url("tcp://a:1?jms.prefetchPolicy.queuePrefetch=5&jms.nonBlockingRedelivery=false")
    options = merge_options(URL, policies=policies)
    assert (options.prefetch, options.non_blocking_redelivery) == (PrefetchPolicy(queue=5), False)
    assert options.dead_letter_strategies.strategy_for("orders") == BrokerDeadLetterStrategy()
    options = merge_options(URL, policies=policies, prefetch=1, non_blocking_redelivery=True)
    assert (options.prefetch, options.non_blocking_redelivery) == (PrefetchPolicy.of(1), True)


def quorum(vhost: str, limit: int) -> dict[str, object]:
    arguments = {"x-queue-type": "quorum", "x-delivery-limit": limit, "x-dead-letter-exchange": ""}
    return {"name": "q", "vhost": vhost, "arguments": {**arguments, "x-dead-letter-routing-key": f"dead-{limit}"}}


HOSTS = [{"name": "/"}, {"name": "test"}, {"name": "bare"}]
MANY = {"vhosts": HOSTS, "queues": [quorum("/", 3), quorum("test", 5)], "policies": []}
ONE = {"queues": [{**quorum("/", 7), "vhost": "/"}], "policies": []}
NODES = """{{"name": "b", "modelVersion": "9.0", "virtualhostnodes": [
  {{"name": "one", "defaultVirtualHostNode": "true", "virtualHostInitialConfiguration": {}}},
  {{"name": "two", "virtualHostInitialConfiguration": {}}}]}}"""
BROKER_J = NODES.format(
    *(
        json.dumps(
            json.dumps(
                {
                    "name": host,
                    "type": "Memory",
                    "queues": [
                        {
                            "name": "q",
                            "maximumDeliveryAttempts": most,
                            "alternateBinding": {"destination": f"dead-{host}"},
                        },
                        {"name": f"only-{host}", "alternateBinding": {"destination": "dead"}},
                    ],
                }
            )
        )
        for host, most in (("one", 3), ("two", 5))
    )
)


@pytest.mark.parametrize(
    ("file", "vhost", "maximum", "letters"),
    [
        (json.dumps(MANY), None, 3, "dead-3"),
        (json.dumps(MANY), "/", 3, "dead-3"),
        (json.dumps(MANY), "test", 5, "dead-5"),
        (json.dumps(ONE), "anything", 7, "dead-7"),
        (BROKER_J, None, 2, "dead-one"),
        (BROKER_J, "two", 4, "dead-two"),
        (BROKER_J, "an-alias", 2, "dead-one"),
    ],
)
def test_the_virtual_host_of_the_connection_is_the_one_whose_queues_count(
    file: str, vhost: str | None, maximum: int, letters: str
) -> None:
    options = merge_options("amqp://a", policies=read(file, "file.json"), vhost=vhost)
    assert options.redelivery_policies.policy_for("q").maximum_redeliveries == maximum
    strategy = options.dead_letter_strategies.strategy_for("q")
    assert isinstance(strategy, SharedDeadLetterStrategy)
    assert strategy.dead_letter_queue == Queue(letters)
    elsewhere = "only-two" if letters == "dead-one" else "only-one"
    assert options.dead_letter_strategies.strategy_for(elsewhere) == DiscardingDeadLetterStrategy()


def test_a_virtual_host_that_the_file_does_not_have_is_refused() -> None:
    policies = read(json.dumps(MANY), "file.json")
    with pytest.raises(ConfigError, match=r"the file has no virtual host 'tset': it has '/', 'test', 'bare'"):
        merge_options("amqp://a", policies=policies, vhost="tset")
    assert merge_options("amqp://a/bare", policies=policies).dead_letter_strategies.strategy_for("q") == (
        DiscardingDeadLetterStrategy()
    )
