"""What the process uses, and whether it grows while the same goes on."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from time import monotonic
from typing import Final

MEGABYTE: Final = 1 << 20
STEEPEST: Final = 1.0  # MB a minute, in the second half
THERE: Final = Path("/proc/self/statm").exists()


class Memory:
    """By kind: at the beginning, in the middle of the time, at the end."""

    def __init__(self, seconds: float) -> None:
        self._half = monotonic() + seconds / 2
        self._samples: list[tuple[float, int]] = []
        self.first = self.middle = self.last = self.now()

    @staticmethod
    def now() -> dict[str, int]:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return {
            "memory": pages * os.sysconf("SC_PAGE_SIZE"),
            "descriptors": len(os.listdir("/proc/self/fd")),
            "threads": threading.active_count(),
        }

    def sample(self) -> None:
        """Now and then: in the second half of the time it is a sample."""
        now = monotonic()
        if now < self._half:
            return
        used = self.now()
        if not self._samples:
            self.middle = used
        self._samples.append((now, used["memory"]))

    def growth(self) -> dict[str, int]:
        """From the beginning to now."""
        self.last = self.now()
        return {kind: self.last[kind] - self.first[kind] for kind in self.last}

    def slope(self) -> float:
        """MB a minute, in the second half: of the straight line that is nearest to all samples."""
        if len(self._samples) < 2:
            return 0.0
        count = len(self._samples)
        mean_time = sum(time for time, _ in self._samples) / count
        mean_size = sum(size for _, size in self._samples) / count
        spread = sum((time - mean_time) ** 2 for time, _ in self._samples)
        together = sum((time - mean_time) * (size - mean_size) for time, size in self._samples)
        return together / spread * 60 / MEGABYTE
