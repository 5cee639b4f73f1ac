"""Qpid Broker-J's rules: maximumDeliveryAttempts and the alternate binding of each queue, and context variables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from redelivery.model.destinations import Destination, Queue
from redelivery.policies.brokers.places import NOWHERE, Place, Setting
from redelivery.policies.brokers.rules import (
    DestinationRules,
    Matched,
    at_once,
    listed_delays,
    policy_at_once,
    separately,
    strategy_to,
    usable,
)
from redelivery.policies.checks import expression
from redelivery.policies.dead_letters import DeadLetterStrategy
from redelivery.policies.destinations.redelivery_map import RedeliveryPolicyMap
from redelivery.policies.destinations.strategy_map import DeadLetterStrategyMap
from redelivery.policies.redelivery import RedeliveryPolicy

DLQ_SUFFIX: Final = "_DLQ"
_REST: Final = ">"
_NOTES: Final = (
    "a closed or lost connection, and a closed link, count too, for messages that were only prefetched as well",
    "a dead letter does not say where it came from",
)


@dataclass(frozen=True, slots=True)
class BrokerJLevel:
    """What a queue, a rule for automatically created queues, or the context variables of a level set.

    ``maximum_delivery_attempts``: 0 for no limit. ``alternate``: the queue or exchange of its alternate binding; ``""``
    means that the level says that there is none. ``expiry_policy``: ``DELETE`` or ``ROUTE_TO_ALTERNATE``.
    ``maximum_message_ttl``, ``minimum_message_ttl``: seconds. None: not set.
    """

    maximum_delivery_attempts: int | None = None
    alternate: str | None = None
    expiry_policy: str | None = None
    maximum_message_ttl: float | None = None
    minimum_message_ttl: float | None = None
    place: Place = field(default=NOWHERE, compare=False)
    settings: tuple[Setting, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class BrokerJQueue:
    """A queue of a virtual host: what it sets, and its own context variables."""

    name: str
    level: BrokerJLevel = BrokerJLevel()
    context: BrokerJLevel = BrokerJLevel()


@dataclass(frozen=True, slots=True)
class AutoCreation:
    """A ``nodeAutoCreationPolicy``: queues whose name the pattern matches as a whole are made with these settings."""

    pattern: str
    level: BrokerJLevel = BrokerJLevel()


@dataclass(frozen=True, slots=True)
class BrokerJHost:
    """A virtual host; ``context``: its context variables, and those of its node where it has none."""

    name: str
    queues: tuple[BrokerJQueue, ...] = ()
    auto_creation: tuple[AutoCreation, ...] = ()
    context: BrokerJLevel = BrokerJLevel()


@dataclass(frozen=True, slots=True)
class BrokerJRules:
    """What a ``config.json``, an initial configuration or a virtual host's file says.

    ``default_host``: the virtual host of a client that names none. ``context``: the broker's context variables.
    """

    hosts: tuple[BrokerJHost, ...] = ()
    default_host: str | None = None
    context: BrokerJLevel = BrokerJLevel()

    @property
    def broker(self) -> str:
        """The broker's name."""
        return "Qpid Broker-J"

    @property
    def dialect(self) -> str:
        """What `redelivery.connect` calls it."""
        return "qpid"

    def levels_for(self, queue: str) -> tuple[tuple[str, BrokerJLevel], ...]:
        """The levels of a queue with their titles, the nearest first; ``host/queue`` says in which virtual host."""
        host, found = self._find(queue)
        levels: list[tuple[str, BrokerJLevel]] = []
        if isinstance(found, BrokerJQueue):
            levels += [(f"queue {found.name!r}", found.level), ("its context", found.context)]
        elif found is not None:
            levels.append((f"nodeAutoCreationPolicy {found.pattern!r}", found.level))
        if host is not None:
            levels.append((f"context of virtual host {host.name!r}", host.context))
        return (*levels, ("context of the broker", self.context))

    def maximum_for(self, queue: str) -> int | None:
        """After how many failed deliveries a message is given up; None for no limit."""
        values = (level.maximum_delivery_attempts for _, level in self.levels_for(queue))
        return next((each for each in values if each is not None), 0) or None

    def alternate_for(self, queue: str) -> str | None:
        """The queue or exchange that gets what is given up; None where it is discarded."""
        values = (level.alternate for _, level in self.levels_for(queue))
        return next((each for each in values if each is not None), "") or None

    def rules_for(self, destination: Destination) -> DestinationRules:
        """What counts for one destination."""
        levels, maximum = self.levels_for(destination.name), self.maximum_for(destination.name)
        target = self.alternate_for(destination.name)
        reason = "" if target else "there is no alternate binding"
        notes: tuple[str, ...] = _NOTES
        if target and "${" in target:
            reason, target = f"the alternate binding {target!r} does not route", None
        expiring = next((level.expiry_policy for _, level in levels if level.expiry_policy), None)
        if expiring == "ROUTE_TO_ALTERNATE":
            notes += ("an expired message with a time to live of its own expires in the alternate queue too",)
        return DestinationRules(
            broker=self.broker,
            destination=destination,
            counts="failures",
            maximum=maximum,
            delays=listed_delays(at_once, maximum),
            dead_letter=target,
            removed_because=reason,
            expired=target if expiring == "ROUTE_TO_ALTERNATE" else None,
            matched=tuple(Matched(title, level.place) for title, level in levels if level != BrokerJLevel()),
            settings=tuple({each.name: each for _, level in reversed(levels) for each in level.settings}.values()),
            notes=notes,
        )

    def redelivery_policies(self) -> RedeliveryPolicyMap:
        """Each queue's maximum as a client's policy; redelivered at once, as this broker does."""
        entries = {name: self._policy(name) for name in self.names()}
        return RedeliveryPolicyMap(usable(entries), default=self._policy(_REST))

    def dead_letter_strategies(self) -> DeadLetterStrategyMap:
        """Each queue's alternate binding as a client's strategy; discarded where there is none.

        So is what expires, but for the expiry policy ROUTE_TO_ALTERNATE.
        """
        entries = {name: self._strategy(name) for name in self.names()}
        return DeadLetterStrategyMap(usable({_REST: self._strategy(_REST), **entries}))

    def names(self) -> tuple[str, ...]:
        """The queues of all virtual hosts, those of the default one first."""
        return tuple(dict.fromkeys(queue.name for host in self._hosts() for queue in host.queues))

    def _hosts(self) -> list[BrokerJHost]:
        return sorted(self.hosts, key=lambda each: each.name != self.default_host)

    def _find(self, queue: str) -> tuple[BrokerJHost | None, BrokerJQueue | AutoCreation | None]:
        named, _, short = queue.rpartition("/")
        hosts = [each for each in self.hosts if each.name == named] if named else self._hosts()
        if not hosts:
            hosts, short = self._hosts(), queue
        for host in hosts:
            for each in host.queues:
                if each.name == short:
                    return host, each
        for host in hosts:
            for rule in host.auto_creation:
                if expression(rule.pattern).fullmatch(short):
                    return host, rule
        return (hosts[0] if hosts else None), None

    def _policy(self, queue: str) -> RedeliveryPolicy:
        return policy_at_once(self.maximum_for(queue))

    def _strategy(self, queue: str) -> DeadLetterStrategy:
        found = self.rules_for(Queue(queue))
        return separately(strategy_to(found.dead_letter), strategy_to(found.expired))
