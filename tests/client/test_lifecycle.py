"""The table of legal states: what is not in it is the error, which says when and why."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, cast

import pytest

from redelivery.client.lifecycle import CONNECTION, EPOCH, SESSION, ConnectionStage, EpochStage, Lifecycle, SessionStage
from redelivery.client.session.epoch import Epoch
from redelivery.model.errors import ConnectionLostError, IllegalStateError, JMSError
from redelivery.transports.seam import Transport

CONNECTING, STOPPED, RUNNING, RECOVERING, CLOSING, CLOSED, FAILED = ConnectionStage
LEGAL: dict[tuple[Enum, str], Enum] = {
    (CONNECTING, "open"): STOPPED,
    (CONNECTING, "lose"): FAILED,
    (CONNECTING, "close"): CLOSING,
    (STOPPED, "start"): RUNNING,
    (STOPPED, "stop"): STOPPED,
    (STOPPED, "interrupt"): RECOVERING,
    (STOPPED, "lose"): FAILED,
    (STOPPED, "close"): CLOSING,
    (RUNNING, "start"): RUNNING,
    (RUNNING, "stop"): STOPPED,
    (RUNNING, "interrupt"): RECOVERING,
    (RUNNING, "lose"): FAILED,
    (RUNNING, "close"): CLOSING,
    (RECOVERING, "start"): RECOVERING,
    (RECOVERING, "stop"): RECOVERING,
    (RECOVERING, "interrupt"): RECOVERING,
    (RECOVERING, "return"): STOPPED,
    (RECOVERING, "lose"): FAILED,
    (RECOVERING, "close"): CLOSING,
    (FAILED, "open"): FAILED,  # lost before the login had ended
    (FAILED, "lose"): FAILED,
    (FAILED, "close"): CLOSING,
    (CLOSING, "lose"): CLOSING,
    (CLOSING, "close"): CLOSING,
    (CLOSING, "end"): CLOSED,
    (CLOSED, "lose"): CLOSED,
    (CLOSED, "close"): CLOSED,
    (CLOSED, "end"): CLOSED,
}
OPEN, LISTENING, SHUTTING, SHUT, LOST = SessionStage
LEGAL |= {
    (OPEN, "listen"): LISTENING,
    (OPEN, "unlisten"): OPEN,
    (OPEN, "lose"): LOST,
    (OPEN, "close"): SHUTTING,
    (LISTENING, "listen"): LISTENING,
    (LISTENING, "unlisten"): OPEN,
    (LISTENING, "lose"): LOST,
    (LISTENING, "close"): SHUTTING,
    (SHUTTING, "unlisten"): SHUTTING,
    (SHUTTING, "lose"): LOST,
    (SHUTTING, "close"): SHUTTING,
    (SHUTTING, "end"): SHUT,
    (LOST, "unlisten"): LOST,
    (LOST, "lose"): LOST,
    (LOST, "close"): LOST,
    (LOST, "end"): SHUT,
    (SHUT, "unlisten"): SHUT,
    (SHUT, "lose"): SHUT,
    (SHUT, "close"): SHUT,
    (SHUT, "end"): SHUT,
}
ATTACHED, LEAVING, AWAY, RETURNING = EpochStage
EPOCHS = {
    (ATTACHED, "leave"): LEAVING,
    (ATTACHED, "lose"): AWAY,
    (LEAVING, "leave"): LEAVING,
    (LEAVING, "lose"): AWAY,
    (AWAY, "lose"): AWAY,
    (AWAY, "come"): RETURNING,
    (RETURNING, "lose"): AWAY,
    (RETURNING, "fail"): AWAY,
    (RETURNING, "attach"): ATTACHED,
}
EVENTS = ("open", "start", "stop", "interrupt", "return", "listen", "unlisten", "lose", "close", "end")
STAGES = pytest.mark.parametrize("stage", [*ConnectionStage, *SessionStage], ids=str)


def at(stage: Enum) -> Lifecycle[Any]:
    if isinstance(stage, ConnectionStage):
        return Lifecycle("connection", CONNECTION, stage)
    assert isinstance(stage, SessionStage)
    return Lifecycle("session", SESSION, stage)


@pytest.mark.parametrize("event", EVENTS)
@STAGES
def test_each_step_of_each_stage(stage: Enum, event: str) -> None:
    life = at(stage)
    target = LEGAL.get((stage, event))
    if target is None:
        with pytest.raises(JMSError, match=f"{event}: the {life.what} is {stage.value}"):
            life.step(event)
        assert life.stage is stage
    else:
        assert life.step(event) is (target is not stage)
        assert life.stage is target


@pytest.mark.parametrize("event", ["leave", "lose", "come", "fail", "attach"])
@pytest.mark.parametrize("stage", EpochStage, ids=str)
def test_each_step_of_each_epoch(stage: EpochStage, event: str) -> None:
    error, transport = ConnectionLostError("lost"), cast(Transport, object())
    steps: dict[str, Callable[[Epoch], None]] = {
        "leave": lambda epoch: epoch.leave(error),
        "lose": lambda epoch: epoch.lose(error),
        "come": lambda epoch: epoch.come(transport),
        "fail": Epoch.fail,
        "attach": Epoch.attach,
    }
    ways: dict[EpochStage, tuple[str, ...]] = {LEAVING: ("leave",), AWAY: ("lose",), RETURNING: ("lose", "come")}
    epoch = Epoch(transport)
    for each in ways.get(stage, ()):
        steps[each](epoch)
    target = EPOCHS.get((stage, event))
    if target is None:
        with pytest.raises(AssertionError, match=f"that is {stage.value} cannot {event}"):
            steps[event](epoch)
    else:
        steps[event](epoch)
    assert epoch.stage is (target or stage)
    # what each stage has, for those who ask
    assert (epoch.lost is not None) is (epoch.stage in (AWAY, RETURNING))
    assert (epoch.leaving is not None) is (epoch.stage is LEAVING)
    assert (epoch.successor is not None) is (epoch.stage is RETURNING)


def test_every_stage_has_its_row() -> None:
    assert set(CONNECTION) == set(ConnectionStage)
    assert set(SESSION) == set(SessionStage)
    assert set(EPOCH) == set(EpochStage)


@STAGES
def test_over_is_closed_closing_or_lost(stage: Enum) -> None:
    assert at(stage).ended is (stage in (CLOSING, CLOSED, FAILED, SHUTTING, SHUT, LOST))


def test_a_closed_one_says_when_and_why() -> None:
    life = at(SessionStage.OPEN)
    life.step("close", "closed by close()")
    life.step("end", "closed by close()")
    problem = life.problem("receive")
    assert isinstance(problem, IllegalStateError)
    assert not isinstance(problem, ConnectionLostError)
    text = str(problem)
    assert text.startswith("receive: the session is closed (closed by close() at 20")
    assert text.endswith(" UTC)")


def test_a_failed_one_names_its_loss_and_keeps_the_cause() -> None:
    lost = ConnectionLostError("the broker went away")
    life = at(ConnectionStage.RUNNING)
    life.step("lose", "the connection was lost", lost)
    problem = life.problem("send")
    assert isinstance(problem, ConnectionLostError)
    assert problem.__cause__ is lost


def test_closing_after_a_loss_keeps_the_loss_as_the_cause() -> None:
    lost = ConnectionLostError("the broker went away")
    life = at(ConnectionStage.RUNNING)
    life.step("lose", "the connection was lost", lost)
    life.step("close", "closed by close()")
    problem = life.problem("send")
    assert isinstance(problem, IllegalStateError)
    assert problem.__cause__ is lost


def test_the_first_reason_stands_when_it_ends_twice() -> None:
    life = at(ConnectionStage.RUNNING)
    first, second = ConnectionLostError("first"), ConnectionLostError("second")
    life.step("lose", "lost", first)
    life.step("lose", "lost again", second)
    assert life.error is first
    assert "lost again" not in str(life.problem("send"))
