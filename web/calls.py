"""Asks brokers in threads, so many at most, and each for so long at most: a slow broker holds up nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import BoundedSemaphore, Thread
from typing import Final, TypeVar

from redelivery.model.errors import JMSError

SECONDS: Final = 20.0
"""Longest time of a page: the bounds of a connection's answers end a call soon after that."""
_AT_ONCE: Final = 16

_Result = TypeVar("_Result")


class SlowError(JMSError):
    """The broker has not answered in time; the call goes on in its thread until its own bounds end it."""


class BusyError(JMSError):
    """So many calls wait for brokers that no more is begun."""


class Calls:
    """The threads of one console. They are daemons: the end of the program waits for none of them."""

    def __init__(self, at_once: int = _AT_ONCE, seconds: float = SECONDS) -> None:
        self._free = BoundedSemaphore(at_once)
        self._seconds = seconds

    async def call(self, function: Callable[[], _Result]) -> _Result:
        """Call it in a thread, and return or raise what it does.

        Raises:
            BusyError: no thread is free.
            SlowError: it takes too long.
        """
        if not self._free.acquire(blocking=False):
            raise BusyError("all threads of the console wait for brokers")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[_Result] = loop.create_future()

        def settle(act: Callable[[], None]) -> None:
            if not answer.done():
                act()

        def work() -> None:
            try:
                result = function()
            except BaseException as error:  # noqa: BLE001  # whatever it is, the page raises it
                outcome, act = error, lambda: answer.set_exception(outcome)
            else:
                act = lambda: answer.set_result(result)  # noqa: E731  # as above
            self._free.release()
            with suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(settle, act)

        Thread(target=work, name="redelivery console", daemon=True).start()
        done, _ = await asyncio.wait((answer,), timeout=self._seconds)
        if not done:
            answer.cancel()
            raise SlowError(f"the broker has not answered within {self._seconds:g} s")
        return answer.result()
