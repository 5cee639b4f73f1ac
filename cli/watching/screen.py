"""A terminal's other screen, which shows one look after the other; the terminal is left as it was, whatever happens."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

from rich.console import Console
from rich.live import Live

from redelivery.cli.watching.views import LookReport, LookTable

_LOOKED_AT: Final = 0.25  # seconds after which a terminal of another size is drawn anew
_QUIT: Final = ("q", "Q")


class ScreenView:
    """A context: the other screen of the terminal; see `LookView`."""

    def __init__(self) -> None:
        self._table = LookTable(None)
        self._console = Console()
        self._live = Live(self._table, console=self._console, screen=True, auto_refresh=False)
        self._size = self._console.size

    def show(self, found: LookReport) -> None:
        """See `LookView`."""
        self._table.found, self._table.lost = found, ""
        self._live.refresh()

    def lost(self, error: Exception, wait: float) -> None:
        """See `LookView`."""
        self._table.lost = f"connection lost, trying again in {wait:g} s: {error}"
        self._live.refresh()

    def wait(self, seconds: float) -> bool:
        """Wait, and draw anew where the size changes; False: somebody has typed ``q``."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            ready, _, _ = select.select([sys.stdin], [], [], min(left, _LOOKED_AT))
            if ready and (typed := os.read(sys.stdin.fileno(), 64).decode(errors="replace")) and typed[0] in _QUIT:
                return False
            if self._console.size != self._size:
                self._size = self._console.size
                self._live.refresh()
        return True

    def __enter__(self) -> ScreenView:
        self._live.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._live.stop()


@contextmanager
def screen() -> Iterator[ScreenView]:
    """The other screen; keys are read as they are typed, and a signal to end leaves it, too.

    What ends it a second time, while it is being left, waits until it is.
    """
    with _ended_once(), _typed(), ScreenView() as view:
        yield view


@contextmanager
def _ended_once() -> Iterator[None]:
    def end(number: int, _frame: FrameType | None) -> None:
        for each in before:
            signal.signal(each, signal.SIG_IGN)
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + number)

    before = {each: signal.signal(each, end) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _typed() -> Iterator[None]:
    """Characters are there when they are typed, and are not shown."""
    import termios
    import tty

    if not sys.stdin.isatty():
        yield
        return
    descriptor = sys.stdin.fileno()
    before: list[Any] = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
