"""A terminal's other screen, which shows one look after the other; the terminal is left as it was, whatever happens."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Final

from rich.console import Console, ConsoleDimensions
from rich.control import Control
from rich.live import Live

from redelivery.cli.watching.views import LookReport, LookTable

_LOOKED_AT: Final = 0.25  # seconds after which a terminal of another size is drawn anew
_QUIT: Final = (b"q", b"Q", b"")  # nothing is what a terminal says that is gone


class ScreenView:
    """A context: the other screen of the terminal; see `LookView`."""

    def __init__(self) -> None:
        self._table = LookTable(None)
        self._console = Console()
        self._live = Live(self._table, console=self._console, screen=True, auto_refresh=False)
        self._size: ConsoleDimensions | None = self._console.size
        self._typing = [sys.stdin] if sys.stdin.isatty() else []

    def show(self, found: LookReport) -> None:
        """See `LookView`."""
        self._table.found, self._table.lost = found, ""
        self._live.refresh()

    def lost(self, error: Exception, wait: float) -> None:
        """See `LookView`."""
        self._table.lost = f"connection lost, trying again in {wait:g} s: {error}"
        self._live.refresh()

    def wait(self, seconds: float) -> bool:
        """Wait, and draw anew where the size changes; False: somebody has typed ``q``, or the terminal is gone."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            ready, _, _ = select.select(self._typing, [], [], min(left, _LOOKED_AT))
            if ready and _typed()[:1] in _QUIT:
                return False
            if self._console.size != self._size:
                self._size = self._console.size
                self._live.refresh()
        return True

    def leave(self) -> None:
        """Show the terminal's own screen and its cursor, also where a look is half drawn."""
        self._write(Control.show_cursor(True), Control.alt_screen(False))

    def come_back(self) -> None:
        """Show the other screen again; `wait` draws what is on it."""
        self._write(Control.alt_screen(True), Control.show_cursor(False))
        self._size = None

    def _write(self, *controls: Control) -> None:
        os.write(self._console.file.fileno(), "".join(each.segment.text for each in controls).encode())

    def __enter__(self) -> ScreenView:
        self._live.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._live.stop()


def _typed() -> bytes:
    with suppress(OSError):  # the terminal is gone
        return os.read(sys.stdin.fileno(), 64)
    return b""


@contextmanager
def screen() -> Iterator[ScreenView]:
    """The other screen; keys are read as they are typed, and a signal to end leaves it, too.

    What ends it a second time, while it is being left, waits until it is. While it is stopped (Ctrl-Z) it is left.
    """
    with _ended_once(), _Keys() as keys, ScreenView() as view, _left_while_stopped(view, keys):
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
def _left_while_stopped(view: ScreenView, keys: _Keys) -> Iterator[None]:
    def stop(number: int, _frame: FrameType | None) -> None:
        view.leave()
        keys.release()
        handler = signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)  # it stands still here until somebody continues it
        signal.signal(number, handler)
        come_back()

    def come_back(*_: object) -> None:  # also after a stop of which no program is notified (kill -STOP)
        keys.take()
        view.come_back()

    before = {
        signal.SIGTSTP: signal.signal(signal.SIGTSTP, stop),
        signal.SIGCONT: signal.signal(signal.SIGCONT, come_back),
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Keys:
    """A context: characters are there when they are typed, and are not shown; nothing of it where no terminal is."""

    def __enter__(self) -> _Keys:
        import termios

        self._before: list[Any] | None = termios.tcgetattr(sys.stdin) if sys.stdin.isatty() else None
        self.take()
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()

    def take(self) -> None:
        """Read them as they are typed. In the background that stops the program, until it is continued once more."""
        import termios
        import tty

        if self._before is not None:
            with suppress(InterruptedError, termios.error):
                tty.setcbreak(sys.stdin, termios.TCSADRAIN)

    def release(self) -> None:
        """Read them as before."""
        import termios

        if self._before is not None:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._before)
