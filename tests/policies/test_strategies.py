"""tenacity's strategies in policies, and policies as tenacity's strategies."""

from __future__ import annotations

import dataclasses
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    stop_after_attempt,
    stop_after_delay,
    stop_before_delay,
    stop_never,
    wait_chain,
    wait_exception,
    wait_exponential,
    wait_exponential_jitter,
    wait_fixed,
    wait_incrementing,
    wait_none,
    wait_random,
    wait_random_exponential,
)
from tenacity.wait import wait_base

from redelivery import ConfigError, ReconnectPolicy, RedeliveryPolicy
from redelivery.operate.simulate import attempts_of
from redelivery.policies.activemq.causes import delivery_cause, policy_of

BOTH = pytest.mark.parametrize("kind", [RedeliveryPolicy, ReconnectPolicy])


def state(attempt: int, elapsed: float = 0.0) -> RetryCallState:
    """tenacity's own."""
    made = RetryCallState(Retrying(), None, (), {})
    made.attempt_number = attempt
    made.start_time, made.outcome_timestamp = 100.0, 100.0 + elapsed
    return made


def linear(moment: Any) -> float:
    return float(2 * moment.attempt_number)


def power(base: float, moment: Any) -> float:
    return float(min(base**moment.attempt_number, 60.0)) if moment.attempt_number < 100 else 60.0


class Secret(wait_base):
    """One of the application's own."""

    def __init__(self, token: str) -> None:
        self.token = token

    def __call__(self, retry_state: Any) -> float:  # noqa: ARG002  # tenacity's name
        return 1.0


POLICIES = st.builds(
    lambda first, later, multiplier, cap, most: RedeliveryPolicy(
        maximum_redeliveries=most,
        initial_redelivery_delay=first,
        redelivery_delay=later,
        use_exponential_back_off=True,
        back_off_multiplier=multiplier,
        maximum_redelivery_delay=None if cap is None else max(first or later, later) + cap,
    ),
    st.integers(0, 10_000).map(lambda ms: ms / 1000),
    st.integers(0, 10_000).map(lambda ms: ms / 1000),
    st.floats(1, 7),
    st.none() | st.floats(0, 100),
    st.integers(-1, 50),
)


@given(POLICIES, st.integers(1, 60))
def test_a_policy_is_the_same_arithmetic_as_a_strategy(policy: RedeliveryPolicy, count: int) -> None:
    assert policy.wait(state(count)) == policy.delay(count)
    assert policy.stop(state(count)) is policy.exceeded(count)
    again = RedeliveryPolicy(wait=policy.wait, stop=policy.stop)
    assert (again.delay(count), again.exceeded(count)) == (policy.delay(count), policy.exceeded(count))
    assert again.maximum_redeliveries == policy.maximum_redeliveries


@given(st.integers(1, 50), st.floats(0.01, 10), st.integers(1, 60), st.none() | st.floats(0.1, 100))
def test_a_reconnect_policy_is_too(most: int, first: float, attempt: int, longest: float | None) -> None:
    policy = ReconnectPolicy(initial_delay=first, jitter=0, maximum_attempts=most, maximum_time=longest)
    assert policy.wait(state(attempt)) == policy.delay(attempt)
    assert policy.stop(state(attempt)) is policy.exhausted(attempt)
    if longest is not None:
        assert policy.stop(state(1, longest + 1)) is True


@pytest.mark.parametrize("most", [0, 1, 3])
def test_one_policy_drives_retries_within_a_delivery(most: int) -> None:
    policy = RedeliveryPolicy(
        maximum_redeliveries=most,
        initial_redelivery_delay=0.5,
        redelivery_delay=0.5,
        use_exponential_back_off=True,
        back_off_multiplier=2,
    )
    slept: list[float] = []
    calls: list[int] = []

    def bank() -> None:
        calls.append(1)
        raise TimeoutError

    retrying = Retrying(
        wait=policy.wait,
        stop=policy.stop,
        retry=retry_if_exception_type(TimeoutError),
        sleep=slept.append,
        reraise=True,
    )
    with pytest.raises(TimeoutError):
        retrying(bank)
    assert len(calls) == most + 1
    assert slept == [0.5, 1.0, 2.0][:most]


STRATEGIES: dict[str, Callable[[], Any]] = {
    "fixed": lambda: wait_fixed(timedelta(seconds=2)),
    "incrementing": lambda: wait_incrementing(start=1, increment=2, max=10),
    "exponential": lambda: wait_exponential(multiplier=0.5, max=60),
    "sum": lambda: wait_fixed(1) + wait_incrementing(1, 1),
    "chain": lambda: wait_chain(wait_fixed(1), wait_fixed(5)),
    "function": lambda: linear,
}


@pytest.mark.parametrize("name", STRATEGIES)
@BOTH
def test_any_strategy_gives_the_delays(kind: type[RedeliveryPolicy | ReconnectPolicy], name: str) -> None:
    given_one = STRATEGIES[name]()
    policy = kind(wait=given_one)
    for attempt in (1, 2, 3, 7, 100):
        assert policy.delay(attempt) == given_one(state(attempt)) == policy.wait(state(attempt))


