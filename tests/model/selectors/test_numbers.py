"""Numbers in selectors: Java's literals, promotion, overflow and division (JMS 3.1 §3.8.1.1)."""

from __future__ import annotations

import math

import pytest

from redelivery.model.selectors.logic import Operand
from redelivery.model.selectors.selector import Selector
from redelivery.model.values import INT_MAX, LONG_MAX, LONG_MIN, Byte, Float, Long, Short


def holds(condition: str, **properties: Operand) -> bool:
    return Selector(condition).matches(properties.get)


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        *[("57", 57), ("-957", -957), ("+62", 62), ("0", 0), ("017", 15), ("0x1f", 31), ("0XFFL", 255), ("12l", 12)],
        *[(str(LONG_MAX), LONG_MAX), (str(LONG_MIN), LONG_MIN), ("- 5", -5), ("000", 0), ("-0x10", -16)],
        *[("7E3", 7e3), ("-57.9E2", -5790.0), ("7.", 7.0), (".5", 0.5), ("1e-3", 0.001), ("2d", 2.0), ("-95.7", -95.7)],
        *[("1.5f", 1.5), ("1e5F", 1e5)],
    ],
)
def test_literals(literal: str, value: float) -> None:
    assert holds(f"a = {literal}", a=Long(value) if isinstance(value, int) else value)


def test_a_float_has_32_bits() -> None:
    assert not holds("a = 0.1", a=Float(0.1)), "0.1f is 0.10000000149 as a double"
    assert holds("a = 0.1f", a=Float(0.1))
    assert holds("a > 0.1", a=Float(0.1))
    assert holds("a = 0.5 AND a = 5E-1f", a=Float(0.5))
    assert holds("a = 16777216", a=Float(16777217.0)), "an int is promoted to float"
    assert holds("a * a > 3E38", a=Float(1e30)), "it overflows to infinity"
    assert holds("a + 1 = 1.5", a=Float(0.5))


def test_whole_numbers_are_compared_exactly_and_with_a_double_as_doubles() -> None:
    assert not holds("a = 9007199254740992", a=9007199254740993)
    assert holds("a = 9007199254740992.0", a=9007199254740993)
    assert holds("a = b AND b = c AND c = 5", a=Byte(5), b=Short(5), c=Long(5))


def test_int_and_long_wrap_around() -> None:
    assert holds("a + 1 < 0", a=INT_MAX), "int + int is an int"
    assert holds("a + 1L = 2147483648", a=INT_MAX), "int + long is a long"
    assert holds("a + 1 = 2147483648", a=Long(INT_MAX))
    assert holds("a + 1 = -9223372036854775808", a=LONG_MAX)
    assert holds("a * a = 1", a=Long(LONG_MAX))
    assert holds("-a = a AND a < 0", a=LONG_MIN)
    assert holds("a / -1 = a", a=LONG_MIN)
    assert holds("a * 1.0 + 1 > 0", a=INT_MAX)


def test_division() -> None:
    assert holds("7 / 2 = 3 AND -7 / 2 = -3 AND 7 / -2 = -3 AND -7 / -2 = 3"), "towards zero"
    assert holds("7 / 2.0 = 3.5 AND 7.0 / 2 = 3.5")
    for condition in ("a / 0 = 1", "NOT (a / 0 = 1)", "a / 0 <> 1"):
        assert not holds(condition, a=7), "unknown, and no error"
    assert holds("a / 0.0 > 1E300 AND -a / 0.0 < -1E300 AND a / -0.0 < 0", a=7)
    assert not holds("a / a = a / a", a=0.0), "not a number"
    assert holds("a / a <> a / a", a=0.0)
    assert holds("NOT (a > 0 OR a < 0 OR a = 0)", a=math.nan)


@pytest.mark.parametrize("value", ["5", True, b"5", None])
def test_arithmetic_with_what_is_no_number_is_unknown(value: Operand) -> None:
    for condition in ("a + 1 = 6", "NOT (a + 1 = 6)", "-a = -5", "NOT (-a = -5)", "+a = 5", "a * 1 BETWEEN 0 AND 9"):
        assert not holds(condition, a=value)
