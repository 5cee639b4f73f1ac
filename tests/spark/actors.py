"""Threads of which exactly one runs at a time, and only as long as the test lets it: up to its next `pause`."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tests.spark.wal_world import Died

PATIENCE = 30


class Actor:
    """Runs `play(pause)`; what it raises, but for Died, is raised by `step`."""

    def __init__(self, play: Callable[[Callable[..., None]], None]) -> None:
        self._play = play
        self._go, self._back = threading.Lock(), threading.Lock()  # held by who waits: one at a time
        self._go.acquire()
        self._back.acquire()
        self._steps = 0
        self._dying = False
        self._error: BaseException | None = None
        self.ended = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def step(self, steps: int = 1) -> None:
        """Let it go on to the next pause; nothing if it has ended."""
        if self.ended or not steps:
            return
        self._steps = steps
        self._go.release()
        assert self._back.acquire(timeout=PATIENCE), "an actor waits for something but its turn"
        if self._error is not None:
            raise self._error

    def kill(self) -> None:
        """It dies where it is; only its sessions notice."""
        self._dying = True
        self.step()
        assert self.ended
        self._thread.join(PATIENCE)

    def _pause(self, *_: str) -> None:
        self._steps -= 1
        if self._steps:
            return
        self._back.release()
        self._go.acquire()
        if self._dying:
            raise Died

    def _run(self) -> None:
        self._go.acquire()
        try:
            if not self._dying:
                self._play(self._pause)
        except Died:
            pass
        except BaseException as error:  # noqa: BLE001 - raised again in the test's own thread
            self._error = error
        self.ended = True
        self._back.release()
