"""The rules of redelivery in a connection URL of ActiveMQ's Java client."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from redelivery.model.destinations import Destination
from redelivery.policies.brokers.rules import DestinationRules, Rules, listed_delays
from redelivery.policies.dead_letters import BrokerDeadLetterStrategy
from redelivery.policies.destinations.redelivery_map import RedeliveryPolicyMap
from redelivery.policies.destinations.strategy_map import DeadLetterStrategyMap
from redelivery.policies.files.places import Setting
from redelivery.policies.prefetch import PrefetchPolicy
from redelivery.policies.redelivery import RedeliveryPolicy

DEAD_LETTERS: Final = "the broker's dead-letter queue"


@dataclass(frozen=True, slots=True)
class ClientRules(Rules):
    """``policy``: for all destinations; ``prefetch``, ``non_blocking``: None where the URL does not say."""

    policy: RedeliveryPolicy = field(default_factory=RedeliveryPolicy)
    prefetch: PrefetchPolicy | None = None
    non_blocking: bool | None = None
    settings: tuple[Setting, ...] = field(default=(), compare=False)

    broker = "client"
    dialect = "activemq"
    is_client = True

    def rules_for(self, destination: Destination) -> DestinationRules:
        """Return what counts for one destination: the same for all."""
        policy = self.policy
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
            settings=self.settings,
            notes=(note,) if self.non_blocking else (),
        )

    def redelivery_policies(self) -> RedeliveryPolicyMap:
        """Return the policy, for all destinations."""
        return RedeliveryPolicyMap({}, default=self.policy)

    def dead_letter_strategies(self) -> DeadLetterStrategyMap:
        """Return the broker's own, for all destinations."""
        return DeadLetterStrategyMap({}, default=BrokerDeadLetterStrategy())

    def names(self) -> tuple[str, ...]:
        """List nothing: it is for all destinations."""
        return ()
