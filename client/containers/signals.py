"""What SIGTERM and Ctrl-C mean for a program that only runs containers: the first drains, the second ends it."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from redelivery.client.observing.log_lines import WORKERS
from redelivery.model.errors import IllegalStateError

log = logging.getLogger(WORKERS)
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class AskedToEnd(BaseException):
    """A signal has come before the program had begun."""


class Asked:
    """How often the program was asked to end, and by which signal the last time."""

    def __init__(self, drain_timeout: float) -> None:
        self.drain_timeout = drain_timeout
        self.times = 0
        self.number = 0
        self.interrupts = False  # whether the first one ends what the main thread waits for

    def begins(self, step: Callable[[], object]) -> bool:
        """Take a step of the beginning, which a signal ends; False: one has come, and there is nothing to begin."""
        try:
            self.interrupts = True
            try:
                if not self.times:
                    step()
            finally:
                self.interrupts = False
        except AskedToEnd:
            return False
        return not self.times

    def check_interrupted(self) -> None:
        """Raise KeyboardInterrupt, where it was Ctrl-C that came before anything had begun."""
        if self.number == signal.SIGINT:
            raise KeyboardInterrupt

    @property
    def exit_code(self) -> int:
        """Of a program that a signal has ended."""
        return 128 + self.number

    def again(self, number: int) -> bool:
        """One more signal; True: it is to end at once."""
        self.times, self.number = self.times + 1, number
        if self.times == 1:
            log.info(
                "%s: what is in hand is finished, within %g s; a second one ends it at once",
                signal.Signals(number).name,
                self.drain_timeout,
            )
        return self.times > 1


@contextmanager
def handling(asked: Asked) -> Iterator[None]:
    """Handle the signals meanwhile; the second one raises SystemExit.

    Raises:
        IllegalStateError: this is not the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        raise IllegalStateError("run() handles signals, which only the main thread can: elsewhere start() and drain()")

    def handle(number: int, _frame: object) -> None:
        if asked.again(number):
            raise SystemExit(asked.exit_code)
        if asked.interrupts:
            raise AskedToEnd

    with handled_by(handle):
        yield


@contextmanager
def handled_by(handle: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    """Call this for the signals meanwhile, and their handlers of before afterwards. In the main thread."""
    before = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)  # None: it is not Python's


@contextmanager
def handling_in_loop(asked: Asked, first: Callable[[], object], second: Callable[[], object]) -> Iterator[None]:
    """The same in the event loop that runs, which calls these.

    Raises:
        IllegalStateError: it is not the main thread's.
    """
    loop = asyncio.get_running_loop()

    def handle(number: int) -> None:
        if asked.again(number):
            second()
        else:
            first()

    try:
        for number in _SIGNALS:
            loop.add_signal_handler(number, handle, number)
    except (ValueError, RuntimeError) as error:
        raise IllegalStateError("run() handles signals, which only the main thread's loop can") from error
    try:
        yield
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
