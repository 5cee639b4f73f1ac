"""A call that is cancelled in each of its waits, one after the other, each time in a new scene."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from redelivery import AckMode, RedeliveryPolicy, aio

SOON = 10.0
POLICY = RedeliveryPolicy(maximum_redeliveries=-1, initial_redelivery_delay=0.0, redelivery_delay=0.0)


class CancelledAt:
    """Awaits a coroutine; the task that does so is cancelled in the wait of that number, and in no other."""

    def __init__(self, work: Coroutine[Any, Any, Any], number: int) -> None:
        self._work = work
        self._number = number
        self.waits = 0

    def __await__(self) -> Generator[Any, Any, Any]:
        try:
            future = self._work.send(None)
            while True:
                self.waits += 1
                if self.waits == self._number:
                    task = asyncio.current_task()
                    assert task is not None
                    task.cancel()  # of what it is about to wait for
                try:
                    answer = yield future
                except BaseException as error:  # noqa: BLE001  the call raises it
                    future = self._work.throw(error)
                else:
                    future = self._work.send(answer)
        except StopIteration as end:
            return end.value


async def cancelled(work: Coroutine[Any, Any, Any], number: int) -> tuple[bool, BaseException | None]:
    """Whether it was cancelled in its wait of that number, or had fewer; and what it ended with."""
    probe = CancelledAt(work, number)
    ended: list[BaseException] = []

    async def run() -> None:
        try:
            await probe
        except BaseException as error:
            ended.append(error)
            raise

    task = asyncio.create_task(run())
    await asyncio.wait((task,), timeout=SOON)
    assert task.done()
    if not task.cancelled():
        await task
    return probe.waits >= number, ended[0] if ended else None


class Scene:
    """A session that has sent two messages, received two of four, and a connection beside it that looks."""

    def __init__(self, url: str, connection: aio.Connection, other: aio.Connection, number: int) -> None:
        self.url = url
        self.connection = connection
        self.other = other
        self.queue = f"in.{number}"
        self.target = f"out.{number}"
        self.session: aio.Session
        self.consumer: aio.Consumer
        self.producer: aio.Producer
        self.publisher: aio.Publisher
        self.received: list[aio.Message] = []

    async def begin(self, mode: AckMode) -> None:
        async with self.other.session() as session, session.producer(self.queue) as producer:
            for body in "abcd":
                await producer.send(body)
        self.session = await self.connection.session(mode)
        self.consumer = await self.session.consumer(self.queue)
        self.producer = await self.session.producer(self.target)
        self.received = [await soon(self.consumer) for _ in range(2)]
        for body in "xy" if mode == AckMode.TRANSACTED else "":
            await self.producer.send(body)

    async def left(self, queue: str) -> list[Any]:
        """What another client gets of a queue, when the scene is over."""
        async with self.other.session() as session, session.consumer(queue) as consumer:
            return [message.body for message in await consumer.receive_many(10, 0.3)]


Act = Callable[[Scene], Coroutine[Any, Any, Any]]


async def soon(consumer: aio.Consumer, seconds: float = SOON) -> aio.Message:
    message = await consumer.receive(seconds)
    assert message is not None
    return message


@asynccontextmanager
async def scene(
    url: str, mode: AckMode, number: int, begin: Callable[[Scene], Awaitable[None]] | None = None
) -> AsyncIterator[Scene]:
    async with AsyncExitStack() as opened:
        connections = [
            await opened.enter_async_context(aio.connect(url, redelivery_policy=POLICY, request_timeout=SOON))
            for _ in range(2)
        ]
        made = Scene(url, connections[0], connections[1], number)
        await (made.begin(mode) if begin is None else begin(made))
        yield made


def enumerated(
    url: str,
    mode: AckMode,
    act: Act,
    check: Callable[[Scene, BaseException | None], Awaitable[None]],
    begin: Callable[[Scene], Awaitable[None]] | None = None,
) -> int:
    """Cancel ``act`` in its first wait, in its second, …, each time in a new scene; how many waits it has."""

    async def play() -> int:
        for number in range(1, 200):
            async with scene(url, mode, number, begin) as made:
                was, error = await cancelled(act(made), number)
                assert was or error is None
                await asyncio.wait_for(check(made, error if was else None), SOON)
            if not was:
                return number - 1
        raise AssertionError("it waits for ever")

    return asyncio.run(play(), debug=True)
