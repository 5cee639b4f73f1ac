"""The threads of a connection: its exception listener's, and those that wait for it to change."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Protocol

from redelivery.client.options import ExceptionListener
from redelivery.model.errors import JMSError
from redelivery.transports.wire.threads.waiter import Waiter

log = logging.getLogger(__name__)


class Listened(Protocol):
    """Who has an exception listener."""

    @property
    def exception_listener(self) -> ExceptionListener | None:
        """It is called on a thread of its own."""


class Troubles:
    """What a connection's exception listener is to hear; it keeps no connection alive.

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
        except Exception:  # a guard of application code: its failure must not end the telling
            log.exception("the exception listener raised")
    return error is not None


class Watchers:
    """Woken whenever the connection changes; each looks for itself what it has become."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiters: list[Waiter] = []

    @contextmanager
    def waiter(self) -> Iterator[Waiter]:
        """For one thread, to wait at."""
        waiter = Waiter()
        with self._lock:
            self._waiters.append(waiter)
        try:
            yield waiter
        finally:
            with self._lock:
                self._waiters.remove(waiter)

    def wake(self) -> None:
        """It has changed."""
        with self._lock:
            waiters = list(self._waiters)
        for waiter in waiters:
            waiter.wake()
