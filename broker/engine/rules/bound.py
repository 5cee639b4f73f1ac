"""The queues that Artemis' and HornetQ's addresses have by their file: which of them a message reaches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from redelivery.model.selectors.selector import Selector
from redelivery.model.values import Value
from redelivery.policies.brokers.artemis.bound import BoundQueue
from redelivery.policies.brokers.artemis.rules import ArtemisRules

QUALIFIED: Final = "::"
Values: TypeAlias = Callable[[str], Value]
Exists: TypeAlias = Callable[[str], bool]


class BoundQueues:
    """The queues of one file, in their order; a queue of the address' own name has that, another one both."""

    def __init__(self, rules: ArtemisRules) -> None:
        self._in_turn = rules.dialect == "artemis"  # in HornetQ each queue of an address gets what is sent there
        self._filters = {each.filter: Selector(each.filter) for each in rules.queues if each.filter}
        self._on: dict[str, list[BoundQueue]] = {}
        self._turns: Counter[str] = Counter()
        self._second: set[str] = set()
        for each in rules.queues:
            self._on.setdefault(each.address, []).append(each)

    def named(self, name: str) -> str | None:
        """The place of the queue of that name, or of the first ANYCAST one of the address; None: the file has none."""
        for queues in self._on.values():
            for each in queues:
                if each.name == name:
                    return place_of(each)
        return next((place_of(each) for each in self._on.get(name, ()) if self._is_anycast(each)), None)

    def add(self, address: str) -> None:
        """Add the queue of the address' own name that a client has made, beside those that the address has."""
        if address in self._on and all(each.name != address for each in self._on[address]):
            self._second.add(address)

    def is_added(self, address: str) -> bool:
        """Check whether a client has made that."""
        return address in self._second

    def reached(self, address: str, values: Values, exists: Exists, *, every: bool) -> Sequence[str]:
        """The places of a message at an address; none: the file makes no queue there that takes it.

        Of its ANYCAST queues they are one, in turn. ``every``: its MULTICAST queues too; else they are meant only where
        there is no other one. ``exists`` says whether there is a queue of a name.
        """
        found = [each for each in self._on.get(address, ()) if self._takes(each, values)]
        anycast = [place_of(each) for each in found if self._is_anycast(each)]
        all_of_them = [place_of(each) for each in found if not self._is_anycast(each)]
        if address in self._second or (found and exists(address) and address not in (*anycast, *all_of_them)):
            anycast.append(address)  # of who consumes or sends by the address' name as a queue's
        if not anycast:
            return all_of_them
        self._turns[address] += 1
        one = anycast[(self._turns[address] - 1) % len(anycast)]
        return [*(all_of_them if every else ()), one]

    def of_topic(self, address: str, values: Values) -> Iterator[str]:
        """The places of what is published there: the MULTICAST queues."""
        for each in self._on.get(address, ()):
            if each.routing == "multicast" and self._takes(each, values):
                yield place_of(each)

    def _is_anycast(self, queue: BoundQueue) -> bool:
        return self._in_turn and queue.routing == "anycast"

    def _takes(self, queue: BoundQueue, values: Values) -> bool:
        condition = self._filters.get(queue.filter or "")
        return condition is None or condition.matches(values)


def place_of(queue: BoundQueue) -> str:
    """The queue's name in the engine."""
    return queue.name if queue.name == queue.address else f"{queue.address}{QUALIFIED}{queue.name}"
