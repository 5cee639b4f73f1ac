"""Truth with three values (JMS 3.1 §3.8.1.3): True, False, and None for "unknown", which is also what NULL is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

Operand: TypeAlias = bool | int | float | str | bytes | None  # what a name, a literal or an operator stands for
Lookup: TypeAlias = Callable[[str], Operand]  # the value of a header or property by its name; None where it is not set
Evaluate: TypeAlias = Callable[[Lookup], Operand]


def conjunction(parts: Sequence[Evaluate]) -> Evaluate:
    """AND: false where one is, else unknown where one is; what is not a boolean is unknown."""

    def evaluate(get: Lookup) -> Operand:
        result: Operand = True
        for part in parts:
            value = part(get)
            if value is False:
                return False
            if value is not True:
                result = None
        return result

    return evaluate


def disjunction(parts: Sequence[Evaluate]) -> Evaluate:
    """OR: true where one is, else unknown where one is."""

    def evaluate(get: Lookup) -> Operand:
        result: Operand = False
        for part in parts:
            value = part(get)
            if value is True:
                return True
            if value is not False:
                result = None
        return result

    return evaluate


def negation(part: Evaluate) -> Evaluate:
    """NOT: what is unknown stays so."""

    def evaluate(get: Lookup) -> Operand:
        value = part(get)
        return not value if isinstance(value, bool) else None

    return evaluate


def constant(value: Operand) -> Evaluate:
    """A literal."""
    return lambda _: value


def named(name: str) -> Evaluate:
    """A header or property."""
    return lambda get: get(name)


def nullness(part: Evaluate, *, negated: bool) -> Evaluate:
    """IS NULL, IS NOT NULL: never unknown."""
    return lambda get: (part(get) is None) is not negated


def test_of_string(part: Evaluate, test: Callable[[str], bool], *, negated: bool) -> Evaluate:
    """IN and LIKE: unknown for NULL, and false for what is not a string, as a comparison of unlike types."""

    def evaluate(get: Lookup) -> Operand:
        value = part(get)
        if value is None:
            return None
        return (isinstance(value, str) and test(value)) is not negated

    return evaluate
