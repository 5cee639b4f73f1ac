"""Where brokers differ from JMS 3.1 §3.8.1: the rule that decided (`expressions`), and what they do instead.

Artemis and Broker-J took their evaluation over from ActiveMQ Classic, so most of it is the same in all three.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.selectors import looks
from tests.selectors.expressions import (
    FALSE,
    Arithmetic,
    Between,
    Comparison,
    In,
    IsNull,
    Like,
    Literal,
    Logical,
    Name,
    Negative,
    Node,
    Not,
    Trace,
)
from tests.selectors.generated import Sample
from tests.selectors.judges import Disagreement, Verdict, disagreements

ALL: Final = ("activemq", "artemis", "qpid")
STOMP: Final = (
    "activemq by STOMP"  # Classic, where all properties are strings, which it compares as what they look like
)
REFUSED: Final = "a literal with f"


@dataclass(frozen=True)
class Departure:
    """One difference, with a selector that shows it.

    ``spoils``: it is an error at the broker, and a browser is not shown other messages either.
    """

    rule: str
    by_jms: str
    instead: str
    example: Node
    brokers: tuple[str, ...] = ALL
    spoils: bool = False


def _whole(number: int) -> Literal:
    return Literal(str(number), ("int", number))


_UNKNOWN: Final = Like(Name("missing"), "a%", None, False)
_FALSE: Final = Literal("FALSE", FALSE)
DEPARTURES: Final = (
    Departure("unlike types compared by <>", "false", "true", Comparison(Name("word"), "<>", _whole(5))),
    Departure("IN of what is not a string", "false", "unknown", Not(In(Name("JMSPriority"), ("5",), False))),
    Departure("NOT IN of what is not a string", "true", "unknown", In(Name("JMSPriority"), ("5",), True)),
    Departure("two NULLs compared", "unknown", "equal", Comparison(Name("missing"), "=", Name("gone"))),
    Departure(
        "a value and NULL compared", "unknown", "unequal", Comparison(Name("JMSPriority"), "<>", Name("missing"))
    ),
    Departure(
        "NULL and a value compared", "unknown", "unequal", Comparison(Name("missing"), "<>", _whole(5)), ("qpid",)
    ),
    Departure(
        "NULL in arithmetic",
        "unknown",
        "a comparison with it is false",
        Not(Comparison(Arithmetic(Name("missing"), "+", _whole(1)), "=", _whole(2))),
        ("qpid",),
    ),
    Departure("unknown OR false", "unknown", "false", Not(Logical(_UNKNOWN, "OR", _FALSE)), ("qpid",)),
    Departure("unknown AND false", "false", "unknown", Not(Logical(_UNKNOWN, "AND", _FALSE)), ("qpid",)),
    Departure("a condition that is not a boolean", "unknown", "false", Not(Name("word"))),
    Departure(
        "strings or booleans ordered",
        "false",
        "by their characters, and false before true",
        Between(Name("word"), Name("word"), Name("word"), False),
    ),
    Departure(
        "a byte or short compared",
        "an int",
        "unlike, where it is to the right",
        Comparison(_whole(1000), ">", Name("number")),
    ),
    Departure(
        "minus before a byte or short",
        "an int",
        "an error",
        Comparison(Negative(Name("number")), "<", _whole(1000)),
        spoils=True,
    ),
    Departure(
        "arithmetic with what is not a number",
        "unknown",
        "`+` joins strings, the rest is an error",
        Not(Comparison(Arithmetic(Name("word"), "+", _whole(1)), "=", _whole(2))),
        spoils=True,
    ),
    Departure(
        "whole numbers divided",
        "a whole number",
        "a number with a point",
        Comparison(Arithmetic(_whole(5), "/", _whole(2)), "=", _whole(2)),
    ),
    Departure(
        "a whole number divided by 0",
        "unknown",
        "infinite",
        Comparison(Arithmetic(_whole(1), "/", _whole(0)), ">", _whole(5)),
    ),
    Departure(
        "0.0 compared with -0.0",
        "equal",
        "0.0 is greater",
        Comparison(Literal("0.0", ("double", 0.0)), "=", Negative(Literal("0.0", ("double", 0.0)))),
    ),
    Departure(
        "NaN compared",
        "false, and true for `<>`",
        "the greatest number",
        Comparison(Arithmetic(Literal("0.0", ("double", 0.0)), "/", Literal("0.0", ("double", 0.0))), ">", _whole(5)),
    ),
    Departure(
        "arithmetic of floats that exceeds a float",
        "infinite",
        "the number, as a double",
        Comparison(Arithmetic(Name("single"), "*", Name("single")), ">", Literal("1e300", ("double", 1e300))),
    ),
    Departure(
        "float compared with double",
        "as doubles",
        "an error, where the float is to the right",
        Comparison(Literal("1e-9", ("double", 1e-9)), "<>", Name("single")),
        ("activemq",),
        spoils=True,
    ),
    Departure("JMSXGroupID", "the group", "always NULL", IsNull(Name("JMSXGroupID"), False), ("qpid",)),
    Departure(
        looks.NO_BOOLEAN,
        "false, and so is `<>`",
        "as if it were false",
        Comparison(Name("word"), "=", _FALSE),
        (STOMP,),
    ),
    Departure(
        looks.TOO_LONG, "as numbers", "unlike types", Comparison(Name("big"), "<", Name("JMSPriority")), (STOMP,)
    ),
    Departure(
        looks.CALCULATED,
        "a number",
        "`+` joins strings, the rest is NULL or an error",
        Comparison(Negative(Name("number")), "<", _whole(1000)),
        (STOMP,),
        spoils=True,
    ),
    Departure(REFUSED, "a float", "refused", Comparison(Name("single"), "=", Literal("0.5f", ("float", 0.5), REFUSED))),
)

_TYPED: Final = (
    *("a byte or short compared", "minus before a byte or short"),
    *("float compared with double", "arithmetic of floats that exceeds a float"),
)
# Of the departures of Classic those that strings and headers can show; numbers with a type of their own do not arrive.
_OF_STRINGS: Final = frozenset(
    each.rule for each in DEPARTURES if "activemq" in each.brokers and each.rule not in _TYPED
)


def of(broker: str) -> Mapping[str, Departure]:
    """The departures of a broker, by their rules; `STOMP`: those of Classic which strings can show, and its own."""
    if broker == STOMP:
        return {each.rule: each for each in DEPARTURES if STOMP in each.brokers or each.rule in _OF_STRINGS}
    return {each.rule: each for each in DEPARTURES if broker in each.brokers}


def explained(
    verdict: Verdict, samples: Sequence[Sample], known: Mapping[str, Departure]
) -> Iterator[tuple[Disagreement, frozenset[str]]]:
    """Each disagreement with the known departures that may be why; with none, it is new."""
    spoils = spoiling(verdict.node, samples, known)
    for each in disagreements(verdict, samples):
        yield each, frozenset(each.rules & known.keys() | spoils)


def spoiling(node: Node, samples: Sequence[Sample], known: Mapping[str, Departure]) -> set[str]:
    """The known departures that may be an error of the selector at the broker."""
    return {rule for rule in rules_of(node, samples) if rule in known and known[rule].spoils}


def rules_of(node: Node, samples: Sequence[Sample]) -> set[str]:
    """All rules that decide of some message."""
    rules: set[str] = set()
    for sample in samples:
        trace = Trace(lenient=sample.lenient)
        node.evaluate(sample.seen, trace)
        rules |= trace
    return rules
