"""RedeliveryPolicy in ActiveMQ's words: its option names, and its text."""

from __future__ import annotations

import json

import pytest

from redelivery.model.errors import ConfigError
from redelivery.policies.redelivery import RedeliveryPolicy


def test_from_activemq_reads_texts_and_values() -> None:
    texts = {
        "maximumRedeliveries": "3",
        "initialRedeliveryDelay": "50",
        "redeliveryDelay": "500",
        "useExponentialBackOff": "TRUE",
        "backOffMultiplier": "2.5",
        "maximumRedeliveryDelay": "60000",
        "useCollisionAvoidance": "true",
        "collisionAvoidancePercent": "20",
        "preDispatchCheck": "false",
    }
    expected = RedeliveryPolicy(
        maximum_redeliveries=3,
        initial_redelivery_delay=0.05,
        redelivery_delay=0.5,
        use_exponential_back_off=True,
        back_off_multiplier=2.5,
        maximum_redelivery_delay=60.0,
        use_collision_avoidance=True,
        collision_avoidance_percent=20,
        pre_dispatch_check=False,
    )
    assert RedeliveryPolicy.from_activemq(texts) == expected
    values = {name: json.loads(text.lower()) for name, text in texts.items()}
    assert RedeliveryPolicy.from_activemq(values) == expected


def test_from_activemq_minus_one_means_no_limit_and_no_cap() -> None:
    policy = RedeliveryPolicy.from_activemq({"maximumRedeliveries": "-1", "maximumRedeliveryDelay": "-1"})
    assert (policy.maximum_redeliveries, policy.maximum_redelivery_delay) == (-1, None)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("maximumRedeliveries", "-2"),
        ("maximumRedeliveries", "three"),
        ("maximumRedeliveries", ""),
        ("maximumRedeliveries", "1.0"),
        ("maximumRedeliveries", " 1"),
        ("maximumRedeliveries", "2147483648"),
        ("maximumRedeliveries", "9" * 5000),
        ("maximumRedeliveries", "1_0"),
        ("maximumRedeliveries", "٣"),
        ("maximumRedeliveries", True),
        ("redeliveryDelay", "0.5"),
        ("redeliveryDelay", None),
        ("redeliveryDelay", "9223372036854775808"),
        ("useExponentialBackOff", "yes"),
        ("useExponentialBackOff", 1),
        ("backOffMultiplier", "nan"),
        ("backOffMultiplier", "1e999"),
        ("backOffMultiplier", "1_0"),
        ("backOffMultiplier", " 2"),
        ("backOffMultiplier", "two"),
        ("collisionAvoidancePercent", "0.15"),
        ("preDispatchCheck", ""),
    ],
)
def test_from_activemq_names_a_bad_value(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"^jms.redeliveryPolicy.{name}="):
        RedeliveryPolicy.from_activemq({name: value}, prefix="jms.redeliveryPolicy.")


@pytest.mark.parametrize("name", ["destination", ""])
def test_from_activemq_refuses_an_unknown_name_and_lists_the_known(name: str) -> None:
    with pytest.raises(ConfigError, match=f"unknown option '{name}'; known.*maximumRedeliveries.*preDispatchCheck"):
        RedeliveryPolicy.from_activemq({name: "1"})


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("maximumredeliveries", "maximumRedeliveries"),
        ("maxRedeliveries", "maximumRedeliveries"),
        ("max_redeliveries", "maximumRedeliveries"),
        ("backoffMultiplier", "backOffMultiplier"),
        ("multiplier", "backOffMultiplier"),
        ("redelivery_delay", "redeliveryDelay"),
        ("collisionAvoidanceFactor", "collisionAvoidancePercent"),
    ],
)
def test_from_activemq_says_which_name_was_meant(name: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=f"unknown option 'p.{name}'; did you mean 'p.{meant}'"):
        RedeliveryPolicy.from_activemq({name: "1"}, prefix="p.")


def test_str_is_javas() -> None:
    policy = RedeliveryPolicy(maximum_redeliveries=0, initial_redelivery_delay=0.02, redelivery_delay=0.02)
    assert str(policy) == policy.describe()
    assert str(policy) == (
        "RedeliveryPolicy {destination = null, collisionAvoidanceFactor = 0.15, maximumRedeliveries = 0, "
        "maximumRedeliveryDelay = -1, initialRedeliveryDelay = 20, useCollisionAvoidance = false, "
        "useExponentialBackOff = false, backOffMultiplier = 5.0, redeliveryDelay = 20, preDispatchCheck = true}"
    )


@pytest.mark.parametrize(
    ("multiplier", "text"),
    [(0, "0.0"), (0.0005, "5.0E-4"), (0.00123, "0.00123"), (1e7, "1.0E7"), (12345678.5, "1.23456785E7"), (2, "2.0")],
)
def test_numbers_are_written_as_java_writes_doubles(multiplier: float, text: str) -> None:
    assert f"backOffMultiplier = {text}," in str(
        RedeliveryPolicy(use_exponential_back_off=False, back_off_multiplier=multiplier)
    )
