"""Whether the processors are free: beside other work, times say nothing."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from benchmarks.results import BenchmarkError

MOST: Final = 0.15  # of all processors, that others may use
_LOOK: Final = 2.0  # seconds
_STAT: Final = Path("/proc/stat")


def check(seconds: float = _LOOK) -> None:
    """Raise BenchmarkError where other programs are at work; where the system does not say, nothing happens."""
    if not _STAT.exists():
        return
    idle, whole = ticks(_STAT.read_text())
    time.sleep(seconds)
    then_idle, then_whole = ticks(_STAT.read_text())
    used = 1 - (then_idle - idle) / max(1, then_whole - whole)
    if used > MOST:
        raise BenchmarkError(
            f"other programs use {used:.0%} of the processors, and up to {MOST:.0%} is free enough: "
            "stop them, or pass --busy and believe the ratios only"
        )


def ticks(stat: str) -> tuple[int, int]:
    """Of all processors together, those without work, and all, since the system began (proc(5), ``/proc/stat``)."""
    numbers = [int(each) for each in stat.split("\n", 1)[0].split()[1:9]]
    return numbers[3] + numbers[4], sum(numbers)
