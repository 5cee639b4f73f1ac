"""Checks of option values, shared by all policies; each error names the option and says what fits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta
from typing import Final, TypeAlias

from redelivery.model.errors import ConfigError

Seconds: TypeAlias = float | timedelta

LONG_MAX: Final = (1 << 63) - 1
_BOOLEANS: Final = {"true": True, "false": False}
_MAX_DIGITS: Final = 19  # of a Java long; longer texts cost int() quadratic time


def check_flag(name: str, value: object) -> bool:
    """A bool, and nothing that merely is true or false."""
    if isinstance(value, bool):
        return value
    raise ConfigError(f"{name}={value!r}: use True or False")


def check_whole(name: str, value: object, minimum: int, maximum: int | None = None) -> int:
    """A whole number between two bounds, both included."""
    if isinstance(value, int) and not isinstance(value, bool) and _within(value, minimum, maximum):
        return value
    bounds = f"from {minimum}" if maximum is None else f"from {minimum} to {maximum}"
    raise ConfigError(f"{name}={value!r}: use a whole number {bounds}")


def check_number(name: str, value: object, minimum: float, maximum: float = math.inf) -> float:
    """A finite number between two bounds, both included."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:  # an int beyond the largest float
            number = math.inf
        if math.isfinite(number) and minimum <= number <= maximum:
            return number
    bounds = f"from {minimum:g}" if maximum == math.inf else f"from {minimum:g} to {maximum:g}"
    raise ConfigError(f"{name}={value!r}: use a finite number {bounds}")


def check_seconds(name: str, value: object) -> float:
    """A duration of at least 0 as float seconds; given as a number of seconds or a timedelta."""
    number = value.total_seconds() if isinstance(value, timedelta) else value
    try:
        return check_number(name, number, 0.0, LONG_MAX / 1000)
    except ConfigError:
        raise ConfigError(f"{name}={value!r}: use seconds from 0, as a number or a timedelta") from None


def check_optional_text(name: str, value: object) -> str | None:
    """A text that is not empty, or None."""
    if value is None or (isinstance(value, str) and value):
        return value
    raise ConfigError(f"{name}={value!r}: use a text that is not empty, or None")


def to_ms(seconds: float) -> int:
    """Milliseconds, rounded to the nearest, within a Java long."""
    return min(round(seconds * 1000), LONG_MAX)


def check_known(known: Mapping[str, object], given: Mapping[str, object], prefix: str = "") -> None:
    """Refuse names that ActiveMQ's bean does not have (or that have no meaning here)."""
    for name in given:
        if name not in known:
            shown = f"{prefix}{name}"
            raise ConfigError(f"{shown!r} is no known option; known are {', '.join(prefix + each for each in known)}")


def read_whole(name: str, value: object, minimum: int, maximum: int) -> int:
    """As `check_whole`, from ActiveMQ's text form too."""
    return check_whole(name, _integer(value), minimum, maximum)


def read_number(name: str, value: object, minimum: float, maximum: float = math.inf) -> float:
    """As `check_number`, from a decimal text too."""
    if isinstance(value, str) and value.isascii() and not value[:1].isspace() and not value[-1:].isspace():
        try:
            return check_number(name, float(value.replace("_", "?")), minimum, maximum)
        except ValueError:
            pass  # reported below, with the text as it was given
    return check_number(name, value, minimum, maximum)


def read_flag(name: str, value: object) -> bool:
    """As `check_flag`, from ``true`` and ``false`` in any case too."""
    if isinstance(value, str) and value.lower() in _BOOLEANS:
        return _BOOLEANS[value.lower()]
    if isinstance(value, bool):
        return value
    raise ConfigError(f"{name}={value!r}: use true or false")


def _within(value: int, minimum: int, maximum: int | None) -> bool:
    return value >= minimum and (maximum is None or value <= maximum)


def _integer(value: object) -> object:
    if isinstance(value, str) and value.isascii():
        digits = value[1:] if value[:1] in ("+", "-") else value
        if digits.isdigit() and len(digits) <= _MAX_DIGITS:
            return int(value)
    return value
