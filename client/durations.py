"""Durations as callers give them: seconds, or a timedelta."""

from __future__ import annotations

from datetime import timedelta
from math import inf, isfinite

from redelivery.model.errors import ConfigError


def seconds(name: str, value: float | timedelta) -> float:
    """Seconds, not negative.

    Raises:
        ConfigError: it is not a finite number from 0, nor a timedelta; the text names ``name``.
    """
    if value.__class__ is float or value.__class__ is int:  # the usual case, on the path of every receive
        if 0 <= value < inf:
            return value
    elif isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value) or value < 0:
        raise ConfigError(f"{name}={value!r} is no duration: give seconds from 0 or a timedelta")
    return float(value)


def optional_seconds(name: str, value: float | timedelta | None) -> float | None:
    """The same, where None means "without end"."""
    return None if value is None else seconds(name, value)
