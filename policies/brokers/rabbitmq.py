"""RabbitMQ's rules: policies by regular expression and priority, and the arguments of queues."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from redelivery.model.destinations import Destination, Queue
from redelivery.policies.activemq.back_off import Random
from redelivery.policies.brokers.places import NOWHERE, Place, Setting
from redelivery.policies.brokers.rules import (
    OTHERS,
    DestinationRules,
    Matched,
    listed_delays,
    policy_at_once,
    strategy_to,
    usable,
)
from redelivery.policies.checks import expression
from redelivery.policies.dead_letters import DeadLetterStrategy
from redelivery.policies.destinations.redelivery_map import RedeliveryPolicyMap
from redelivery.policies.destinations.strategy_map import DeadLetterStrategyMap

QUORUM: Final = "quorum"
DEFAULT_DELIVERY_LIMIT: Final = 20  # of quorum queues, from 4.0 on
_REST: Final = ">"
_HOST: Final = "/"  # the virtual host that there always is
_APPLIES: Final = {"queues": ("classic", QUORUM), "classic_queues": ("classic",), "quorum_queues": (QUORUM,)}


@dataclass(frozen=True, slots=True)
class RabbitLevel:
    """What a policy or the arguments of a queue set; None where they say nothing.

    ``delivery_limit``: failures that are redelivered; -1 for no limit. ``message_ttl``: seconds.
    ``dead_letter_exchange``: "" is the default exchange, which routes to the queue named by the routing key.
    ``delayed_retry_type``, ``_min``, ``_max``: RabbitMQ 4.3's delays (seconds): the minimum times the count, at most
    the maximum.
    """

    dead_letter_exchange: str | None = None
    dead_letter_routing_key: str | None = None
    dead_letter_strategy: str | None = None
    delivery_limit: int | None = None
    message_ttl: float | None = None
    delayed_retry_type: str | None = None
    delayed_retry_min: float | None = None
    delayed_retry_max: float | None = None
    place: Place = field(default=NOWHERE, compare=False)
    settings: tuple[Setting, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class RabbitPolicy:
    """A policy; of those that match a queue the one of the highest ``priority`` counts, as a whole.

    ``operator``: an operator's policy, which counts beside the users' one.
    """

    name: str
    pattern: str
    level: RabbitLevel = RabbitLevel()
    virtual_host: str = "/"
    apply_to: str = "all"
    priority: int = 0
    operator: bool = False

    def applies(self, queue: str, kind: str) -> bool:
        """Whether it is about a queue of this name and type."""
        types = _APPLIES.get(self.apply_to, ("classic", QUORUM) if self.apply_to == "all" else ())
        return kind in types and expression(self.pattern).search(queue) is not None


@dataclass(frozen=True, slots=True)
class RabbitQueue:
    """A queue of the file. ``kind``: ``classic``, ``quorum`` or ``stream``; ``level``: its arguments."""

    name: str
    kind: str = "classic"
    level: RabbitLevel = RabbitLevel()
    virtual_host: str = "/"


@dataclass(frozen=True, slots=True)
class RabbitBinding:
    """A binding of a queue to an exchange."""

    exchange: str
    queue: str
    routing_key: str = ""
    virtual_host: str = "/"


@dataclass(frozen=True, slots=True)
class RabbitRules:
    """What an export of definitions, or a list of policies, says. ``version``: of the server that wrote it.

    Policies and bindings are about the queues of their own virtual host. A queue is named alone, which is that of the
    `default_host` where several have it, or as ``host/queue`` (``//orders`` for ``orders`` of the host ``/``).
    """

    policies: tuple[RabbitPolicy, ...] = ()
    queues: tuple[RabbitQueue, ...] = ()
    bindings: tuple[RabbitBinding, ...] = ()
    version: str | None = None

    @property
    def broker(self) -> str:
        """The broker's name."""
        return "RabbitMQ"

    @property
    def dialect(self) -> str:
        """What `redelivery.connect` calls it."""
        return "rabbitmq"

    @property
    def virtual_hosts(self) -> tuple[str, ...]:
        """The virtual hosts, in the order of the file."""
        found: tuple[RabbitPolicy | RabbitQueue | RabbitBinding, ...] = (*self.policies, *self.queues, *self.bindings)
        return tuple(dict.fromkeys(each.virtual_host for each in found))

    @property
    def default_host(self) -> str:
        """The virtual host of a queue that the file does not name: ``/`` if it says anything of it, else its first."""
        hosts = self.virtual_hosts
        return _HOST if _HOST in hosts or not hosts else hosts[0]

    def levels_for(self, queue: str) -> tuple[tuple[str, RabbitLevel], ...]:
        """What is about a queue, the first that sets something first: its arguments, its policy, the operator's."""
        found = self._queue(queue)
        where = "" if found.virtual_host == _HOST else f" of virtual host {found.virtual_host!r}"
        levels = [(f"arguments of queue {found.name!r}{where}", found.level)] if found.level != RabbitLevel() else []
        there = [each for each in self.policies if each.virtual_host == found.virtual_host]
        for operator in (False, True):
            matching = [each for each in there if each.operator == operator and each.applies(found.name, found.kind)]
            if matching:
                policy = max(matching, key=lambda each: each.priority)
                levels.append((f"{'operator policy' if operator else 'policy'} {policy.name!r}{where}", policy.level))
        return tuple(levels)

    def for_all(self, policy: RabbitPolicy) -> bool:
        """Whether a policy counts for every classic queue that the file does not list."""
        matches = all(expression(policy.pattern).search(each) is not None for each in OTHERS)
        counting = (level for _, level in self.levels_for(OTHERS[0]))
        return matches and policy.virtual_host == self.default_host and any(each is policy.level for each in counting)

    def limit_for(self, queue: str) -> int | None:
        """After how many failures a message is a dead letter; None where the broker has no limit."""
        if self._queue(queue).kind != QUORUM:
            return None
        limits = [level.delivery_limit for _, level in self.levels_for(queue) if level.delivery_limit is not None]
        default = -1 if self.version and self.version.startswith("3.") else DEFAULT_DELIVERY_LIMIT
        limit = min(limits) if limits else default
        return None if limit < 0 else limit + 1

    def rules_for(self, destination: Destination) -> DestinationRules:
        """What counts for one destination."""
        name = destination.name
        levels, queue = self.levels_for(name), self._queue(name)
        kind = queue.kind
        target, reason = self._target(queue, [level for _, level in levels])
        maximum = self.limit_for(name)
        retry = next((level for _, level in levels if level.delayed_retry_min is not None), RabbitLevel())

        def delay(count: int, _: Random | None) -> float:
            least = (retry.delayed_retry_min or 0.0) * count
            return least if retry.delayed_retry_max is None else min(least, retry.delayed_retry_max)

        return DestinationRules(
            broker=self.broker,
            destination=destination,
            counts="failures" if kind == QUORUM else "give-ups",
            maximum=maximum if kind == QUORUM else 1,
            delays=listed_delays(delay, maximum) if kind == QUORUM else (),
            dead_letter=target,
            removed_because=reason,
            expired=target,
            matched=tuple(Matched(title, level.place) for title, level in levels),
            settings=tuple({each.name: each for _, level in reversed(levels) for each in level.settings}.values()),
            notes=tuple(self._notes(kind, levels)),
        )

    def redelivery_policies(self) -> RedeliveryPolicyMap:
        """Each quorum queue's limit as a client's policy, redelivered at once; a client's default for the others."""
        quorum = [name for name in self.names() if self._queue(name).kind == QUORUM]
        entries = {name: policy_at_once(self.limit_for(name)) for name in quorum}
        return RedeliveryPolicyMap(usable(entries))

    def dead_letter_strategies(self) -> DeadLetterStrategyMap:
        """Each queue's dead-letter queue as a client's strategy; discarded where there is none, or it is not known.

        So are those of queues that the file does not list, but for policies that are for all of these.
        """
        for_others = any(self.for_all(each) for each in self.policies)
        entries = {_REST: self._strategy(OTHERS[0]) if for_others else strategy_to(None)}
        entries |= {name: self._strategy(name) for name in self.names()}
        return DeadLetterStrategyMap(usable(entries))

    def names(self) -> tuple[str, ...]:
        """The queues of the file."""
        return tuple(dict.fromkeys(each.name for each in self.queues))

    def _strategy(self, queue: str) -> DeadLetterStrategy:
        target = self.rules_for(Queue(queue)).dead_letter
        return strategy_to(None if target is None or target.startswith("exchange ") or target == queue else target)

    def _queue(self, name: str) -> RabbitQueue:
        host, separator, short = name.rpartition("/")
        named = bool(separator) and host in self.virtual_hosts
        if not named:
            host, short = self.default_host, name
        found = [each for each in self.queues if each.name == short and (not named or each.virtual_host == host)]
        found.sort(key=lambda each: each.virtual_host != host)
        return found[0] if found else RabbitQueue(short, virtual_host=host)

    def _target(self, queue: RabbitQueue, levels: list[RabbitLevel]) -> tuple[str | None, str]:
        exchange = next((each.dead_letter_exchange for each in levels if each.dead_letter_exchange is not None), None)
        key = next((each.dead_letter_routing_key for each in levels if each.dead_letter_routing_key is not None), None)
        if exchange is None:
            return None, "no dead-letter-exchange is set"
        key = key or queue.name
        if exchange == "":
            return key, ""
        bound = [each for each in self.bindings if (each.virtual_host, each.exchange) == (queue.virtual_host, exchange)]
        exact = [each.queue for each in bound if each.routing_key == key] or [each.queue for each in bound]
        return (exact[0] if len(set(exact)) == 1 else f"exchange {exchange!r}"), ""

    @staticmethod
    def _notes(kind: str, levels: tuple[tuple[str, RabbitLevel], ...]) -> Iterator[str]:
        if kind != QUORUM:
            yield "a classic queue counts nothing: what a client rejects without requeueing is a dead letter at once"
        if kind == QUORUM and all(level.delivery_limit is None for _, level in levels):
            yield f"no delivery-limit is set: {DEFAULT_DELIVERY_LIMIT} from RabbitMQ 4.0 on, none before"
        if any(level.message_ttl is not None for _, level in levels):
            yield "message-ttl dead-letters what nobody takes in time"
