"""From a tree to a function of a message: each node becomes a closure over those of its parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import ge, gt, le, lt
from typing import TYPE_CHECKING, Final, NamedTuple

from redelivery.model.errors import InvalidSelectorError
from redelivery.model.selectors import logic, numbers
from redelivery.model.selectors.logic import Evaluate, Lookup, Operand
from redelivery.model.selectors.parsing import invalid, position
from redelivery.model.selectors.patterns import LikePattern

if TYPE_CHECKING:
    from redelivery.model.selectors.parsing import Node

CONDITION, NUMBER, STRING, ANY = "a condition", "a number", "a string", "anything"  # what an expression may stand for
HEADERS: Final = ("JMSDeliveryMode", "JMSPriority", "JMSMessageID", "JMSTimestamp", "JMSCorrelationID", "JMSType")
_OURS: Final = ("JMSX", "JMS_")  # JMS's own properties, and those of its providers


class Expression(NamedTuple):
    """The compiled form of a node; `kind` is the type that it is known to have, whatever the message."""

    kind: str
    evaluate: Evaluate
    name: str | None = None  # of an identifier


class Builder:
    """Makes one selector; ``lenient``: strings are what they look like (`numbers.lenient`)."""

    def __init__(self, text: str, *, lenient: bool) -> None:
        self.identifiers: set[str] = set()
        self.wildcards = 0  # in the LIKE that has most of them
        self._text = text
        self._lenient = lenient
        self._rules: dict[str, Callable[[Sequence[Node]], Expression]] = {
            "disjunction": lambda parts: self._logical(parts, logic.disjunction),
            "conjunction": lambda parts: self._logical(parts, logic.conjunction),
            "negation": lambda parts: Expression(CONDITION, logic.negation(self.condition(parts[1]))),
            "comparison": self._comparison,
            "between": self._between,
            "like": self._like,
            "membership": self._membership,
            "nullness": self._nullness,
            "sum": self._calculation,
            "product": self._calculation,
            "signed": self._signed,
            "identifier": self._identifier,
            "string": lambda parts: Expression(STRING, logic.constant(_unquoted(parts[0]))),
            "exact": lambda parts: self._number(parts[0], numbers.exact),
            "approximate": lambda parts: self._number(parts[0], numbers.approximate),
            "truth": lambda parts: Expression(CONDITION, logic.constant(str(parts[0]).lower() == "true")),
            "group": lambda parts: self.build(parts[0]),
        }

    def condition(self, node: Node) -> Evaluate:
        """The function of a node that must be a condition.

        Raises:
            InvalidSelectorError: it is none, or an operator stands between what it is not for.
        """
        found = self.build(node)
        if found.kind not in (CONDITION, ANY):
            raise self._wrong(node, f"a condition is needed here, and this is {found.kind}")
        return found.evaluate

    def build(self, node: Node) -> Expression:
        """The same for any node."""
        assert node is not None, "the grammar has placeholders for single words only"
        assert not isinstance(node, str), "the grammar has rules around all of its tokens"
        return self._rules[str(node.data)](node.children)

    def _logical(self, parts: Sequence[Node], join: Callable[[list[Evaluate]], Evaluate]) -> Expression:
        return Expression(CONDITION, join([self.condition(part) for part in parts]))

    def _comparison(self, parts: Sequence[Node]) -> Expression:
        left, right, operator = self.build(parts[0]), self.build(parts[2]), str(parts[1])
        if operator in _ORDERS:
            for node, operand in ((parts[0], left), (parts[2], right)):
                if operand.kind not in (NUMBER, ANY):
                    raise self._wrong(node, f"{operator} compares numbers, and this is {operand.kind}: use = or <>")
        return Expression(CONDITION, self._compare(_COMPARISONS[operator], left.evaluate, right.evaluate))

    def _between(self, parts: Sequence[Node]) -> Expression:
        value, _, low, high = parts
        of, first, last = (self._for_numbers(each, "BETWEEN").evaluate for each in (value, low, high))
        if parts[1] is None:
            both = [self._compare(_COMPARISONS[">="], of, first), self._compare(_COMPARISONS["<="], of, last)]
            return Expression(CONDITION, logic.conjunction(both))
        either = [self._compare(_COMPARISONS["<"], of, first), self._compare(_COMPARISONS[">"], of, last)]
        return Expression(CONDITION, logic.disjunction(either))

    def _like(self, parts: Sequence[Node]) -> Expression:
        value, negated, text, escape = parts
        of = self._named(value, "LIKE")
        character = None if escape is None else _unquoted(escape)
        if character is not None and len(character) != 1:
            raise self._wrong(escape, "the escape character must be one character")
        try:
            pattern = LikePattern(_unquoted(text), character)
        except ValueError as error:
            raise self._wrong(text, str(error)) from None
        self.wildcards = max(self.wildcards, pattern.wildcards)
        test = logic.test_of_string(of.evaluate, pattern.matches, negated=negated is not None)
        return Expression(CONDITION, test)

    def _membership(self, parts: Sequence[Node]) -> Expression:
        value, negated, *strings = parts
        of = self._named(value, "IN")
        known = frozenset(map(_unquoted, strings))
        test = logic.test_of_string(of.evaluate, known.__contains__, negated=negated is not None)
        return Expression(CONDITION, test)

    def _nullness(self, parts: Sequence[Node]) -> Expression:
        of = self._named(parts[0], "IS NULL")
        return Expression(CONDITION, logic.nullness(of.evaluate, negated=parts[1] is not None))

    def _calculation(self, parts: Sequence[Node]) -> Expression:
        first = self._numeric(parts[0], str(parts[1]))
        rest = [
            (numbers.calculation(str(operator)), self._numeric(node, str(operator)))
            for operator, node in zip(parts[1::2], parts[2::2], strict=True)
        ]

        def evaluate(get: Lookup) -> Operand:
            total = first(get)
            for calculate, operand in rest:  # no closure around the one before: there may be thousands
                total = calculate(total, operand(get))
            return total

        return Expression(NUMBER, evaluate)

    def _signed(self, parts: Sequence[Node]) -> Expression:
        sign, node = parts
        if sign == "-" and node is not None and not isinstance(node, str) and node.data == "exact":
            return self._number(node.children[0], lambda literal: numbers.exact(literal, negative=True))
        operand = self._numeric(node, str(sign))
        change = numbers.negative if sign == "-" else numbers.positive
        return Expression(NUMBER, lambda get: change(operand(get)))

    def _identifier(self, parts: Sequence[Node]) -> Expression:
        name = str(parts[0])
        if name.startswith("JMS") and name not in HEADERS and not name.startswith(_OURS):
            allowed = ", ".join(HEADERS)
            raise self._wrong(parts[0], f"JMS lets a selector name these headers, and not {name}: {allowed}")
        self.identifiers.add(name)
        return Expression(ANY, logic.named(name), name)

    def _number(self, token: Node, read: Callable[[str], Operand]) -> Expression:
        try:
            return Expression(NUMBER, logic.constant(read(str(token))))
        except ValueError as error:
            raise self._wrong(token, str(error)) from None

    def _named(self, node: Node, operator: str) -> Expression:
        found = self.build(node)
        if found.name is None:
            raise self._wrong(node, f"{operator} is for the name of a header or property, and this is {found.kind}")
        return found

    def _for_numbers(self, node: Node, operator: str) -> Expression:
        found = self.build(node)
        if found.kind not in (NUMBER, ANY):
            raise self._wrong(node, f"{operator} is for numbers, and this is {found.kind}")
        return found

    def _numeric(self, node: Node, operator: str) -> Evaluate:
        found = self._for_numbers(node, operator)
        if self._lenient and found.kind is ANY:
            return lambda get: numbers.read_number(found.evaluate(get))
        return found.evaluate

    def _compare(self, comparison: numbers.Comparison, left: Evaluate, right: Evaluate) -> Evaluate:
        return _of_two(numbers.lenient(comparison) if self._lenient else comparison, left, right)

    def _wrong(self, node: Node, problem: str) -> InvalidSelectorError:
        return invalid(self._text, position(node), problem)


def _of_two(operator: Callable[[Operand, Operand], Operand], left: Evaluate, right: Evaluate) -> Evaluate:
    def evaluate(get: Lookup) -> Operand:
        return operator(left(get), right(get))

    return evaluate


def _unquoted(token: Node) -> str:
    return str(token)[1:-1].replace("''", "'")


_ORDERS: Final = {"<": numbers.order(lt), "<=": numbers.order(le), ">": numbers.order(gt), ">=": numbers.order(ge)}
_COMPARISONS: Final = {**_ORDERS, "=": numbers.equality(negated=False), "<>": numbers.equality(negated=True)}
