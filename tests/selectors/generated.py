"""Messages and selectors at random, the same for the same seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from tests.selectors.expressions import (
    Arithmetic,
    Between,
    Comparison,
    In,
    IsNull,
    Like,
    Literal,
    Logical,
    Message,
    Name,
    Negative,
    Node,
    Not,
    Value,
)

from redelivery import Byte, Float, Long, Short

# Properties mostly have one type, so that most comparisons are of like types; `mixed` has any.
NUMBERS: Final = ("number", "big", "ratio", "single", "mixed", "JMSPriority", "JMSTimestamp")
STRINGS: Final = (
    "word",
    "code",
    "mixed",
    "JMSType",
    "JMSCorrelationID",
    "JMSDeliveryMode",
    "JMSXGroupID",
    "JMSMessageID",
)
BOOLEANS: Final = ("flag", "mixed")
WORDS: Final = ("red", "blue", "r_d", "r%d", "", "it's", "Red", "red blue", "12", "ünïcödé")
_BIGGEST: Final = (1 << 63) - 1


@dataclass(frozen=True)
class Sample:
    """A message: how it is sent, and what a selector sees of it; its id and timestamp are known when it is there.

    ``lenient``: its properties arrive as strings, and one is compared as the number or boolean that it looks like.
    """

    properties: dict[str, Any]
    headers: dict[str, Any]
    seen: Message
    lenient: bool = False


def messages(seed: int, count: int, persistent: Sequence[bool] = (True, False)) -> list[Sample]:
    """So many messages; ``persistent``: what the delivery mode may be."""
    random = Random(seed)  # noqa: S311  # the same every time, and no secret
    return [_message(random, persistent) for _ in range(count)]


def selectors(seed: int, count: int) -> list[Node]:
    """So many different selectors."""
    random = Random(seed)  # noqa: S311  # as above
    found: dict[str, Node] = {}
    while len(found) < count:
        node = _condition(random, random.choice((0, 1, 1, 2, 3)))
        found[str(node)] = node
    return list(found.values())


def _message(random: Random, persistent: Sequence[bool]) -> Sample:
    values: dict[str, Value] = {
        "number": _number(random, random.choice(("byte", "short", "int", "int", "long"))),
        "big": (
            ("long", random.choice((_BIGGEST, -_BIGGEST - 1, 1 << 53, (1 << 53) + 1)))
            if random.random() < 0.5
            else ("int", random.choice(((1 << 31) - 1, -(1 << 31), 1 << 24, (1 << 24) + 1)))
        ),
        "ratio": ("double", random.choice((0.1, 2.5, -3.0, 7.0, 1e300, 0.5))),
        "single": ("float", random.choice((0.5, 2.5, -3.0, 16777216.0, 2.0**100))),
        "word": ("string", random.choice(WORDS)),
        "code": ("string", random.choice(("A-1", "A_1", "B%2", "5", "true"))),
        "flag": ("boolean", random.random() < 0.5),
        "mixed": random.choice((("string", "5"), ("int", 5), ("boolean", True), ("double", 5.0), ("string", "red"))),
    }
    values = {name: value for name, value in values.items() if random.random() < 0.8}
    headers: dict[str, Any] = {"priority": random.randrange(10), "persistent": random.choice(persistent)}
    if random.random() < 0.6:
        headers["type"] = random.choice(WORDS[:2])
    if random.random() < 0.6:
        headers["correlation_id"] = random.choice(("c-1", "red"))
    if random.random() < 0.6:
        values["JMSXGroupID"] = ("string", random.choice(("g-1", "red")))
    seen: dict[str, Value] = {
        **values,
        "JMSPriority": ("int", headers["priority"]),
        "JMSDeliveryMode": ("string", "PERSISTENT" if headers["persistent"] else "NON_PERSISTENT"),
        "JMSTimestamp": ("long", 1_700_000_000_000),
        "JMSMessageID": ("string", "ID:1"),
        "JMSType": ("string", headers["type"]) if "type" in headers else None,
        "JMSCorrelationID": ("string", headers["correlation_id"]) if "correlation_id" in headers else None,
    }
    kinds = {"byte": Byte, "short": Short, "long": Long, "float": Float}
    properties = {name: kinds.get(kind, lambda each: each)(value) for name, (kind, value) in _set(values).items()}
    return Sample(properties, headers, seen)


def _set(values: dict[str, Value]) -> dict[str, tuple[str, Any]]:
    return {name: value for name, value in values.items() if value is not None}


def _number(random: Random, kind: str) -> Value:
    return kind, random.choice((0, 1, 2, 5, 7, -3, 100))


def _condition(random: Random, depth: int) -> Node:
    if depth > 0:
        kind = random.randrange(5)
        if kind == 0:
            return Not(_condition(random, depth - 1))
        operator = "AND" if kind < 3 else "OR"
        return Logical(_condition(random, depth - 1), operator, _condition(random, depth - 1))
    negated = random.random() < 0.3
    match random.randrange(9):
        case 0:
            return Name(random.choice(BOOLEANS))
        case 1:
            return IsNull(Name(random.choice(NUMBERS + STRINGS + BOOLEANS + ("missing",))), negated)
        case 2:
            return In(
                _name(random, STRINGS), tuple(random.sample((*WORDS, "5", "c-1", "g-1"), random.randint(1, 3))), negated
            )
        case 3:
            return _like(random, negated)
        case 4:
            low, high = (_amount(random, 1) for _ in range(2))
            return Between(_amount(random, 1), low, high, negated)
        case 5:
            left, right = _name(random, STRINGS), random.choice((_string(random), _name(random, STRINGS)))
            return Comparison(left, random.choice(("=", "<>")), right)
        case 6:
            other = random.choice((Literal("TRUE", ("boolean", True)), Literal("false", ("boolean", False))))
            return Comparison(_name(random, BOOLEANS), random.choice(("=", "<>")), other)
        case _:
            operator = random.choice(("=", "<>", "<", "<=", ">", ">="))
            return Comparison(_amount(random, 2), operator, _amount(random, 2))


def _name(random: Random, usual: tuple[str, ...]) -> Name:
    """One in ten is of another type than its place is for."""
    return Name(random.choice(usual if random.random() < 0.9 else NUMBERS + STRINGS + BOOLEANS + ("missing",)))


def _string(random: Random) -> Literal:
    text = random.choice((*WORDS, "5", "PERSISTENT"))
    return Literal("'" + text.replace("'", "''") + "'", ("string", text))


def _like(random: Random, negated: bool) -> Like:
    escape = random.choice((None, None, "!", "\\"))
    pieces = ["r", "d", "%", "_", "%", "e", "A", "-1", "1", "*", ".", "ID:"] + (
        [f"{escape}%", f"{escape}_"] if escape else []
    )
    pattern = "".join(random.choice(pieces) for _ in range(random.randint(1, 4)))
    return Like(_name(random, STRINGS), pattern, escape, negated)


def _amount(random: Random, depth: int) -> Node:
    match random.randrange(8 if depth else 5):
        case 0 | 1 | 2:
            return _name(random, NUMBERS)
        case 3 | 4:
            return _literal(random)
        case 5:
            return Negative(_name(random, NUMBERS))
        case _:
            return Arithmetic(_amount(random, depth - 1), random.choice("+-*/"), _amount(random, depth - 1))


def _literal(random: Random) -> Literal:
    if random.random() < 0.6:
        amount = random.choice((0, 1, 2, 5, 7, 100, (1 << 31) - 1, 1 << 31, _BIGGEST))
        return Literal(str(amount), ("int" if amount < 1 << 31 else "long", amount))
    special: tuple[Literal, ...] = (
        Literal("0x1F", ("int", 31), "a hexadecimal literal"),
        Literal("017", ("int", 15), "an octal literal"),
        Literal("7L", ("long", 7), "a literal with L"),
        Literal("2.5f", ("float", 2.5), "a literal with f"),
        Literal("7.", ("double", 7.0), "a literal that ends with its point"),
        Literal(".5", ("double", 0.5), "a literal that begins with its point"),
    )
    usual = (("2.5", 2.5), ("0.1", 0.1), ("7E0", 7.0), ("1e3", 1000.0), ("0.0", 0.0))
    if random.random() < 0.3:
        return random.choice(special)
    text, real = random.choice(usual)
    return Literal(text, ("double", real))
