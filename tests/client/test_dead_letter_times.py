"""A session's clock says what a dead letter is stamped with, and when a failed message is due: operations have none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import redelivery
from redelivery import RedeliveryPolicy, SharedDeadLetterStrategy
from redelivery.client.session.state import SessionState
from redelivery.events import Event, RolledBack

THEN = datetime(2099, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SessionState, "wall", lambda _: THEN)


def test_a_dead_letter_expires_its_strategy_s_time_after_the_session_s_now() -> None:
    once = RedeliveryPolicy(maximum_redeliveries=0)
    strategy = SharedDeadLetterStrategy(expiration=60)
    with (
        redelivery.connect("vm://times", redelivery_policy=once, dead_letter_strategy=strategy) as connection,
        connection.session("transacted") as session,
    ):
        session.producer("orders").send("m")
        session.commit()
        assert session.consumer("orders").receive(timeout=5) is not None
        session.rollback()
        letter = session.consumer("ActiveMQ.DLQ").receive(timeout=5)
        assert letter is not None
        assert letter.expiration == (THEN + timedelta(seconds=60)).replace(microsecond=123000)


def test_a_rolled_back_message_is_due_its_delay_after_the_session_s_now() -> None:
    seen: list[Event] = []
    later = RedeliveryPolicy(initial_redelivery_delay=30)
    with (
        redelivery.connect("vm://times", redelivery_policy=later, observer=seen.append) as connection,
        connection.session("transacted") as session,
    ):
        session.producer("orders").send("m")
        session.commit()
        assert session.consumer("orders").receive(timeout=5) is not None
        session.rollback()
    (event,) = (each for each in seen if isinstance(each, RolledBack))
    assert event.again_at is not None
    assert timedelta(seconds=29) < event.again_at - THEN <= timedelta(seconds=30)
