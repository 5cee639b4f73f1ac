"""`redelivery.aio` behind the calls of `redelivery`, so that the suite runs over it as well.

The loop runs on a thread of its own. A call hands its coroutine to it and waits; in a listener's callback, which runs
on a thread as the suite's callbacks block, the coroutine is awaited by the listener's own task, as in an `async def`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from functools import wraps
from inspect import isfunction
from types import TracebackType
from typing import Any, Final, Self, get_type_hints

import pytest
from tests.conformance.pairs import Pair
from tests.conformance.record import AWAITED
from tests.conformance.stage import Stage

import redelivery
from redelivery import Message

_callback = threading.local()  # `.asked`: of the callback that this thread runs


class Loop:
    """An event loop and its thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_debug(True)
        self._loop.slow_callback_duration = 10.0
        self._loop.set_default_executor(ThreadPoolExecutor(16))  # callbacks that block
        self.problems: list[dict[str, Any]] = []
        self._loop.set_exception_handler(lambda _, context: self.problems.append(context))
        self._thread = threading.Thread(target=self._loop.run_forever, name="asyncio")
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, Any]) -> Any:
        asked: asyncio.Queue[Any] | None = getattr(_callback, "asked", None)
        if asked is None:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        done: Future[Any] = Future()
        self._loop.call_soon_threadsafe(asked.put_nowait, (work, done))
        return done.result()

    @property
    def running(self) -> int:
        return len(asyncio.all_tasks(self._loop))

    async def in_thread(self, callback: Callable[..., object], *given: Any, **options: Any) -> object:
        """Run the callback on a thread, and await here what it asks for."""
        asked: asyncio.Queue[Any] = asyncio.Queue()

        def run() -> object:
            _callback.asked = asked
            try:
                return callback(*given, **options)
            finally:
                del _callback.asked
                self._loop.call_soon_threadsafe(asked.put_nowait, None)

        running = self._loop.run_in_executor(None, copy_context().run, run)
        while (each := await asked.get()) is not None:
            work, done = each
            try:
                done.set_result(await work)
            except BaseException as error:  # noqa: BLE001  the callback raises it
                done.set_exception(error)
        return await running

    def end(self) -> None:
        async def rest() -> None:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for each in others:
                each.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            await self._loop.shutdown_default_executor()

        self.call(rest())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        assert self.problems == []


class Blocking:
    """One of aio's objects; what is not named here is a coroutine function or a property of it."""

    def __init__(self, loop: Loop, inner: Any) -> None:
        self._loop = loop
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if not callable(value) or name == "exception_listener":
            return value

        def call(*args: Any, **kwargs: Any) -> Any:
            async def work() -> Any:
                answer = value(*args, **kwargs)
                return await answer if hasattr(answer, "__await__") else answer

            return self._shown(self._loop.call(work()))

        return call

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Blocking) and self._inner is other._inner

    def __hash__(self) -> int:
        return id(self._inner)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._loop.call(self._inner.close())

    def _shown(self, value: Any) -> Any:
        match value:
            case redelivery.aio.Session():
                return Session(self._loop, value)
            case redelivery.aio.Consumer():
                return Consumer(self._loop, value)
            case redelivery.aio.QueueBrowser():
                return Browser(self._loop, value)
            case redelivery.aio.Producer() | redelivery.aio.Publisher():
                return Producer(self._loop, value)
            case redelivery.aio.Message():
                return self._message(value)
            case Message() if value.source is not None:
                raise AssertionError(f"{value!r} was received, and its acknowledge() cannot be awaited")
            case list():
                return [self._shown(each) for each in value]
        return value

    def _message(self, message: redelivery.aio.Message) -> Message:
        inner: Any = message._receipt
        assert message.source is not None
        shown = Message.received(message.source, message.local_redeliveries, Receipt(self._loop, inner))
        shown.stamp(**message.fields)  # a body that became another type
        return shown


class Receipt:
    def __init__(self, loop: Loop, inner: Any) -> None:
        self._loop = loop
        self._inner = inner

    def acknowledge(self, message: Message) -> None:
        self._loop.call(self._inner.acknowledge(message))


