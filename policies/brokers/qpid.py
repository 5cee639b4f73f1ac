"""Qpid's old Java broker: a maximum delivery count and dead-letter queues at three levels, of which the nearest counts.

These are the rules of its ``config.xml`` and ``virtualhosts.xml`` (0.1x); Broker-J's are in `broker_j`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from redelivery.model.destinations import Destination
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
from redelivery.policies.dead_letters import (
    DeadLetterStrategy,
    DiscardingDeadLetterStrategy,
    IndividualDeadLetterStrategy,
)
from redelivery.policies.destinations.redelivery_map import RedeliveryPolicyMap
from redelivery.policies.destinations.strategy_map import DeadLetterStrategyMap
from redelivery.policies.redelivery import RedeliveryPolicy

_NOTE: Final = (
    "counted where a client rolls back or recovers; a client that only closes its connection is not charged, and an "
    "AMQP 0-x client needs the reject behaviour 'server'"
)
_REST: Final = ">"


@dataclass(frozen=True, slots=True)
class QpidLevel:
    """What one level sets: the broker, a virtual host or a queue. None: it says nothing, and the next level counts.

    ``maximum_delivery_count``: 0 for no limit.
    """

    name: str
    dead_letter_queues: bool | None = None
    maximum_delivery_count: int | None = None
    place: Place = field(default=NOWHERE, compare=False)
    settings: tuple[Setting, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class QpidHost:
    """A virtual host: its own level, and its queues."""

    level: QpidLevel
    queues: tuple[QpidLevel, ...] = ()


@dataclass(frozen=True, slots=True)
class QpidRules:
    """What a ``config.xml`` with its ``virtualhosts.xml`` says; either may be missing.

    ``server``: the broker's level. ``default_host``: the virtual host of a client that names none.
    ``exchange_suffix``, ``queue_suffix``: of the dead-letter exchange (fanout) and queue of a queue.
    """

    server: QpidLevel = QpidLevel("broker")
    hosts: tuple[QpidHost, ...] = ()
    default_host: str | None = None
    exchange_suffix: str = "_DLE"
    queue_suffix: str = "_DLQ"

    @property
    def broker(self) -> str:
        """The broker's name."""
        return "Qpid Java broker"

    @property
    def dialect(self) -> str:
        """What `redelivery.connect` calls it."""
        return "qpid"

    def levels_for(self, queue: str) -> tuple[QpidLevel, ...]:
        """The levels of a queue, the nearest first; ``host/queue`` says in which virtual host it is."""
        host, level = self._find(queue)
        levels = [*([level] if level else []), *([host.level] if host else []), self.server]
        return tuple(levels)

    def maximum_for(self, queue: str) -> int | None:
        """After how many failures a message is given up; None for no limit."""
        values = (each.maximum_delivery_count for each in self.levels_for(queue))
        return next((each for each in values if each is not None), 0) or None

    def dead_letter_queue(self, queue: str) -> str | None:
        """The queue of its dead letters; None where there is none."""
        values = (each.dead_letter_queues for each in self.levels_for(queue))
        if queue.endswith(self.queue_suffix) or not next((each for each in values if each is not None), False):
            return None
        return queue.rpartition("/")[2] + self.queue_suffix

    def rules_for(self, destination: Destination) -> DestinationRules:
        """What counts for one destination."""
        levels, maximum = self.levels_for(destination.name), self.maximum_for(destination.name)
        target = self.dead_letter_queue(destination.name)
        return DestinationRules(
            broker=self.broker,
            destination=destination,
            counts="failures",
            maximum=maximum,
            delays=listed_delays(at_once, maximum),
            dead_letter=target,
            removed_because="" if target else "dead-letter queues are off",
            matched=tuple(Matched(each.name, each.place) for each in levels),
            settings=tuple(_nearest(levels)),
            notes=(_NOTE,),
        )

    def redelivery_policies(self) -> RedeliveryPolicyMap:
        """Each queue's maximum as a client's policy; redelivered at once, as this broker does."""
        entries = {name: self._policy(name) for name in self.names()}
        return RedeliveryPolicyMap(usable(entries), default=self._policy(""))

    def dead_letter_strategies(self) -> DeadLetterStrategyMap:
        """Each queue's dead-letter queue as a client's strategy; discarded where there is none, as what expires is.

        Queues that are not named have one each, by the suffix, where the file says so. One of them whose name already
        ends with the suffix has none here; a client makes one.
        """
        entries = {name: self._strategy(name) for name in self.names()}
        return DeadLetterStrategyMap(usable({_REST: self._strategy_of_others(), **entries}))

    def names(self) -> tuple[str, ...]:
        """The queues of all virtual hosts, those of the default one first."""
        hosts = sorted(self.hosts, key=lambda each: each.level.name != self.default_host)
        return tuple(dict.fromkeys(queue.name for host in hosts for queue in host.queues))

    def _find(self, queue: str) -> tuple[QpidHost | None, QpidLevel | None]:
        named, _, short = queue.rpartition("/")
        hosts = [each for each in self.hosts if each.level.name == named] if named else list(self.hosts)
        if not hosts:
            hosts, short = list(self.hosts), queue
        hosts.sort(key=lambda each: each.level.name != self.default_host)
        for host in hosts:
            for level in host.queues:
                if level.name == short:
                    return host, level
        return (hosts[0] if hosts else None), None

    def _policy(self, queue: str) -> RedeliveryPolicy:
        return policy_at_once(self.maximum_for(queue))

    def _strategy(self, queue: str) -> DeadLetterStrategy:
        return separately(strategy_to(self.dead_letter_queue(queue)), DiscardingDeadLetterStrategy())

    def _strategy_of_others(self) -> DeadLetterStrategy:
        if self.dead_letter_queue("") is None:
            return DiscardingDeadLetterStrategy()
        return IndividualDeadLetterStrategy(
            queue_prefix="",
            topic_prefix="",
            queue_suffix=self.queue_suffix,
            topic_suffix=self.queue_suffix,
            process_expired=False,
            process_non_persistent=True,
        )


def _nearest(levels: tuple[QpidLevel, ...]) -> Iterator[Setting]:
    for name in ("maximumDeliveryCount", "deadLetterQueues"):
        found = next((each for level in levels for each in level.settings if each.name == name), None)
        if found is not None:
            yield found
