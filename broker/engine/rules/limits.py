"""The rules of brokers that only count: Qpid's old Java broker, Broker-J and RabbitMQ. None of them waits."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from redelivery.broker.engine.entries import Entry
from redelivery.broker.engine.rules.rules import COUNTED, FAILED, UNCOUNTED, Failure, Fate, Manner, Origin
from redelivery.broker.engine.stored import StoredMessage
from redelivery.model.destinations import Destination, Queue
from redelivery.policies.brokers.broker_j import BrokerJRules
from redelivery.policies.brokers.qpid import QpidRules
from redelivery.policies.brokers.rabbitmq import RabbitRules
from redelivery.policies.brokers.rules import DestinationRules

CountingRules: TypeAlias = QpidRules | BrokerJRules | RabbitRules


@dataclass(frozen=True, slots=True)
class _Charges:
    """In which manners a delivery counts, also one that no client has had; in which it fails for good at once."""

    seen: frozenset[Manner]
    unseen: frozenset[Manner] = frozenset()
    fails: frozenset[Manner] = frozenset()


_BROKER_J: Final = _Charges(
    seen=frozenset({Manner.FAILED, Manner.REJECTED, Manner.UNDELIVERABLE}),
    # What was prefetched counts when a link or a connection ends, whether or not anybody looked at it.
    unseen=frozenset({Manner.CLOSED, Manner.DISCONNECTED, Manner.LOST}),
)
# Its limit is enforced where a client rolls back or recovers; one that only closes its connection is not charged.
_QPID: Final = _Charges(seen=frozenset({Manner.FAILED, Manner.REJECTED, Manner.NACKED, Manner.UNDELIVERABLE}))
_RABBITMQ: Final = _Charges(
    seen=frozenset({Manner.FAILED, Manner.CLOSED, Manner.DISCONNECTED, Manner.LOST}),
    fails=frozenset({Manner.REJECTED, Manner.NACKED, Manner.UNDELIVERABLE}),
)


class CountingBroker:
    """See `redelivery.broker.engine.rules.rules.Rules`."""

    counts_first = False
    enlists_acks = True
    origin = Origin.NOWHERE

    def __init__(self, rules: CountingRules) -> None:
        self._rules = rules
        self._known: dict[Destination, DestinationRules] = {}
        self._charges = _QPID
        if isinstance(rules, BrokerJRules):
            self._charges = _BROKER_J
        elif isinstance(rules, RabbitRules):
            self._charges = _RABBITMQ

    def arriving(self, message: StoredMessage, now: int) -> StoredMessage:
        """With the time to live that the queue's maximum and minimum give it."""
        least, most = self._bounds(message.destination.name)
        expiration = message.expiration
        if least is not None and expiration:
            expiration = max(expiration, now + round(least * 1000))
        if most is not None:
            latest = now + round(most * 1000)
            expiration = min(expiration, latest) if expiration else latest
        if expiration == message.expiration:
            return message
        return replace(message, expiration=expiration, own_expiration=message.expiration)

    def keeps_unrouted(self, topic: Destination) -> bool:  # noqa: ARG002  # Artemis asks it
        """A message that no subscription wants is dropped."""
        return False

    def queue_of(self, name: str, queues: Collection[str]) -> str:  # noqa: ARG002  # Artemis' asks them
        """That of the name."""
        return name

    def returned(self, entry: Entry, manner: Manner, *, seen: bool) -> Fate:
        """The message fails for good when the count has reached the maximum."""
        if manner in self._charges.fails:
            return FAILED
        elsewhere = manner is Manner.UNDELIVERABLE
        if not (manner in self._charges.unseen or (seen and manner in self._charges.seen)):
            return replace(UNCOUNTED, elsewhere=elsewhere)
        maximum = self._rules_for(entry.message.destination)
        if maximum.counts == "failures" and maximum.maximum is not None and entry.redeliveries + 1 >= maximum.maximum:
            return FAILED
        return replace(COUNTED, elsewhere=elsewhere)

    def letters(self, failure: Failure) -> Sequence[StoredMessage]:
        """The message itself, in the queue's dead-letter queue; its count begins anew, and nothing says its origin.

        What the queue's rules said of its time to live ends there. On Broker-J the sender's does not, so that what
        expired by that expires there as well, and is removed where it would come back; RabbitMQ takes it away.
        """
        message = failure.message
        if failure.expired and not self._keeps_expired(message.destination.name):
            return ()
        expiration = message.expiration if message.own_expiration is None else message.own_expiration
        if isinstance(self._rules, RabbitRules):
            expiration = 0 if failure.expired else expiration
        elif failure.expired and 0 < expiration <= failure.now and self._comes_back(message.destination.name):
            return ()
        return [
            replace(
                message,
                destination=Queue(target),
                original_destination=None,
                delivery_time=0,
                expiration=expiration,
                own_expiration=None,
            )
            for target in self._rules_for(message.destination).dead_letter_queues
        ]

    def _rules_for(self, destination: Destination) -> DestinationRules:
        found = self._known.get(destination)
        if found is None:
            found = self._known[destination] = self._rules.rules_for(destination)
        return found

    def _bounds(self, queue: str) -> tuple[float | None, float | None]:
        """The least and the greatest time to live, in seconds."""
        if isinstance(self._rules, BrokerJRules):
            levels = [level for _, level in self._rules.levels_for(queue)]
            least = next((each.minimum_message_ttl for each in levels if each.minimum_message_ttl), None)
            return least, next((each.maximum_message_ttl for each in levels if each.maximum_message_ttl), None)
        if isinstance(self._rules, RabbitRules):
            times = [each.message_ttl for _, each in self._rules.levels_for(queue) if each.message_ttl is not None]
            return None, min(times, default=None)
        return None, None

    def _comes_back(self, queue: str) -> bool:
        """Check whether what expires in a queue of Broker-J, and everywhere at once, comes back to it."""
        seen: set[str] = set()
        name: str | None = queue
        while name is not None and name not in seen:
            seen.add(name)
            name = self._rules_for(Queue(name)).dead_letter if self._keeps_expired(name) else None
        return name == queue

    def _keeps_expired(self, queue: str) -> bool:
        if isinstance(self._rules, BrokerJRules):
            levels = [level for _, level in self._rules.levels_for(queue)]
            return next((each.expiry_policy for each in levels if each.expiry_policy), "DELETE") != "DELETE"
        return isinstance(self._rules, RabbitRules)
