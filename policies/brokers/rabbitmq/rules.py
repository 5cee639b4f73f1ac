"""The meaning of RabbitMQ's definitions for one queue."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import wraps
from itertools import chain
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeVar

from redelivery.model.destinations import Destination, Topic
from redelivery.model.errors import ConfigError
from redelivery.policies.brokers.rabbitmq.after import CIRCLE, NOWHERE, Stop
from redelivery.policies.brokers.rabbitmq.at_a_client import policies_of, strategies_of
from redelivery.policies.brokers.rabbitmq.effective import Layers, delays, is_at_least_once, merged
from redelivery.policies.brokers.rabbitmq.notes import QueueFacts, notes
from redelivery.policies.brokers.rabbitmq.routes import Exchanges, Key, Route
from redelivery.policies.brokers.rabbitmq.values import (
    CLASSIC,
    DEFAULT_DELIVERY_LIMIT,
    ENDLESS,
    QUORUM,
    STREAM,
    RabbitBinding,
    RabbitExchange,
    RabbitHost,
    RabbitLevel,
    RabbitPolicy,
    RabbitQueue,
)
from redelivery.policies.brokers.rules import OTHERS, DestinationRules, Lifetime, Matched, Rules
from redelivery.policies.checks import expression
from redelivery.policies.destinations.examples import sample_of
from redelivery.policies.destinations.patterns import REST
from redelivery.policies.destinations.redelivery_map import RedeliveryPolicyMap
from redelivery.policies.destinations.strategy_map import DeadLetterStrategyMap

P = ParamSpec("P")
T = TypeVar("T")
_HOST: Final = "/"  # the virtual host that there always is


def _once(method: Callable[Concatenate[RabbitRules, P], T]) -> Callable[Concatenate[RabbitRules, P], T]:
    """Remember what a method has answered, as rules never change."""

    @wraps(method)
    def remembering(rules: RabbitRules, /, *args: P.args, **kwargs: P.kwargs) -> T:
        asked = (method.__name__, *args)
        if asked not in rules._known:
            rules._known[asked] = method(rules, *args, **kwargs)
        return rules._known[asked]  # type: ignore[no-any-return]  # what this method gave

    return remembering


@dataclass(frozen=True, slots=True)
class RabbitRules(Rules):
    """The contents of an export of definitions, or of a list of policies. ``version``: of the server that wrote it.

    ``exchanges``: None where the file does not list them, as a list of policies does not; ``hosts``: the virtual hosts
    that it describes. Policies and bindings are about the queues of their own virtual host. A queue is named alone,
    which is that of the `default_host` where several have it, or as ``host/queue`` (``//orders`` for ``orders`` of the
    host ``/``).
    """

    policies: tuple[RabbitPolicy, ...] = ()
    queues: tuple[RabbitQueue, ...] = ()
    bindings: tuple[RabbitBinding, ...] = ()
    version: str | None = None
    exchanges: tuple[RabbitExchange, ...] | None = None
    hosts: tuple[RabbitHost, ...] = ()
    _known: dict[object, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    broker = "RabbitMQ"
    dialect = "rabbitmq"
    of_queues = True

    @property
    @_once
    def virtual_hosts(self) -> tuple[str, ...]:
        """The virtual hosts, in the order of the file; those of which it has nothing but the name last."""
        named = (each.virtual_host for each in self.exchanges or ())
        return tuple(dict.fromkeys([*self._used_hosts, *named, *(each.name for each in self.hosts)]))

    @property
    def default_host(self) -> str:
        """The virtual host of a queue that the file does not name: ``/`` if it says anything of it, else its first."""
        hosts = self._used_hosts or self.virtual_hosts
        return _HOST if _HOST in hosts or not hosts else hosts[0]

    def levels_for(self, queue: str) -> tuple[tuple[str, RabbitLevel], ...]:
        """List what is about a queue, what sets something first: its arguments, its policy, the operator's policy."""
        return self._layers(self._queue(queue)).all

    def for_all(self, policy: RabbitPolicy) -> bool:
        """Say whether a policy counts for every queue that the file does not list."""
        matches = all(expression(policy.pattern).search(each) is not None for each in OTHERS)
        counting = (level for _, level in self.levels_for(OTHERS[0]))
        return matches and policy.virtual_host == self.default_host and any(each is policy.level for each in counting)

    def limit_for(self, queue: str) -> int | None:
        """Return after how many failures a message is a dead letter; None where the broker has no limit."""
        found = self._queue(queue)
        return self._limit(self._effective(found)) if found.kind == QUORUM else None

    def rules_for(self, destination: Destination) -> DestinationRules:
        """Return what counts for one destination."""
        queue = self._queue(OTHERS[0] if isinstance(destination, Topic) else destination.name)
        return self._rules_of(destination, queue, listed=queue in self._by_name.get(queue.name, ()))

    def _rules_of(self, destination: Destination, queue: RabbitQueue, *, listed: bool) -> DestinationRules:
        layers, level, quorum = self._layers(queue), self._effective(queue), queue.kind == QUORUM
        stop = self._stop(queue)
        target, reason = stop.route.text(stop.exchange or ""), stop.route.lost
        kept = is_at_least_once(queue, level) and bool(reason)
        if reason:
            reason += ": dead letters stay in the queue" if kept else ": dead letters are lost"
        if stop.exchange is None:
            target, reason = None, "no dead-letter-exchange is set"
        if queue.kind == STREAM:
            target, reason, kept = None, "a stream keeps each message, whatever becomes of it", True
        maximum = self._limit(level) if quorum else 1
        facts = QueueFacts(
            queue=queue,
            listed=listed,
            default_kind=self._default_kind(queue.virtual_host),
            version=self._version,
            level=level,
            policies=tuple(each for each in self.policies if each.virtual_host == queue.virtual_host),
            stop=stop,
            stop_at=lambda name: self._stop(self._queue_of(name, queue.virtual_host)),
            otherwise=lambda kind: self._rules_of(destination, replace(queue, kind=kind), listed=True).summary,
            makes=self._made(queue.virtual_host),
            ways=(self._by_name_of(queue, level), *self._ways(queue, level)),
        )
        return DestinationRules(
            broker=self.broker,
            destination=destination,
            counts="failures" if quorum else "give-ups",
            maximum=maximum,
            delays=delays(level, maximum, self._version) if quorum else (),
            dead_letter=target,
            removed_because=reason,
            expired=target,
            matched=tuple(Matched(title, each.place) for title, each in layers.all),
            settings=level.settings,
            notes=tuple(notes(facts)),
            kept=kept,
            several=stop.route.queues if target is not None else (),
        )

    def redelivery_policies(self) -> RedeliveryPolicyMap:
        """Return each quorum queue's limit as a client's policy, redelivered at once; a client's default for others."""
        return policies_of(self)

    def dead_letter_strategies(self) -> DeadLetterStrategyMap:
        """Return each queue's dead-letter queue as a client's strategy; discarded where there is none.

        Where they are several, or the file does not say which, the broker does it (`BrokerDeadLetterStrategy`); so it
        does for queues that the file does not list, where a policy is for some that no key can name.
        """
        return strategies_of(self)

    def names(self) -> tuple[str, ...]:
        """List the queues of the file."""
        return tuple(dict.fromkeys(each.name for each in self.queues))

    def unmade(self) -> tuple[str, ...]:
        """List the queues and exchanges of dead letters that lead to no queue of the file."""
        own = [RabbitQueue(OTHERS[0], QUORUM, e.level, e.virtual_host) for e in self.policies if e.level.names_a_key]
        stops = ((self._stop(each), self._made(each.virtual_host)) for each in (*self.queues, *own))
        return tuple(dict.fromkeys(name for stop, there in stops for name in stop.unmade(there)))

    def lifetime(self, key: str) -> Lifetime:
        """Return the shortest message-ttl that anything gives; what expires is a dead letter."""
        given = [each.message_ttl for _, each in self.levels_for(sample_of(key).name) if each.message_ttl is not None]
        unlisted = key == REST and not any(self.for_all(each) for each in self.policies)
        return Lifetime(True, most=None if unlisted else min(given, default=None))

    def queues_by_host(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """List the virtual hosts with their queues, the default one first."""
        hosts = sorted(self.virtual_hosts, key=lambda each: each != self.default_host)
        return tuple((host, tuple(each.name for each in self.queues if each.virtual_host == host)) for host in hosts)

    def for_host(self, name: str | None) -> Self:
        """See Rules. Those of one virtual host alone are of whichever they are asked for: it can be imported as any."""
        if len(self.virtual_hosts) < 2:
            return self
        host = self.default_host if name is None else name
        if host not in self.virtual_hosts:
            raise ConfigError(
                f"the file has no virtual host {host!r}: it has {', '.join(map(repr, self.virtual_hosts))}"
            )
        kept: dict[str, Any] = {
            part: tuple(each for each in getattr(self, part) if each.virtual_host == host)
            for part in ("policies", "queues", "bindings", *(("exchanges",) if self.exchanges else ()))
        }
        return replace(self, **kept, hosts=tuple(each for each in self.hosts if each.name == host))

    def expressions(self) -> Iterator[tuple[str, Mapping[str, object]]]:
        """List the policies, which are for the queues that a regular expression matches."""
        for each in self.policies:
            where = "" if each.virtual_host == _HOST else f" of virtual host {each.virtual_host!r}"
            about = {"pattern": each.pattern, "apply-to": each.apply_to, "priority": each.priority}
            yield each.title + where, {**about, **each.definition}

    def of_version(self, version: str) -> Self:
        """Return the rules as a broker of this version obeys them, where the file does not say of which it is."""
        return replace(self, version=version) if self.version is None else self

    def kind_of(self, queue: str) -> str:
        """Return the type of a queue; of one that the file does not list the default of its virtual host."""
        return self._queue(queue).kind

    @property
    @_once
    def _used_hosts(self) -> tuple[str, ...]:
        said = chain[RabbitPolicy | RabbitQueue | RabbitBinding](self.policies, self.queues, self.bindings)
        return tuple(dict.fromkeys(each.virtual_host for each in said))

    @property
    def _version(self) -> tuple[int, ...]:
        """``(4, 0)``; empty where it is not known."""
        words = (self.version or "").split(".")[:2]
        return tuple(map(int, words)) if all(each.isdecimal() for each in words) else ()

    @property
    @_once
    def _by_name(self) -> dict[str, tuple[RabbitQueue, ...]]:
        found: dict[str, tuple[RabbitQueue, ...]] = {}
        for each in self.queues:
            found[each.name] = (*found.get(each.name, ()), each)
        return found

    @_once
    def _names_of(self, host: str) -> frozenset[str]:
        return frozenset(each.name for each in self.queues if each.virtual_host == host)

    def _default_kind(self, host: str) -> str | None:
        return next((each.default_kind for each in self.hosts if each.name == host), None)

    def _queue(self, name: str) -> RabbitQueue:
        host, separator, short = name.rpartition("/")
        named = bool(separator) and host in self.virtual_hosts
        if not named:
            host, short = self.default_host, name
        found = [each for each in self._by_name.get(short, ()) if not named or each.virtual_host == host]
        found.sort(key=lambda each: each.virtual_host != host)
        return found[0] if found else RabbitQueue(short, self._default_kind(host) or CLASSIC, virtual_host=host)

    def _queue_of(self, name: str, host: str) -> RabbitQueue:
        found = (each for each in self._by_name.get(name, ()) if each.virtual_host == host)
        return next(found, RabbitQueue(name, self._default_kind(host) or CLASSIC, virtual_host=host))

    @_once
    def _layers(self, queue: RabbitQueue) -> Layers:
        where = "" if queue.virtual_host == _HOST else f" of virtual host {queue.virtual_host!r}"
        argued = (f"arguments of queue {queue.name!r}{where}", queue.level) if queue.level != RabbitLevel() else None
        there = [each for each in self.policies if each.virtual_host == queue.virtual_host]
        matching = [each for each in there if each.applies(queue.name, queue.kind)]
        highest = [
            max((each for each in matching if each.operator == operator), key=lambda each: each.priority, default=None)
            for operator in (False, True)
        ]
        policy, operators = (None if each is None else (each.title + where, each.level) for each in highest)
        return Layers(argued, policy, operators)

    def _effective(self, queue: RabbitQueue) -> RabbitLevel:
        return merged(self._layers(queue), queue.kind, major=self._version[0] if self._version else None)

    def _limit(self, level: RabbitLevel) -> int | None:
        default = -1 if self._version and self._version[0] < 4 else DEFAULT_DELIVERY_LIMIT
        limit = default if level.delivery_limit is None else level.delivery_limit
        return limit + 1 if 0 <= limit < ENDLESS else None

    def _made(self, host: str) -> frozenset[str] | None:
        """Return the queues that the file makes there; None where it lists none, so that others may make them."""
        return self._names_of(host) if self.queues else None

    @_once
    def _exchanges(self, host: str) -> Exchanges:
        listed = None if self.exchanges is None else [each for each in self.exchanges if each.virtual_host == host]
        bindings = [each for each in self.bindings if each.virtual_host == host]
        policies = [each for each in self.policies if each.virtual_host == host and each.level.alternate_exchange]
        policies.sort(key=lambda each: each.priority)
        alternates = {
            exchange.name: policy.level.alternate_exchange or ""
            for policy in policies
            for exchange in listed or ()
            if policy.applies_to_exchange(exchange.name)
        }
        return Exchanges(listed, bindings, alternates)

    @_once
    def _stop(self, queue: RabbitQueue) -> Stop:
        level = self._effective(queue)
        route = NOWHERE
        if level.dead_letter_exchange is not None:
            route = self._route(queue, level)
        drops = level.overflow in (None, "drop-head") and level.max_length is not None
        most = level.max_length if drops and level.dead_letter_exchange is None else None
        return Stop(queue.name, level.message_ttl, level.expires, most, level.dead_letter_exchange, route)

    def _route(self, queue: RabbitQueue, level: RabbitLevel) -> Route:
        """Say where dead letters go of what is sent to the queue, or, if these are lost, of what comes to it else."""
        _, _, route = self._by_name_of(queue, level)
        if route.lost and level.dead_letter_routing_key is None:
            found = [each for _, _, each in self._ways(queue, level) if not each.lost]
            if found:
                queues = dict.fromkeys(name for each in found for name in each.queues)
                sure = tuple(queues) if len(found) == 1 else ()
                maybe = [*(() if sure else queues), *(name for each in found for name in each.maybe)]
                return Route(sure, tuple(dict.fromkeys(maybe)), unknown=any(each.unknown for each in found))
        counted = queue.kind == QUORUM
        if counted and queue.name in route.queues:
            others = tuple(each for each in route.queues if each != queue.name)
            lost = "" if others or route.maybe else f"it would come back to the queue itself, but {CIRCLE}"
            return replace(route, queues=others, lost=lost)
        return route

    def _by_name_of(self, queue: RabbitQueue, level: RabbitLevel) -> tuple[str, Key, Route]:
        """Return the same of what is sent to the queue itself, by the exchange ``""``."""
        key = Key(queue.name if level.dead_letter_routing_key is None else level.dead_letter_routing_key)
        return "", key, self._led(level.dead_letter_exchange or "", key, queue)

    def _led(self, exchange: str, key: Key, queue: RabbitQueue) -> Route:
        host = queue.virtual_host
        if exchange == "" and self.exchanges is not None and not key.pattern and key.text not in self._names_of(host):
            return Route(lost=f"no queue {key.text!r} is there", unmade=key.text)
        return self._exchanges(host).route(exchange, key)

    def _ways(self, queue: RabbitQueue, level: RabbitLevel) -> Iterable[tuple[str, Key, Route]]:
        """List where the dead letters of what comes from an exchange go: by its own routing key, where none is set."""
        if level.dead_letter_exchange is None or level.dead_letter_routing_key is not None:
            return
        for exchange, key in self._exchanges(queue.virtual_host).keys_to(queue.name):
            yield exchange, key, self._led(level.dead_letter_exchange, key, queue)
