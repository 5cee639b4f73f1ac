"""Strings as what they look like: how a selector sees properties of a protocol that carries strings only."""

from __future__ import annotations

import re
from typing import Any, Final

_WHOLE: Final = re.compile(r"-?[0-9]+")
_POINT: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?")
LIKE_A_NUMBER: Final = "a string that looks like a number"
NO_BOOLEAN: Final = "a string that is neither true nor false compared with a boolean"
TOO_LONG: Final = "a string of more than 32 bits compared with an int"
CALCULATED: Final = "arithmetic with a string that looks like a number"
LIKE_A_BOOLEAN: Final = "a string that looks like a boolean"


def compared_with(value: tuple[str, Any], other: str, rules: set[str]) -> tuple[str, Any]:
    """A string as a value of the other kind, where it looks like one; all else as it is."""
    kind, text = value
    if kind != "string" or other == "string":
        return value
    if other == "boolean" and text.lower() not in ("true", "false"):
        rules.add(NO_BOOLEAN)
    if other == "boolean" and text.lower() in ("true", "false"):
        rules.add(LIKE_A_BOOLEAN)
        return "boolean", text.lower() == "true"
    if other in ("byte", "short", "int", "long") and _WHOLE.fullmatch(text):
        fits = -(1 << 31) <= int(text) < 1 << 31
        rules.add(LIKE_A_NUMBER if fits or other == "long" else TOO_LONG)
        return ("int" if fits else "long"), int(text)
    if other in ("float", "double") and _POINT.fullmatch(text):
        rules.add(LIKE_A_NUMBER)
        return "double", float(text)
    return value


def calculated_with(value: tuple[str, Any], rules: set[str]) -> tuple[str, Any]:
    """A string as a number, where it looks like one; all else as it is."""
    if value[0] == "string":
        rules.add(CALCULATED)
    return compared_with(value, "int" if _WHOLE.fullmatch(str(value[1])) else "double", rules)
