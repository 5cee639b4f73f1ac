"""ReconnectPolicy: the delay before each attempt is ActiveMQ's, shortened by the jitter, and never a busy loop."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redelivery.policies.reconnect import ReconnectPolicy


class Fixed:
    """A random number that the test dictates."""

    def __init__(self, number: float) -> None:
        self.number = number

    def random(self) -> float:
        return self.number


def delays_ms(count: int, **arguments: Any) -> list[float]:
    policy = ReconnectPolicy(jitter=0, **arguments)
    return [round(policy.delay(n) * 1000, 6) for n in range(1, count + 1)]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5120, 10240, 20480, 30000, 30000]),
        ({"initial_delay": 0.1, "maximum_delay": 0.5}, [100, 200, 400, 500, 500]),
        ({"initial_delay": 3, "maximum_delay": 3}, [3000, 3000, 3000]),
        ({"initial_delay": 0.003, "multiplier": 1.5}, [3, 4, 6, 9, 13, 19]),  # truncated to the millisecond
        ({"multiplier": 1}, [10, 10, 10]),
        ({"use_exponential_back_off": False, "initial_delay": 0.2}, [200, 200, 200]),
        ({"use_exponential_back_off": False, "initial_delay": 60}, [60_000, 60_000]),  # the maximum is the back-off's
        # ActiveMQ multiplies 0 for ever
        ({"initial_delay": 0}, [0, 10, 20, 40, 80]),
        ({"initial_delay": 0.0004}, [0, 10, 20, 40]),  # less than a millisecond
        ({"initial_delay": 0, "maximum_delay": 0.004}, [0, 4, 4]),
        ({"initial_delay": 0, "multiplier": 1}, [0, 10, 10]),
        ({"initial_delay": 0, "use_exponential_back_off": False}, [0, 10, 10]),
    ],
)
def test_delays(arguments: dict[str, Any], expected: list[float]) -> None:
    assert delays_ms(len(expected), **arguments) == expected


def test_by_default_each_wait_is_between_half_the_delay_and_all_of_it() -> None:
    policy = ReconnectPolicy()
    assert policy.delay(4, Fixed(0.0)) == 0.08
    assert policy.delay(4, Fixed(0.5)) == pytest.approx(0.06)
    assert policy.delay(4, Fixed(0.999999)) == pytest.approx(0.04, abs=1e-6)


def test_jitter_is_a_part_of_the_delay_from_none_to_all() -> None:
    assert ReconnectPolicy(jitter=0).delay(4, Fixed(0.9)) == 0.08
    assert ReconnectPolicy(jitter=1).delay(4, Fixed(0.75)) == pytest.approx(0.02)


def test_the_jitter_of_one_wait_does_not_shorten_the_next() -> None:
    policy = ReconnectPolicy()
    assert policy.delay(5, Fixed(0.0)) == 2 * policy.delay(4, Fixed(0.0))


def test_clients_that_lost_the_same_broker_do_not_return_together() -> None:
    assert len({ReconnectPolicy().delay(8) for _ in range(100)}) > 90


def test_forked_processes_do_not_return_together() -> None:
    program = """
import os
from redelivery.policies.reconnect import ReconnectPolicy
policy = ReconnectPolicy()
policy.delay(8)
for _ in range(5):
    if not os.fork():
        os.write(1, f"{policy.delay(8)}\\n".encode())
        os._exit(0)
for _ in range(5):
    os.wait()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=150, check=True)  # noqa: S603  # ours
    assert len(set(done.stdout.split())) == 5


@pytest.mark.parametrize(
    "policy", [ReconnectPolicy(), ReconnectPolicy(multiplier=1 + 1e-12), ReconnectPolicy(jitter=1)]
)
def test_an_absurd_count_gives_a_delay_below_the_maximum_without_a_long_loop(policy: ReconnectPolicy) -> None:
    for count in (10**6, 10**12):
        assert 0 <= policy.delay(count) <= 30.0


@st.composite
def policies(draw: st.DrawFn) -> ReconnectPolicy:
    maximum_ms = draw(st.integers(1, 10**7))
    return ReconnectPolicy(
        initial_delay=draw(st.integers(0, maximum_ms)) / 1000,
        maximum_delay=maximum_ms / 1000,
        multiplier=draw(st.floats(1, 50)),
        jitter=draw(st.floats(0, 0.9)),
        use_exponential_back_off=draw(st.booleans()),
    )


@given(policies(), st.integers(1, 200), st.integers())
def test_no_delay_is_longer_than_the_maximum_nor_shortened_by_more_than_the_jitter(
    policy: ReconnectPolicy, attempt: int, seed: int
) -> None:
    longest = policy.delay(attempt, Fixed(0.0))
    assert longest <= max(policy.maximum_delay, 0.01)
    assert not policy.use_exponential_back_off or longest <= policy.maximum_delay
    got = policy.delay(attempt, random.Random(seed))  # noqa: S311 - jitter, no secret
    assert longest * (1 - policy.jitter) * (1 - 1e-9) <= got <= longest
    assert got == policy.delay(attempt, random.Random(seed))  # noqa: S311 - jitter, no secret


@given(policies())
def test_the_longest_delays_never_fall_and_none_but_the_first_is_without_a_pause(policy: ReconnectPolicy) -> None:
    longest = [policy.delay(n, Fixed(0.0)) for n in range(1, 40)]
    assert longest[0] == policy.initial_delay
    assert longest == sorted(longest)
    assert min(longest[1:]) >= 0.001
