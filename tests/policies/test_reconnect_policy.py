"""ReconnectPolicy as a value: ActiveMQ's defaults, limits, warnings, units, and bad values."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any

import pytest

from redelivery.model.errors import ConfigError
from redelivery.policies.reconnect import ReconnectPolicy


def test_defaults_are_activemqs_but_for_the_jitter() -> None:
    assert dataclasses.asdict(ReconnectPolicy()) == {
        "initial_delay": 0.01,
        "maximum_delay": 30.0,
        "multiplier": 2.0,
        "maximum_attempts": -1,
        "startup_maximum_attempts": -1,
        "maximum_time": None,
        "randomize": True,
        "use_exponential_back_off": True,
        "jitter": 0.5,
        "warn_after_attempts": 10,
        "timeout": None,
        "priority_backup": False,
        "given_wait": None,
        "given_stop": None,
    }
    assert ReconnectPolicy.from_activemq({}) == ReconnectPolicy()


def test_durations_are_seconds_or_timedelta() -> None:
    policy = ReconnectPolicy(
        initial_delay=timedelta(milliseconds=1500), maximum_delay=timedelta(minutes=1), timeout=timedelta(seconds=2)
    )
    assert (policy.initial_delay, policy.maximum_delay, policy.timeout) == (1.5, 60.0, 2.0)
    assert type(ReconnectPolicy(maximum_delay=5).maximum_delay) is float


@pytest.mark.parametrize(("given", "meant"), [(None, None), (-1, None), (-1.0, None), (0, 0.0), (2.5, 2.5)])
def test_a_send_waits_for_the_connection_until_the_timeout_or_without_end(given: Any, meant: float | None) -> None:
    assert ReconnectPolicy(timeout=given).timeout == meant


@pytest.mark.parametrize(
    ("limit", "startup_limit", "reconnecting", "starting"),  # failed attempts after which no other follows
    [
        (-1, -1, None, None),
        (3, -1, 3, 3),
        (3, 5, 3, 5),
        (-1, 2, None, 2),
        (0, -1, 0, 1),  # no reconnect, but the first connect is made
        (0, 4, 0, 4),
        (5, 0, 5, 1),
        (1, 1, 1, 1),
    ],
)
def test_the_attempts_end_at_the_limit(
    limit: int, startup_limit: int, reconnecting: int | None, starting: int | None
) -> None:
    policy = ReconnectPolicy(maximum_attempts=limit, startup_maximum_attempts=startup_limit)
    counts = [*range(8), 10**9]
    assert [policy.exhausted(n) for n in counts] == [reconnecting is not None and n >= reconnecting for n in counts]
    assert [policy.exhausted(n, startup=True) for n in counts] == [
        starting is not None and n >= starting for n in counts
    ]


@pytest.mark.parametrize(("every", "warned"), [(10, [1, 10, 20]), (3, [1, 3, 6]), (1, [1, 2, 3]), (0, [])])
def test_the_first_failed_attempt_and_each_nth_are_worth_a_warning(every: int, warned: list[int]) -> None:
    policy = ReconnectPolicy(warn_after_attempts=every)
    assert [n for n in range(1, 25) if policy.warns(n)][:3] == warned


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[(name, -0.001) for name in ("initial_delay", "maximum_delay", "timeout")],
        *[(name, float("nan")) for name in ("initial_delay", "maximum_delay", "timeout", "multiplier", "jitter")],
        *[(name, float("inf")) for name in ("initial_delay", "maximum_delay", "timeout", "multiplier", "jitter")],
        *[(name, True) for name in ("initial_delay", "maximum_delay", "timeout", "multiplier", "jitter")],
        *[(name, "1") for name in ("initial_delay", "maximum_delay", "timeout", "multiplier", "jitter")],
        *[(name, None) for name in ("initial_delay", "maximum_delay", "multiplier", "jitter", "maximum_attempts")],
        *[(name, timedelta(seconds=-1)) for name in ("initial_delay", "maximum_delay", "timeout")],
        *[(name, -2) for name in ("maximum_attempts", "startup_maximum_attempts", "warn_after_attempts", "timeout")],
        *[(name, True) for name in ("maximum_attempts", "startup_maximum_attempts", "warn_after_attempts")],
        *[(name, 1.0) for name in ("maximum_attempts", "startup_maximum_attempts", "warn_after_attempts")],
        *[(name, 1) for name in ("randomize", "use_exponential_back_off", "priority_backup")],
        *[(name, "true") for name in ("randomize", "use_exponential_back_off", "priority_backup")],
        ("multiplier", 0.5),
        ("multiplier", 10**400),
        ("jitter", 1.01),
        ("jitter", -0.1),
        ("maximum_delay", 0),
        ("maximum_delay", 0.0004),
    ],
)
def test_a_bad_value_is_named(name: str, value: object) -> None:
    arguments: dict[str, Any] = {name: value}
    with pytest.raises(ConfigError, match=f"^{name}=") as caught:
        ReconnectPolicy(**arguments)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"initial_delay": -1}, "initial_delay=-1 is not a duration: pass seconds ≥ 0 or a timedelta"),
        ({"maximum_attempts": -2}, "maximum_attempts=-2 must be an integer >= -1"),
        ({"multiplier": 0}, "multiplier=0 must be a finite number >= 1"),
        ({"jitter": True}, "jitter=True must be a finite number from 0 to 1"),
        ({"maximum_delay": 0}, "maximum_delay=0.0 leaves no pause between attempts: pass 0.001 or more"),
        (
            {"initial_delay": 31},
            "initial_delay=31.0 is longer than maximum_delay=30.0 (in a URL initialReconnectDelay and "
            "maxReconnectDelay): change one of them, or use no exponential back-off",
        ),
    ],
)
def test_an_error_says_what_to_do(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ReconnectPolicy(**arguments)
    assert str(caught.value) == said


@pytest.mark.parametrize("count", [-1, True, 1.0, None, "1"])
def test_a_bad_count_is_refused(count: Any) -> None:
    policy = ReconnectPolicy()
    for refused in (policy.delay, policy.exhausted, policy.warns):
        with pytest.raises(ConfigError, match=r"^attempts?="):
            refused(count)
    with pytest.raises(ConfigError, match=r"^attempt=0 must be an integer >= 1"):
        policy.delay(0)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("max_delay", "maximum_delay"),
        ("maximumDelay", "maximum_delay"),
        ("retries", "maximum_attempts"),
        ("max_reconnect_attempts", "maximum_attempts"),
        ("back_off_multiplier", "multiplier"),
        ("shuffle", "randomize"),
    ],
)
def test_an_unknown_keyword_says_which_one_was_meant(name: str, meant: str) -> None:
    arguments: dict[str, Any] = {name: 1}
    with pytest.raises(TypeError, match=f"{name}'.*; did you mean '{meant}'"):
        ReconnectPolicy(**arguments)


@pytest.mark.parametrize("name", ["maximum_delay", "timeout"])
def test_seconds_that_were_probably_meant_as_milliseconds_are_warned_of(name: str) -> None:
    arguments: dict[str, Any] = {name: 30_000}
    with pytest.warns(UserWarning, match=rf"^{name}=30000 is 8\.33 hours, as delays are in seconds") as warned:
        ReconnectPolicy(**arguments)
    assert warned[0].filename == __file__


def test_it_is_a_frozen_value() -> None:
    policy = ReconnectPolicy(maximum_attempts=3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        policy.maximum_attempts = 4  # type: ignore[misc]  # the point of the test
    assert policy == dataclasses.replace(ReconnectPolicy(), maximum_attempts=3)
    assert len({policy, ReconnectPolicy(maximum_attempts=3)}) == 1
