"""RedeliveryPolicyMap: which policy counts for a destination, and why."""

from __future__ import annotations

from typing import Any

import pytest

from redelivery.model.destinations import Queue, Topic
from redelivery.model.errors import ConfigError
from redelivery.policies.destinations.redelivery_map import RedeliveryPolicyMap
from redelivery.policies.redelivery import RedeliveryPolicy

ONE, TWO, THREE = (RedeliveryPolicy(maximum_redeliveries=n) for n in (1, 2, 3))


def test_the_most_specific_entry_counts_else_the_default() -> None:
    policies = RedeliveryPolicyMap({"orders.>": THREE, "orders.*": TWO, "topic://news.*": ONE}, default=ONE)
    assert policies.policy_for("orders.new") == TWO
    assert policies.policy_for(Queue("orders.eu.new")) == THREE
    assert policies.policy_for("news.today") == ONE
    assert policies.policy_for(Topic("news.today")).destination == "topic://news.*"
    assert policies.default == ONE


def test_the_default_is_activemqs_policy() -> None:
    assert RedeliveryPolicyMap({}).policy_for("any") == RedeliveryPolicy()


def test_an_entry_does_not_inherit_from_another_or_from_the_default() -> None:
    policies = RedeliveryPolicyMap(
        {"orders.*": RedeliveryPolicy(redelivery_delay=9), "orders.new": ONE},
        default=RedeliveryPolicy(redelivery_delay=8),
    )
    assert policies.policy_for("orders.new").redelivery_delay == 1.0


def test_queue_and_topic_each_have_their_policy() -> None:
    # activemq's testRedeliveryPolicyPerDestination
    policies = RedeliveryPolicyMap({"queue://>": TWO, "topic://>": THREE})
    assert policies.policy_for("queue://q").maximum_redeliveries == 2
    assert policies.policy_for("topic://t").maximum_redeliveries == 3


def test_explain_says_who_won_and_why() -> None:
    policies = RedeliveryPolicyMap({">": ONE, "orders.*": TWO, "queue://orders.*": ONE, "orders.new": THREE})
    why = policies.explain("orders.new")
    assert [entry.pattern for entry in why.candidates] == ["orders.new", "queue://orders.*", "orders.*", ">"]
    assert why.winner == why.candidates[0]
    assert why.winner.value == THREE
    lines = str(why).splitlines()
    assert lines[0].startswith("queue://orders.new: orders.new counts: RedeliveryPolicy {destination = orders.new,")
    assert "orders.new comes before orders.*: its word 2 is a literal, there it is '*', any one word" in str(why)
    assert "orders.new comes before >: its word 1 is a literal, there it is '>', any further words" in str(why)
    assert len(lines) == 4
    only = RedeliveryPolicyMap({"orders.*": TWO, "queue://orders.*": ONE}).explain("orders.x")
    assert "queue://orders.* comes before orders.*: it is for a queue only" in str(only)
    rest = RedeliveryPolicyMap({"orders": TWO, "orders.>": ONE}).explain("orders")
    assert "its word 2 is missing, there it is '>'" in str(rest)


def test_explain_of_the_default() -> None:
    why = RedeliveryPolicyMap({"orders": TWO}, default=THREE).explain("topic://news")
    assert why.candidates == ()
    assert why.winner.value == THREE
    assert str(why).startswith("topic://news: (default) counts: RedeliveryPolicy {")
    assert "no entry matches" in str(why)


@pytest.mark.parametrize(
    ("entries", "default", "named"),
    [
        ({"orders": 3}, None, "'orders': 3"),
        ({"orders": None}, None, "'orders': None"),
        ({}, {"maximumRedeliveries": 1}, "default: "),
    ],
)
def test_what_is_no_policy_is_refused(entries: Any, default: Any, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        RedeliveryPolicyMap(entries, default=default)


def test_repr_lists_the_keys() -> None:
    assert repr(RedeliveryPolicyMap({"b,a": ONE, "c": TWO})) == "<RedeliveryPolicyMap 'b,a', 'c'>"
    assert repr(RedeliveryPolicyMap({})) == "<RedeliveryPolicyMap without entries>"
