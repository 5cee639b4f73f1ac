"""Setting, replacing and removing a listener, and stopping its connection."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from tests.client.recorder import Recorder
from tests.client.shell import SOON, Background, Bench, Gate, eventually, receive

import redelivery
from redelivery import ConfigError, IllegalStateError
from redelivery.client.ledger import Ledger


class TestSetAndRemove:
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
        session = connection.session()
        session.consumer(bench.queue).listen(recorder)
        bench.send("m1", "m2")
        assert gate.entered.wait(SOON)

        def stop() -> int:
            connection.stop()
            return recorder.running

        stopping = background.start(stop)
        eventually(lambda: not session._core.running)  # stop() has begun, and waits
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
