"""Numbers as JMS 3.1 §3.8.1 has them: which of two types is the wider one, and how they compare."""

from __future__ import annotations

import ctypes
from typing import Final

WIDTHS: Final = ("int", "long", "float", "double")  # what byte and short are promoted to first
NUMBERS: Final = ("byte", "short", *WIDTHS)


def wider(one: str, other: str) -> str:
    return WIDTHS[max(WIDTHS.index(each) if each in WIDTHS else 0 for each in (one, other))]


def as_kind(kind: str, amount: object) -> float:
    assert isinstance(amount, (int, float)), "it is a number"
    if kind == "double":
        return float(amount)
    return ctypes.c_float(amount).value if kind == "float" else amount


def ordered(one: float, operator: str, other: float) -> bool:
    return {
        "=": one == other,
        "<>": one != other,
        "<": one < other,
        "<=": one <= other,
        ">": one > other,
        ">=": one >= other,
    }[operator]