@pytest.mark.parametrize(
    "wait", [wait_random(1, 3), wait_random_exponential(max=3, min=1), wait_exponential_jitter(max=3)], ids=range(3)
)
@BOTH
def test_random_ones_stay_within_their_bounds(kind: type[RedeliveryPolicy | ReconnectPolicy], wait: Any) -> None:
    delays = {kind(wait=wait).delay(20) for _ in range(50)}
    assert all(1 <= each <= 3 for each in delays)


def test_a_wait_of_ages_is_as_long_as_java_can_wait() -> None:
    assert RedeliveryPolicy(wait=wait_exponential()).delay(10_000) == (2**63 - 1) / 1000


@pytest.mark.parametrize(
    ("stop", "most"),
    [
        (stop_after_attempt(1), 0),
        (stop_after_attempt(4), 3),
        (stop_after_attempt(4) | stop_after_delay(600), 3),
        (stop_after_attempt(4) & stop_after_delay(600), -1),
        (stop_after_delay(600), -1),
        (stop_never, -1),
        (stop_after_attempt(70_001), 70_000),
        (lambda moment: moment.attempt_number >= 3, 2),
    ],
    ids=range(8),
)
def test_a_stop_is_the_limit(stop: Any, most: int) -> None:
    policy = RedeliveryPolicy(stop=stop)
    assert policy.maximum_redeliveries == most
    for count in (0, 1, 2, 3, 4, 5, 100_000):
        assert policy.exceeded(count) is (most != -1 and count > most)


def test_the_time_counts_from_the_first_failure() -> None:
    policy = RedeliveryPolicy(wait=wait_fixed(10), stop=stop_after_delay(25))
    assert [policy.exceeded(2, elapsed) for elapsed in (0, 24.9, 25, 600)] == [False, False, True, True]
    before = RedeliveryPolicy(wait=wait_fixed(10), stop=stop_before_delay(25))
    assert [before.exceeded(2, elapsed) for elapsed in (0, 14.9, 15)] == [False, False, True]
    assert ReconnectPolicy(stop=stop_after_delay(5)).exhausted(1, elapsed=5) is True
    assert ReconnectPolicy(stop=stop_after_delay(5)).exhausted(0, elapsed=9) is False
    assert [each.at for each in attempts_of(policy)] == [0, 10, 20, 30]


def test_what_a_state_has_not_is_as_before_a_call() -> None:
    seen: list[Any] = []

    def observe(moment: Any) -> float:
        seen[:] = [moment.outcome, moment.fn, moment.args, dict(moment.kwargs), moment.retry_object]
        seen.append((moment.idle_for, moment.upcoming_sleep, moment.next_action, moment.get_fn_name()))
        return 1.0

    RedeliveryPolicy(wait=observe)
    assert seen == [None, None, (), {}, None, (0.0, 0.0, None, "<unknown>")]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"wait": 5}, "wait=5 is no strategy"),
        ({"wait": wait_fixed}, "is a class: call it"),
        ({"wait": lambda _: -1}, "gave -1 after attempt 1"),
        ({"wait": lambda _: float("nan")}, "gave nan"),
        ({"wait": lambda _: float("inf")}, "gave inf"),
        ({"wait": lambda _: "soon"}, "gave 'soon'"),
        ({"wait": lambda _: None}, "gave None"),
        ({"wait": lambda _: True}, "gave True"),
        ({"wait": lambda moment: -1 if moment.attempt_number == 3 else 1}, "gave -1 after attempt 3"),
        ({"wait": wait_exception(lambda _: 1.0)}, "nothing of the call"),
        ({"wait": lambda: 1}, "TypeError"),
        ({"wait": stop_after_attempt(3)}, "a wait is a number of seconds"),
        ({"stop": wait_fixed(3)}, "says True or False"),
        ({"stop": 3}, "stop=3 is no strategy"),
        ({"stop": stop_after_attempt}, "is a class"),
        ({"stop": lambda _: 1 / 0}, "ZeroDivisionError"),
    ],
    ids=range(16),
)
@BOTH
def test_what_is_no_strategy_is_refused(
    kind: type[RedeliveryPolicy | ReconnectPolicy], options: dict[str, Any], says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        kind(**options)


async def later(_moment: Any) -> float:
    return 1.0


@BOTH
def test_a_coroutine_function_is_refused(kind: type[RedeliveryPolicy | ReconnectPolicy]) -> None:
    with pytest.raises(ConfigError, match="pass a plain function"):
        kind(wait=later)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (RedeliveryPolicy, {"wait": wait_fixed(1), "redelivery_delay": 2}),
        (RedeliveryPolicy, {"wait": wait_fixed(1), "use_exponential_back_off": True}),
        (RedeliveryPolicy, {"wait": wait_fixed(1), "use_collision_avoidance": True}),
        (RedeliveryPolicy, {"stop": stop_after_attempt(3), "maximum_redeliveries": 3}),
        (ReconnectPolicy, {"wait": wait_fixed(1), "jitter": 0.1}),
        (ReconnectPolicy, {"wait": wait_fixed(1), "maximum_delay": 5}),
        (ReconnectPolicy, {"stop": stop_after_attempt(3), "maximum_attempts": 3}),
        (ReconnectPolicy, {"stop": stop_after_attempt(3), "maximum_time": 3}),
        (ReconnectPolicy, {"wait": wait_none()}),
    ],
    ids=range(9),
)
def test_two_rules_for_one_thing_are_refused(kind: Any, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"leave|no pause"):
        kind(**options)


