"""Checks of option values, shared by all policies; each error names the option and says what fits."""

from __future__ import annotations

import math
import re
import sys
import warnings
from collections.abc import Mapping
from datetime import timedelta
from functools import lru_cache
from typing import Any, Final, TypeAlias

from redelivery.model.errors import ConfigError
from redelivery.model.suggestions import unknown_option

Seconds: TypeAlias = float | timedelta

INT_MAX: Final = (1 << 31) - 1
LONG_MAX: Final = (1 << 63) - 1
_BOOLEANS: Final = {"true": True, "false": False}
_NO_SYNONYMS: Final[Mapping[str, str]] = {}
_SUSPICIOUS: Final = 3600  # seconds; few redeliveries wait that long
_CALLERS: Final = ("redelivery.cli.", "redelivery.testing.")  # they use the library as an application does
_MAX_DIGITS: Final = 19  # of a Java long; int() of a longer str costs quadratic time


class _Unsaid:
    """The default of a switch that is off: an application that says so is another thing."""

    def __repr__(self) -> str:
        return "False"


UNSAID: Final[Any] = _Unsaid()


def check_flag(name: str, value: object) -> bool:
    """A bool, and nothing that merely is true or false."""
    if isinstance(value, bool):
        return value
    raise ConfigError(f"{name}={value!r}: use True or False")


def check_whole(name: str, value: object, minimum: int, maximum: int | None = None) -> int:
    """Return an integer between two bounds, both included."""
    if isinstance(value, int) and not isinstance(value, bool) and _within(value, minimum, maximum):
        return value
    bounds = f">= {minimum}" if maximum is None else f"from {minimum} to {maximum}"
    raise ConfigError(f"{name}={value!r} must be an integer {bounds}")


def check_number(name: str, value: object, minimum: float, maximum: float = math.inf) -> float:
    """A finite number between two bounds, both included."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:  # an int beyond the largest float
            number = math.inf
        if math.isfinite(number) and minimum <= number <= maximum:
            return number
    bounds = f">= {minimum:g}" if maximum == math.inf else f"from {minimum:g} to {maximum:g}"
    raise ConfigError(f"{name}={value!r} must be a finite number {bounds}")


def wrong_kind(name: str, kind: type, value: object) -> str:
    """Say what an option must be; of a class, which is passed in place of a value, that it is to be called."""
    if isinstance(value, type):
        return f"{name} must be a {kind.__name__}, not a class: write {value.__name__}(…)"
    return f"{name} must be a {kind.__name__}, not a {type(value).__name__}"


def check_seconds(name: str, value: object) -> float:
    """A duration of at least 0 as float seconds; given as a number of seconds or a timedelta."""
    number = value.total_seconds() if isinstance(value, timedelta) else value
    try:
        return check_number(name, number, 0.0, LONG_MAX / 1000)
    except ConfigError:
        raise ConfigError(f"{name}={value!r} is not a duration: pass seconds ≥ 0 or a timedelta") from None


def warn_if_long(name: str, value: object, what: str = "delays are") -> None:
    """Warn, once per line of the application, of a number of seconds that was probably meant as milliseconds."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value > _SUSPICIOUS:
        warnings.warn(
            f"{name}={value:g} is {value / 3600:.3g} hours, as {what} in seconds; "
            f"if that is meant, pass timedelta(seconds={value:g})",
            stacklevel=_callers_level(),
        )


def _callers_level() -> int:
    """Return how far up the stack the line is that called the library, seen from who calls this."""
    level, frame = 1, sys._getframe(1)  # there is no other way, and it is taken for a warning only
    while frame.f_back is not None and _is_ours(str(frame.f_globals.get("__name__"))):
        level, frame = level + 1, frame.f_back
    return level


def _is_ours(module: str) -> bool:
    return module.startswith("redelivery.") and not module.startswith(_CALLERS)


def check_optional_str(name: str, value: object) -> str | None:
    """A str that is not empty, or None."""
    if value is None or (isinstance(value, str) and value):
        return value
    raise ConfigError(f"{name}={value!r}: use a str that is not empty, or None")


@lru_cache(maxsize=1024)
def expression(text: str) -> re.Pattern[str]:
    """A compiled regular expression. Raises ConfigError where it is not one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of what a later Python may read differently
            return re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise ConfigError(f"{text!r} is not a regular expression: {error}") from error


def to_ms(seconds: float) -> int:
    """Milliseconds, rounded to the nearest, within a Java long."""
    return min(round(seconds * 1000), LONG_MAX)


def check_known(
    known: Mapping[str, object],
    given: Mapping[str, object],
    prefix: str = "",
    synonyms: Mapping[str, str] = _NO_SYNONYMS,
) -> None:
    """Refuse names that ActiveMQ's bean does not have (or that have no meaning here).

    ``synonyms``: what people call an option instead -> its name.
    """
    for name in given:
        if name not in known:
            names = [prefix + each for each in known]
            others = {prefix + other: prefix + ours for other, ours in synonyms.items()}
            raise ConfigError(unknown_option(prefix + name, names, others))


def read_whole(name: str, value: object, minimum: int, maximum: int) -> int:
    """As `check_whole`; also from a str, as ActiveMQ writes it."""
    return check_whole(name, _integer(value), minimum, maximum)


def read_number(name: str, value: object, minimum: float, maximum: float = math.inf) -> float:
    """As `check_number`; also from a decimal str."""
    if isinstance(value, str) and value.isascii() and not value[:1].isspace() and not value[-1:].isspace():
        try:
            return check_number(name, float(value.replace("_", "?")), minimum, maximum)
        except ValueError:
            pass  # reported below, with the text as it was given
    return check_number(name, value, minimum, maximum)


def read_flag(name: str, value: object) -> bool:
    """As `check_flag`, also from ``true`` and ``false`` in any case."""
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
