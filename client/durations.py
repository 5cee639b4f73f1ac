"""Durations as callers give them: seconds, or a timedelta."""

from __future__ import annotations

import threading
from datetime import timedelta

from redelivery.model.errors import ConfigError

_USUAL = 1e6
_LONGEST = threading.TIMEOUT_MAX / 2  # more than a hundred years: what a wait can take
_NO_DURATION = 1e300


def seconds(name: str, value: float | timedelta) -> float:
    """Seconds, not negative.

    Raises:
        ConfigError: it is not a finite number from 0, nor a timedelta; the text names ``name``.
    """
    if value.__class__ is float or value.__class__ is int:  # the usual case, on the path of every receive
        if 0 <= value < _USUAL:
            return value
    elif isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < _NO_DURATION:
        raise ConfigError(f"{name}={repr(value)[:40]} is not a duration: pass seconds ≥ 0 or a timedelta")
    return min(float(value), _LONGEST)


def optional_seconds(name: str, value: float | timedelta | None) -> float | None:
    """The same, where None means "without end"."""
    return None if value is None else seconds(name, value)
