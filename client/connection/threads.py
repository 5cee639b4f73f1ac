"""The threads of a connection: its exception listener's, and those that wait for it to change, or close it.

A close in a signal handler may have interrupted a call of the same thread, which holds the session, or reads, and goes
on when the handler has returned: a close that waited for it would wait in vain. So another thread closes (`Elsewhere`).
"""

from __future__ import annotations

import _thread
import atexit
import logging
import sys
import threading
import weakref
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from types import FrameType
from typing import Final, Protocol

from redelivery.client.observing.log_lines import CONNECTIONS
from redelivery.client.options import ExceptionListener
from redelivery.model.errors import JMSError
from redelivery.transports.wire.threads.waiter import ThreadWaiter

log = logging.getLogger(CONNECTIONS)
_ROOM: Final = "redelivery.client."
_main: Final = threading.main_thread()


class Listened(Protocol):
    """The owner of an exception listener."""

    @property
    def exception_listener(self) -> ExceptionListener | None:
        """The exception listener. It is called on a thread of its own."""


class Troubles:
    """The errors that a connection's exception listener is to hear; it keeps no connection alive.

    Its thread is there from the first trouble to the end of the connection.
    """

    def __init__(self, listened: Listened) -> None:
        self._listened = weakref.ref(listened)
        self._errors: SimpleQueue[JMSError | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def put(self, error: JMSError) -> None:
        """Soon. By one thread at a time."""
        self._errors.put(error)
        if self._thread is None:
            self._thread = threading.Thread(
                target=_notify_all, args=(self._errors, self._listened), name="redelivery-exceptions", daemon=True
            )
            self._thread.start()

    def end(self) -> None:
        """There are no more; the listener is notified of what was put before."""
        self._errors.put(None)


def _notify_all(errors: SimpleQueue[JMSError | None], listened: weakref.ref[Listened]) -> None:
    while _notify(errors.get(), listened):
        pass  # and nothing is held meanwhile: an error's traceback would keep the connection alive


def _notify(error: JMSError | None, listened: weakref.ref[Listened]) -> bool:
    """One trouble; False: that was all."""
    connection = listened()
    listener = None if connection is None else connection.exception_listener
    if error is not None and listener is not None:
        try:
            listener(error)
        except Exception:  # a guard of application code: its failure must not end what follows
            log.exception("the exception listener raised")
    return error is not None


class Watchers:
    """Woken whenever the connection changes; each looks for itself what it has become."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiters: list[ThreadWaiter] = []

    @contextmanager
    def waiter(self) -> Iterator[ThreadWaiter]:
        """For one thread, to wait at."""
        waiter = ThreadWaiter()
        with self._lock:
            self._waiters.append(waiter)
        try:
            yield waiter
        finally:
            with self._lock:
                self._waiters.remove(waiter)

    def wake(self) -> None:
        """Wake all who wait for the change."""
        with self._lock:
            waiters = list(self._waiters)
        for waiter in waiters:
            waiter.wake()


def interrupts(whose: Collection[object]) -> bool:
    """Check whether the close that asks has interrupted another call of a connection or session, of the same thread.

    Args:
        whose: the connection, and the cores of its sessions; or a session's own core.
    """
    if threading.get_ident() != _main.ident:
        return False  # signal handlers run in the main thread
    frame: FrameType | None = sys._getframe()
    while frame is not None and _ours(frame):
        frame = frame.f_back
    while frame is not None:  # the handler, and what it calls; or the application
        if _ours(frame) and _of(frame, whose):
            return True
        frame = frame.f_back
    return False


def _ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith(_ROOM)


def _of(frame: FrameType, whose: Collection[object]) -> bool:
    it = frame.f_locals.get("self")
    return any(it is each or getattr(it, "_core", None) is each for each in whose)


def closes_elsewhere(whose: Collection[object], close: Callable[[], None], patience: float) -> bool:
    """Let another thread close where the call has interrupted one of the same thread, else False; see `Elsewhere`."""
    interrupted = interrupts(whose)
    if interrupted:
        Elsewhere().begin(close, patience)
    return interrupted


class Elsewhere:
    """A thread that closes, for whom a signal has interrupted."""

    def __init__(self) -> None:
        self._ended: _thread.LockType | None = None

    def begin(self, close: Callable[[], None], patience: float) -> None:
        """Close there, and return at once; the interpreter waits for it at its end, up to ``patience`` seconds."""
        ended = self._ended = _thread.allocate_lock()
        ended.acquire()

        def run() -> None:
            try:
                close()
            except Exception:  # a guard of a thread: nobody waits for what it raises
                log.exception("close")
            finally:
                ended.release()

        atexit.register(self.join, patience)
        # not by `threading`, whose locks the interrupted call may hold
        _thread.start_new_thread(run, ())

    def join(self, patience: float) -> None:
        """Wait until it has closed, if it does."""
        ended = self._ended
        if ended is not None and ended.acquire(timeout=patience):
            ended.release()
            self._ended = None
            atexit.unregister(self.join)
