"""What is played again, because chance at a broker may have done it, and what counts at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest
from tests.run import again, calm
from tests.traces import runner
from tests.traces.compare import compare
from tests.traces.runner import TRIES, TRIES_OF_A_BROKER, Outcome
from tests.traces.scenario import Trace, scenarios
from tests.traces.targets import TARGETS
from tests.traces.test_trace_compare import Events, replayed

SCENARIO = scenarios()["client-session-close-limit"]  # m1 received, and its session closed without an ack, four times
RIGHT = SCENARIO.traces[0]


def outcome(target: str, got: Trace) -> Outcome:
    at = TARGETS[target]
    return Outcome(SCENARIO, at, got, tuple(compare(RIGHT, got, at.sight)), None, chance=False)


def changed(
    change: Callable[[Events], object] = lambda _: None,
    left: Sequence[Mapping[str, object]] = RIGHT.end["q"],
    heard: int = 0,
) -> Trace:
    return replace(replayed(RIGHT, change), end={**RIGHT.end, "q": left}, heard=heard)


IN_VAIN = changed(lambda events: events[4].update(body=None))
NOT_ALL_CALLED = changed(lambda events: events[4].update(op="wait", body=None))
ONE_MORE_LEFT = changed(left=[*RIGHT.end["q"], *RIGHT.end["q"]])
OTHER_MESSAGE = changed(lambda events: events[4].update(body="m2"))
OTHER_COUNT = changed(lambda events: events[4].update(redelivered=False))
LOST = changed(left=[])
HEARD = changed(heard=1)
HELD_UP = changed(lambda events: events[4].update(body="m2", setup=60.0))


@pytest.mark.parametrize(
    ("target", "got", "may_be"),
    [
        ("stomp-hornetq", IN_VAIN, True),
        ("stomp-hornetq", NOT_ALL_CALLED, True),
        ("stomp-hornetq", ONE_MORE_LEFT, True),
        ("stomp-hornetq", OTHER_MESSAGE, False),
        ("stomp-hornetq", OTHER_COUNT, False),
        ("stomp-hornetq", LOST, False),
        ("stomp-hornetq", HEARD, False),
        ("stomp-hornetq", changed(), False),
        ("amqp-rabbitmq", HEARD, True),
        ("amqp-rabbitmq", IN_VAIN, False),
        ("amqp-rabbitmq", changed(lambda events: events[4].update(body=None), heard=1), False),
        ("amqp-rabbitmq", changed(), False),
        ("stomp-artemis", IN_VAIN, False),
        ("stomp-artemis", ONE_MORE_LEFT, False),
        ("amqp-artemis", HEARD, False),
    ],
)
def test_what_may_be_a_broker_s_own_fault(target: str, got: Trace, may_be: bool) -> None:
    assert outcome(target, got).broker_failed is may_be


@pytest.mark.parametrize(
    ("target", "course", "played"),
    [
        ("stomp-hornetq", [IN_VAIN, changed()], 2),
        ("stomp-hornetq", [IN_VAIN] * 9, TRIES_OF_A_BROKER),
        ("stomp-hornetq", [OTHER_MESSAGE] * 9, 1),
        ("stomp-artemis", [IN_VAIN] * 9, 1),
        ("stomp-artemis", [HELD_UP, changed()], 2),
        ("stomp-artemis", [HELD_UP] * 9, TRIES),
        ("stomp-artemis", [changed()] * 9, 1),
    ],
)
def test_it_is_played_again_a_few_times_and_then_fails(
    target: str, course: list[Trace], played: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = iter(course)
    outcomes: list[Outcome] = []

    def once(*_: object) -> Outcome:
        outcomes.append(outcome(target, next(left)))
        return outcomes[-1]

    counted: list[str] = []
    monkeypatch.setattr(runner, "_once", once)
    monkeypatch.setattr(again, "note", counted.append)
    monkeypatch.setattr(calm, "wait", lambda: True)
    last = runner.run(SCENARIO, TARGETS[target], {})
    assert len(outcomes) == played
    assert counted == [again.PLAYED] * (played - 1)
    assert last is outcomes[-1]
