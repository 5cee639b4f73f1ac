"""Seconds as a person reads them."""

from __future__ import annotations

from typing import Final

_UNITS: Final = ((86400.0, "days"), (3600.0, "hours"))  # in which a person reads a long time


def seconds_text(seconds: float) -> str:
    """``31.5 s``, ``524288 s``."""
    return f"{seconds:.0f} s" if seconds >= 100_000 else f"{seconds:.6g} s"


def time_unit(seconds: float) -> tuple[float, str]:
    """Return the unit in which a person reads so long a time: its seconds and its name."""
    return next(((size, name) for size, name in _UNITS if seconds >= 2 * size), (1.0, "s"))


def time_text(seconds: float) -> str:
    """``31.5 s``, ``524288 s (6.07 days)``: from two hours on also in the unit in which a person reads it."""
    size, name = time_unit(seconds)
    return seconds_text(seconds) if size == 1 else f"{seconds_text(seconds)} ({seconds / size:.3g} {name})"
