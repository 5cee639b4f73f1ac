"""Qpid's old Java broker: a maximum delivery count and dead-letter queues at three levels, of which the nearest counts.

These are the rules of its ``config.xml`` and ``virtualhosts.xml`` (0.1x); Broker-J's are in `broker_j`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from redelivery.model.destinations import Destination
from redelivery.policies.brokers.hosts import HostedRules
from redelivery.policies.brokers.rules import DestinationRules, Lifetime, Matched, at_once, listed_delays
from redelivery.policies.dead_letters import (
    DeadLetterStrategy,
    DiscardingDeadLetterStrategy,
    IndividualDeadLetterStrategy,
)
from redelivery.policies.files.places import NOWHERE, Place, Setting

_NOTE: Final = (
    "counted where a client rolls back or recovers; a client that only closes its connection is not charged, and an "
    "AMQP 0-x client needs the reject behaviour 'server'"
)


@dataclass(frozen=True, slots=True)
class QpidLevel:
    """The values that the broker, a virtual host or a queue sets. None: it says nothing, and the next level counts.

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

    @property
    def name(self) -> str:
        """The name, which its level has."""
        return self.level.name


@dataclass(frozen=True, slots=True)
class QpidRules(HostedRules[QpidHost, QpidLevel]):
    """The contents of a ``config.xml`` with its ``virtualhosts.xml`` says; either may be missing.

    ``server``: the broker's level. ``default_host``: the virtual host of a client that names none.
    ``exchange_suffix``, ``queue_suffix``: of the dead-letter exchange (fanout) and queue of a queue.
    """

    server: QpidLevel = QpidLevel("broker")
    hosts: tuple[QpidHost, ...] = ()
    default_host: str | None = None
    exchange_suffix: str = "_DLE"
    queue_suffix: str = "_DLQ"

    broker = "Qpid Java broker"
    dialect = "qpid"
    makes_queues = False

    def levels_for(self, queue: str) -> tuple[QpidLevel, ...]:
        """Return the levels of a queue, the nearest first; ``host/queue`` says in which virtual host it is."""
        host, level = self.find(queue)
        return tuple(each for each in (level, host.level if host else None, self.server) if each is not None)

    def maximum_for(self, queue: str) -> int | None:
        """Return after how many failures a message is given up; None for no limit."""
        values = (each.maximum_delivery_count for each in self.levels_for(queue))
        return next((each for each in values if each is not None), 0) or None

    def dead_letter_queue(self, queue: str) -> str | None:
        """Return the queue of its dead letters; None where there is none."""
        values = (each.dead_letter_queues for each in self.levels_for(queue))
        if queue.endswith(self.queue_suffix) or not next((each for each in values if each is not None), False):
            return None
        return queue.rpartition("/")[2] + self.queue_suffix

    def rules_for(self, destination: Destination) -> DestinationRules:
        """Return what counts for one destination."""
        name = self._name(destination)
        levels, maximum = self.levels_for(name), self.maximum_for(name)
        target = (
            None if self.dead_letter_queue(name) is None else destination.name.rpartition("/")[2] + self.queue_suffix
        )
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

    def lifetime(self, key: str) -> Lifetime:
        """Return that nothing changes times to live, and that what expires is removed."""
        del key
        return Lifetime()

    def _strategy_of_others(self) -> DeadLetterStrategy:
        """Return a dead-letter queue for each queue, by the suffix, where the file says so.

        A queue whose name already ends with the suffix has none here; a client makes one.
        """
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
