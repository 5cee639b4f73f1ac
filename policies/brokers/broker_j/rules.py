"""Qpid Broker-J's rules: maximumDeliveryAttempts and the alternate binding of each queue, and context variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from redelivery.model.destinations import Destination
from redelivery.policies.brokers.broker_j.names import ROUTE_TO_ALTERNATE, written
from redelivery.policies.brokers.hosts import HostedRules
from redelivery.policies.brokers.rules import (
    DestinationRules,
    Lifetime,
    Matched,
    at_once,
    listed_delays,
    no_queue,
    strategy_to,
)
from redelivery.policies.checks import expression
from redelivery.policies.dead_letters import DeadLetterStrategy, DiscardingDeadLetterStrategy
from redelivery.policies.destinations.examples import sample_of
from redelivery.policies.destinations.patterns import REST
from redelivery.policies.files.expression_keys import keys_of
from redelivery.policies.files.places import NOWHERE, Place, Setting

_NOTES: Final = (
    "a closed or lost connection, and a closed link, count too, for messages that were only prefetched as well",
    "a dead letter does not say where it came from",
)


@dataclass(frozen=True, slots=True)
class BrokerJLevel:
    """The values that a queue, a rule for automatically created queues, or the context variables of a level set.

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
    """A ``nodeAutoCreationPolicy``: queues whose name the pattern matches as a whole are made with these settings.

    ``on_publish``: also by what is sent there, a dead letter for instance; False: by a consumer only.
    """

    pattern: str
    level: BrokerJLevel = BrokerJLevel()
    on_publish: bool = True


@dataclass(frozen=True, slots=True)
class BrokerJExchange:
    """An exchange of a virtual host. ``kind``: ``fanout``, ``direct``, ``topic`` or ``headers``.

    ``bindings``: what is bound to it, each with its binding key.
    """

    name: str
    kind: str
    bindings: tuple[tuple[str, str], ...] = ()

    def dead_letters(self) -> Iterator[str]:
        """Yield what gets a dead letter: it has no routing key where it was sent to a queue over AMQP 1.0."""
        for queue, key in self.bindings:
            if self.kind == "fanout" or (self.kind == "direct" and not key) or (self.kind == "topic" and key == "#"):
                yield queue


@dataclass(frozen=True, slots=True)
class BrokerJHost:
    """A virtual host; ``context``: its context variables, and those of its node where it has none."""

    name: str
    queues: tuple[BrokerJQueue, ...] = ()
    auto_creation: tuple[AutoCreation, ...] = ()
    context: BrokerJLevel = BrokerJLevel()
    exchanges: tuple[BrokerJExchange, ...] = ()

    def behind(self, target: str) -> tuple[str, ...]:
        """Return the queues that get what an alternate binding sends to ``target``."""
        if any(each.name == target for each in self.queues):
            return (target,)
        if any(rule.on_publish and expression(rule.pattern).fullmatch(target) for rule in self.auto_creation):
            return (target,)
        made = {each.name for each in self.queues}
        bound = (queue for each in self.exchanges if each.name == target for queue in each.dead_letters())
        return tuple(dict.fromkeys(queue for queue in bound if queue in made))


