"""RedeliveryPolicy as a value: ActiveMQ's defaults, the limit, units, and bad values."""

from __future__ import annotations

import dataclasses
import warnings
from datetime import timedelta
from typing import Any

import pytest

from redelivery.model.errors import ConfigError
from redelivery.policies.redelivery import RedeliveryPolicy


def test_defaults_are_activemqs() -> None:
    policy = RedeliveryPolicy()
    assert (
        policy.maximum_redeliveries,
        policy.initial_redelivery_delay,
        policy.redelivery_delay,
        policy.use_exponential_back_off,
        policy.back_off_multiplier,
        policy.maximum_redelivery_delay,
        policy.use_collision_avoidance,
        policy.collision_avoidance_percent,
        policy.pre_dispatch_check,
    ) == (6, 1.0, 1.0, False, 5.0, None, False, 15, True)
    assert RedeliveryPolicy.from_activemq({}) == policy


def test_exceeded_allows_n_redeliveries() -> None:
    assert [RedeliveryPolicy(maximum_redeliveries=2).exceeded(n) for n in range(5)] == [False, False, False, True, True]
    assert RedeliveryPolicy(maximum_redeliveries=0).exceeded(1)
    assert not RedeliveryPolicy(maximum_redeliveries=-1).exceeded(10**9)


def test_durations_are_seconds_or_timedelta() -> None:
    policy = RedeliveryPolicy(
        initial_redelivery_delay=timedelta(milliseconds=1500),
        redelivery_delay=2,
        use_exponential_back_off=True,
        maximum_redelivery_delay=timedelta(minutes=1),
    )
    assert (policy.initial_redelivery_delay, policy.redelivery_delay, policy.maximum_redelivery_delay) == (1.5, 2.0, 60)
    assert all(isinstance(each, float) for each in (policy.redelivery_delay, policy.maximum_redelivery_delay))


def test_milliseconds_survive_binary_fractions() -> None:
    for ms in range(5000):  # 1.001 * 1000 is below 1001
        assert RedeliveryPolicy(initial_redelivery_delay=ms / 1000).delay(1) == ms / 1000


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("maximum_redeliveries", -2),
        ("maximum_redeliveries", True),
        ("maximum_redeliveries", 1.0),
        ("maximum_redeliveries", "3"),
        ("maximum_redeliveries", None),
        ("initial_redelivery_delay", -0.001),
        ("initial_redelivery_delay", float("nan")),
        ("initial_redelivery_delay", False),
        ("redelivery_delay", float("inf")),
        ("redelivery_delay", timedelta(seconds=-1)),
        ("redelivery_delay", "1"),
        ("redelivery_delay", None),
        ("redelivery_delay", 10**400),
        ("maximum_redelivery_delay", -1),
        ("use_exponential_back_off", 1),
        ("use_exponential_back_off", "true"),
        ("back_off_multiplier", float("nan")),
        ("back_off_multiplier", float("inf")),
        ("back_off_multiplier", True),
        ("back_off_multiplier", -2.0),
        ("use_collision_avoidance", None),
        ("collision_avoidance_percent", 101),
        ("collision_avoidance_percent", -1),
        ("collision_avoidance_percent", 0.15),
        ("pre_dispatch_check", "yes"),
        ("pre_dispatch_check", 0),
    ],
)
def test_a_bad_value_is_named(name: str, value: object) -> None:
    arguments: dict[str, Any] = {name: value}
    with pytest.raises(ConfigError, match=f"^{name}="):
        RedeliveryPolicy(**arguments)


@pytest.mark.parametrize("count", [0, -1, True, 1.0, None])
def test_a_bad_count_is_refused(count: Any) -> None:
    with pytest.raises(ConfigError, match="redelivery_count"):
        RedeliveryPolicy().delay(count)


