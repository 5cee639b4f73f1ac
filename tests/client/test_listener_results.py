"""What a listener may be, and what its result means: a coroutine is never awaited here, and never counts as success."""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from tests.client.shell import SOON, Background, Bench, eventually, receive

from redelivery import AckMode, ConfigError, ConnectionLostError, JMSError, Message, RedeliveryPolicy

MODES = pytest.mark.parametrize("mode", list(AckMode), ids=lambda mode: mode.name)


async def on_message(message: Message) -> None:
    """Nothing."""


async def each_message(message: Message) -> AsyncIterator[Message]:
    yield message


class Handler:
    async def handle(self, message: Message) -> None:
        """Nothing."""

    async def __call__(self, message: Message) -> None:
        """Nothing."""


class TestACoroutineFunction:
    @pytest.mark.parametrize(
        ("callback", "name"),
        [
            (on_message, "on_message"),
            (each_message, "each_message"),
            (Handler().handle, "Handler.handle"),
            (Handler(), "Handler"),
            (functools.partial(on_message), "partial"),
        ],
        ids=["function", "generator", "method", "object", "partial"],
    )
    def test_it_is_refused(self, bench: Bench, callback: Any, name: str) -> None:
        bench.send("m1")
        _, consumer = bench.consuming()
        with pytest.raises(ConfigError, match=rf"listen\({name}\): a coroutine function is never awaited here"):
            consumer.listen(callback)
        assert receive(consumer).body == "m1"


class TestAnAwaitableResult:
    @pytest.mark.parametrize(
        "result", [lambda message: on_message(message), lambda _: Later()], ids=["coroutine", "object"]
    )
    def test_it_is_a_failure(
        self, bench: Bench, result: Callable[[Message], Awaitable[None]], caplog: pytest.LogCaptureFixture
    ) -> None:
        counts: list[int] = []

        def callback(message: Message) -> Any:
            counts.append(message.delivery_count)
            return result(message)

        bench.send("m1")
        policy = RedeliveryPolicy(maximum_redeliveries=1, initial_redelivery_delay=0, redelivery_delay=0)
        _, consumer = bench.consuming(AckMode.AUTO, redelivery_policy=policy)
        consumer.listen(callback)
        eventually(lambda: bench.dead)
        assert (counts, bench.dead) == ([1, 2], ["m1"])
        assert "which is never awaited here: nothing of it was done" in caplog.text

    def test_any_other_result_is_ignored(self, bench: Bench) -> None:
        seen: list[object] = []

        def callback(message: Message) -> Any:
            seen.append(message.body)
            return False

        bench.send("m1", "m2")
        _, consumer = bench.consuming()
        consumer.listen(callback)
        eventually(lambda: len(seen) == 2)
        eventually(lambda: bench.left == [])


class Later:
    def __await__(self) -> Any:
        yield


class TestSysExit:
    """In a thread of its own, Python's sys.exit() ends that thread in silence; here the program gets it."""

    @MODES
    def test_the_message_is_not_to_blame(self, bench: Bench, mode: AckMode, caplog: pytest.LogCaptureFixture) -> None:
        policy = RedeliveryPolicy(maximum_redeliveries=1)
        bench.send("m1", "m2")
        session, consumer = bench.consuming(mode, redelivery_policy=policy)
        consumer.listen(lambda _: sys.exit(3))
        eventually(lambda: not any(each.name == "redelivery-listener" for each in threading.enumerate()))
        assert [each.levelname for each in caplog.records].count("CRITICAL") == 1
        assert "raised SystemExit(3)" in caplog.text
        again = receive(consumer)
        assert (again.body, again.delivery_count) == ("m1", 1)
        session.close()
        assert bench.dead == []

    def test_a_thread_that_waits_for_the_connection_exits(self, bench: Bench, background: Background) -> None:
        connection = bench.connect()
        connection.session().consumer(bench.queue).listen(lambda _: sys.exit(3))
        waiting = background.start(connection.wait)
        bench.send("m1")
        with pytest.raises(SystemExit) as caught:
            waiting()
        assert caught.value.code == 3

    def test_the_exception_listener_is_notified(self, bench: Bench) -> None:
        reported: list[JMSError] = []
        _, consumer = bench.consuming(exception_listener=reported.append)
        consumer.listen(lambda _: sys.exit("enough"))
        bench.send("m1")
        eventually(lambda: reported)
        assert "raised SystemExit('enough')" in str(reported[0])
        assert isinstance(reported[0].__cause__, SystemExit)


class TestWait:
    def test_it_ends_with_a_close(self, bench: Bench, background: Background) -> None:
        connection = bench.connect()
        waiting = background.start(connection.wait)
        connection.close()
        assert waiting() is True
        assert connection.wait() is True

    def test_it_ends_with_its_time(self, bench: Bench) -> None:
        began = time.monotonic()
        assert bench.connect().wait(0.05) is False
        assert 0.05 <= time.monotonic() - began < SOON / 2

    def test_a_loss_is_raised(self, bench: Bench, background: Background) -> None:
        connection = bench.connect(exception_listener=lambda _: None)
        waiting = background.start(connection.wait)
        bench.broker.close()
        for call in (waiting, connection.wait, lambda: connection.wait(0)):
            with pytest.raises(ConnectionLostError, match="wait: the connection is lost"):
                call()

    def test_several_threads_may_wait(self, bench: Bench, background: Background) -> None:
        connection = bench.connect()
        waiting = [background.start(connection.wait) for _ in range(3)]
        connection.close()
        assert [each() for each in waiting] == [True] * 3

    @pytest.mark.parametrize("timeout", [-1, "5"])
    def test_a_bad_time_is_refused(self, bench: Bench, timeout: Any) -> None:
        with pytest.raises(ConfigError, match="timeout"):
            bench.connect().wait(timeout)


class TestALostConnection:
    def test_listeners_that_die_unheard_are_critical(self, bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
        bench.connect().session().consumer(bench.queue).listen(lambda _: None)
        bench.broker.close()
        eventually(lambda: any(each.levelname == "CRITICAL" for each in caplog.records))
        assert "a listener is called no more, and there is no exception_listener" in caplog.text

    def test_without_listeners_it_is_an_error(self, bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
        bench.connect()
        bench.broker.close()
        eventually(lambda: any("embedded broker is closed" in each.getMessage() for each in caplog.records))
        assert "CRITICAL" not in {each.levelname for each in caplog.records}
