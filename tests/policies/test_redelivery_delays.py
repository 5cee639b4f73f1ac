"""RedeliveryPolicy: the delay before each redelivery is ActiveMQ's arithmetic (its RedeliveryPolicyTest)."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redelivery.model.errors import ConfigError
from redelivery.policies.destinations.address_settings import AddressSettings, client_policy
from redelivery.policies.redelivery import RedeliveryPolicy


class Script:
    """Random numbers that the test dictates."""

    def __init__(self, *numbers: float) -> None:
        self.numbers: Iterator[float] = iter(numbers)

    def random(self) -> float:
        return next(self.numbers)


def generator(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - jitter, no secret


DOWN, UP = 0.0, 0.5  # the side that `back_off.jittered` takes


def delays_ms(count: int, **options: object) -> list[int]:
    policy = RedeliveryPolicy.from_activemq(options)
    return [round(policy.delay(n) * 1000) for n in range(1, count + 1)]


EXPONENTIAL = {"useExponentialBackOff": True}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [1000] * 7),
        (EXPONENTIAL, [1000, 5000, 25000, 125000, 625000, 3125000]),
        (
            EXPONENTIAL | {"initialRedeliveryDelay": 0, "redeliveryDelay": 500, "backOffMultiplier": 2},
            [0, 500, 1000, 2000, 4000, 8000, 16000],
        ),
        (
            EXPONENTIAL
            | {
                "initialRedeliveryDelay": 10,
                "redeliveryDelay": 50,
                "backOffMultiplier": 2,
                "maximumRedeliveryDelay": 1000,
            },
            [10, 20, 40, 80, 160, 320, 640, 1000, 1000],
        ),
        # a cap below redeliveryDelay gives redeliveryDelay
        (
            EXPONENTIAL
            | {
                "initialRedeliveryDelay": 100,
                "redeliveryDelay": 5000,
                "backOffMultiplier": 2,
                "maximumRedeliveryDelay": 1000,
            },
            [100, 200, 400, 800, 5000, 5000],
        ),
        # a delay that equals such a cap is not above it
        (
            EXPONENTIAL
            | {
                "initialRedeliveryDelay": 250,
                "redeliveryDelay": 1000,
                "backOffMultiplier": 2,
                "maximumRedeliveryDelay": 500,
            },
            [250, 500, 1000, 1000],
        ),
        ({"initialRedeliveryDelay": 0}, [0, 1000, 1000]),
        ({"initialRedeliveryDelay": 500}, [500, 1000, 1000]),
        # a later initialRedeliveryDelay does not change redeliveryDelay
        ({"redeliveryDelay": 20}, [1000, 20, 20]),
        # truncation sticks
        (EXPONENTIAL | {"initialRedeliveryDelay": 1, "backOffMultiplier": 1.5}, [1, 1, 1, 1]),
        (EXPONENTIAL | {"initialRedeliveryDelay": 3, "backOffMultiplier": 1.5}, [3, 4, 6, 9, 13, 19]),
        # a multiplier of at most 1 is no back-off
        (EXPONENTIAL | {"initialRedeliveryDelay": 10, "redeliveryDelay": 70, "backOffMultiplier": 1}, [10, 70, 70]),
        # the cap belongs to the back-off only, and never touches the first delay
        ({"initialRedeliveryDelay": 2000, "redeliveryDelay": 3000, "maximumRedeliveryDelay": 10}, [2000, 3000, 3000]),
        (EXPONENTIAL | {"initialRedeliveryDelay": 9000, "maximumRedeliveryDelay": 4000}, [9000, 4000, 4000]),
        # RedeliveryPolicyTest: redeliveryDelay is ignored if the initial delay is above zero; negative means at once
        (EXPONENTIAL | {"initialRedeliveryDelay": 42, "redeliveryDelay": -100, "backOffMultiplier": 2}, [42, 84, 168]),
        ({"initialRedeliveryDelay": 42, "redeliveryDelay": -100}, [42, 0, 0]),
        (EXPONENTIAL | {"initialRedeliveryDelay": -5, "redeliveryDelay": 7, "backOffMultiplier": 2}, [0, 7, 14]),
    ],
)
def test_delays(options: dict[str, object], expected: list[int]) -> None:
    assert delays_ms(len(expected), **options) == expected


def test_collision_avoidance_moves_up_and_down_but_not_the_first_delay() -> None:
    policy = RedeliveryPolicy(use_collision_avoidance=True)
    assert policy.delay(1, Script()) == 1.0  # draws nothing
    assert policy.delay(2, Script(UP, 0.5)) == 1.075
    assert policy.delay(2, Script(DOWN, 0.5)) == 0.925
    assert policy.delay(2, Script(UP, 0.0)) == 1.0


def test_collision_avoidance_compounds_through_the_back_off() -> None:
    policy = RedeliveryPolicy(
        use_collision_avoidance=True,
        collision_avoidance_percent=50,
        use_exponential_back_off=True,
        back_off_multiplier=2,
        initial_redelivery_delay=0.1,
    )
    # 100, then 200 + 25 % = 250, then 500 - 10 % = 450; without compounding it were 400 - 10 % = 360
    assert policy.delay(3, Script(UP, 0.5, DOWN, 0.2)) == 0.45


def test_collision_avoidance_comes_after_the_cap() -> None:
    policy = RedeliveryPolicy(use_collision_avoidance=True, use_exponential_back_off=True, maximum_redelivery_delay=2.0)
    assert policy.delay(2, Script(UP, 0.999)) == pytest.approx(2.299, abs=0.001)


def test_collision_avoidance_truncates_towards_zero() -> None:
    policy = RedeliveryPolicy(use_collision_avoidance=True, redelivery_delay=0.019)
    assert policy.delay(2, Script(UP, 0.9)) == 0.021  # 21.565
    assert policy.delay(2, Script(DOWN, 0.9)) == 0.016  # 16.435


def test_without_a_generator_the_delays_spread() -> None:
    policy = RedeliveryPolicy(use_collision_avoidance=True)
    assert len({policy.delay(2) for _ in range(100)}) > 10


@pytest.mark.parametrize(
    "policy",
    [
        RedeliveryPolicy(use_exponential_back_off=True),
        RedeliveryPolicy(use_exponential_back_off=True, back_off_multiplier=1e300),
        RedeliveryPolicy(use_exponential_back_off=True, back_off_multiplier=1 + 1e-12, initial_redelivery_delay=10**12),
        RedeliveryPolicy(use_exponential_back_off=True, use_collision_avoidance=True),
        RedeliveryPolicy(use_collision_avoidance=True),
    ],
)
def test_an_absurd_count_gives_a_finite_delay_without_a_long_loop(policy: RedeliveryPolicy) -> None:
    class Counting(random.Random):
        draws = 0

        def random(self) -> float:
            self.draws += 1
            return super().random()

    rng = Counting(1)
    assert 0 <= policy.delay(10**6, rng) <= 2**63 / 1000
    assert 0 <= policy.delay(10**12, rng) <= 2**63 / 1000
    assert rng.draws <= 4000


def test_the_closed_form_of_a_very_long_back_off_continues_the_steps() -> None:
    policy = RedeliveryPolicy(
        use_exponential_back_off=True, back_off_multiplier=1.0005, initial_redelivery_delay=100_000.0
    )
    delays = [policy.delay(n) for n in range(9_990, 10_012)]
    assert delays == sorted(delays)
    assert all(after / before == pytest.approx(1.0005, rel=1e-6) for before, after in itertools.pairwise(delays))


@given(st.integers(0, 10**7), st.integers(0, 10**7), st.floats(0, 50), st.none() | st.integers(0, 10**7), st.booleans())
def test_without_jitter_the_delay_never_falls_from_the_second_on(
    initial: int, delay: int, multiplier: float, cap: int | None, exponential: bool
) -> None:
    policy = RedeliveryPolicy.from_activemq(
        {
            "initialRedeliveryDelay": initial,
            "redeliveryDelay": delay,
            "backOffMultiplier": multiplier,
            "maximumRedeliveryDelay": -1 if cap is None else cap,
            "useExponentialBackOff": exponential,
        }
    )
    delays = [policy.delay(n) for n in range(1, 40)]
    assert delays[0] == initial / 1000
    assert min(delays) >= 0
    assert delays[1:] == sorted(delays[1:])
    if cap is not None and exponential and multiplier > 1 and initial:
        assert max(delays[1:]) <= max(cap, delay) / 1000


@given(st.integers(0, 10**9), st.integers(0, 100), st.integers(1, 50), st.integers())
def test_jitter_stays_within_its_percentage_and_is_repeatable(delay: int, percent: int, n: int, seed: int) -> None:
    policy = RedeliveryPolicy(
        initial_redelivery_delay=delay / 1000,
        redelivery_delay=delay / 1000,
        use_collision_avoidance=True,
        collision_avoidance_percent=percent,
    )
    got = policy.delay(n, generator(seed))
    assert got == policy.delay(n, generator(seed))
    assert delay * (100 - percent) / 100 - 1 <= got * 1000 <= delay * (100 + percent) / 100 + 1e-6 * delay


@given(st.integers(1, 200), st.integers(0, 10**6), st.floats(1, 9), st.integers())
def test_jittered_back_off_is_never_negative_nor_beyond_the_cap_and_its_jitter(
    n: int, cap: int, multiplier: float, seed: int
) -> None:
    policy = RedeliveryPolicy.from_activemq(
        {
            "redeliveryDelay": 0,
            "backOffMultiplier": multiplier,
            "maximumRedeliveryDelay": cap,
            "useExponentialBackOff": True,
            "useCollisionAvoidance": True,
        }
    )
    assert 0 <= policy.delay(n, generator(seed)) <= max(1.0, cap / 1000 * 1.15)


@given(
    delay=st.integers(0, 20_000),
    multiplier=st.sampled_from([1.0, 2.0, 3.0]),
    percent=st.integers(1, 100),
    cap=st.none() | st.integers(0, 100_000),
    seed=st.integers(0, 2**32),
)
def test_a_policy_of_artemis_settings_has_artemis_delays_with_the_same_draws(
    delay: int, multiplier: float, percent: int, cap: int | None, seed: int
) -> None:
    """The first delay is moved too, each by itself, and capped afterwards."""
    settings = AddressSettings(
        redelivery_delay=delay / 1000,
        redelivery_delay_multiplier=multiplier,
        redelivery_collision_avoidance_factor=percent / 100,
        max_redelivery_delay=None if cap is None else cap / 1000,
    )
    policy = client_policy(settings)
    for number in range(1, 8):
        assert policy.delay(number, generator(seed)) == settings.delay(number, generator(seed))


def test_a_first_delay_is_moved_only_where_it_is_said_and_up_to_the_cap() -> None:
    policy = RedeliveryPolicy(
        use_collision_avoidance=True,
        collision_avoidance_percent=50,
        move_first_delay=True,
        use_exponential_back_off=True,
        back_off_multiplier=2.0,
        maximum_redelivery_delay=2.5,
    )
    half = (DOWN, 0.5), (UP, 0.5)
    assert [policy.delay(1, Script(*each)) for each in half] == [0.75, 1.25]
    assert [policy.delay(2, Script(*each)) for each in half] == [1.5, 2.5]
    assert [policy.delay(3, Script(*each)) for each in half] == [2.5, 2.5]
    assert replace(policy, move_first_delay=False).delay(1, Script()) == 1.0
    assert replace(policy, use_collision_avoidance=False).delay(1, Script()) == 1.0
    assert policy != replace(policy, move_first_delay=False)


def test_a_first_delay_that_would_not_be_moved_is_refused() -> None:
    with pytest.raises(ConfigError, match="move_first_delay=True has no effect without use_collision_avoidance=True"):
        RedeliveryPolicy(move_first_delay=True)
    with pytest.raises(ConfigError, match="move_first_delay='yes'"):
        RedeliveryPolicy(use_collision_avoidance=True, move_first_delay="yes")  # type: ignore[arg-type]  # that is it
    assert RedeliveryPolicy(move_first_delay=True, use_collision_avoidance=False).delay(1) == 1.0
