"""Values without parts: what a JSON value, or one of a map, becomes. Nothing is guessed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from types import NoneType
from typing import Any, Final
from uuid import UUID

from redelivery.model.content.typed.libraries import Build, Misfit

_NAMES: Final = {
    dict: "an object",
    list: "an array",
    str: "a string",
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    NoneType: "null",
    bytes: "bytes",
}


class ExactFloat(float):
    """A number as JSON has written it, which a Decimal is made of."""

    text: str

    def __new__(cls, text: str) -> ExactFloat:  # noqa: D102  # as of float
        made = super().__new__(cls, text)
        made.text = text
        return made


def _kind(value: object) -> str:
    return next((name for kind, name in _NAMES.items() if isinstance(value, kind)), type(value).__name__)


def expected(value: object, kind: type, name: str, place: str) -> Any:
    """The value. Raises Misfit: it is of another kind."""
    if not isinstance(value, kind):
        raise Misfit(place, f"it is {_kind(value)}, not {name}")
    return value


def called(make: Callable[[Any], Any], value: object, place: str, why: str) -> Any:
    """The value that ``make`` makes of it. Raises Misfit, which says ``why``: that refuses it."""
    try:
        return make(value)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise Misfit(place, f"it {why}") from error


def _whole_number(value: object, place: str) -> int:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise Misfit(place, f"it is {_kind(value)}, not an integer")
    return int(value)


def _number(value: object, place: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Misfit(place, f"it is {_kind(value)}, not a number")
    return called(float, value, place, "is too large")  # type: ignore[no-any-return]  # a float, or it raises


def _decimal(value: object, place: str) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise Misfit(place, f"it is {_kind(value)}, not a decimal number")
    text = value.text if isinstance(value, ExactFloat) else str(value)
    return called(Decimal, text, place, "is not a decimal number")  # type: ignore[no-any-return]  # as above


def _plain(kind: type) -> Build:
    name = _NAMES[kind]
    return lambda value, place: expected(value, kind, name, place)


def _of_text(make: Callable[[str], Any], name: str) -> Build:
    def build(value: object, place: str) -> Any:
        return called(make, expected(value, str, f"a string that is {name}", place), place, f"is not {name}")

    return build


SCALARS: Final[Mapping[Any, Build]] = {
    str: _plain(str),
    bytes: _plain(bytes),
    bool: _plain(bool),
    NoneType: _plain(NoneType),
    int: _whole_number,
    float: _number,
    Decimal: _decimal,
    UUID: _of_text(UUID, "a UUID"),
    datetime: _of_text(datetime.fromisoformat, "a date and time of ISO 8601"),
    date: _of_text(date.fromisoformat, "a date of ISO 8601"),
    time: _of_text(time.fromisoformat, "a time of ISO 8601"),
}
