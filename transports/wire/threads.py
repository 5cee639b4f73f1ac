"""Where a thread parks until there may be something for it to do."""

from __future__ import annotations

import threading


class Waiter:
    """A parking place for one thread at a time; a wake-up before the wait is not lost, several count as one."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = threading.Event()

    def wake(self) -> None:
        """Let the one who waits look again; from any thread."""
        self._event.set()

    def wait(self, timeout: float | None) -> bool:
        """Park until woken, at most ``timeout`` seconds; True where it was woken."""
        woken = self._event.wait(timeout)
        self._event.clear()
        return woken
