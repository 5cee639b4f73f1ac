"""Parks a thread until another one wakes it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from redelivery.transports.wire.clock import monotonic
from redelivery.transports.wire.threads.guard import at_once, interruptible, interruption_point


class ThreadWaiter:
    """One thread at a time waits here; any thread may wake it, also before it waits: no wake is lost.

    A wake has a reason (``woken``); a nudge only lets the thread check again (it may have to lead now). ``poke``, while
    set, ends the system call in which the thread waits instead of the gate. ``place`` is the transport's: what is read
    while somebody waits here. ``awaits`` is the driver's: an answer is awaited here.
    """

    __slots__ = ("__weakref__", "_gate", "_parks", "awaits", "place", "poke", "woken")

    def __init__(self) -> None:
        self._gate = threading.Lock()  # shut (locked) but for a moment: opening it lets one park() through
        self._gate.acquire()
        self.woken = self.awaits = False
        self._parks = False
        self.poke: Callable[[], None] | None = None
        self.place: object = None

    def wake(self) -> None:
        """Let the one who waits check again; harmless when nobody waits."""
        self.woken = True  # before `poke` is read: a thread that sets that reads `woken` afterwards
        poke = self.poke
        if poke is not None:
            poke()
        if self._parks:
            self.nudge()

    def nudge(self) -> None:
        """Open the gate once, without a reason."""
        if self._gate.locked():
            try:
                self._gate.release()
            except RuntimeError:  # another thread was faster: the gate is open
                return

    @interruptible
    def park(self, timeout: float | None) -> None:
        """Wait at the gate, at most ``timeout`` seconds; the caller finds out why it was opened, or if it was."""
        interruption_point()
        timeout = at_once(timeout)
        self._parks = True  # before `woken` is read: who wakes sets that, and reads this afterwards
        try:
            if self.woken:
                return
            if timeout is None:
                self._gate.acquire()
            elif timeout <= 0:
                self._gate.acquire(blocking=False)
            else:
                self._gate.acquire(timeout=min(timeout, threading.TIMEOUT_MAX))
        finally:
            self._parks = False

    def wait(self, timeout: float | None) -> bool:
        """Wait until woken, at most ``timeout`` seconds; whether it was woken since the last wait."""
        deadline = None if timeout is None else monotonic() + timeout
        while not self.woken:
            remaining = None if deadline is None else deadline - monotonic()
            if remaining is not None and remaining <= 0:
                return False
            self.park(remaining)
        self.woken = False
        return True
