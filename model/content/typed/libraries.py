"""Types of pydantic and msgspec, by what they bring themselves: neither is imported here.

Both say where a value is wrong; that becomes one line each, without the value, which may be secret.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any, Final

_MOST: Final = 5  # faults in one text
_PLACE: Final = re.compile(r"(?P<why>.*?) - at `\$(?P<place>.*)`", re.DOTALL)

Build = Callable[[object, str], Any]  # of a value and its place in the body, such as ``items[0].price``


class Misfit(Exception):
    """A value that the type cannot be made of; the text says where it is, and why."""

    def __init__(self, place: str, why: str) -> None:
        super().__init__(f"{place}: {why}" if place else why)


class FromLibrary:
    """A type that its library builds: from JSON, and from a value (a map's, or one inside another type)."""

    def __init__(self, parse: Callable[[Any], Any], validate: Callable[[Any], Any]) -> None:
        self._parse = parse
        self._validate = validate

    def __call__(self, value: object, place: str) -> Any:
        """Of a value in the body."""
        return _calling(self._validate, value, place)

    def of_body(self, body: object) -> Any:
        """Of a whole body: text and bytes are JSON."""
        return _calling(self._parse if isinstance(body, str | bytes) else self._validate, body, "")


def from_library(kind: Any) -> FromLibrary | None:
    """The builder of a pydantic model, dataclass or TypeAdapter, or of a msgspec Struct; None: it is none of these."""
    names = ("model_validate_json", "model_validate"), ("validate_json", "validate_python")
    for owner in (kind, getattr(kind, "__pydantic_validator__", None)):
        for pair in names:
            parse, validate = (getattr(owner, name, None) for name in pair)
            if callable(parse) and callable(validate):
                return FromLibrary(parse, validate)
    msgspec = sys.modules.get("msgspec")
    of = getattr(kind, "__origin__", kind)
    if msgspec is None or not (isinstance(of, type) and issubclass(of, msgspec.Struct)):
        return None
    return FromLibrary(msgspec.json.Decoder(kind).decode, lambda value: msgspec.convert(value, kind))


def _calling(function: Callable[[Any], Any], value: object, place: str) -> Any:
    try:
        return function(value)
    except Exception as error:  # a guard of application code, such as a model's own validators
        raise Misfit("", _in_one_line(error, place)) from error


def _in_one_line(error: Exception, place: str) -> str:
    errors = getattr(error, "errors", None)
    if not callable(errors):
        found = _PLACE.fullmatch(str(error))
        where, why = (place + found["place"], found["why"]) if found else (place, str(error))
        return _said(where, why)
    faults = errors()
    said = [_said(place + "".join(_step(each) for each in fault["loc"]), fault["msg"]) for fault in faults[:_MOST]]
    return "; ".join(said) + (f"; and {len(faults) - _MOST} more" if len(faults) > _MOST else "")


def _said(place: str, why: str) -> str:
    place = place.removeprefix(".")
    return f"{place}: {why}" if place else why


def _step(each: object) -> str:
    return f"[{each}]" if isinstance(each, int) else f".{each}"
