"""Numbers as Java has them (JMS 3.1 §3.8.1.1: "numeric promotion"): int and long wrap around, float has 32 bits.

| JMS | Python |
|---|---|
| byte, short, int | int of 32 bits or fewer, and no Long |
| long | Long; int of more than 32 bits |
| float | Float |
| double | float |
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from math import copysign, inf, isnan, nan
from typing import Final, TypeAlias, TypeGuard

from redelivery.model.selectors.logic import Operand
from redelivery.model.values import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, Float, Long

Number: TypeAlias = int | float
Comparison: TypeAlias = Callable[[Operand, Operand], bool | None]
_INT, _LONG, _FLOAT, _DOUBLE = range(4)
_whole = re.compile(r"\s*[+-]?[0-9]{1,19}\s*", re.ASCII)
_decimal = re.compile(
    r"\s*[+-]?(?:[0-9]{1,400}\.?[0-9]{0,400}|\.[0-9]{1,400})(?:e[+-]?[0-9]{1,9})?[fd]?\s*", re.I | re.A
)


def exact(literal: str, *, negative: bool = False) -> int:
    """An exact literal: decimal, octal (017) or hexadecimal (0x1F), as Java's.

    Raises:
        ValueError: it is not an octal number, or does not fit 64 bits; the text says so.
    """
    digits = literal.rstrip("lL")
    hexadecimal = digits[:2] in ("0x", "0X")
    base = 16 if hexadecimal else 8 if len(digits) > 1 and digits.startswith("0") else 10
    if base == 8 and not set(digits) <= set("01234567"):
        raise ValueError("a number that begins with 0 is octal, and has the digits 0 to 7 only")
    significant = digits[2:].lstrip("0") if hexadecimal else digits.lstrip("0")
    value = int(significant or "0", base) if len(significant) <= 22 else LONG_MAX + 2  # int() is slow with many digits
    if negative:
        value = -value
    if not LONG_MIN <= value <= LONG_MAX:
        raise ValueError("the number does not fit 64 bits: write it with a decimal point")
    return Long(value) if digits != literal else value


def approximate(literal: str) -> float:
    """An approximate literal; one with an `f` has 32 bits.

    Raises:
        ValueError: it does not fit a double; the text says so.
    """
    value = float(literal.rstrip("fFdD"))
    if value in (inf, -inf):
        raise ValueError("the number does not fit a double")
    return _single(value) if literal[-1] in "fF" else value


def order(test: Callable[[Number, Number], bool]) -> Comparison:
    """A comparison of numbers: of other values it is false, with NULL unknown."""

    def compare(left: Operand, right: Operand) -> bool | None:
        if left is None or right is None:
            return None
        if not is_number(left) or not is_number(right):
            return False
        return test(*_promoted(left, right))

    return compare


def equality(*, negated: bool) -> Comparison:
    """``=`` and ``<>``: values of unlike types are neither equal nor unequal, and NULL is unknown."""

    def compare(left: Operand, right: Operand) -> bool | None:
        if left is None or right is None:
            return None
        if is_number(left) and is_number(right):
            one, other = _promoted(left, right)
            return (one == other) is not negated
        if isinstance(left, (str, bool)) and isinstance(right, str if isinstance(left, str) else bool):
            return (left == right) is not negated
        return False

    return compare


def lenient(comparison: Comparison) -> Comparison:
    """The comparison of a protocol that carries strings only: one is what it looks like, as the other operand is typed.

    ActiveMQ's ``convert_string_expressions``, with which Classic reads every selector that comes over STOMP.
    """

    def compare(left: Operand, right: Operand) -> bool | None:
        if isinstance(left, str):
            left = _as(left, right)
        elif isinstance(right, str):
            right = _as(right, left)
        return comparison(left, right)

    return compare


def read_number(value: Operand) -> Operand:
    """A string that looks like a number as this number; all else as it is."""
    if not isinstance(value, str):
        return value
    return int(value) if _whole.fullmatch(value) else _as(value, 0.0)


def calculation(operator: str) -> Callable[[Operand, Operand], Operand]:
    """``+``, ``-``, ``*`` or ``/``: NULL where one operand is not a number, or a whole number is divided by 0."""
    calculate = _OPERATORS[operator]

    def evaluate(left: Operand, right: Operand) -> Operand:
        if not is_number(left) or not is_number(right):
            return None
        rank = max(_rank(left), _rank(right))
        if rank == _DOUBLE:
            return calculate(float(left), float(right))
        if rank == _FLOAT:
            return _single(calculate(_single(left), _single(right)))
        if operator == "/" and not right:
            return None
        one, other = int(left), int(right)
        return _wrapped(_divided(one, other) if operator == "/" else int(calculate(one, other)), rank)

    return evaluate


def negative(value: Operand) -> Operand:
    """Unary minus."""
    if not is_number(value):
        return None
    rank = _rank(value)
    if rank == _DOUBLE:
        return -value
    return _single(-value) if rank == _FLOAT else _wrapped(-int(value), rank)


def positive(value: Operand) -> Operand:
    """Unary plus."""
    return value if is_number(value) else None


def is_number(value: Operand) -> TypeGuard[Number]:
    """Check that an operand is a number; a boolean is none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _rank(value: Number) -> int:
    if isinstance(value, float):
        return _FLOAT if isinstance(value, Float) else _DOUBLE
    return _LONG if isinstance(value, Long) or not INT_MIN <= value <= INT_MAX else _INT


def _promoted(left: Number, right: Number) -> tuple[Number, Number]:
    """Both in the wider type, in which they are compared."""
    if isinstance(left, int) and isinstance(right, int):
        return left, right
    if _DOUBLE in (_rank(left), _rank(right)):
        return _widened(left), _widened(right)
    return _single(left), _single(right)


def _widened(value: Number) -> float:
    """As a double: a float is that of 32 bits."""
    return _single(value) if isinstance(value, Float) else float(value)


def _single(value: Number) -> Float:
    """The nearest number of 32 bits."""
    try:
        return Float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return Float(copysign(inf, value))


def _wrapped(value: int, rank: int) -> int:
    """As Java keeps a result that does not fit: its lower bits."""
    bits = 64 if rank == _LONG else 32
    value = ((value + (1 << bits - 1)) & ((1 << bits) - 1)) - (1 << bits - 1)
    return Long(value) if rank == _LONG else value


def _divided(left: int, right: int) -> int:
    """Towards zero, as Java rounds."""
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _quotient(left: float, right: float) -> float:
    if right:
        return left / right
    return nan if not left or isnan(left) else copysign(inf, left) * copysign(1.0, right)


def _as(text: str, other: Operand) -> Operand:
    """The text as the type of the other operand; itself where it does not look like that."""
    if isinstance(other, bool):
        return {"true": True, "false": False}.get(text.lower(), text)
    if isinstance(other, float):
        return float(text.strip().rstrip("fFdD")) if _decimal.fullmatch(text) else text
    return int(text) if isinstance(other, int) and _whole.fullmatch(text) else text


_OPERATORS: Final[Mapping[str, Callable[[Number, Number], Number]]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": _quotient,
}
