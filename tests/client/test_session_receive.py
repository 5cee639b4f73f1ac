"""receive and its kin: time-outs, bodies, many at once, iteration."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest
from tests.client.shell import SOON, Background, Bench, eventually, receive

from redelivery import AckMode, ConfigError, Connection, Consumer, IllegalStateError, MessageFormatError, Session

MODES = pytest.mark.parametrize("mode", list(AckMode), ids=lambda mode: mode.name)


class TestTimeOut:
    @MODES
    def test_zero_takes_what_is_there_and_does_not_wait(self, bench: Bench, mode: AckMode) -> None:
        bench.send("m")
        _, consumer = bench.consuming(mode)
        message = consumer.receive(0)
        assert message is not None
        assert message.body == "m"
        began = time.monotonic()
        assert consumer.receive(0) is None
        assert consumer.receive_nowait() is None
        assert time.monotonic() - began < SOON / 2

    @pytest.mark.parametrize("timeout", [0.2, timedelta(milliseconds=200)], ids=["seconds", "timedelta"])
    def test_it_is_kept(self, bench: Bench, timeout: float | timedelta) -> None:
        _, consumer = bench.consuming()
        began = time.monotonic()
        assert consumer.receive(timeout) is None
        assert 0.2 <= time.monotonic() - began < 2

    @pytest.mark.parametrize("timeout", [None, SOON, 1e12])
    def test_a_message_ends_the_wait(self, background: Background, bench: Bench, timeout: float | None) -> None:
        session, consumer = bench.consuming()
        waiting = background.start(lambda: consumer.receive(timeout))
        eventually(lambda: bench.waits(session))
        bench.send("m")
        assert waiting().body == "m"

    @pytest.mark.parametrize(
        "timeout", [-1, -0.001, timedelta(seconds=-1), "1", True, float("nan"), pytest.param(10**400, id="huge")]
    )
    def test_a_bad_one_is_an_error_that_names_it(self, bench: Bench, timeout: Any) -> None:
        bench.send("m")
        _, consumer = bench.consuming()
        for call in (consumer.receive, lambda each: consumer.receive_many(1, each)):
            with pytest.raises(ConfigError, match="timeout="):
                call(timeout)
        with pytest.raises(ConfigError, match="timeout="):
            consumer.receive_body(str, timeout)
        assert bench.left == ["m"]


class TestReceiveBody:
    """JMS 3.1, `receiveBody`."""

    def test_no_kind_at_all_takes_nothing(self, bench: Bench) -> None:
        bench.send("m")
        _, consumer = bench.consuming()
        with pytest.raises(MessageFormatError, match="ask for str, bytes, dict or list"):
            consumer.receive_body(int, SOON)
        assert receive(consumer).delivery_count == 1


class TestReceiveMany:
    @pytest.mark.parametrize("number", [0, -1, True, 1.5, "3", None])
    def test_a_bad_number_is_an_error_that_names_it(self, bench: Bench, number: Any) -> None:
        _, consumer = bench.consuming()
        with pytest.raises(ConfigError, match="max_messages="):
            consumer.receive_many(number, 0)

    def test_a_close_meanwhile_ends_it(self, background: Background, bench: Bench) -> None:
        bench.send("m1")
        session, consumer = bench.consuming(AckMode.TRANSACTED)
        waiting = background.start(lambda: consumer.receive_many(5, 60))
        eventually(lambda: bench.waits(session))
        session.close()
        assert [each.body for each in waiting()] in (["m1"], [])


class TestIteration:
    @pytest.mark.parametrize("what", ["session", "connection"])
    def test_iteration_ends_when_closed_in_its_body(self, bench: Bench, what: str) -> None:
        bench.send("a", "b")
        connection = bench.connect()
        session = connection.session()
        bodies = []
        for message in session.consumer(bench.queue):
            bodies.append(message.body)
            (session if what == "session" else connection).close()
        assert bodies == ["a"]

    def test_a_closed_consumer_gives_none(self, bench: Bench) -> None:
        bench.send("a")
        _, consumer = bench.consuming()
        consumer.close()
        assert list(consumer) == []


@pytest.mark.parametrize("what", ["consumer", "session", "connection"])
def test_receive_on_what_is_closed_says_so(bench: Bench, what: str) -> None:
    connection = bench.connect()
    session = connection.session()
    consumer = session.consumer(bench.queue)
    closing: dict[str, Consumer | Session | Connection] = {
        "consumer": consumer,
        "session": session,
        "connection": connection,
    }
    closing[what].close()
    for call in (
        lambda: consumer.receive(0),
        lambda: consumer.receive_many(1, 0),
        lambda: consumer.receive_body(str, 0),
        lambda: consumer.listen(print),
    ):
        with pytest.raises(IllegalStateError, match="closed"):
            call()


class TestStopped:
    """connection.stop() and start(); see also tests/conformance/test_timing.py."""

    def test_start_lets_a_waiting_receive_go_on(self, background: Background, bench: Bench) -> None:
        bench.send("m")
        connection = bench.connect(start=False)
        session = connection.session()
        consumer = session.consumer(bench.queue)
        waiting = background.start(consumer.receive)
        eventually(lambda: bench.waits(session))
        connection.start()
        assert waiting().body == "m"
