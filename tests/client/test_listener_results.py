"""What a listener or handler may be, and what its result means: what is yet to run never counts as success."""

from __future__ import annotations

import asyncio
import functools
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any
from unittest.mock import MagicMock, Mock

import pytest
from tests.client.shell import SOON, Background, Bench, eventually, receive
from tests.conformance.blocking import Shell

from redelivery import AckMode, App, ConfigError, ConnectionLostError, JMSError, Message, RedeliveryPolicy, aio

ONCE_MORE = RedeliveryPolicy(maximum_redeliveries=1, initial_redelivery_delay=0, redelivery_delay=0)
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

    def generate(self, message: Message) -> Iterator[Message]:
        yield message


class Generates:
    def __call__(self, message: Message) -> Iterator[Message]:
        yield message


def generated(message: Message) -> Iterator[Message]:
    yield message


class TestAFunctionThatRunsNothing:
    @pytest.mark.parametrize(
        ("callback", "name", "kind"),
        [
            (on_message, "on_message", "a coroutine function"),
            (each_message, "each_message", "an async generator function"),
            (generated, "generated", "a generator function"),
            (Handler().handle, "Handler.handle", "a coroutine function"),
            (Handler().generate, "Handler.generate", "a generator function"),
            (Handler(), "Handler", "a coroutine function"),
            (Generates(), "Generates", "a generator function"),
            (functools.partial(on_message), "partial", "a coroutine function"),
            (functools.partial(functools.partial(generated)), "partial", "a generator function"),
            (functools.partial(Generates()), "partial", "a generator function"),
            (lambda message: (yield message), r".*<lambda>", "a generator function"),
        ],
    )
    def test_it_is_refused(self, bench: Bench, callback: Any, name: str, kind: str) -> None:
        bench.send("m1")
        session, consumer = bench.consuming()
        with pytest.raises(ConfigError, match=rf"listen\({name}\): {kind}"):
            consumer.listen(callback)
        with pytest.raises(ConfigError, match=rf"listener_container\({name}\): {kind}"):
            bench.connect().listener_container("q", callback)
        if kind != "a coroutine function":
            with pytest.raises(ConfigError, match=rf"listener\({name}\): {kind}"):
                App("vm://results").listener("q")(callback)
            self.refused_by_tasks(callback, name, kind)
        assert receive(consumer).body == "m1"
        assert not session.closed

    def refused_by_tasks(self, callback: Any, name: str, kind: str) -> None:
        async def main() -> None:
            async with await aio.connect("vm://results") as connection, connection.session() as session:
                with pytest.raises(ConfigError, match=rf"listener_container\({name}\): {kind}"):
                    connection.listener_container("q", callback)
                consumer = await session.consumer("q")
                with pytest.raises(ConfigError, match=rf"listen\({name}\): {kind}"):
                    await consumer.listen(callback)

        asyncio.run(main())

    def test_what_a_decorator_runs_is_not(self, bench: Bench) -> None:
        ran: list[object] = []

        def handler(message: Message) -> Iterator[None]:
            ran.append(message.body)
            yield

        @functools.wraps(handler)
        def runs(message: Message) -> None:
            list(handler(message))

        bench.send("m1")
        bench.consuming()[1].listen(runs)
        eventually(lambda: ran == ["m1"] and bench.left == [])

    def test_an_app_takes_a_coroutine_function_in_every_form(self) -> None:
        app = App("vm://results")
        for handler in (on_message, Handler().handle, Handler(), functools.partial(on_message)):
            app.listener("q")(handler)
        assert "partial" in repr(app)


@contextmanager
def entered(message: Message) -> Iterator[Message]:
    yield message


def unfinished() -> Future[None]:
    return Future()


UNRUN: dict[str, Callable[[Any], Any]] = {
    "coroutine": lambda message: on_message(message),
    "awaitable": lambda _: Later(),
    "generator": lambda message: generated(message),
    "generator expression": lambda message: (each for each in message.body),
    "async generator": lambda message: each_message(message),
    "map": lambda message: map(print, message.body),
    "future": lambda _: unfinished(),
    "context manager": lambda message: entered(message),
}


class TestAResultThatIsYetToRun:
    @pytest.mark.parametrize("kind", UNRUN)
    @pytest.mark.parametrize("by", ["listen", "container"])
    def test_it_is_a_failure(
        self, bench: Bench, shell: Shell, by: str, kind: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        counts: list[int] = []

        def callback(message: Message) -> Any:
            counts.append(message.delivery_count)
            return UNRUN[kind](message)

        bench.send("m1")
        connection = shell.connect(bench.broker.vm_url, redelivery_policy=ONCE_MORE)
        if by == "listen":
            connection.session(AckMode.AUTO).consumer(bench.queue).listen(callback)
            eventually(lambda: bench.dead)
        else:
            with connection.listener_container(bench.queue, callback):
                eventually(lambda: bench.dead)
        assert (counts, bench.dead) == ([1, 2], ["m1"])
        assert "which nobody runs or awaits here: nothing of it was done" in caplog.text

    @pytest.mark.parametrize("result", [False, 0, "text", [1], iter([1]), Mock(), MagicMock(), Future])
    def test_any_other_is_ignored(self, bench: Bench, result: Any) -> None:
        seen: list[object] = []

        def callback(message: Message) -> Any:
            seen.append(message.body)
            return result

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
    @pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()], ids=repr)
    def test_the_message_is_not_to_blame(
        self, bench: Bench, mode: AckMode, error: BaseException, caplog: pytest.LogCaptureFixture
    ) -> None:
        policy = RedeliveryPolicy(maximum_redeliveries=1)
        bench.send("m1", "m2")
        session, consumer = bench.consuming(mode, redelivery_policy=policy)
        consumer.listen(Mock(side_effect=error))
        eventually(lambda: not any(each.name == "redelivery-listener" for each in threading.enumerate()))
        assert [each.levelname for each in caplog.records].count("CRITICAL") == 1
        assert f"raised {error!r}" in caplog.text
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
