"""What a connection URL of ActiveMQ's Java client says about redelivery."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from redelivery.model.destinations import Destination
from redelivery.policies.brokers.places import Setting
from redelivery.policies.brokers.rules import DestinationRules, listed_delays
from redelivery.policies.dead_letters import BrokerDeadLetterStrategy
from redelivery.policies.destinations.redelivery_map import RedeliveryPolicyMap
from redelivery.policies.destinations.strategy_map import DeadLetterStrategyMap
from redelivery.policies.prefetch import PrefetchPolicy
from redelivery.policies.redelivery import RedeliveryPolicy

DEAD_LETTERS: Final = "the broker's dead-letter queue"


@dataclass(frozen=True, slots=True)
class ClientRules:
    """``policy``: for all destinations; ``prefetch``, ``non_blocking``: None where the URL does not say."""

    policy: RedeliveryPolicy = field(default_factory=RedeliveryPolicy)
    prefetch: PrefetchPolicy | None = None
    non_blocking: bool | None = None
    settings: tuple[Setting, ...] = field(default=(), compare=False)

    @property
    def broker(self) -> str:
        """Not a broker: the client."""
        return "client"

    @property
    def dialect(self) -> str:
        """What `redelivery.connect` calls the broker of such URLs."""
        return "activemq"

    def rules_for(self, destination: Destination) -> DestinationRules:
        """What counts for one destination: the same for all."""
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
        """The policy, for all destinations."""
        return RedeliveryPolicyMap({}, default=self.policy)

    def dead_letter_strategies(self) -> DeadLetterStrategyMap:
        """The broker's own, for all destinations."""
        return DeadLetterStrategyMap({">": BrokerDeadLetterStrategy()})

    def names(self) -> tuple[str, ...]:
        """None: it is for all destinations."""
        return ()
