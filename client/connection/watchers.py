"""The threads that wait for their connection to change."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from redelivery.transports.wire.threads.waiter import Waiter


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
