"""Rules of brokers with virtual hosts, that count failures, and of whose levels the nearest counts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Generic, Protocol, Self, TypeVar

from redelivery.model.destinations import Destination, Queue, Topic
from redelivery.policies.brokers.rules import Rules, policy_at_once, separately, strategy_to
from redelivery.policies.dead_letters import DeadLetterStrategy
from redelivery.policies.destinations.examples import sample_of
from redelivery.policies.destinations.overlaps import is_exact, usable
from redelivery.policies.destinations.patterns import REST
from redelivery.policies.destinations.redelivery_map import RedeliveryPolicyMap
from redelivery.policies.destinations.strategy_map import DeadLetterStrategyMap
from redelivery.policies.files.expression_keys import keys_of
from redelivery.policies.redelivery import RedeliveryPolicy


class Named(Protocol):
    """Something that has a name in a file."""

    @property
    def name(self) -> str: ...  # noqa: D102  # the class says it


class Host(Named, Protocol):
    """A virtual host and its queues."""

    @property
    def queues(self) -> tuple[Any, ...]: ...  # noqa: D102  # the class says it


H = TypeVar("H", bound=Host)
Q = TypeVar("Q", bound=Named)


class HostedRules(Rules, Generic[H, Q]):
    """Rules by virtual host. ``default_host``: that of a client that names none, and of a queue that is named alone."""

    __slots__ = ()
    of_queues = True

    @property
    @abstractmethod
    def hosts(self) -> tuple[H, ...]: ...  # noqa: D102  # the class says it

    @property
    @abstractmethod
    def default_host(self) -> str | None: ...  # noqa: D102  # the class says it

    @abstractmethod
    def maximum_for(self, queue: str) -> int | None:
        """Return after how many failures a message is given up; None for no limit."""

    @property
    def ordered_hosts(self) -> list[H]:
        """The virtual hosts, the default one first."""
        return sorted(self.hosts, key=lambda each: each.name != self.default_host)

    def hosts_of(self, queue: str) -> tuple[list[H], str]:
        """Return the virtual hosts where a queue may be, and its name there; ``host/queue`` says in which it is."""
        named, _, short = queue.rpartition("/")
        found = [each for each in self.hosts if each.name == named]
        return (found, short) if named and found else (self.ordered_hosts, queue if named else short)

    def find(self, queue: str) -> tuple[H | None, Q | None]:
        """Return a queue and its virtual host; the first one where it could be if no file names it."""
        hosts, short = self.hosts_of(queue)
        for host in hosts:
            for each in host.queues:
                if each.name == short:
                    return host, each
        return (hosts[0] if hosts else None), None

    def for_host(self, name: str | None) -> Self:
        """Return the rules of one virtual host; of the default one also where an alias that is not read names it."""
        named = [each for each in self.hosts if each.name == name] or self.ordered_hosts[:1]
        alone: Any = self  # a dataclass, as all rules are
        return replace(alone, hosts=tuple(named), default_host=named[0].name) if named else self

    def names(self) -> tuple[str, ...]:
        """List the queues of all virtual hosts, those of the default one first."""
        return tuple(dict.fromkeys(queue.name for host in self.ordered_hosts for queue in host.queues))

    def queues_by_host(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """List the virtual hosts with their queues, the default one first."""
        return tuple((host.name, tuple(queue.name for queue in host.queues)) for host in self.ordered_hosts)

    def redelivery_policies(self) -> RedeliveryPolicyMap:
        """Return each queue's maximum as a client's policy; redelivered at once, as this broker does."""
        entries = {key: self._policy(name) for key, name in self._keys().items()}
        return RedeliveryPolicyMap(usable(entries), default=self._policy(REST))

    def dead_letter_strategies(self) -> DeadLetterStrategyMap:
        """Return where each queue's dead letters, and what expires, go as a client's strategy; discarded if nowhere."""
        entries = {key: self._strategy(name) for key, name in self._keys().items()}
        return DeadLetterStrategyMap(usable(entries), default=self._strategy_of_others())

    def _keys(self) -> dict[str, str]:
        """The queues, and the keys of what is made by a regular expression: each with a queue that it is for."""
        made = {key: sample_of(key).name for each in self._expressions() for key in keys_of(each, within=False).keys}
        made.pop(REST, None)
        named = {**made, **{name: name for name in self.names() if is_exact(name)}}
        return {f"queue://{key}": name for key, name in named.items()}

    def _expressions(self) -> Iterable[str]:
        """The regular expressions of queues that the broker makes by itself, those of the default virtual host."""
        return ()

    def _name(self, destination: Destination) -> str:
        """The queue's; of a topic that of a queue that no file names."""
        return REST if isinstance(destination, Topic) else destination.name

    def _policy(self, queue: str) -> RedeliveryPolicy:
        return policy_at_once(self.maximum_for(queue))

    def _strategy(self, queue: str) -> DeadLetterStrategy:
        found = self.rules_for(Queue(queue))
        return separately(strategy_to(found.dead_letter), strategy_to(found.expired))

    def _strategy_of_others(self) -> DeadLetterStrategy:
        return self._strategy(REST)
