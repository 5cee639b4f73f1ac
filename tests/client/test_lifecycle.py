"""The table of legal states: what is not in it is the error, which says when and why."""

from __future__ import annotations

import pytest

from redelivery.client.lifecycle import TRANSITIONS, Lifecycle, Stage
from redelivery.model.errors import ConnectionLostError, IllegalStateError, JMSError

EVENTS = ("start", "stop", "lose", "close")
LEGAL = {
    (Stage.NEW, "start"): Stage.STARTED,
    (Stage.NEW, "stop"): Stage.STOPPED,
    (Stage.NEW, "lose"): Stage.FAILED,
    (Stage.NEW, "close"): Stage.CLOSED,
    (Stage.STARTED, "start"): Stage.STARTED,
    (Stage.STARTED, "stop"): Stage.STOPPED,
    (Stage.STARTED, "lose"): Stage.FAILED,
    (Stage.STARTED, "close"): Stage.CLOSED,
    (Stage.STOPPED, "start"): Stage.STARTED,
    (Stage.STOPPED, "stop"): Stage.STOPPED,
    (Stage.STOPPED, "lose"): Stage.FAILED,
    (Stage.STOPPED, "close"): Stage.CLOSED,
    (Stage.FAILED, "lose"): Stage.FAILED,
    (Stage.FAILED, "close"): Stage.CLOSED,
    (Stage.CLOSED, "lose"): Stage.CLOSED,
    (Stage.CLOSED, "close"): Stage.CLOSED,
}


def at(stage: Stage) -> Lifecycle:
    life = Lifecycle("session")
    life.stage = stage
    return life


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("stage", Stage, ids=lambda stage: stage.value)
def test_each_step_of_each_stage(stage: Stage, event: str) -> None:
    life = at(stage)
    target = LEGAL.get((stage, event))
    if target is None:
        with pytest.raises(JMSError, match=f"{event}: the session is {stage.value}"):
            life.step(event)
        assert life.stage is stage
    else:
        assert life.step(event) is (target is not stage)
        assert life.stage is target


def test_every_stage_has_its_row() -> None:
    assert set(TRANSITIONS) == set(Stage)


@pytest.mark.parametrize("stage", Stage, ids=lambda stage: stage.value)
def test_over_is_closed_or_failed(stage: Stage) -> None:
    assert at(stage).over is (stage in (Stage.FAILED, Stage.CLOSED))


def test_a_closed_one_says_when_and_why() -> None:
    life = Lifecycle("consumer")
    life.step("close", "closed by close()")
    problem = life.problem("receive")
    assert isinstance(problem, IllegalStateError)
    assert not isinstance(problem, ConnectionLostError)
    text = str(problem)
    assert text.startswith("receive: the consumer is closed (closed by close() at 20")
    assert text.endswith(" UTC)")


def test_a_failed_one_names_its_loss_and_keeps_the_cause() -> None:
    lost = ConnectionLostError("the broker went away")
    life = Lifecycle("connection")
    life.step("lose", "the connection was lost", lost)
    problem = life.problem("send")
    assert isinstance(problem, ConnectionLostError)
    assert problem.__cause__ is lost


def test_closing_after_a_loss_keeps_the_loss_as_the_cause() -> None:
    lost = ConnectionLostError("the broker went away")
    life = Lifecycle("connection")
    life.step("lose", "the connection was lost", lost)
    life.step("close", "closed by close()")
    problem = life.problem("send")
    assert isinstance(problem, IllegalStateError)
    assert problem.__cause__ is lost


def test_the_first_reason_stands_when_it_ends_twice() -> None:
    life = Lifecycle("connection")
    first, second = ConnectionLostError("first"), ConnectionLostError("second")
    life.step("lose", "lost", first)
    life.step("lose", "lost again", second)
    assert life.error is first
    assert "lost again" not in str(life.problem("send"))
