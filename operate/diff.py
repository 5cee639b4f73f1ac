"""Finds which destinations two configurations treat differently, and how."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Final

from redelivery.model.destinations import Destination, Queue, Topic
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.brokers.rules import DestinationRules, Rules
from redelivery.policies.destinations.examples import OTHER, examples_by_title, examples_of
from redelivery.policies.destinations.overlaps import is_pattern, overlaps

_OTHERS: Final = "(all others)"
_OTHER_TOPICS: Final = "(all other topics)"


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
    """``title``: the destination, or the pattern whose destinations change, compared by an example of it.

    ``example``, ``before`` and ``after`` are None for what is compared as it stands in the files: what applies by a
    regular expression (RabbitMQ's policies, Broker-J's nodeAutoCreationPolicies), and Artemis' address-settings for
    names that no destination of ours can have.
    """

    title: str
    example: Destination | None
    before: DestinationRules | None
    after: DestinationRules | None
    changes: tuple[Change, ...]

    def __str__(self) -> str:
        such = f", such as {self.example}" if self.example and is_pattern(self.title) else ""
        return "\n  ".join([self.title + such, *map(str, self.changes)])


def diff(before: BrokerPolicies, after: BrokerPolicies) -> tuple[Difference, ...]:
    """Compare the destinations and patterns that either names, and all others, where the two differ.

    A pattern is compared by examples of each depth: ``orders.>`` by ``orders``, ``orders.x`` and ``orders.x.x``. Those
    that change alike are one difference.
    """
    titles = dict.fromkeys([*before.rules.names(), *after.rules.names()])
    examples = examples_by_title(titles)
    owned = {each for of_title in examples.values() for each in of_title}
    compared = _Comparison(before, after, titles)
    found = {title: compared.of(title, each) for title, each in examples.items()}
    for title, parents in overlaps(titles).items():
        if title not in titles:
            alike = {kind for parent in parents for kind in found[parent]}
            unowned = [each for each in examples_of(title, titles) if each not in owned]
            kinds = compared.of(title, unowned)
            found[title] = {kind: each for kind, each in kinds.items() if kind not in alike}
    others = dict.fromkeys([*_in_hosts(before.rules), *_in_hosts(after.rules)])
    for title in others:
        found[title] = compared.of(title, [Queue(title.replace(_OTHERS, OTHER))])
    found[_OTHERS] = compared.of(_OTHERS, [Queue(OTHER)])
    topics = compared.of(_OTHER_TOPICS, [Topic(OTHER)])
    found[_OTHER_TOPICS] = {kind: each for kind, each in topics.items() if kind not in found[_OTHERS]}
    of_expressions = _compared_expressions(_expressions(before.rules), _expressions(after.rules))
    return (*(each for of_title in found.values() for each in of_title.values()), *of_expressions)


class _Comparison:
    """Compares examples, and knows which changes are alike but for the example's own name.

    A name such as ``x`` can stand in a value of the file, too. So each example has a twin: the same with other words,
    which stand nowhere else, in place of those that were made up. Where the twins' changes are alike, so are theirs.
    """

    def __init__(self, before: BrokerPolicies, after: BrokerPolicies, titles: Iterable[str]) -> None:
        self._before, self._after = before, after
        self._literals = {word for each in titles for word in each.rpartition("://")[2].split(".")}
        values = f"{before.rules!r} {after.rules!r}"
        self._word = next(each for each in (f"q{number}z" for number in count()) if each not in values)

    def of(self, title: str, examples: Iterable[Destination]) -> dict[object, Difference]:
        """Return the first example of each kind of change, by that kind."""
        found: dict[object, Difference] = {}
        for example in examples:
            one, two = self._before.explain(example), self._after.explain(example)
            changes = tuple(_changes(one, two))
            if changes:
                found.setdefault(self._kind(example, changes), Difference(title, example, one, two, changes))
        return found

    def _kind(self, example: Destination, changes: tuple[Change, ...]) -> object:
        twin = self._twin(example)
        alike = tuple(_changes(self._before.explain(twin), self._after.explain(twin)))
        if [each.name for each in alike] != [each.name for each in changes]:
            return changes  # a regular expression tells the two apart
        name = twin.name
        return tuple((each.name, each.before.replace(name, "\0"), each.after.replace(name, "\0")) for each in alike)

    def _twin(self, example: Destination) -> Destination:
        words = example.name.split(".")
        return type(example)(".".join(each if each in self._literals else self._word for each in words))


def _changes(one: DestinationRules, two: DestinationRules) -> Iterator[Change]:
    if one.summary != two.summary:
        yield Change("outcome", one.summary, two.summary)
    before = {each.name: each.value for each in one.settings}
    after = {each.name: each.value for each in two.settings}
    yield from _changed(before, after)
    if one.broker == two.broker:
        yield from (Change("note", each, "") for each in one.notes if each not in two.notes)
        yield from (Change("note", "", each) for each in two.notes if each not in one.notes)
        unread = [{f"{each.name}: {each.why}": None for each in side.not_read} for side in (one, two)]
        yield from (Change("not read", each, "") for each in unread[0] if each not in unread[1])
        yield from (Change("not read", "", each) for each in unread[1] if each not in unread[0])


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Change]:
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name):
            yield Change(name, before.get(name, ""), after.get(name, ""))


def _in_hosts(rules: Rules) -> Iterator[str]:
    """Iterate over ``host/queue`` for what is in one of several virtual hosts, and for all others there."""
    hosts = rules.queues_by_host()
    for host, queues in hosts if len(hosts) > 1 else ():
        yield from (f"{host}/{queue}" for queue in (*queues, _OTHERS))


def _expressions(rules: Rules) -> dict[str, dict[str, str]]:
    """Return what no destination of ours stands for: its values by its title, which is made unique."""
    found: dict[str, dict[str, str]] = {}
    for title, values in rules.expressions():
        number, unique = 1, title
        while unique in found:
            number += 1
            unique = f"{title} ({number})"
        found[unique] = {name: str(value) for name, value in values.items()}
    return found


def _compared_expressions(
    before: Mapping[str, Mapping[str, str]], after: Mapping[str, Mapping[str, str]]
) -> Iterator[Difference]:
    for title in dict.fromkeys([*before, *after]):
        changes = tuple(_changed(before.get(title, {}), after.get(title, {})))
        if changes:
            yield Difference(title, None, None, None, changes)
