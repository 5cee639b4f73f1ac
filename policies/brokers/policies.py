"""The value that is read of a broker's configuration."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from redelivery.model.destinations import Destination, Queue, Topic, destination
from redelivery.model.errors import InvalidDestinationError
from redelivery.policies.brokers.rules import Address, DestinationRules, Rules
from redelivery.policies.destinations.redelivery_map import RedeliveryPolicyMap
from redelivery.policies.destinations.strategy_map import DeadLetterStrategyMap
from redelivery.policies.files.places import Problem, Unread

_PLAIN: Final = re.compile(r"[^][^$*+?(){}|\\]*")
_ADDRESS: Final = f"{Address.scheme}:"
_JMS_NAMES: Mapping[str, type[Destination]] = {"jms.queue.": Queue, "jms.topic.": Topic}


@dataclass(frozen=True, slots=True)
class BrokerPolicies:
    """A broker's rules of redelivery and dead-lettering, as its configuration gives them.

    ``path``: the file, or the URL with its password masked. ``format``: one of `policies.brokers.formats.FORMATS`.
    ``rules``: the values that the file holds, as this broker calls them. Equal files have equal rules, wherever their
    settings stand.
    ``unread``: the parts of the file that were skipped, since they say nothing about redelivery or dead letters; what
    is nevertheless decisive, and not modelled, is in ``not_read``.
    ``problems``: what was not understood; always empty unless it was read with ``strict=False``.
    """

    path: str
    format: str
    rules: Rules
    unread: tuple[Unread, ...] = field(default=(), compare=False)
    problems: tuple[Problem, ...] = field(default=(), compare=False)

    @property
    def broker(self) -> str:
        """The broker's name."""
        return self.rules.broker

    @property
    def redelivery_policies(self) -> RedeliveryPolicyMap:
        """The client policies that mean the same; for `redelivery.connect` (``redelivery_policies=``)."""
        return self.rules.for_clients().redelivery_policies()

    @property
    def dead_letter_strategies(self) -> DeadLetterStrategyMap:
        """The client's dead-letter strategies that mean the same, by destination: ``.strategy_for("orders")``."""
        return self.rules.for_clients().dead_letter_strategies()

    @property
    def not_read(self) -> tuple[Unread, ...]:
        """The parts of the file that decide about redelivery, expiry or dead letters, and are not modelled here."""
        return tuple(each for each in self.unread if each.why)

    def explain(self, target: Destination | str) -> DestinationRules:
        """Say what happens to a message of ``target`` that keeps failing; ``str()`` of it is the explanation.

        A str without a scheme is a queue; ``jms.queue.orders`` and ``jms.topic.news`` are understood as well, and
        ``address:orders`` is an address of Artemis or HornetQ by its very name.

        Raises:
            InvalidDestinationError: the str is not a destination, or an address, which the broker does not have.
        """
        asked = named(target)
        is_address = isinstance(target, str) and target.startswith(tuple(_JMS_NAMES))
        if is_address and self.rules.address_of(asked) not in (None, target):
            asked = Address(str(target))  # of a broker that puts nothing before the names of queues
        if isinstance(asked, Address) and self.rules.address_of(asked) is None:
            raise InvalidDestinationError(f"{asked}: {self.broker} has no addresses; write queue://… or topic://…")
        rules = self.rules.rules_for(asked)
        not_read = tuple(each for each in self.not_read if _concerns(each, rules))
        return replace(rules, notes=(*rules.notes, *self._named_as_pattern(rules)), not_read=not_read)

    def _named_as_pattern(self, rules: DestinationRules) -> Iterator[str]:
        """Say that what looks like a pattern was taken as a name, and where the file has such a pattern."""
        name = rules.destination.name
        titles = {name, str(rules.destination)}
        of_file = (values.get("pattern") for _, values in self.rules.expressions())
        if not rules.destination.is_pattern and (_PLAIN.fullmatch(name) or name not in of_file):
            return
        entry = next((each for each in rules.matched for title in titles if repr(title) in each.title), None)
        if entry is not None:
            yield f"{name!r} was taken as a name, not as a pattern; the entry of that pattern is {entry}"
        else:
            yield f"{name!r} was taken as a name, not as a pattern: ask for a destination that it matches"


def _concerns(unread: Unread, rules: DestinationRules) -> bool:
    """Say whether it is about this destination, or about where its messages end."""
    if unread.part is not None:
        return any(each.place == unread.part for each in rules.matched)
    ends = (rules.dead_letter, rules.expired, *rules.dead_letter_queues)
    known = (rules.destination.name, *ends)
    names = {part for each in known if each for part in (each, *each.split("::"), each.rpartition("/")[2])}
    return not unread.names or any(each.removeprefix("jms.queue.") in names or each in names for each in unread.names)


def named(target: Destination | str) -> Destination:
    """Return a destination as `model.destinations.destination` does, and an address of the name behind ``address:``.

    HornetQ's names of addresses are understood as queues and topics. Raises InvalidDestinationError: the str is not a
    destination.
    """
    if isinstance(target, str):
        if target.startswith(_ADDRESS):
            return Address(target.removeprefix(_ADDRESS))
        for prefix, kind in _JMS_NAMES.items():
            if target.startswith(prefix):
                return kind(target.removeprefix(prefix))
    return destination(target)