@dataclass(frozen=True, slots=True)
class BrokerJRules(HostedRules[BrokerJHost, BrokerJQueue]):
    """The contents of a ``config.json``, an initial configuration or a virtual host's file.

    ``default_host``: the virtual host of a client that names none. ``context``: the broker's context variables.
    ``lists_queues``: False: there may be others than its own.
    """

    hosts: tuple[BrokerJHost, ...] = ()
    default_host: str | None = None
    context: BrokerJLevel = BrokerJLevel()
    lists_queues: bool = field(default=True, compare=False)

    broker = "Qpid Broker-J"
    dialect = "qpid"
    makes_queues = False

    def levels_for(self, queue: str) -> tuple[tuple[str, BrokerJLevel], ...]:
        """List the levels of a queue with their titles, the nearest first; ``host/queue`` is that of a virtual host."""
        host, found = self._found(queue)
        levels: list[tuple[str, BrokerJLevel]] = []
        if isinstance(found, BrokerJQueue):
            levels += [(f"queue {found.name!r}", found.level), ("its context", found.context)]
        elif found is not None:
            levels.append((f"nodeAutoCreationPolicy {found.pattern!r}", found.level))
        if host is not None:
            levels.append((f"context of virtual host {host.name!r}", host.context))
        return (*levels, ("context of the broker", self.context))

    def maximum_for(self, queue: str) -> int | None:
        """Return after how many failed deliveries a message is given up; None for no limit."""
        return self._nearest(queue, "maximum_delivery_attempts") or None

    def alternate_for(self, queue: str) -> str | None:
        """Return the queue or exchange that gets what is given up; None where it is discarded."""
        return self._nearest(queue, "alternate") or None

    def unmade(self) -> tuple[str, ...]:
        """List the targets of alternate bindings behind which no queue stands."""
        found: dict[str, None] = {}
        for host in (each for each in self.hosts if each.queues and self.lists_queues):
            outer = (host.context, self.context)
            levels = [(each.level, each.context, *outer) for each in host.queues]
            for each in (*levels, *((rule.level, *outer) for rule in host.auto_creation), outer):
                target = next((level.alternate for level in each if level.alternate is not None), "")
                if target and "${" not in target and not host.behind(target):
                    found[target] = None
        return tuple(found)

    def rules_for(self, destination: Destination) -> DestinationRules:
        """Return what counts for one destination."""
        name = self._name(destination)
        levels, maximum = self.levels_for(name), self.maximum_for(name)
        target = self.alternate_for(name)
        reason = "" if target else "there is no alternate binding"
        notes: tuple[str, ...] = _NOTES
        if target and "${" in target:
            reason, target = f"the alternate binding {target!r} does not route", None
        elif target and target == self.hosts_of(name)[1]:
            reason, target = "it is its own alternate binding", None  # seen on 9.2.1
        elif target and self.lists_queues and not self._behind(target, name):
            notes = (no_queue(target), *notes)
        routed = self._nearest(name, "expiry_policy") == ROUTE_TO_ALTERNATE
        if routed:
            notes += ("an expired message with a time to live of its own expires in the alternate queue too",)
        return DestinationRules(
            broker=self.broker,
            destination=destination,
            counts="failures",
            maximum=maximum,
            delays=listed_delays(at_once, maximum),
            dead_letter=target,
            removed_because=reason,
            expired=target if routed else None,
            matched=tuple(Matched(title, level.place) for title, level in levels if level != BrokerJLevel()),
            settings=tuple({each.name: each for _, level in reversed(levels) for each in level.settings}.values()),
            notes=notes,
        )

    def letter_queues(self, destination: Destination) -> tuple[str, ...]:
        """List the queues that the alternate binding leads to; where the file has no queues of the virtual host, the
        one of that name.
        """
        target = self.rules_for(destination).dead_letter
        return () if target is None else self._behind(target, self._name(destination))

    def lifetime(self, key: str) -> Lifetime:
        """Return the bounds that the nearest levels set; what expires is removed but for ROUTE_TO_ALTERNATE."""
        name = sample_of(key).name
        routed = self._nearest(name, "expiry_policy") == ROUTE_TO_ALTERNATE
        least, most = self._nearest(name, "minimum_message_ttl"), self._nearest(name, "maximum_message_ttl")
        return Lifetime(routed, least or None, most or None)

    def expressions(self) -> Iterator[tuple[str, Mapping[str, object]]]:
        """List the queues that are made by a regular expression."""
        for host in self.hosts:
            for number, rule in enumerate(host.auto_creation, 1):
                title = f"nodeAutoCreationPolicy {rule.pattern!r} of virtual host {host.name!r}"
                yield title, {"pattern": rule.pattern, "asked as number": number, **written(rule.level)}

    def _expressions(self) -> Iterator[str]:
        return (rule.pattern for host in self.ordered_hosts[:1] for rule in host.auto_creation)

    def _strategy_of_others(self) -> DeadLetterStrategy:
        """As for a queue that nothing names; what a regular expression keeps for which there is no key is kept too."""
        usual = self._strategy(REST)
        unnamed = (each for each in self._expressions() if not keys_of(each, within=False).complete)
        kept = {rule.pattern: rule.level.alternate for host in self.ordered_hosts[:1] for rule in host.auto_creation}
        alternate = next((kept[each] for each in unnamed if kept[each]), None)
        return usual if alternate is None or usual != DiscardingDeadLetterStrategy() else strategy_to(alternate)

    def _behind(self, target: str, queue: str) -> tuple[str, ...]:
        host, _ = self._found(queue)
        return (target,) if host is None or not host.queues else host.behind(target)

    def _nearest(self, queue: str, field: str) -> Any:
        values = (getattr(level, field) for _, level in self.levels_for(queue))
        return next((each for each in values if each is not None), None)

    def _found(self, queue: str) -> tuple[BrokerJHost | None, BrokerJQueue | AutoCreation | None]:
        host, found = self.find(queue)
        if found is not None:
            return host, found
        hosts, short = self.hosts_of(queue)
        for each in hosts:
            for rule in each.auto_creation:
                if expression(rule.pattern).fullmatch(short):
                    return each, rule
        return host, None
