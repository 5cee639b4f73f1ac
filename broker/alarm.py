"""One thread that calls when something is due, and that lives only while something will be."""

from __future__ import annotations

import threading
from collections.abc import Callable

from redelivery.transports.wire.clock import epoch_ms, follow

_LONGEST_WAIT = 60.0  # seconds: the wall clock may have been set meanwhile
_BREATH = 0.001  # seconds between two rings: who waits for the same lock as the ringing has it in between


class Alarm:
    """Calls ``ring`` when the deadline comes; ``ring`` sets the next one. Thread-safe."""

    def __init__(self, name: str, ring: Callable[[], None]) -> None:
        self._name = name
        self._ring = ring
        self._changed = threading.Condition()
        self._deadline: int | None = None
        self._thread: threading.Thread | None = None
        self._closed = False
        follow(self)

    def set(self, deadline: int | None) -> None:
        """Ring at ``deadline``, milliseconds since 1970; None for never."""
        if deadline is None and self._deadline is None:
            return
        with self._changed:
            if self._closed or deadline == self._deadline:
                return
            self._deadline = deadline
            if self._thread is not None:
                self._changed.notify()
            elif deadline is not None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()

    def wake(self) -> None:
        """The wall clock was set: look again how long it is."""
        with self._changed:
            self._changed.notify()

    def orphan(self) -> None:
        """In a child after fork(): the thread is the parent's, and may have held the lock."""
        self._changed = threading.Condition()
        self._deadline = self._thread = None
        self._closed = True

    def close(self, timeout: float) -> None:
        """End the thread, waiting for it up to ``timeout`` seconds. Idempotent."""
        with self._changed:
            self._closed = True
            self._deadline = None
            thread = self._thread
            self._changed.notify()
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._deadline is None:
                    self._thread = None
                    return
                left = (self._deadline - epoch_ms()) / 1000
                if left > 0:
                    self._changed.wait(min(left, _LONGEST_WAIT))
                    continue
                self._deadline = None
            self._ring()
            with self._changed:
                if self._deadline is not None and not self._closed:
                    self._changed.wait(_BREATH)
