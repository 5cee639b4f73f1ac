"""Asynchronous delivery: who is called when, and what becomes of a callback that raises."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.client.shell import SOON, Background, Bench, Gate, eventually, receive

import redelivery
from redelivery import AckMode, ConfigError, IllegalStateError, Message, RedeliveryPolicy
from redelivery.client.ledger import Ledger

MODES = pytest.mark.parametrize("mode", list(AckMode), ids=lambda mode: mode.name)
AT_ONCE = pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.DUPS_OK], ids=lambda mode: mode.name)


class Recorder:
    """A listener that notes what it is given, and does what it was made for."""

    def __init__(self, act: Callable[[Message], object] = str) -> None:
        self.act = act
        self.seen: list[tuple[Any, int]] = []
        self.running = 0
        self.most_at_once = 0

    def __call__(self, message: Message) -> None:
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)
        self.seen.append((message.body, message.delivery_count))
        try:
            self.act(message)
        finally:
            self.running -= 1

    @property
    def bodies(self) -> list[Any]:
        return [body for body, _ in self.seen]

    def wait_for(self, count: int) -> None:
        eventually(lambda: len(self.seen) >= count and not self.running)


def fail_once_on(body: str) -> Callable[[Message], None]:
    failed: list[Message] = []

    def act(message: Message) -> None:
        if message.body == body and not failed:
            failed.append(message)
            raise ValueError("bad order")

    return act


@AT_ONCE
def test_a_message_is_acknowledged_after_its_callback_and_not_before(bench: Bench, mode: AckMode) -> None:
    left: list[list[Any]] = []
    recorder = Recorder(lambda _: left.append(bench.left))
    _, consumer = bench.consuming(mode)
    consumer.listen(recorder)
    bench.send("m1", "m2")
    recorder.wait_for(2)
    assert "m1" in left[0]
    eventually(lambda: bench.left == [])


@AT_ONCE
def test_one_that_raises_gets_the_message_again_and_is_counted(
    bench: Bench, mode: AckMode, caplog: pytest.LogCaptureFixture
) -> None:
    """features R8: redelivered with flag and count; the provider says so in the log."""
    recorder = Recorder(fail_once_on("m1"))
    session, consumer = bench.consuming(mode)
    with caplog.at_level(logging.WARNING, logger="redelivery"):
        consumer.listen(recorder)
        bench.send("m1", "m2")
        recorder.wait_for(3)
    assert recorder.seen == [("m1", 1), ("m1", 2), ("m2", 1)]
    assert session._loop.failures == 1
    (record,) = [each for each in caplog.records if "raised" in each.message]
    assert record.message == "the listener of queue://orders raised; the message is redelivered"
    assert record.exc_info is not None
    eventually(lambda: bench.left == [])
    assert bench.dead == []


@AT_ONCE
def test_one_that_always_raises_ends_in_the_dead_letter_queue_with_the_cause(bench: Bench, mode: AckMode) -> None:
    def act(message: Message) -> None:
        if message.body == "bad":
            raise ValueError(f"attempt {message.delivery_count}")

    recorder = Recorder(act)
    _, consumer = bench.consuming(
        mode, redelivery_policy=RedeliveryPolicy(maximum_redeliveries=2, initial_redelivery_delay=0, redelivery_delay=0)
    )
    consumer.listen(recorder)
    bench.send("bad", "good")
    recorder.wait_for(4)
    assert recorder.seen == [("bad", 1), ("bad", 2), ("bad", 3), ("good", 1)]
    (dead,) = bench.broker.messages("ActiveMQ.DLQ")
    assert str(dead.properties["dlqDeliveryFailureCause"]).endswith("cause:ValueError: attempt 3")


@pytest.mark.parametrize("mode", [AckMode.CLIENT, AckMode.TRANSACTED], ids=lambda mode: mode.name)
def test_elsewhere_the_next_message_follows_and_the_application_decides(
    bench: Bench, mode: AckMode, caplog: pytest.LogCaptureFixture
) -> None:
    """features R8, listener-transacted-throw."""
    recorder = Recorder(fail_once_on("m1"))
    session, consumer = bench.consuming(mode)
    consumer.listen(recorder)
    bench.send("m1", "m2")
    recorder.wait_for(2)
    assert recorder.seen == [("m1", 1), ("m2", 1)]
    assert bench.left == ["m1", "m2"]
    assert f"a {mode.name} session must roll back or recover itself" in caplog.text
    consumer.listen(None)
    session.rollback() if session.transacted else session.recover()
    assert [(each.body, each.delivery_count) for each in consumer.receive_many(2, SOON)] == [("m1", 2), ("m2", 2)]


def test_individual_rolls_back_all_unacknowledged(bench: Bench) -> None:
    """individual-listener-throw."""
    failing = fail_once_on("m3")

    def act(message: Message) -> None:
        failing(message)
        if message.body == "m2":
            message.acknowledge()

    recorder = Recorder(act)
    _, consumer = bench.consuming(AckMode.INDIVIDUAL)
    consumer.listen(recorder)
    bench.send("m1", "m2", "m3")
    recorder.wait_for(5)
    assert recorder.seen == [("m1", 1), ("m2", 1), ("m3", 1), ("m1", 2), ("m3", 2)]
    eventually(lambda: bench.left == ["m1", "m3"])


@AT_ONCE
def test_recover_inside_a_callback(bench: Bench, mode: AckMode) -> None:
    """listener-auto-recover: no acknowledgement, counted once."""
    session, consumer = bench.consuming(mode)
    recorder = Recorder(lambda message: session.recover() if message.delivery_count == 1 else None)
    consumer.listen(recorder)
    bench.send("m1")
    recorder.wait_for(2)
    assert recorder.seen == [("m1", 1), ("m1", 2)]
    eventually(lambda: bench.left == [])


def test_a_transacted_listener_commits_rolls_back_and_sends(bench: Bench) -> None:
    session, consumer = bench.consuming(AckMode.TRANSACTED)
    producer = session.producer("results")

    def act(message: Message) -> None:
        producer.send(f"{message.body} {message.delivery_count}")
        session.rollback() if message.delivery_count == 1 else session.commit()

    recorder = Recorder(act)
    consumer.listen(recorder)
    bench.send("m1", "m2")
    recorder.wait_for(4)
    eventually(lambda: bench.left == [])
    assert [each.body for each in bench.broker.messages("results")] == ["m1 2", "m2 2"]


@MODES
def test_callbacks_of_one_session_are_serial(bench: Bench, mode: AckMode) -> None:
    recorder = Recorder(lambda _: time.sleep(0.001))
    session, first = bench.consuming(mode)
    second = session.consumer("other")
    first.listen(recorder)
    second.listen(recorder)
    bench.send(*range_of("a"))
    bench.send(*range_of("b"), queue="other")
    recorder.wait_for(40)
    assert recorder.most_at_once == 1
    assert [body for body in recorder.bodies if body.startswith("a")] == range_of("a")
    assert [body for body in recorder.bodies if body.startswith("b")] == range_of("b")


def range_of(prefix: str) -> list[str]:
    return [f"{prefix}{number:02}" for number in range(20)]


def test_no_consumer_starves_another(bench: Bench) -> None:
    bench.send(*range_of("a"))
    bench.send("b", queue="other")
    connection = bench.connect(start=False)
    session = connection.session()
    recorder = Recorder()
    consumers = [session.consumer(bench.queue), session.consumer("other")]
    for consumer in consumers:
        consumer.listen(recorder)
    connection.start()
    recorder.wait_for(21)
    assert "b" in recorder.bodies[:3]


def test_one_that_fails_does_not_hold_up_the_other_consumer(bench: Bench) -> None:
    """listener-two-consumers."""
    session = bench.connect(redelivery_policy=RedeliveryPolicy(initial_redelivery_delay=60)).session()
    failing, other = Recorder(fail_once_on("a1")), Recorder()
    qa, qb = session.consumer("qa"), session.consumer("qb")
    qa.listen(failing)
    qb.listen(other)
    bench.send("a1", "a2", queue="qa")
    failing.wait_for(1)
    bench.send("b1", "b2", queue="qb")
    other.wait_for(2)
    assert failing.bodies == ["a1"]


def test_a_broker_that_refuses_something_between_callbacks_ends_nothing(bench: Bench) -> None:
    """The goodbye of one consumer fails: it is told to the exception listener, the other one goes on."""
    told: list[redelivery.JMSError] = []
    session = bench.connect(exception_listener=told.append).session()
    leaving, staying = session.consumer("qa"), session.consumer("qb")
    first, other = Recorder(lambda _: leaving.close()), Recorder()
    leaving.listen(first)
    staying.listen(other)
    bench.broker.faults.error("UNSUBSCRIBE", "not now")
    bench.send("a1", queue="qa")
    first.wait_for(1)
    bench.send("b1", "b2", queue="qb")
    other.wait_for(2)
    eventually(lambda: told)
    assert "not now" in str(told[0])
    eventually(lambda: bench.broker.queue_depth("qb") == 0)


class TestSetAndRemove:
    def test_removed_during_the_delay_the_message_is_received_instead_after_it(self, bench: Bench) -> None:
        """listener-removed-during-delay."""
        _, consumer = bench.consuming(redelivery_policy=RedeliveryPolicy(initial_redelivery_delay=0.3))
        recorder = Recorder(fail_once_on("m1"))
        consumer.listen(recorder)
        bench.send("m1")
        recorder.wait_for(1)
        failed = time.monotonic()
        consumer.listen(None)
        again = receive(consumer)
        assert (again.body, again.delivery_count) == ("m1", 2)
        assert time.monotonic() - failed >= 0.25

    def test_set_during_the_delay_it_waits_as_well(self, bench: Bench) -> None:
        """listener-set-during-delay: in Java m2 overtakes m1."""
        session, consumer = bench.consuming(
            AckMode.CLIENT, redelivery_policy=RedeliveryPolicy(initial_redelivery_delay=0.3)
        )
        bench.send("m1", "m2")
        receive(consumer)
        session.recover()
        failed = time.monotonic()
        called: list[float] = []
        recorder = Recorder(lambda _: called.append(time.monotonic()))
        consumer.listen(recorder)
        recorder.wait_for(2)
        assert recorder.seen == [("m1", 2), ("m2", 1)]
        assert called[0] - failed >= 0.29

    def test_a_new_one_takes_over(self, bench: Bench) -> None:
        _, consumer = bench.consuming()
        first, second = Recorder(), Recorder()
        consumer.listen(first)
        bench.send("m1")
        first.wait_for(1)
        consumer.listen(second)
        bench.send("m2")
        second.wait_for(1)
        assert (first.bodies, second.bodies) == (["m1"], ["m2"])

    def test_removing_waits_for_the_running_callback(self, background: Background, bench: Bench) -> None:
        gate = Gate()
        recorder = Recorder(gate)
        _, consumer = bench.consuming()
        consumer.listen(recorder)
        bench.send("m1")
        assert gate.entered.wait(SOON)

        def remove() -> int:
            consumer.listen(None)
            return recorder.running

        removal = background.start(remove)
        gate.leave.set()
        assert removal() == 0
        assert bench.left == []

    def test_it_may_remove_itself(self, bench: Bench) -> None:
        _, consumer = bench.consuming()
        recorder = Recorder(lambda _: consumer.listen(None))
        consumer.listen(recorder)
        bench.send("m1")
        recorder.wait_for(1)
        eventually(lambda: bench.left == [])
        bench.send("m2")
        eventually(lambda: not any(each.name == "redelivery-listener" for each in threading.enumerate()))
        assert receive(consumer).body == "m2"
        assert recorder.bodies == ["m1"]

    @pytest.mark.parametrize("callback", ["no", 5, object()])
    def test_what_cannot_be_called_is_refused(self, bench: Bench, callback: Any) -> None:
        _, consumer = bench.consuming()
        with pytest.raises(ConfigError, match="listen"):
            consumer.listen(callback)

    def test_a_closed_consumer_takes_none(self, bench: Bench) -> None:
        _, consumer = bench.consuming()
        consumer.close()
        with pytest.raises(IllegalStateError, match="closed"):
            consumer.listen(print)


class TestStop:
    def test_it_returns_when_running_callbacks_have_returned(self, background: Background, bench: Bench) -> None:
        gate = Gate()
        recorder = Recorder(gate)
        connection = bench.connect()
        connection.session().consumer(bench.queue).listen(recorder)
        bench.send("m1", "m2")
        assert gate.entered.wait(SOON)

        def stop() -> int:
            connection.stop()
            return recorder.running

        stopping = background.start(stop)
        gate.leave.set()
        assert stopping() == 0
        assert recorder.bodies == ["m1"]
        connection.start()
        recorder.wait_for(2)

    def test_it_is_bounded(self, bench: Bench) -> None:
        gate = Gate()
        recorder = Recorder(gate)
        connection = bench.connect(close_timeout=0.1)
        connection.session().consumer(bench.queue).listen(recorder)
        bench.send("m1", "m2")
        assert gate.entered.wait(SOON)
        with pytest.raises(redelivery.RequestTimeoutError, match="listener did not return"):
            connection.stop()
        gate.leave.set()
        eventually(lambda: not recorder.running)
        assert recorder.bodies == ["m1"]

    def test_a_callback_may_stop_its_connection(self, bench: Bench) -> None:
        connection = bench.connect()
        recorder = Recorder(lambda _: connection.stop())
        connection.session().consumer(bench.queue).listen(recorder)
        bench.send("m1", "m2")
        recorder.wait_for(1)
        connection.start()
        recorder.wait_for(2)

    def test_no_listener_is_called_after_stop_has_returned(
        self, background: Background, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The moment between "are we running?" and the call, held open."""
        arrived, go_on = threading.Event(), threading.Event()
        dispatch = Ledger.dispatch

        def slow_dispatch(*args: Any) -> Any:
            delivery = dispatch(*args)
            if delivery is not None:
                arrived.set()
                go_on.wait(1)
            return delivery

        monkeypatch.setattr(Ledger, "dispatch", slow_dispatch)
        connection = bench.connect()
        stopped = threading.Event()
        called_after_stop: list[bool] = []
        recorder = Recorder(lambda _: called_after_stop.append(stopped.is_set()))
        connection.session().consumer(bench.queue).listen(recorder)
        bench.send("m1")
        assert arrived.wait(SOON)

        def stop() -> None:
            connection.stop()
            stopped.set()

        stopping = background.start(stop)
        time.sleep(0.05)  # stop() may do now what it must not
        go_on.set()
        stopping()
        time.sleep(0.05)
        stopped.clear()
        connection.start()
        recorder.wait_for(1)
        assert called_after_stop == [False]