class Connection(Blocking):
    @property
    def exception_listener(self) -> Any:
        return self._inner.exception_listener

    @exception_listener.setter
    def exception_listener(self, listener: Any) -> None:
        self._inner.exception_listener = listener

    def listener_container(self, destination: Any, handler: Any, **options: Any) -> Container:
        @wraps(handler)
        async def handle(given: Any, **others: Any) -> object:
            shown = {name: self._shown(each) for name, each in others.items()}
            assert not any(shown[name] is each for name, each in others.items()), "it is asyncio's"
            return await self._loop.in_thread(handler, self._shown(given), **shown)

        handle.__annotations__ = {name: _AIO.get(kind, kind) for name, kind in _hints(handler).items()}
        return Container(self._loop, self._inner.listener_container(destination, handle, **options))


class Session(Blocking):
    def queue(self, name: str) -> Any:
        return self._inner.queue(name)

    def topic(self, name: str) -> Any:
        return self._inner.topic(name)

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        inner = self._inner.transaction()
        self._loop.call(inner.__aenter__())
        try:
            yield self
        except BaseException as error:
            if not self._loop.call(inner.__aexit__(type(error), error, error.__traceback__)):
                raise
        else:
            self._loop.call(inner.__aexit__(None, None, None))


class Container(Blocking):
    def __enter__(self) -> Self:
        self._loop.call(self._inner.start())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._loop.call(self._inner.drain())

    def _check_ended(self) -> bool:
        ended: bool = self._inner._check_ended()
        return ended


_AIO: Final = {redelivery.Session: redelivery.aio.Session, redelivery.Producer: redelivery.aio.Producer}


def _hints(handler: Any) -> dict[str, Any]:
    return get_type_hints(handler) if isfunction(handler) else {}


class Producer(Blocking):
    def send_async(self, *_: Any, **__: Any) -> None:
        pytest.skip(AWAITED)


class Consumer(Blocking):
    def listen(self, callback: Callable[[Message], object] | None) -> None:
        async def on_message(message: redelivery.aio.Message) -> object:
            assert callback is not None
            return await self._loop.in_thread(callback, self._message(message))

        self._loop.call(self._inner.listen(None if callback is None else on_message))

    def __iter__(self) -> Iterator[Message]:
        return _each(self)


class Browser(Blocking):
    def __iter__(self) -> Iterator[Message]:
        return _each(self)


def _each(of: Blocking) -> Iterator[Message]:
    iterator = of._inner.__aiter__()

    async def following() -> Any:
        return await anext(iterator, None)

    while (message := of._loop.call(following())) is not None:
        yield of._message(message)


def connect(loop: Loop, url: str, **options: Any) -> Connection:
    """As `redelivery.connect`."""

    async def work() -> Any:
        return await redelivery.aio.connect(url, **options)

    return Connection(loop, loop.call(work()))


class Shell:
    """Opens connections of threads, or of an event loop that is called as if it blocked; it closes them."""

    def __init__(self, kind: str, opened: ExitStack) -> None:
        self.tasks = kind != "threads"
        self._opened = opened
        self._loop = Loop() if self.tasks else None
        if self._loop is not None:
            opened.callback(self._loop.end)

    def connect(self, url: str, **options: Any) -> Any:
        """As `redelivery.connect`."""
        made = redelivery.connect(url, **options) if self._loop is None else connect(self._loop, url, **options)
        return self._opened.enter_context(made)

    @property
    def running(self) -> int:
        """The number of the loop's tasks."""
        return 0 if self._loop is None else self._loop.running


class AsyncioStage(Stage):
    """Opens connections of one event loop, which the suite calls as if they blocked."""

    def __init__(self, pair: Pair, queue: str, opened: ExitStack) -> None:
        super().__init__(pair, queue, opened)
        self._loop = Loop()
        opened.callback(self._loop.end)

    def _open(self, **options: Any) -> Any:
        return connect(self._loop, **{"url": self.pair.url, **options})
