"""A selector that was read once, to be asked about many messages."""

from __future__ import annotations

from redelivery.model.selectors.building import Builder
from redelivery.model.selectors.logic import Lookup
from redelivery.model.selectors.parsing import parse_tree


class Selector:
    """A condition on a message's headers and properties (JMS 3.1 §3.8.1). Immutable; equal to one written alike.

    ``identifiers``: the names of headers and properties in it. ``wildcards``: how many `%` the LIKE with most of them
    has.
    """

    __slots__ = ("_evaluate", "identifiers", "lenient", "text", "wildcards")

    def __init__(self, text: str, *, lenient: bool = False) -> None:
        """Read it: at most 32,768 characters, nested at most 100 deep.

        ``lenient``: a property that is a string is compared as the number or boolean that it looks like, where the
        other operand is one: for protocols that carry strings only. Raises InvalidSelectorError: it is not a selector;
        the error shows where.
        """
        builder = Builder(text, lenient=lenient)
        self._evaluate = builder.condition(parse_tree(text))
        self.text = text
        self.lenient = lenient
        self.identifiers = frozenset(builder.identifiers)
        self.wildcards = builder.wildcards

    def matches(self, get: Lookup) -> bool:
        """Evaluate the selector on a message: True only where it is true, and not false or unknown.

        ``get``: the value of a header (``JMSPriority``) or property by its name, None where it is not set.
        """
        return self._evaluate(get) is True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Selector) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Selector({self.text!r})"
