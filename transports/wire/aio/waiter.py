"""Where a task parks until it is woken, by whatever thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any


class LoopWaiter:
    """One task at a time waits here; any thread may wake it, also before it waits: no wake is lost.

    The next one may begin to wait when the one before was woken, and has not come to run yet.

    ``place`` and ``poke`` are the transport's: see `redelivery.transports.wire.threads.waiter`.
    """

    __slots__ = ("_future", "_loop", "_thread", "place", "poke", "woken")

    def __init__(self, loop: asyncio.AbstractEventLoop, thread: int) -> None:
        self._loop = loop
        self._thread = thread
        self._future: asyncio.Future[None] | None = None
        self.woken = False
        self.poke: Callable[[], None] | None = None
        self.place: Any = None

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
            future = self._future = self._loop.create_future()
            timer = None if timeout is None else self._loop.call_later(timeout, self._release)
            try:
                if not self.woken:  # another thread may have been here meanwhile, and seen no future
                    await future
            finally:
                if self._future is future:  # else another task waits here by now
                    self._future = None
                if timer is not None:
                    timer.cancel()
        self.woken = False

    def park(self, timeout: float | None) -> None:
        """Not under an event loop, where nobody leads and nobody follows."""
        raise AssertionError(f"a task does not block (timeout {timeout})")

    def _release(self) -> None:
        future = self._future
        if future is not None and not future.done():
            future.set_result(None)
