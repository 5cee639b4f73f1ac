"""Where a session's thread parks until the embedded broker has something for it."""

from __future__ import annotations

import threading


class VmWaiter:
    """A flag that is raised by `wake` and taken down by `wait`."""

    __slots__ = ("_raised",)

    def __init__(self) -> None:
        self._raised = threading.Event()

    def wake(self) -> None:
        """Let the one who waits look again. May be called from any thread."""
        self._raised.set()

    def wait(self, timeout: float | None) -> None:
        """Return when woken since the last wait, or after ``timeout`` seconds."""
        self._raised.wait(timeout)
        self._raised.clear()
