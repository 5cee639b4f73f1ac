"""Dead-letter strategies by pattern."""

from __future__ import annotations

import pytest

import redelivery
from redelivery.broker import BrokerConfig
from redelivery.policies.destinations.strategy_map import DeadLetterStrategyMap

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
    assert config.strategy_for(redelivery.Queue("orders.new")) == SHARED


def test_what_is_not_a_pattern_is_refused() -> None:
    with pytest.raises(redelivery.ConfigError):
        DeadLetterStrategyMap({"a.>.b": SHARED})
