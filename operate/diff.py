"""Which destinations two configurations treat differently, and how."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from redelivery.model.destinations import Destination, Queue, read_destination
from redelivery.model.errors import InvalidDestinationError
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.brokers.rules import DestinationRules

_SAMPLE = "x"
_OTHERS = "(all others)"


@dataclass(frozen=True, slots=True)
class Change:
    """One difference: ``before`` and ``after`` as the files spell it; "" where a side says nothing."""

    name: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.name}: {self.before or '(nothing)'} -> {self.after or '(nothing)'}"


@dataclass(frozen=True, slots=True)
class Difference:
    """``title``: the destination, or the pattern whose destinations change, compared by an example of it."""

    title: str
    example: Destination
    before: DestinationRules
    after: DestinationRules
    changes: tuple[Change, ...]

    def __str__(self) -> str:
        return "\n  ".join([self.title, *map(str, self.changes)])


def diff(before: BrokerPolicies, after: BrokerPolicies) -> tuple[Difference, ...]:
    """The destinations and patterns that either names, and all others, where the two differ."""
    found = []
    examples = {title: each for title in (*before.rules.names(), *after.rules.names()) if (each := example_of(title))}
    for title, example in {**examples, _OTHERS: Queue("any.other.destination")}.items():
        one, two = before.explain(example), after.explain(example)
        changes = tuple(_changes(one, two))
        if changes:
            found.append(Difference(title, example, one, two, changes))
    return tuple(found)


def is_pattern(title: str) -> bool:
    """Whether it stands for more than one destination."""
    return bool({"*", ">", "#"} & set(title.rpartition("://")[2].split("."))) or "," in title


def example_of(title: str) -> Destination | None:
    """A destination that a pattern matches; None where it is none of ours."""
    first = title.partition(",")[0]
    scheme, separator, name = first.rpartition("://")
    name = ".".join(_SAMPLE if word in ("*", ">", "#") else word for word in name.split("."))
    try:
        return read_destination(f"{scheme}://{name}" if separator else name)
    except InvalidDestinationError:
        return None


def _changes(one: DestinationRules, two: DestinationRules) -> Iterator[Change]:
    if one.summary != two.summary:
        yield Change("outcome", one.summary, two.summary)
    before = {each.name: each.value for each in one.settings}
    after = {each.name: each.value for each in two.settings}
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name):
            yield Change(name, before.get(name, ""), after.get(name, ""))
