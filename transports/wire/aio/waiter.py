"""Parks a task until it is woken, by whatever thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context
from typing import Any, Final
from weakref import ref

_NEVER: Final = float("inf")


class Woken:
    """The tasks that the loop wakes while it reads: they go on when that is taken in, in the same step of the loop.

    A future's usual way, by `call_soon`, takes another step with another look at all sockets, for each answer.
    """

    __slots__ = ("reading", "waits")

    def __init__(self) -> None:
        self.reading = False  # nobody runs: no task, and what is read is not taken in yet
        self.waits: list[_Wait] = []

    def go_on(self) -> None:
        """Run them, in their order."""
        self.reading = False
        waits, self.waits = self.waits, []
        try:
            while waits:
                waits.pop(0).go_on()
        finally:
            for wait in waits:  # behind one that ends the loop
                wait.go_on_soon()


class _Wait(asyncio.Future[None]):
    """Ended as any other future, or in two steps: done now (`set_result`), and its task goes on later (`go_on`)."""

    _resume: tuple[Callable[[_Wait], object], Context | None] | None = None

    def add_done_callback(self, fn: Callable[[_Wait], object], *, context: Context | None = None) -> None:
        """The task that waits is the only one who adds any."""
        self._resume = fn, context

    def cancel(self, msg: Any | None = None) -> bool:
        """As `Future.cancel`."""
        cancelled = super().cancel(msg)
        if cancelled:
            self.go_on_soon()
        return cancelled

    def go_on(self) -> None:
        """Go on in this step; no task may be running."""
        if self._resume is not None:
            (fn, context), self._resume = self._resume, None
            if context is None:
                fn(self)
            else:
                context.run(fn, self)

    def go_on_soon(self) -> None:
        """Go on in the next step of the loop."""
        if self._resume is not None:
            (fn, context), self._resume = self._resume, None
            loop = self.get_loop()
            if not loop.is_closed():  # with one that is, its task has ended
                loop.call_soon(fn, self, context=context)


class LoopWaiter:
    """One task at a time waits here; any thread may wake it, also before it waits: no wake is lost.

    The next one may begin to wait when the one before was woken, and has not come to run yet.

    ``place``, ``poke`` and ``awaits`` are the transport's: see `redelivery.transports.wire.threads.waiter`.
    """

    __slots__ = (
        *("__weakref__", "_due", "_expires", "_future", "_loop", "_others", "_thread", "_timer"),
        *("awaits", "place", "poke", "woken"),
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, thread: int, others: Woken | None = None) -> None:
        self._loop = loop
        self._thread = thread
        self._others = others or Woken()  # of the same loop
        self._future: _Wait | None = None
        self._due = 0.0  # when the wait ends; by the loop's clock
        self._timer: asyncio.Handle | None = None  # has no `when` on every loop
        self._expires = 0.0  # when it does
        self.woken = self.awaits = False
        self.poke: Callable[[], None] | None = None
        self.place: object = None

    def wake(self) -> None:
        """Let the one who waits check again; harmless when nobody waits."""
        self.woken = True
        self.nudge()

    def nudge(self) -> None:
        """The same without a reason."""
        if threading.get_ident() == self._thread:
            self._release()
        else:
            with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
                self._loop.call_soon_threadsafe(self._release)

    async def wait(self, timeout: float | None) -> None:
        """Wait until woken, at most ``timeout`` seconds."""
        if not self.woken and (timeout is None or timeout > 0):
            future = self._future = _Wait(loop=self._loop)
            self._due = _NEVER
            if timeout is not None:
                self._arm(timeout)
            try:
                if not self.woken:  # another thread may have been here meanwhile, and seen no future
                    await future
            finally:
                if self._future is future:  # else another task waits here by now
                    self._future = None
        self.woken = False

    def park(self, timeout: float | None) -> None:
        """Not under an event loop, where nobody leads and nobody follows."""
        raise AssertionError(f"a task does not block (timeout {timeout})")

    def _arm(self, timeout: float) -> None:
        """One timer serves many waits: most end before theirs is over, and to make and cancel one costs as much."""
        self._due = due = self._loop.time() + timeout
        if self._timer is None or self._expires > due:
            self._set(due)

    def _set(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._expires = due
        self._timer = self._loop.call_at(due, _expire, ref(self))

    def expire(self) -> None:
        """The timer's time is over, and perhaps the wait's."""
        self._timer = None
        if self._future is not None and self._due < _NEVER:
            if self._loop.time() < self._due:
                self._set(self._due)
            else:
                self._release()

    def _release(self) -> None:
        future = self._future
        if future is not None and not future.done():
            future.set_result(None)
            if self._others.reading:
                self._others.waits.append(future)
            else:
                future.go_on_soon()


def _expire(waiter: ref[LoopWaiter]) -> None:
    """A timer keeps no waiter that nobody needs any more, and what that belongs to."""
    found = waiter()
    if found is not None:
        found.expire()
