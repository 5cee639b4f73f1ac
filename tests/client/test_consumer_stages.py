"""The life of a consumer: its table, a close that comes from another thread, and an end that the broker sets."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.client.shell import SOON, Background, Bench, Gate, eventually, receive

from redelivery import (
    AckMode,
    Consumer,
    IllegalStateError,
    InvalidDestinationError,
    JMSError,
    Message,
    TransactionRolledBackError,
)
from redelivery.client.ledger.stages import STEPS, ConsumerStage, next_stage

OPEN, CLOSING, ENDED, CLOSED = ConsumerStage
LEGAL = {
    (OPEN, "close"): CLOSING,
    (OPEN, "end"): ENDED,
    (CLOSING, "close"): CLOSING,
    (CLOSING, "reopen"): OPEN,
    (CLOSING, "settle"): CLOSED,
    (CLOSING, "end"): CLOSED,
    (ENDED, "close"): CLOSED,
    (ENDED, "end"): ENDED,
    (ENDED, "reopen"): OPEN,
    (CLOSED, "close"): CLOSED,
    (CLOSED, "end"): CLOSED,
}
MODES = pytest.mark.parametrize("mode", list(AckMode), ids=lambda mode: mode.name)
WORDS = "amqp:resource-deleted: the queue was deleted"


@pytest.mark.parametrize("event", ["close", "end", "reopen", "settle"])
@pytest.mark.parametrize("stage", ConsumerStage, ids=lambda stage: stage.value)
def test_each_step_of_each_stage(stage: ConsumerStage, event: str) -> None:
    target = LEGAL.get((stage, event))
    if target is None:
        with pytest.raises(AssertionError, match=f"a consumer that is {stage.value} cannot {event}"):
            next_stage(stage, event)
    else:
        assert next_stage(stage, event) is target


def test_every_stage_has_its_row() -> None:
    assert set(STEPS) == set(ConsumerStage)


def end(consumer: Consumer, error: JMSError | None = None) -> None:
    """As a transport notifies it, from the thread that reads."""
    link = consumer._state.link
    problem = error or InvalidDestinationError(WORDS)
    thread = threading.Thread(target=lambda: consumer._core.on_link_closed(link, problem))
    thread.start()
    thread.join()


class TestClosedFromAnotherThread:
    def test_while_the_session_commits(self, bench: Bench, background: Background) -> None:
        """Whichever comes first: the commit detaches what is closing, the close finds it done."""
        for number in range(100):
            bench.send("m")
            session, consumer = bench.consuming(AckMode.TRANSACTED)
            assert receive(consumer).body == "m"
            together = threading.Barrier(2)

            def commit(together: threading.Barrier = together, commit: Callable[[], None] = session.commit) -> None:
                together.wait(SOON)
                commit()

            committed = background.start(commit)
            together.wait(SOON)
            try:
                consumer.close()
            except IllegalStateError:
                pytest.fail(f"attempt {number}: close() may come from any thread")
            committed()
            assert consumer.closed
            session.close()
            assert bench.left == []

    @MODES
    def test_a_receive_that_waits_ends(self, bench: Bench, background: Background, mode: AckMode) -> None:
        session, consumer = bench.consuming(mode)
        waiting = background.start(lambda: consumer.receive(SOON))
        eventually(lambda: bench.waits(session))
        consumer.close()
        assert waiting() is None
        assert consumer._state.stage is CLOSED


class TestEndedByTheBroker:
    @pytest.mark.parametrize(
        "call",
        [
            lambda consumer: consumer.receive(SOON),
            lambda consumer: consumer.receive_nowait(),
            lambda consumer: consumer.receive_many(2, SOON),
            lambda consumer: consumer.receive_body(str, SOON),
            lambda consumer: next(iter(consumer)),
            lambda consumer: consumer.listen(lambda _: None),
        ],
        ids=["receive", "receive_nowait", "receive_many", "receive_body", "iteration", "listen"],
    )
    @MODES
    def test_every_call_says_it_in_the_brokers_words(
        self, bench: Bench, mode: AckMode, call: Callable[[Consumer], Any]
    ) -> None:
        _, consumer = bench.consuming(mode, exception_listener=lambda _: None)
        end(consumer)
        for _ in range(2):
            with pytest.raises(
                InvalidDestinationError, match=f"the broker has ended the consumer of .*orders: {WORDS}"
            ):
                call(consumer)
        assert consumer.closed

    @MODES
    def test_a_receive_that_waits_raises(self, bench: Bench, background: Background, mode: AckMode) -> None:
        session, consumer = bench.consuming(mode, exception_listener=lambda _: None)
        waiting = background.start(lambda: consumer.receive(SOON))
        eventually(lambda: bench.waits(session))
        end(consumer)
        with pytest.raises(InvalidDestinationError, match=WORDS):
            waiting()

    def test_the_next_consumer_does_not_take_over_the_dead_link(self, bench: Bench) -> None:
        session, consumer = bench.consuming(AckMode.TRANSACTED, exception_listener=lambda _: None)
        end(consumer)
        again = session.consumer(bench.queue)
        assert again._state is not consumer._state
        consumer.close()
        with pytest.raises(IllegalStateError, match="closed by close"):
            consumer.receive(0)

    def test_other_consumers_of_the_session_go_on(self, bench: Bench) -> None:
        session, consumer = bench.consuming(AckMode.TRANSACTED, exception_listener=lambda _: None)
        other = session.consumer("other")
        bench.send("m1", queue="other")
        end(consumer)
        assert receive(other).body == "m1"
        session.commit()

    def test_the_exception_listener_is_notified(self, bench: Bench) -> None:
        reported: list[JMSError] = []
        _, consumer = bench.consuming(exception_listener=reported.append)
        end(consumer)
        eventually(lambda: reported)
        assert WORDS in str(reported[0])

    def test_a_commit_of_what_it_delivered_is_refused_and_the_session_goes_on(self, bench: Bench) -> None:
        """Its deliveries go back to the broker: what was sent for them must not be sent."""
        bench.send("m1")
        session, consumer = bench.consuming(AckMode.TRANSACTED, exception_listener=lambda _: None)
        other = session.consumer("other")
        bench.send("m2", queue="other")
        assert (receive(consumer).body, receive(other).body) == ("m1", "m2")
        session.producer("results").send("r1")
        end(consumer)
        with pytest.raises(TransactionRolledBackError, match=WORDS):
            session.commit()
        assert receive(other).body == "m2"
        session.commit()
        assert bench.broker.messages("results") == []
        assert bench.broker.messages("other") == []

    def test_an_acknowledge_of_what_it_delivered_is_refused(self, bench: Bench) -> None:
        bench.send("m1")
        session, consumer = bench.consuming(AckMode.CLIENT, exception_listener=lambda _: None)
        other = session.consumer("other")
        bench.send("m2", queue="other")
        receive(consumer)
        message = receive(other)
        end(consumer)
        with pytest.raises(InvalidDestinationError, match=f"acknowledge: nothing was acknowledged: .*{WORDS}"):
            message.acknowledge()
        message.acknowledge()
        assert bench.broker.messages("other") == []

    @pytest.mark.parametrize("mode", [AckMode.INDIVIDUAL], ids=["INDIVIDUAL"])
    def test_an_individual_acknowledge_of_it_is_refused(self, bench: Bench, mode: AckMode) -> None:
        bench.send("m1")
        _, consumer = bench.consuming(mode, exception_listener=lambda _: None)
        message = receive(consumer)
        end(consumer)
        with pytest.raises(InvalidDestinationError, match=WORDS):
            message.acknowledge()

    def test_a_rollback_of_what_it_delivered_is_the_brokers_affair(self, bench: Bench) -> None:
        bench.send("m1")
        session, consumer = bench.consuming(AckMode.TRANSACTED, exception_listener=lambda _: None)
        receive(consumer)
        end(consumer)
        session.rollback()
        with pytest.raises(InvalidDestinationError):
            consumer.receive(0)

    def test_its_listener_is_called_no_more_and_another_one_is(
        self, bench: Bench, caplog: pytest.LogCaptureFixture
    ) -> None:
        seen: list[Any] = []

        def callback(message: Message) -> None:
            seen.append(message.body)

        session, consumer = bench.consuming()
        other = session.consumer("other")
        consumer.listen(callback)
        other.listen(callback)
        end(consumer)
        bench.send("m2", queue="other")
        eventually(lambda: seen)
        eventually(lambda: not consumer._state.listening)
        assert seen == ["m2"]
        assert any(each.levelname == "CRITICAL" and WORDS in each.getMessage() for each in caplog.records)

    def test_one_whose_listener_runs_is_notified_after_the_callback(self, bench: Bench) -> None:
        gate = Gate()
        bench.send("m1", "m2")
        _, consumer = bench.consuming(AckMode.CLIENT, exception_listener=lambda _: None)
        consumer.listen(gate)
        assert gate.entered.wait(SOON)
        end(consumer)
        gate.leave.set()
        eventually(lambda: not any(each.name == "redelivery-listener" for each in threading.enumerate()))
