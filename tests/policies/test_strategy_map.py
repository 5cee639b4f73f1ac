"""Dead-letter strategies by pattern."""

from __future__ import annotations

from typing import Any

import pytest

import redelivery
from redelivery import (
    DeadLetterStrategy,
    DeadLetterStrategyMap,
    Destination,
    Queue,
    RedeliveryPolicy,
    RedeliveryPolicyMap,
    Topic,
)
from redelivery.broker import BrokerConfig

SHARED, DROPPED = redelivery.SharedDeadLetterStrategy("Dead"), redelivery.DiscardingDeadLetterStrategy()


def test_the_most_specific_pattern_counts_and_else_the_broker_s_own_strategy() -> None:
    strategies = DeadLetterStrategyMap({"orders.>": SHARED, "orders.new": DROPPED, "topic://news": DROPPED})
    assert strategies.strategy_for("orders.new") == DROPPED
    assert strategies.strategy_for("orders.old") == SHARED
    assert strategies.strategy_for("topic://news") == DROPPED
    assert strategies.strategy_for("news") == redelivery.BrokerDeadLetterStrategy()


def test_it_is_a_mapping_by_pattern_which_an_embedded_broker_takes() -> None:
    strategies = DeadLetterStrategyMap({"orders.>": SHARED})
    assert dict(strategies) == {"orders.>": SHARED}
    assert (len(strategies), strategies["orders.>"]) == (1, SHARED)
    assert repr(strategies) == "<DeadLetterStrategyMap 'orders.>'>"
    config = BrokerConfig(dead_letter_strategies=strategies)
    assert config.strategy_for(Queue("orders.new")) == SHARED
    assert config.strategy_for(Queue("else")) == BrokerConfig().dead_letter_strategy  # that leaves it to the broker
    config = BrokerConfig(dead_letter_strategies=DeadLetterStrategyMap({"orders.>": SHARED}, default=DROPPED))
    assert (config.strategy_for(Queue("orders.new")), config.strategy_for(Queue("else"))) == (SHARED, DROPPED)
    assert config.dead_letter_strategy == DROPPED


def test_what_no_entry_matches_has_the_default() -> None:
    by_topic: dict[str | Destination, DeadLetterStrategy] = {Topic("news"): SHARED}
    strategies = DeadLetterStrategyMap(by_topic, default=DROPPED)
    assert [strategies.strategy_for(each) for each in (Topic("news"), Queue("news"), "else")] == [
        SHARED,
        DROPPED,
        DROPPED,
    ]
    assert strategies.default == DROPPED
    assert str(strategies.explain("else")) == f"queue://else: (default) counts: {DROPPED}\n  no entry matches"
    assert strategies == DeadLetterStrategyMap({"topic://news": SHARED}, DROPPED)
    assert strategies != DeadLetterStrategyMap({"topic://news": SHARED}, SHARED)
    assert strategies != {"topic://news": SHARED}


KEYS = (
    *("orders", "orders.eu", "orders.*", "*.eu", "orders.>", ">", "#", "queue://orders.*", "topic://orders.>"),
    *("*.*", "*.eu.>", "orders.eu,topic://a.>", "queue://*.eu", "topic://orders.eu"),
)
ASKED = (
    Queue("orders"),
    Queue("orders.eu"),
    Topic("orders.eu"),
    Topic("a.b"),
    Queue("orders.eu.new"),
    Queue("orders.*"),
)


@pytest.mark.parametrize("left_out", range(len(KEYS)))
def test_it_has_the_order_of_the_policy_map(left_out: int) -> None:
    """Whichever entries there are, the same key wins for the same reasons."""
    keys = [key for number, key in enumerate(KEYS) if number != left_out and key not in ("#", "orders.eu")]
    strategies = DeadLetterStrategyMap(
        {key: redelivery.SharedDeadLetterStrategy(f"Dead.{n}") for n, key in enumerate(keys)}
    )
    policies = RedeliveryPolicyMap({key: RedeliveryPolicy(maximum_redeliveries=n) for n, key in enumerate(keys)})
    for target in ASKED:
        why, expected = strategies.explain(target), policies.explain(target)
        assert why.winner.pattern == expected.winner.pattern
        assert [each.pattern for each in why.candidates] == [each.pattern for each in expected.candidates]
        assert why.reasons() == expected.reasons()
        assert why.winner.value == strategies.strategy_for(target)


@pytest.mark.parametrize(
    ("entries", "default", "named"),
    [
        ({"orders": "DLQ"}, None, "'orders': 'DLQ' is not a dead-letter strategy"),
        ({"orders": None}, None, "'orders': None is not"),
        ({"orders": redelivery.SharedDeadLetterStrategy}, None, "'orders'"),
        ({"orders": SHARED}, "DLQ", "default: 'DLQ' is not"),
        ({"orders.>": SHARED, "orders.#": DROPPED}, None, "both hold the pattern"),
        ({"a.>.b": SHARED}, None, "only be the last word"),
        ([("orders", SHARED)], None, "a map from patterns"),
        (None, None, "a map from patterns"),
    ],
)
def test_what_is_no_map_of_strategies_is_refused(entries: Any, default: Any, named: str) -> None:
    with pytest.raises(redelivery.ConfigError, match=named):
        DeadLetterStrategyMap(entries, default=default)
