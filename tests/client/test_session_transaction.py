"""Transactions: commit, rollback, and the block that does them."""

from __future__ import annotations

import asyncio

import pytest
from tests.client.shell import Bench, receive

from redelivery import AckMode, ConfigError, Consumer, IllegalStateError, RedeliveryPolicy, Session


class Cancelled(BaseException):
    """Stands for whatever ends a program that is no Exception."""


def work_and_raise(session: Session, consumer: Consumer, error: BaseException) -> None:
    session.producer("results").send(receive(consumer).body)
    raise error


class TestBlock:
    @pytest.mark.parametrize(
        ("error", "cause"),
        [
            (ValueError("bad order"), "ValueError: bad order"),
            *((kind(), "null") for kind in (KeyboardInterrupt, SystemExit, asyncio.CancelledError, GeneratorExit)),
            (Cancelled(), "null"),
        ],
        ids=lambda each: each if isinstance(each, str) else type(each).__name__,
    )
    def test_an_exception_is_the_cause_and_what_is_none_is_not(
        self, bench: Bench, error: BaseException, cause: str
    ) -> None:
        bench.send("m1")
        session, consumer = bench.consuming(
            AckMode.TRANSACTED, redelivery_policy=RedeliveryPolicy(maximum_redeliveries=0)
        )
        with pytest.raises(type(error)), session.transaction():
            work_and_raise(session, consumer, error)
        assert bench.broker.queue_depth("results") == 0
        (dead,) = bench.broker.messages("ActiveMQ.DLQ")
        assert str(dead.properties["dlqDeliveryFailureCause"]).endswith(f"cause:{cause}")

    def test_another_may_follow(self, bench: Bench) -> None:
        bench.send("m1", "m2")
        session, consumer = bench.consuming(AckMode.TRANSACTED)
        for _ in range(2):
            with session.transaction():
                receive(consumer)
        with pytest.raises(KeyError), session.transaction():
            raise KeyError
        with session.transaction():
            pass
        assert bench.left == []

    @pytest.mark.parametrize("mode", [mode for mode in AckMode if mode != AckMode.TRANSACTED], ids=lambda m: m.name)
    def test_only_a_transacted_session_has_it(self, bench: Bench, mode: AckMode) -> None:
        session, _ = bench.consuming(mode)
        problem = f"transaction: the session's mode is {mode.name}, not TRANSACTED"
        with pytest.raises(IllegalStateError, match=problem), session.transaction():
            pytest.fail("not reached")

    def test_a_session_closed_inside_it_keeps_the_error_of_the_block(self, bench: Bench) -> None:
        session, _ = bench.consuming(AckMode.TRANSACTED)

        def close_and_raise() -> None:
            session.close()
            raise ValueError("bad order")

        with pytest.raises(ValueError, match="bad order") as caught, session.transaction():
            close_and_raise()
        assert any("the rollback failed too" in note for note in caught.value.__notes__)


def test_nothing_is_acknowledged_before_the_commit(bench: Bench) -> None:
    bench.send("m1", "m2")
    session, consumer = bench.consuming(AckMode.TRANSACTED)
    receive(consumer)
    receive(consumer)
    assert bench.left == ["m1", "m2"]
    session.commit()
    assert bench.left == []


def test_individual_needs_the_message(bench: Bench) -> None:
    session, _ = bench.consuming(AckMode.INDIVIDUAL)
    with pytest.raises(IllegalStateError, match="acknowledge the message itself"):
        session.acknowledge()


@pytest.mark.parametrize("mode", ["transacted", "TRANSACTED", "session_transacted", 0, AckMode.SESSION_TRANSACTED])
def test_a_mode_may_be_named(bench: Bench, mode: AckMode | int | str) -> None:
    """TRANSACTED is 0: never test a mode by truth."""
    session = bench.connect().session(mode)
    assert session.transacted
    assert session.ack_mode is AckMode.TRANSACTED


@pytest.mark.parametrize("mode", ["once", 5, True, False, None, 1.0])
def test_a_mode_that_is_none_names_itself(bench: Bench, mode: AckMode) -> None:
    with pytest.raises(ConfigError, match="ack_mode="):
        bench.connect().session(mode)
