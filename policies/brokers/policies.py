"""The value that is read of a broker's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from redelivery.model.destinations import Destination, Queue, Topic, destination
from redelivery.policies.brokers.rules import DestinationRules, Rules
from redelivery.policies.destinations.redelivery_map import RedeliveryPolicyMap
from redelivery.policies.destinations.strategy_map import DeadLetterStrategyMap
from redelivery.policies.files.places import Problem, Unread

_JMS_NAMES: Mapping[str, type[Destination]] = {"jms.queue.": Queue, "jms.topic.": Topic}


@dataclass(frozen=True, slots=True)
class BrokerPolicies:
    """A broker's rules of redelivery and dead-lettering, as its configuration gives them.

    ``path``: the file, or the URL with its password masked. ``format``: one of `policies.brokers.formats.FORMATS`.
    ``rules``: the values that the file holds, as this broker calls them. Equal files have equal rules, wherever their
    settings stand.
    ``unread``: the sections of the file that were skipped, since they say nothing about redelivery or dead letters.
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
        return self.rules.redelivery_policies()

    @property
    def dead_letter_strategies(self) -> DeadLetterStrategyMap:
        """The client's dead-letter strategies that mean the same, by destination: ``.strategy_for("orders")``."""
        return self.rules.dead_letter_strategies()

    def explain(self, target: Destination | str) -> DestinationRules:
        """Say what becomes of a message of this destination that keeps failing; ``str()`` of it is the explanation.

        A str without a scheme is a queue; ``jms.queue.orders`` and ``jms.topic.news`` are understood as well.

        Raises:
            InvalidDestinationError: the str is not a destination.
        """
        return self.rules.rules_for(named(target))


def named(target: Destination | str) -> Destination:
    """Return a destination as `model.destinations.destination` does, of HornetQ's names of addresses too.

    Raises:
        InvalidDestinationError: the str is not a destination.
    """
    if isinstance(target, str):
        for prefix, kind in _JMS_NAMES.items():
            if target.startswith(prefix):
                return kind(target.removeprefix(prefix))
    return destination(target)
