"""What this process uses, and what repeating something adds to it."""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Final

from tests.conformance.soak.memory import Memory

WARM_UP: Final = 5  # one of so many repetitions is not measured


@dataclass(frozen=True, slots=True)
class Used:
    """Bytes in memory, open descriptors and living threads."""

    memory: int
    descriptors: int
    threads: int

    @classmethod
    def now(cls) -> Used:
        """Garbage is not counted, nor is what the C library keeps for later."""
        gc.collect()
        with suppress(AttributeError):  # a C library that has no such function
            ctypes.CDLL(None).malloc_trim(0)
        return cls(**Memory.now())

    def none_left(self, before: Used) -> bool:
        """No descriptor and no thread more than before; fewer, where one was just about to end."""
        return self.descriptors <= before.descriptors and self.threads <= before.threads


class Growth:
    """Measured when the warm-up is over, in the middle of what is left, and at the end.

    Args:
        rounds: how often it is repeated.
    """

    def __init__(self, rounds: int) -> None:
        self._warm = rounds // WARM_UP
        self._half = (rounds - self._warm) // 2
        self._at = (self._warm, self._warm + self._half, self._warm + 2 * self._half)
        self.used: list[Used] = []

    def after(self, number: int) -> None:
        """So many repetitions are over."""
        if number in self._at:
            self.used.append(Used.now())

    @property
    def slope(self) -> float:
        """Bytes that each repetition adds: the less of both halves, as a table that grew once has grown in one half."""
        first, middle, last = (each.memory for each in self.used)
        return min(middle - first, last - middle) / self._half

    def row(self, what: str, number: int, seconds: float, **more: object) -> dict[str, Any]:
        """For docs/load.md."""
        return row(what, number, seconds, *self.used, **more)


def row(what: str, number: int, seconds: float, *measured: Used, **more: object) -> dict[str, Any]:
    """For docs/load.md: so many of that took so long, and this was used on the way."""
    return {"what": what, "number": number, "seconds": seconds, "used": [asdict(each) for each in measured], **more}
