"""The rules of brokers that only count: Qpid's old Java broker, Broker-J and RabbitMQ. None of them waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from redelivery.broker.engine.entries import Entry
from redelivery.broker.engine.rules.rules import (
    COUNTED,
    FAILED,
    UNCOUNTED,
    EngineRules,
    Failure,
    Manner,
    ReturnDecision,
)
from redelivery.broker.engine.stored import StoredMessage
from redelivery.model.destinations import Destination, Queue
from redelivery.policies.brokers.rules import DestinationRules, Lifetime, Rules


@dataclass(frozen=True, slots=True)
class _Charges:
    """The manners in which a delivery counts, also one that no client has had, and in which it fails for good at once.

    ``clears``: a dead letter that has expired has no time to live any more. ``declares``: its clients make
    queues that its file does not have.
    """

    seen: frozenset[Manner]
    unseen: frozenset[Manner] = frozenset()
    fails: frozenset[Manner] = frozenset()
    clears: bool = False
    declares: bool = False


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
    clears=True,
    declares=True,
)
CHARGES: Final[Mapping[str, _Charges]] = {"Qpid Java broker": _QPID, "Qpid Broker-J": _BROKER_J, "RabbitMQ": _RABBITMQ}
"""By the name of a broker that only counts."""


class CountingBroker(EngineRules):
    """See `redelivery.broker.engine.rules.rules.EngineRules`."""

    def __init__(self, rules: Rules) -> None:
        super().__init__()
        self._rules = rules
        self._known: dict[Destination, DestinationRules] = {}
        self._lifetimes: dict[str, Lifetime] = {}
        self._charges = CHARGES[rules.broker]
        self._made = frozenset(rules.names() if self._charges.declares else ())

    def arriving(self, message: StoredMessage, now: int, *, is_letter: bool) -> StoredMessage:  # noqa: ARG002  # Classic's asks it
        """Give it the time to live by the queue's maximum and minimum."""
        lifetime = self._lifetime_of(message.destination.name)
        expiration = message.expiration
        if lifetime.least is not None and expiration:
            expiration = max(expiration, now + round(lifetime.least * 1000))
        if lifetime.most is not None:
            latest = now + round(lifetime.most * 1000)
            expiration = min(expiration, latest) if expiration else latest
        if expiration == message.expiration:
            return message
        return replace(message, expiration=expiration, own_expiration=message.expiration)

    def returned(self, entry: Entry, manner: Manner, *, seen: bool) -> ReturnDecision:
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
        if failure.expired and not self._lifetime_of(message.destination.name).expired:
            return ()
        expiration = message.expiration if message.own_expiration is None else message.own_expiration
        if self._charges.clears:
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
            for target in self._targets(failure)
        ]

    def _targets(self, failure: Failure) -> Sequence[str]:
        """The queues that get it; what none gets is lost."""
        place, rules = failure.message.destination, self._rules_for(failure.message.destination)
        if rules.dead_letter is None:
            self.lost.note(failure.message, rules.removed_because, failure.now)
            return ()
        found = [
            each
            for each in self._rules.letter_queues(place)
            if not self._made or each in self._made or failure.exists(each)
        ]
        if not found:
            self.lost.note(failure.message, f"no queue stands behind {rules.dead_letter}", failure.now)
        return found

    def _rules_for(self, destination: Destination) -> DestinationRules:
        found = self._known.get(destination)
        if found is None:
            found = self._known[destination] = self._rules.rules_for(destination)
        return found

    def _lifetime_of(self, queue: str) -> Lifetime:
        found = self._lifetimes.get(queue)
        if found is None:
            found = self._lifetimes[queue] = self._rules.lifetime(queue) or Lifetime()
        return found

    def _comes_back(self, queue: str) -> bool:
        """Check whether what expires in a queue of Broker-J, and everywhere at once, comes back to it."""
        seen: set[str] = set()
        name: str | None = queue
        while name is not None and name not in seen:
            seen.add(name)
            name = self._rules_for(Queue(name)).dead_letter if self._lifetime_of(name).expired else None
        return name == queue