@BOTH
def test_policies_with_strategies_are_values(kind: type[RedeliveryPolicy | ReconnectPolicy]) -> None:
    def made(most: int = 4) -> RedeliveryPolicy | ReconnectPolicy:
        wait = wait_chain(wait_fixed(1), wait_random_exponential(max=60) + wait_fixed(2))
        return kind(wait=wait, stop=stop_after_attempt(most) | (stop_after_delay(600) & stop_never))

    policy = made()
    assert policy == made()
    assert hash(policy) == hash(made())
    assert policy not in {made(5), kind(), kind(wait=linear)}
    assert pickle.loads(pickle.dumps(policy)) == policy  # noqa: S301  # our own
    shown = repr(policy)
    assert "wait_fixed(wait_fixed=2.0)" in shown
    assert "stop_after_attempt(max_attempt_number=4) | (stop_after_delay(max_delay=600.0) & _stop_never())" in shown
    assert "wait=" not in repr(kind())
    assert kind(wait=partial(power, 2)) != kind(wait=partial(power, 3))
    assert kind(wait=Secret("one")) == kind(wait=Secret("one")) != kind(wait=Secret("two"))
    assert "hunter2" not in repr(kind(wait=Secret("hunter2")))
    assert "wait=linear" in repr(kind(wait=linear))


def test_a_replaced_field_keeps_the_strategies() -> None:
    policy = RedeliveryPolicy(wait=linear, stop=stop_after_attempt(3))
    other = dataclasses.replace(policy, pre_dispatch_check=False)
    assert (other.delay(3), other.maximum_redeliveries, other.wait) == (6.0, 2, linear)
    others: dict[str, Any] = {"wait": wait_fixed(1), "stop": stop_after_attempt(9)}
    other = dataclasses.replace(policy, **others)
    assert (other.delay(3), other.maximum_redeliveries) == (1.0, 8)
    with pytest.raises(ConfigError, match="leave maximum_redeliveries out"):
        dataclasses.replace(policy, maximum_redeliveries=5)


def test_a_cause_names_the_strategies_and_gives_no_wrong_delays() -> None:
    policy = RedeliveryPolicy(wait=linear, stop=stop_after_attempt(3))
    cause = delivery_cause(3, policy, ValueError("x"))
    assert "wait = linear, stop = stop_after_attempt(max_attempt_number=3)}" in cause
    assert policy_of(cause) is None
    assert policy_of(delivery_cause(3, RedeliveryPolicy(stop=stop_after_attempt(3)), None)) == RedeliveryPolicy(
        maximum_redeliveries=2, pre_dispatch_check=True
    )

    def odd(_moment: Any) -> float:
        return 1.0

    odd.__qualname__ = "a{b}\n" + "c" * 500
    assert "a b  c" in str(RedeliveryPolicy(wait=odd))
    assert len(str(RedeliveryPolicy(wait=odd))) < 800


def test_no_clock_is_read_and_nobody_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> float:
        raise AssertionError("a policy reads no clock")

    mine = threading.current_thread()
    for name in ("time", "monotonic", "perf_counter", "sleep", "time_ns", "monotonic_ns"):
        real = getattr(time, name)
        monkeypatch.setattr(
            time, name, lambda *given, real=real: never() if threading.current_thread() is mine else real(*given)
        )
    policy = RedeliveryPolicy(
        wait=wait_random_exponential(max=60) + wait_chain(wait_fixed(1), wait_incrementing(1, 1)),
        stop=stop_after_attempt(4) | stop_before_delay(600),
    )
    policy.delay(3)
    policy.exceeded(3, 20.0)
    own = RedeliveryPolicy()
    own.wait(SimpleNamespace(attempt_number=2))  # type: ignore[arg-type]  # no RetryCallState, which has a clock
    own.stop(SimpleNamespace(attempt_number=2, seconds_since_start=0.0))  # type: ignore[arg-type]
    assert own.delay(2, Random(1)) == 1.0  # noqa: S311


def test_tenacity_is_imported_when_a_strategy_is_used() -> None:
    asked = (
        "import sys, redelivery; p = redelivery.RedeliveryPolicy(); redelivery.ReconnectPolicy(); redelivery.App;"
        "p.delay(1); assert 'tenacity' not in sys.modules; p.wait; assert 'tenacity' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", asked], check=True, timeout=60)  # noqa: S603  # our own
