"""What the messages of one run took."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds by the wall, and of this process's processors; None: it ran elsewhere."""

    seconds: float
    cpu: float | None


class Stopwatch:
    """Runs from the moment it is made."""

    def __init__(self) -> None:
        self._cpu = time.process_time()
        self._start = time.perf_counter()

    def stop(self) -> Spent:
        """So far."""
        seconds = time.perf_counter() - self._start
        return Spent(seconds, time.process_time() - self._cpu)
