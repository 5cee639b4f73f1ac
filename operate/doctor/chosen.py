"""Chooses the queues to look at: those that are asked for, those that the file names, and where dead letters go."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final

from redelivery.model.destinations import Destination, Queue
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.dead_letters import DEFAULT_DEAD_LETTER_QUEUE
from redelivery.policies.destinations.examples import examples_of
from redelivery.policies.destinations.overlaps import is_pattern

MOST: Final = 200
"""Queues that are looked at, and addresses whose settings a broker is asked for."""
_NO_QUEUES: Final = "topic://"  # where dead letters can go too
_OTHERS: Final = (Queue("any.other.queue"), Queue("one.more.queue"))


@dataclass(frozen=True, slots=True)
class ChosenQueues:
    """``queues``: names, 200 at most, and ``more`` than these. ``dead_letters``: of these, or of their addresses, those
    that get dead letters or expired messages; ``targets``: those of dead letters as the rules name them.
    """

    queues: tuple[str, ...]
    more: int
    dead_letters: frozenset[str]
    targets: tuple[str, ...]


def choose(rules: BrokerPolicies | None, queues: tuple[Destination, ...]) -> ChosenQueues:
    """The queues of these, of the file, and of the dead letters of both."""
    targets = [] if rules is None else list(dict.fromkeys(_targets(rules, queues)))
    dead = [DEFAULT_DEAD_LETTER_QUEUE, *(each.rpartition("::")[2] for each in targets)]
    asked = [each.name for each in queues if isinstance(each, Queue)]
    names = list(dict.fromkeys([*asked, *sorted(dead), *_named(rules)]))
    ends = () if rules is None else _ends(rules, queues)
    return ChosenQueues(tuple(names[:MOST]), len(names[MOST:]), frozenset([*dead, *ends]), tuple(targets))


def _named(rules: BrokerPolicies | None) -> Iterator[str]:
    for title in () if rules is None else rules.rules.names():
        if not is_pattern(title):
            yield from (each.name for each in examples_of(title, ()) if isinstance(each, Queue))


def _ends(rules: BrokerPolicies, queues: tuple[Destination, ...]) -> Iterator[str]:
    """Iterate over the addresses whose queues are made for the messages of each origin, and the expiry queues."""
    for each in (*queues, *chain.from_iterable(examples_of(title, ()) for title in rules.rules.names()), *_OTHERS):
        found = rules.explain(each)
        targets = [*found.dead_letter_queues, *([found.expired] if found.expired else [])]
        yield from (target.partition("::")[0] for target in targets if "::" in target)
        yield from (target for target in targets[len(found.dead_letter_queues) :] if "::" not in target)


def _targets(rules: BrokerPolicies, queues: tuple[Destination, ...]) -> Iterator[str]:
    """The dead-letter queues: of a pattern only one that all its destinations share, as the others may not exist."""
    alike: list[tuple[Destination, ...]] = [(each,) for each in queues]
    for title in rules.rules.names():
        one, other = examples_of(title, ()), examples_of(title, ("x",))
        alike += [(one[-1], other[-1])] if one else []
    for examples in (*alike, _OTHERS):
        found = {rules.explain(each).dead_letter_queues for each in examples}
        targets = found.pop()
        if not found:
            yield from (each for each in targets if not each.startswith(_NO_QUEUES))