def test_it_is_a_frozen_value() -> None:
    policy = RedeliveryPolicy(maximum_redeliveries=3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        policy.maximum_redeliveries = 4  # type: ignore[misc]  # the point of the test
    assert policy == RedeliveryPolicy(maximum_redeliveries=3)
    assert len({policy, RedeliveryPolicy(maximum_redeliveries=3)}) == 1


def test_pre_dispatch_check_distinguishes_asked_for_from_default() -> None:
    assert RedeliveryPolicy().pre_dispatch_check is True
    assert not RedeliveryPolicy().pre_dispatch_check_set
    assert RedeliveryPolicy(pre_dispatch_check=True).pre_dispatch_check_set
    assert RedeliveryPolicy(pre_dispatch_check=False).pre_dispatch_check_set
    assert RedeliveryPolicy.from_activemq({"preDispatchCheck": "true"}).pre_dispatch_check_set


def test_replacing_another_field_keeps_what_was_asked_for() -> None:
    assert not dataclasses.replace(RedeliveryPolicy(), maximum_redeliveries=1).pre_dispatch_check_set
    asked = RedeliveryPolicy(pre_dispatch_check=True)
    assert dataclasses.replace(asked, maximum_redeliveries=1).pre_dispatch_check_set
    off = dataclasses.replace(RedeliveryPolicy(), pre_dispatch_check=False)
    assert (off.pre_dispatch_check, off.pre_dispatch_check_set) == (False, True)


def test_a_multiplier_without_back_off_is_refused_as_it_would_have_no_effect() -> None:
    with pytest.raises(ConfigError, match="back_off_multiplier=3 has no effect without use_exponential_back_off=True"):
        RedeliveryPolicy(back_off_multiplier=3)
    assert RedeliveryPolicy(back_off_multiplier=3, use_exponential_back_off=False).delay(5) == 1.0  # said so
    assert RedeliveryPolicy(back_off_multiplier=5.0) == RedeliveryPolicy()
    ours = RedeliveryPolicy.from_activemq({"backOffMultiplier": "3"})  # a file of ActiveMQ's may say it
    assert dataclasses.replace(ours, destination="orders").back_off_multiplier == 3


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            {"maximum_redelivery_delay": 5},
            "maximum_redelivery_delay=5 has no effect without use_exponential_back_off=True",
        ),
        ({"collision_avoidance_percent": 50}, "collision_avoidance_percent=50 has no effect without use_collision_avo"),
        ({"collision_avoidance_percent": 0, "use_exponential_back_off": True}, "collision_avoidance_percent=0 has no"),
        ({"back_off_multiplier": 0.5, "use_exponential_back_off": True}, "back_off_multiplier=0.5 is below 1"),
        ({"back_off_multiplier": 0, "use_exponential_back_off": True}, "back_off_multiplier=0.0 is below 1"),
        (
            {"maximum_redelivery_delay": 0.5, "use_exponential_back_off": True},
            "maximum_redelivery_delay=0.5 is below initial_redelivery_delay=1.0, the first delay",
        ),
        (
            {
                "maximum_redelivery_delay": timedelta(seconds=1),
                "initial_redelivery_delay": 0,
                "redelivery_delay": 2,
                "use_exponential_back_off": True,
            },
            "maximum_redelivery_delay=1.0 is below redelivery_delay=2.0, the first delay",
        ),
    ],
    ids=str,
)
def test_what_would_have_no_effect_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=f"^{says}"):
        RedeliveryPolicy(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"maximum_redelivery_delay": 0.5, "back_off_multiplier": 0, "use_exponential_back_off": False},
        {"collision_avoidance_percent": 50, "use_collision_avoidance": False},
        {"maximum_redelivery_delay": 1, "back_off_multiplier": 1, "use_exponential_back_off": True},
        {"maximum_redelivery_delay": 0.5, "initial_redelivery_delay": 0.1, "use_exponential_back_off": True},
    ],
    ids=str,
)
def test_what_a_switch_that_is_given_turns_off_is_kept(options: dict[str, Any]) -> None:
    policy = RedeliveryPolicy(**options)
    assert {name: getattr(policy, name) for name in options} == options
    assert dataclasses.replace(policy, maximum_redeliveries=1).maximum_redeliveries == 1


def test_activemqs_form_keeps_its_meaning() -> None:
    options = {"maximumRedeliveryDelay": 500, "collisionAvoidancePercent": 50, "backOffMultiplier": 0.5}
    assert RedeliveryPolicy.from_activemq(options).delay(3) == 1.0
    capped = RedeliveryPolicy.from_activemq({**options, "useExponentialBackOff": True, "backOffMultiplier": 2})
    assert [capped.delay(n) for n in (1, 2, 3)] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("name", ["redelivery_delay", "initial_redelivery_delay"])
def test_seconds_that_were_probably_meant_as_milliseconds_are_warned_of(name: str) -> None:
    def made(value: Any) -> RedeliveryPolicy:
        return RedeliveryPolicy(**{name: value})

    with pytest.warns(UserWarning, match=rf"^{name}=5000 is 1\.39 hours, as delays are in seconds") as warned:
        made(5000)
    assert warned[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made(timedelta(hours=2))  # plain enough
        made(3600)
        dataclasses.replace(made(timedelta(hours=2)), maximum_redeliveries=1)
        RedeliveryPolicy.from_activemq({"redeliveryDelay": 7200000})


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("max_redeliveries", "maximum_redeliveries"),
        ("maximumRedeliveries", "maximum_redeliveries"),
        ("max_retries", "maximum_redeliveries"),
        ("backoff_multiplier", "back_off_multiplier"),
        ("delay", "redelivery_delay"),
    ],
)
def test_an_unknown_keyword_says_which_one_was_meant(given: str, meant: str) -> None:
    options: Any = {given: 3}
    with pytest.raises(TypeError, match=f"^RedeliveryPolicy.. got an unexpected keyword .*'{given}'; .*'{meant}'"):
        RedeliveryPolicy(**options)
