"""Selectors as trees, what JMS says they are of a message, and which of JMS's rules decided: an evaluation of its own.

It shares nothing with `redelivery.model.selectors`, and is written to be read beside JMS 3.1 §3.8.1: a rule, an `if`.
A `Value` is its JMS type and what Python has for it; a missing one is None, which is also "unknown".
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import copysign, inf, nan
from typing import Any, TypeAlias

from tests.selectors.amounts import NUMBERS, WIDTHS, as_kind, ordered, wider
from tests.selectors.looks import calculated_with, compared_with

Value: TypeAlias = "tuple[str, bool | int | float | str] | None"
Message: TypeAlias = "Mapping[str, Value]"
TRUE, FALSE = ("boolean", True), ("boolean", False)


class Trace(set[str]):
    """The rules that decided of one message; ``lenient``: strings are compared as what they look like."""

    def __init__(self, *, lenient: bool = False) -> None:
        super().__init__()
        self.lenient = lenient


@dataclass(frozen=True)
class Literal:
    text: str
    value: Value
    rule: str = ""

    def evaluate(self, _: Message, trace: Trace) -> Value:
        if self.rule:
            trace.add(self.rule)
        return self.value

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Name:
    name: str

    def evaluate(self, message: Message, trace: Trace) -> Value:
        value = message.get(self.name)
        if self.name == "JMSXGroupID" and value is not None:
            trace.add("JMSXGroupID")
        return value

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Negative:
    operand: Node

    def evaluate(self, message: Message, trace: Trace) -> Value:
        value = number(self.operand.evaluate(message, trace), trace)
        if value is None:
            return None
        kind, amount = value
        if "arithmetic with a byte or short" in trace:
            trace.add("minus before a byte or short")
        return fitted(kind, -amount, trace)

    def __str__(self) -> str:
        return f"- {self.operand}"


@dataclass(frozen=True)
class Arithmetic:
    left: Node
    operator: str
    right: Node

    def evaluate(self, message: Message, trace: Trace) -> Value:
        left = number(self.left.evaluate(message, trace), trace)
        right = number(self.right.evaluate(message, trace), trace)
        if left is None or right is None:
            return None
        kind = wider(left[0], right[0])
        one, other = as_kind(kind, left[1]), as_kind(kind, right[1])
        if self.operator == "/" and kind in ("int", "long"):
            if other == 0:
                trace.add("a whole number divided by 0")
                return None
            trace.add("whole numbers divided")
            quotient = abs(int(one)) // abs(int(other))
            return fitted(kind, quotient if (one < 0) == (other < 0) else -quotient, trace)
        if self.operator == "/" and other == 0:
            trace.add("a number with a point divided by 0")
            limit = nan if one == 0 or one != one else copysign(inf, one) * copysign(1, other)
            return fitted(kind, limit, trace)
        calculate: dict[str, Callable[[float, float], float]] = {
            "+": lambda a, b: a + b,
            "-": lambda a, b: a - b,
            "*": lambda a, b: a * b,
            "/": lambda a, b: a / b,
        }
        return fitted(kind, calculate[self.operator](one, other), trace)

    def __str__(self) -> str:
        return f"({self.left} {self.operator} {self.right})"


@dataclass(frozen=True)
class Comparison:
    left: Node
    operator: str
    right: Node

    def evaluate(self, message: Message, trace: Trace) -> Value:
        return compare(self.left.evaluate(message, trace), self.operator, self.right.evaluate(message, trace), trace)

    def __str__(self) -> str:
        return f"{self.left} {self.operator} {self.right}"


@dataclass(frozen=True)
class Between:
    value: Node
    low: Node
    high: Node
    negated: bool

    def evaluate(self, message: Message, trace: Trace) -> Value:
        value, low, high = (each.evaluate(message, trace) for each in (self.value, self.low, self.high))
        trace.add("NOT BETWEEN" if self.negated else "BETWEEN")
        if self.negated:
            return either(compare(value, "<", low, trace), compare(value, ">", high, trace))
        return both(compare(value, ">=", low, trace), compare(value, "<=", high, trace))

    def __str__(self) -> str:
        return f"{self.value} {'NOT ' * self.negated}BETWEEN {self.low} AND {self.high}"


@dataclass(frozen=True)
class In:
    name: Name
    strings: tuple[str, ...]
    negated: bool

    def evaluate(self, message: Message, trace: Trace) -> Value:
        value = self.name.evaluate(message, trace)
        if value is None:
            return unknown("NULL in IN or LIKE", trace)
        if value[0] != "string":
            trace.add("NOT IN of what is not a string" if self.negated else "IN of what is not a string")
        return truth((value[0] == "string" and value[1] in self.strings) != self.negated)

    def __str__(self) -> str:
        return f"{self.name} {'NOT ' * self.negated}IN ({', '.join(map(quoted, self.strings))})"


@dataclass(frozen=True)
class Like:
    name: Name
    pattern: str
    escape: str | None
    negated: bool

    def evaluate(self, message: Message, trace: Trace) -> Value:
        value = self.name.evaluate(message, trace)
        if value is None:
            return unknown("NULL in IN or LIKE", trace)
        if self.escape is not None:
            trace.add("ESCAPE")
        if value[0] != "string":
            trace.add("NOT LIKE of what is not a string" if self.negated else "LIKE of what is not a string")
            return truth(self.negated)
        return truth((self.expression().fullmatch(str(value[1])) is not None) != self.negated)

    def expression(self) -> re.Pattern[str]:
        parts, characters = [], iter(self.pattern)
        for character in characters:
            if character == self.escape:
                parts.append(re.escape(next(characters)))
            else:
                parts.append({"%": ".*", "_": "."}.get(character) or re.escape(character))
        return re.compile("".join(parts), re.DOTALL)

    def __str__(self) -> str:
        escape = "" if self.escape is None else f" ESCAPE {quoted(self.escape)}"
        return f"{self.name} {'NOT ' * self.negated}LIKE {quoted(self.pattern)}{escape}"


@dataclass(frozen=True)
class IsNull:
    name: Name
    negated: bool

    def evaluate(self, message: Message, trace: Trace) -> Value:
        return truth((self.name.evaluate(message, trace) is None) != self.negated)

    def __str__(self) -> str:
        return f"{self.name} IS {'NOT ' * self.negated}NULL"


@dataclass(frozen=True)
class Not:
    operand: Node

    def evaluate(self, message: Message, trace: Trace) -> Value:
        value = condition(self.operand.evaluate(message, trace), trace)
        if value is None:
            return unknown("NOT of what is unknown", trace)
        return truth(value == FALSE)

    def __str__(self) -> str:
        return f"NOT ({self.operand})"


@dataclass(frozen=True)
class Logical:
    left: Node
    operator: str
    right: Node

    def evaluate(self, message: Message, trace: Trace) -> Value:
        left = condition(self.left.evaluate(message, trace), trace)
        right = condition(self.right.evaluate(message, trace), trace)
        if left is None and right == FALSE:
            trace.add(f"unknown {self.operator} false")
        return both(left, right) if self.operator == "AND" else either(left, right)

    def __str__(self) -> str:
        return f"({self.left} {self.operator} {self.right})"


Node: TypeAlias = Literal | Name | Negative | Arithmetic | Comparison | Between | In | Like | IsNull | Not | Logical


def compare(left: Value, operator: str, right: Value, trace: Trace) -> Value:
    if left is None or right is None:
        how = "two NULLs" if left == right else "NULL and a value" if left is None else "a value and NULL"
        return unknown(f"{how} compared", trace)
    if trace.lenient:
        left, right = compared_with(left, right[0], trace), compared_with(right, left[0], trace)
    if left[0] in NUMBERS and right[0] in NUMBERS:
        return compare_numbers(left, operator, right, trace)
    if left[0] != right[0]:
        trace.add("unlike types compared by <>" if operator == "<>" else "unlike types compared")
        return FALSE
    if operator in ("=", "<>"):
        return truth((left[1] == right[1]) == (operator == "="))
    trace.add("strings or booleans ordered")
    return FALSE


def compare_numbers(left: tuple[str, Any], operator: str, right: tuple[str, Any], trace: Trace) -> Value:
    kind = wider(left[0], right[0])
    if {left[0], right[0]} & {"byte", "short"}:
        trace.add("a byte or short compared")
    if {left[0], right[0]} == {"float", "double"}:
        trace.add("float compared with double")
    elif kind in ("float", "double") and {left[0], right[0]} & {"long", "int", "byte", "short"}:
        trace.add("a whole number compared with one with a point")
    one, other = as_kind(kind, left[1]), as_kind(kind, right[1])
    if one != one or other != other:
        trace.add("NaN compared")
    elif one == other == 0 and copysign(1, one) != copysign(1, other):
        trace.add("0.0 compared with -0.0")
    return truth(ordered(one, operator, other))


def condition(value: Value, trace: Trace) -> Value:
    if value is not None and value[0] != "boolean":
        return unknown("a condition that is not a boolean", trace)
    return value


def number(value: Value, trace: Trace) -> tuple[str, float] | None:
    if value is None:
        trace.add("NULL in arithmetic")
        return None
    if trace.lenient:
        value = calculated_with(value, trace)
    if value[0] not in NUMBERS:
        trace.add("arithmetic with what is not a number")
        return None
    assert not isinstance(value[1], str), "it is a number"
    if value[0] not in WIDTHS:
        trace.add("arithmetic with a byte or short")
    return (value[0] if value[0] in WIDTHS else "int"), value[1]


def fitted(kind: str, amount: float, trace: Trace) -> tuple[str, float]:
    if kind in ("float", "double"):
        trace.add("arithmetic of numbers with a point")
        value = as_kind(kind, amount)
        if abs(value) == inf != abs(amount):
            trace.add("arithmetic of floats that exceeds a float")
        return kind, value
    kept = (ctypes.c_int32 if kind == "int" else ctypes.c_int64)(int(amount)).value
    if kept != amount:
        trace.add(f"{kind} arithmetic that wraps around")
    trace.add("arithmetic")
    return kind, kept


def both(left: Value, right: Value) -> Value:
    if FALSE in (left, right):
        return FALSE
    return None if None in (left, right) else TRUE


def either(left: Value, right: Value) -> Value:
    if TRUE in (left, right):
        return TRUE
    return None if None in (left, right) else FALSE


def unknown(rule: str, trace: Trace) -> Value:
    trace.add(rule)
    return None


def truth(value: bool) -> Value:
    return TRUE if value else FALSE


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
