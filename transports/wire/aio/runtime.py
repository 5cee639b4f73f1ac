"""The event loop as a connection needs it."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Sequence
from typing import Literal

from redelivery.transports.runtime import Owner, Task, Watch
from redelivery.transports.wire.aio.opening import watch_by
from redelivery.transports.wire.aio.waiter import LoopWaiter, Woken
from redelivery.transports.wire.clock import monotonic


class LoopRuntime:
    """`redelivery.transports.runtime.NonBlockingRuntime` of one loop; on its thread, but for the waiters' wakes."""

    blocks: Literal[False] = False

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.thread = threading.get_ident()
        self.process = os.getpid()
        # libuv says once of a connection that was reset, also where there is something to read before the error
        self._says_once = not isinstance(loop, asyncio.SelectorEventLoop)
        self._timers: dict[Task, tuple[float, asyncio.TimerHandle]] = {}
        self._woken = Woken()
        self._behind: list[Callable[[], None]] = []  # those that go on when what is read is taken in

    def new_waiter(self) -> LoopWaiter:
        """See `NonBlockingRuntime.new_waiter`."""
        return LoopWaiter(self.loop, self.thread, self._woken)

    def leave(self, owner: Owner, *tasks: Task, watches: Sequence[Watch]) -> None:  # noqa: ARG002  # as threads need it
        """See `NonBlockingRuntime.leave`."""
        for task in tasks:
            _, timer = self._timers.pop(task, (0.0, None))
            if timer is not None:
                timer.cancel()

    def at(self, due: float, task: Task) -> None:
        """See `NonBlockingRuntime.at`."""
        known = self._timers.get(task)
        if known is not None:
            if known[0] <= due:
                return
            known[1].cancel()
        self._timers[task] = due, self.loop.call_later(max(0.0, due - monotonic()), self._call, task)

    def soon(self, work: Callable[[], None]) -> None:
        """See `NonBlockingRuntime.soon`."""
        if self._woken.reading:
            self._behind.append(work)
        else:
            self.loop.call_soon(work)

    def watch(self, descriptor: int, watch: Watch) -> None:
        """See `NonBlockingRuntime.watch`."""
        if descriptor >= 0 and not self.loop.is_closed():
            watch_by(self.loop.add_reader, descriptor, self._readable, descriptor, watch)

    def when_writable(self, descriptor: int, watch: Watch) -> None:
        """See `NonBlockingRuntime.when_writable`."""
        if descriptor >= 0 and not self.loop.is_closed():
            watch_by(self.loop.add_writer, descriptor, self._writable, descriptor, watch)

    def unwatch(self, descriptor: int) -> None:
        """See `NonBlockingRuntime.unwatch`."""
        if descriptor >= 0 and not self.loop.is_closed():
            self.loop.remove_reader(descriptor)
            self.loop.remove_writer(descriptor)

    def _call(self, task: Task) -> None:
        self._timers.pop(task, None)
        again = task(monotonic())
        if again is not None:
            self.at(again, task)

    def _readable(self, descriptor: int, watch: Watch) -> None:
        self._woken.reading = True
        try:
            if not (watch() and (not self._says_once or watch())):
                self.loop.remove_reader(descriptor)
        finally:
            self._woken.go_on()
            behind, self._behind = self._behind, []
            for work in behind:
                work()

    def _writable(self, descriptor: int, watch: Watch) -> None:
        if not watch():
            self.loop.remove_writer(descriptor)
