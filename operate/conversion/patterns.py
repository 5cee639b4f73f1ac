"""What counts for each pattern of a configuration: a client's policy and strategy, and what becomes of the expired."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from redelivery.model.destinations import Destination, Queue, Topic
from redelivery.policies.brokers.artemis import ArtemisRules
from redelivery.policies.brokers.broker_j import BrokerJLevel, BrokerJRules
from redelivery.policies.brokers.classic import ClassicRules
from redelivery.policies.brokers.client_url import ClientRules
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.brokers.rabbitmq import RabbitRules
from redelivery.policies.brokers.rules import OTHERS
from redelivery.policies.dead_letters import DeadLetterStrategy
from redelivery.policies.destinations.address_settings import AddressSettings
from redelivery.policies.redelivery import RedeliveryPolicy

REST: Final = ">"
TOPIC: Final = "topic://"
ROUTE_TO_ALTERNATE: Final = "ROUTE_TO_ALTERNATE"
_QUEUE_PREFIX: Final = "jms.queue."


@dataclass(frozen=True, slots=True)
class Lifetime:
    """``expired``: True: they become dead letters as the others do; False: they are removed; or where else they go.

    ``least``, ``most``: seconds to which a shorter or longer time to live is changed; ``most`` is also that of messages
    that have none. None: no bound.
    """

    expired: bool | str = False
    least: float | None = None
    most: float | None = None


@dataclass(frozen=True, slots=True)
class Pattern:
    """``key``: as `DestinationMap` has it; ``>`` for all that no other one matches."""

    key: str
    policy: RedeliveryPolicy
    strategy: DeadLetterStrategy
    lifetime: Lifetime

    @property
    def name(self) -> str:
        """The key without ``queue://`` or ``topic://``."""
        return self.key.partition("://")[2] or self.key

    @property
    def is_one(self) -> bool:
        """Whether it stands for one destination."""
        return not set(self.name.split(".")) & {"*", REST}


def patterns(policies: BrokerPolicies) -> list[Pattern]:
    """Each pattern that a policy or a strategy is for; ``>`` last, for all others."""
    redeliveries, strategies = policies.redelivery_policies, policies.dead_letter_strategies
    keys = dict.fromkeys([*(each.key for each in redeliveries.entries), *(each.key for each in strategies.entries)])
    keys.pop(REST, None)
    found = []
    for key in (*keys, REST):
        target = as_destination(key)
        strategy = strategies.strategy_for(target)
        found.append(Pattern(key, redeliveries.policy_for(target), strategy, _lifetime(policies.rules, key, strategy)))
    return found


def as_destination(key: str) -> Destination:
    """The destination of that name; a pattern is one too."""
    kind = Topic if key.startswith(TOPIC) else Queue
    return kind(key.partition("://")[2] or key)


def example_of(key: str) -> Destination:
    """A destination that a pattern matches."""
    return as_destination(OTHERS[0] if key == REST else key.replace("*", "x").replace(REST, "x"))


def _lifetime(rules: object, key: str, strategy: DeadLetterStrategy) -> Lifetime:
    name = example_of(key).name
    match rules:
        case ArtemisRules():
            return _of_settings(rules.settings_for(rules.match_of(key)), rules)
        case BrokerJRules():
            levels = [level for _, level in rules.levels_for(name)]
            routed = _first(levels, "expiry_policy") == ROUTE_TO_ALTERNATE
            least, most = _first(levels, "minimum_message_ttl"), _first(levels, "maximum_message_ttl")
            return Lifetime(routed, least or None, most or None)  # type: ignore[arg-type]  # of the right types
        case RabbitRules():
            given = [level.message_ttl for _, level in rules.levels_for(name) if level.message_ttl is not None]
            unlisted = key == REST and not any(rules.for_all(each) for each in rules.policies)
            return Lifetime(True, most=None if unlisted else min(given, default=None))
        case ClassicRules() | ClientRules():
            return Lifetime(strategy.process_expired)
    return Lifetime()


def _of_settings(settings: AddressSettings, rules: ArtemisRules) -> Lifetime:
    to: bool | str = settings.expiry_address or False
    if to and to == settings.dead_letter_address and not settings.auto_create_dead_letter_resources:
        to = True
    if isinstance(to, str) and rules.dialect == "hornetq":
        to = to.removeprefix(_QUEUE_PREFIX)
    least, most = settings.min_expiry_delay, settings.max_expiry_delay
    return Lifetime(to, least if least >= 0 else None, most if most >= 0 else None)


def _first(levels: Iterable[BrokerJLevel], field: str) -> object:
    return next((getattr(each, field) for each in levels if getattr(each, field) is not None), None)
