"""ReconnectPolicy: how long is waited, and when that is over."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redelivery import ConfigError, ReconnectPolicy


class Highest:
    """Draws what makes the longest wait."""

    def random(self) -> float:
        return 1.0


class Lowest:
    def random(self) -> float:
        return 0.0


def test_the_defaults_are_activemqs() -> None:
    assert repr(ReconnectPolicy()) == (
        "ReconnectPolicy(initial_delay=0.01, maximum_delay=30.0, multiplier=2.0, maximum_attempts=-1, "
        "startup_maximum_attempts=-1, randomize=True, timeout=None)"
    )


def test_the_longest_wait_is_activemqs_and_the_shortest_half_of_it() -> None:
    policy = ReconnectPolicy()
    longest = [policy.delay(attempt, Highest()) for attempt in range(1, 14)]
    assert longest == [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 30.0]
    assert [policy.delay(attempt, Lowest()) for attempt in range(1, 14)] == [each / 2 for each in longest]


def test_a_multiplier_of_1_is_no_back_off() -> None:
    policy = ReconnectPolicy(initial_delay=0.3, multiplier=1)
    assert {policy.delay(attempt, Highest()) for attempt in (1, 2, 100)} == {0.3}


@pytest.mark.parametrize("multiplier", [1, 2])
def test_an_initial_delay_of_0_does_not_make_a_busy_loop(multiplier: float) -> None:
    policy = ReconnectPolicy(initial_delay=0, multiplier=multiplier)
    assert policy.delay(1) == 0
    assert all(policy.delay(attempt, Lowest()) >= 0.005 for attempt in (2, 3, 50))


@given(st.integers(1, 10**9), st.floats(0, 100), st.floats(0.001, 1000), st.floats(1, 1e6), st.randoms())
def test_no_wait_is_longer_than_the_maximum(n: int, initial: float, most: float, factor: float, rng: Random) -> None:
    policy = ReconnectPolicy(initial_delay=initial, maximum_delay=most, multiplier=factor)
    assert 0 <= policy.delay(n, rng) <= most + 0.0005


def test_attempts_and_their_end() -> None:
    assert not ReconnectPolicy().exhausted(10**9)
    assert [ReconnectPolicy(maximum_attempts=2).exhausted(each) for each in (1, 2, 3)] == [False, True, True]
    at_start = ReconnectPolicy(maximum_attempts=5, startup_maximum_attempts=1)
    assert [at_start.exhausted(1, startup=each) for each in (False, True)] == [False, True]
    never = ReconnectPolicy(maximum_attempts=0)
    assert [never.exhausted(each, startup=True) for each in (0, 1)] == [False, True]


def test_durations_may_be_timedeltas() -> None:
    assert ReconnectPolicy(maximum_delay=timedelta(minutes=1), timeout=timedelta(seconds=2)).timeout == 2.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"initial_delay": -1}, "initial_delay=-1 is not a duration"),
        ({"maximum_delay": float("nan")}, "maximum_delay=nan is not a duration"),
        ({"maximum_delay": 0}, "maximum_delay=0: brokers would be asked without a pause"),
        ({"multiplier": 0.5}, "multiplier=0.5: use a finite number from 1"),
        ({"maximum_attempts": -2}, "maximum_attempts=-2: use a whole number from -1"),
        ({"startup_maximum_attempts": 1.5}, "startup_maximum_attempts=1.5: use a whole number"),
        ({"randomize": 1}, "randomize=1: use True or False"),
        ({"timeout": -1}, "timeout=-1 is not a duration"),
    ],
)
def test_a_bad_value_is_named(options: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ReconnectPolicy(**options)


def test_an_unknown_name_gets_a_suggestion() -> None:
    with pytest.raises(TypeError, match="maximum_attempts"):
        ReconnectPolicy(max_attempts=3)  # type: ignore[call-arg]  # on purpose
