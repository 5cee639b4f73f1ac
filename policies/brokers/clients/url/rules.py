"""The rules of redelivery of ActiveMQ's Java client: those of its connection URL, or of a file that configures it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from redelivery.model.destinations import Destination
from redelivery.policies.brokers.rules import DestinationRules, Matched, Rules, listed_delays
from redelivery.policies.dead_letters import BrokerDeadLetterStrategy
from redelivery.policies.destinations.redelivery_map import RedeliveryPolicyMap
from redelivery.policies.destinations.strategy_map import DeadLetterStrategyMap
from redelivery.policies.files.places import NOWHERE, Place, Setting
from redelivery.policies.prefetch import PrefetchPolicy
from redelivery.policies.redelivery import RedeliveryPolicy

DEAD_LETTERS: Final = "the broker's dead-letter queue"
RETURNED: Final = "the broker, whose own rules count"


@dataclass(frozen=True, slots=True)
class ClientEntry:
    """The policy for the destinations of a pattern: ``queue://orders.>``."""

    pattern: str
    policy: RedeliveryPolicy
    place: Place = field(default=NOWHERE, compare=False)
    settings: tuple[Setting, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class ClientRules(Rules):
    """``policy``: for all destinations that no one of ``entries`` is for.

    ``prefetch``, ``non_blocking``: None where the URL, or the file, does not say.
    ``returning``: there is no policy then.
    ``settings``: those of the policy for all; ``of_all``: those of the client itself.
    """

    policy: RedeliveryPolicy = field(default_factory=RedeliveryPolicy)
    prefetch: PrefetchPolicy | None = None
    non_blocking: bool | None = None
    entries: tuple[ClientEntry, ...] = ()
    returning: bool = False
    settings: tuple[Setting, ...] = field(default=(), compare=False)
    of_all: tuple[Setting, ...] = field(default=(), compare=False)

    broker = "client"
    dialect = "activemq"
    is_client = True

    def rules_for(self, destination: Destination) -> DestinationRules:
        """Return what counts for one destination."""
        if self.returning:
            return DestinationRules(
                self.broker, destination, "deliveries", 1, (), RETURNED, expired=RETURNED, settings=self.of_all
            )
        found = self.redelivery_policies().explain(destination)
        by_pattern = {each.pattern: each for each in self.entries}
        matched = [by_pattern[each.key] for each in found.candidates]
        policy = found.winner.value
        maximum = policy.maximum_redeliveries + 1 if policy.maximum_redeliveries >= 0 else None
        note = "other messages overtake one that waits (jms.nonBlockingRedelivery)"
        return DestinationRules(
            broker=self.broker,
            destination=destination,
            counts="deliveries",
            maximum=maximum,
            delays=listed_delays(policy.delay, maximum),
            dead_letter=DEAD_LETTERS,
            expired=DEAD_LETTERS,
            matched=tuple(Matched(f"redeliveryPolicy {each.pattern!r}", each.place) for each in matched),
            settings=(*(matched[0].settings if matched else self.settings), *self.of_all),
            notes=(note,) if self.non_blocking else (),
        )

    def policy_for(self, destination: Destination) -> RedeliveryPolicy | None:
        """Return the policy that counts for a destination; None where failures are returned to the broker."""
        return None if self.returning else self.redelivery_policies().policy_for(destination)

    def redelivery_policies(self) -> RedeliveryPolicyMap:
        """Return the policies by destination, and that for all others."""
        return RedeliveryPolicyMap({each.pattern: each.policy for each in self.entries}, default=self.policy)

    def dead_letter_strategies(self) -> DeadLetterStrategyMap:
        """Return the broker's own, for all destinations."""
        return DeadLetterStrategyMap({}, default=BrokerDeadLetterStrategy())

    def names(self) -> tuple[str, ...]:
        """List the patterns that have a policy of their own."""
        return tuple(each.pattern for each in self.entries)
