"""Signals that wait until the library has ended its step, as trio's guard has it.

Python runs signal handlers in the main thread only, between nearly any two calls, and KeyboardInterrupt, or whatever
else they raise, comes out there. What must not stop halfway (a frame that is half written, a table that is half
changed) is `uninterruptible`. While it runs, a signal is noted. It is handled where such work waits, in a function that
is marked `interruptible`, and so ends that wait; else when the work has ended. So each ``with lock:`` is in such work:
on Python 3.14 a signal may come between the lock and its block, and the lock stays taken.

`enter` puts the guard before each handler of Python's that is there, with the first connection, and `leave` puts them
back with the last. Other threads, where no handler runs, pay nothing.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from types import CodeType, FrameType
from typing import Final, NoReturn, ParamSpec, TypeAlias, TypeVar
from weakref import WeakSet

from redelivery.transports.wire.clock import monotonic

P = ParamSpec("P")
T = TypeVar("T")
Handler: TypeAlias = Callable[[int, FrameType | None], object]
_STEP: Final = 0.05  # seconds
_LOOK: Final = 1.0  # seconds; see `at_once`
_main = threading.main_thread().ident
_open_code: Final[set[CodeType]] = set()  # of functions in which an interrupt may come: `interruptible`
_protected_code: Final[set[CodeType]] = set()  # of those in which none may come: `protected`
noted: Final[dict[object, Callable[[], object]]] = {}  # by signal: raises, or does what else its handler does
_users: Final[WeakSet[object]] = WeakSet()


def interruptible(function: Callable[P, T]) -> Callable[P, T]:
    """Mark a function that waits: an interrupt may come there, at each place, also where it is part of other work.

    It begins with an `interruption_point`, for what has come just before.
    """
    _open_code.add(function.__code__)
    return function


def uninterruptible(function: Callable[P, T]) -> Callable[P, T]:
    """Make a function that no interrupt can end halfway.

    An interrupt that has come meanwhile, and has ended no wait, is raised when it has returned, or raised, instead.
    """
    protected(function)

    @wraps(function)
    def call(*args: P.args, **keywords: P.kwargs) -> T:
        try:
            return function(*args, **keywords)
        finally:
            if noted:
                handle_noted()

    return call


def protected(function: Callable[P, T]) -> Callable[P, T]:
    """Mark a function as `uninterruptible`, whose callers do the rest, so that a call is one frame: see there."""
    _protected_code.add(function.__code__)
    return function


class _Wrapped:
    """Our handler, before the one that was there.

    It is no open place: another signal may come while it notes one.
    """

    def __init__(self, before: Handler) -> None:
        self.before = before

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if _protects(frame):
            noted.setdefault(number, partial(self.before, number, frame))  # one of a kind, as Python itself has it
        else:
            self.before(number, frame)


def _protects(frame: FrameType | None) -> bool:
    """Check whether the frame belongs to work that must not be interrupted, and does not wait."""
    while frame is not None:
        if frame.f_code in _open_code:
            return False
        if frame.f_code in _protected_code:
            return True
        frame = frame.f_back
    return False


def handle_noted() -> None:
    """Handle what was noted, unless the caller belongs to protected work in its turn."""
    if not _protects(sys._getframe(1)):
        interruption_point()


@interruptible
def interruption_point() -> None:
    """Handle here what was noted, in the main thread."""
    while noted and threading.get_ident() == _main:
        noted.pop(next(iter(noted)))()


def take(lock: threading.Lock, timeout: float) -> bool:
    """Take a lock that others may hold for long, within ``timeout`` seconds, by `await_in_steps`; True: it is taken."""
    return await_in_steps(lambda seconds: lock.acquire(timeout=seconds), timeout)


def await_in_steps(wait: Callable[[float], bool], timeout: float) -> bool:
    """Wait, at most ``timeout`` seconds, until ``wait``, given fewer seconds, is True; False: it has not been.

    An interrupt ends the wait. Called by work that must not be interrupted, which notes it.
    """
    until = monotonic() + timeout
    while not wait(max(0.0, min(_STEP, until - monotonic()))):
        interruption_point()
        if monotonic() >= until:
            return False
    return True


@contextmanager
def holding(lock: threading.Lock) -> Iterator[None]:
    """Hold a lock that others may hold for long; see `take`."""
    take(lock, float("inf"))
    try:
        yield
    finally:
        lock.release()


def later(error: BaseException) -> bool:
    """Keep what application code has raised, called by work that must not be interrupted; False: raise it now."""

    def again() -> NoReturn:
        raise error

    if threading.get_ident() != _main or not _protects(sys._getframe(2)):
        return False
    noted[error] = again
    return True


def tore(error: BaseException) -> bool:
    """Check whether a handler that was set after `enter` may have raised this, where nothing may be interrupted."""
    if isinstance(error, Exception) or threading.get_ident() != _main:
        return False
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in _open_code:
            return False
        trace = trace.tb_next
    handlers = map(signal.getsignal, signal.valid_signals())
    return any(callable(each) and not isinstance(each, _Wrapped) for each in handlers)


def at_once(timeout: float | None) -> float | None:
    """The seconds, of ``timeout``, that the calling thread may wait at once: then it waits again.

    Python looks for signals before it waits, and a signal ends the wait; one that comes between the two is seen when
    the wait is over. So the main thread, where their handlers run, waits for a second at once.
    """
    if threading.get_ident() != _main or (timeout is not None and timeout <= _LOOK):
        return timeout
    return _LOOK


def enter(user: object) -> None:
    """Guard what the user, a connection, does in the main thread, where signals are handled; elsewhere, nothing."""
    if threading.get_ident() == _main:
        _users.add(user)
        for number in signal.valid_signals():
            handler = signal.getsignal(number)
            if callable(handler) and not isinstance(handler, _Wrapped):
                signal.signal(number, _Wrapped(handler))


def leave(user: object) -> None:
    """End a user of the guard. With the last, the handlers are back, but for what has come in our place since."""
    _users.discard(user)
    if threading.get_ident() == _main and not _users:
        for number in signal.valid_signals():
            handler = signal.getsignal(number)
            if isinstance(handler, _Wrapped):
                signal.signal(number, handler.before)


def _after_fork() -> None:
    global _main  # the thread that forked is the main thread here, and has none of its parent's connections
    _main = threading.get_ident()
    noted.clear()
    _users.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
