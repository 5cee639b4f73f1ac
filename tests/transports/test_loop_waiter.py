"""Where tasks park: one timer serves many waits, and none of them ends early or late because of it.

Those that a read wakes go on in the step of the loop that has read.
"""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
import weakref
from collections.abc import Callable, Coroutine
from contextlib import closing
from typing import Any

import pytest
from tests.run.loops import LOOPS, use

from redelivery.transports.wire.aio.runtime import LoopRuntime
from redelivery.transports.wire.aio.waiter import LoopWaiter

Scene = Callable[[LoopWaiter, asyncio.AbstractEventLoop], Coroutine[Any, Any, None]]


@pytest.fixture(autouse=True, params=LOOPS)
def _loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    use(request.param, monkeypatch)


def run(scene: Scene) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        await asyncio.wait_for(scene(LoopWaiter(loop, threading.get_ident()), loop), 10)

    asyncio.run(main())


async def waited(waiter: LoopWaiter, timeout: float | None, loop: asyncio.AbstractEventLoop) -> float:
    began = loop.time()
    await waiter.wait(timeout)
    return loop.time() - began


@pytest.mark.parametrize("before", [5.0, 0.005, None])
def test_a_wait_ends_by_its_own_time_whatever_the_one_before_was(before: float | None) -> None:
    async def scene(waiter: LoopWaiter, loop: asyncio.AbstractEventLoop) -> None:
        loop.call_soon(waiter.wake)
        await waiter.wait(before)
        took = await waited(waiter, 0.03, loop)
        assert 0.029 <= took < 3

    run(scene)


def test_a_wait_that_is_woken_shortly_before_its_end_does_not_harm_the_next_one() -> None:
    """Under half a millisecond before it uvloop has no timer, but a call that is due."""

    async def scene(waiter: LoopWaiter, loop: asyncio.AbstractEventLoop) -> None:
        for _ in range(20):
            loop.call_soon(waiter.wake)
            await waiter.wait(0.0004)
            assert await waited(waiter, 0.0003, loop) < 3
            assert await waited(waiter, 0.02, loop) >= 0.019

    run(scene)


def test_a_wait_without_end_is_not_ended_by_the_timer_of_an_earlier_one() -> None:
    async def scene(waiter: LoopWaiter, loop: asyncio.AbstractEventLoop) -> None:
        loop.call_soon(waiter.wake)
        await waiter.wait(0.005)
        loop.call_later(0.03, waiter.wake)
        assert await waited(waiter, None, loop) >= 0.029

    run(scene)


def test_a_hundred_waits_need_one_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(waiter: LoopWaiter, loop: asyncio.AbstractEventLoop) -> None:
        made: list[float] = []
        call_at = loop.call_at

        def counting(when: float, *arguments: Any, **more: Any) -> asyncio.TimerHandle:
            made.append(when)
            return call_at(when, *arguments, **more)

        monkeypatch.setattr(loop, "call_at", counting)
        for _ in range(100):
            loop.call_soon(waiter.wake)
            await waiter.wait(5.0)
        assert len(made) == 1

    run(scene)


def test_a_timer_keeps_no_waiter() -> None:
    async def scene(waiter: LoopWaiter, loop: asyncio.AbstractEventLoop) -> None:
        loop.call_soon(waiter.wake)
        await waiter.wait(5.0)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        waiter = LoopWaiter(loop, threading.get_ident())
        await scene(waiter, loop)
        gone = weakref.ref(waiter)
        del waiter
        await asyncio.sleep(0)
        gc.collect()
        assert gone() is None

    asyncio.run(main())


class Reads:
    """Tasks that wait beside each other, and what one read, which wakes them all, brings about."""

    def __init__(self, loop: asyncio.AbstractEventLoop, names: str) -> None:
        self.seen: list[str] = []
        self.loop, self._runtime = loop, LoopRuntime(loop)
        self._waiters = [self._runtime.new_waiter() for _ in names]
        self._ends = socket.socketpair()
        self.then: Callable[[str], object] = lambda _: None
        self.tasks = [loop.create_task(self._wait(*each)) for each in zip(names, self._waiters, strict=True)]

    async def _wait(self, name: str, waiter: LoopWaiter) -> None:
        try:
            await waiter.wait(5.0)
        except asyncio.CancelledError:
            name += " cancelled"
        self.seen.append(name)
        self.then(name)

    def begin(self) -> None:
        """When the tasks wait: something comes."""
        self._ends[1].send(b"!")
        self._runtime.watch(self._ends[0].fileno(), self._read)

    def close(self) -> None:
        for each in self._ends:
            each.close()

    def _read(self) -> bool:
        self.loop.call_soon(self.seen.append, "next step")
        for waiter in self._waiters:
            waiter.wake()
            waiter.wake()
        self._runtime.soon(lambda: self.seen.append("behind"))
        self.seen.append("read")
        return False


async def gathered(reads: Reads) -> None:
    await asyncio.sleep(0)
    reads.begin()
    await asyncio.gather(*reads.tasks)
    await asyncio.sleep(0)


def test_those_that_a_read_wakes_go_on_when_it_is_taken_in_in_the_same_step() -> None:
    async def main() -> None:
        with closing(Reads(asyncio.get_running_loop(), "ab")) as reads:
            await asyncio.wait_for(gathered(reads), 10)
            assert reads.seen == ["read", "a", "b", "behind", "next step"]

    asyncio.run(main())


def test_one_that_is_cancelled_by_another_of_the_same_read_is_cancelled() -> None:
    async def main() -> None:
        with closing(Reads(asyncio.get_running_loop(), "ab")) as reads:
            reads.then = lambda name: name == "a" and reads.tasks[1].cancel()
            await asyncio.wait_for(gathered(reads), 10)
            assert reads.seen == ["read", "a", "b cancelled", "behind", "next step"]

    asyncio.run(main())


def test_one_that_is_cancelled_while_it_waits_is_woken_by_no_read() -> None:
    async def main() -> None:
        with closing(Reads(asyncio.get_running_loop(), "ab")) as reads:
            reads.loop.call_soon(reads.tasks[0].cancel)
            await asyncio.wait_for(gathered(reads), 10)
            assert reads.seen == ["a cancelled", "read", "b", "behind", "next step"]

    asyncio.run(main())


def test_the_others_go_on_behind_one_that_ends_the_loop() -> None:
    def end(name: str) -> None:
        if name == "a":
            raise KeyboardInterrupt

    loop = asyncio.new_event_loop()
    with closing(loop), closing(Reads(loop, "abc")) as reads:
        reads.then = end
        loop.run_until_complete(asyncio.sleep(0))
        reads.begin()
        with pytest.raises(KeyboardInterrupt):
            loop.run_forever()
        assert reads.seen[:2] == ["read", "a"]  # uvloop ends the step first
        loop.run_until_complete(asyncio.wait_for(asyncio.gather(*reads.tasks[1:]), 10))
        assert sorted(reads.seen) == ["a", "b", "c", "next step", "read"]
        assert isinstance(reads.tasks[0].exception(), KeyboardInterrupt)
