"""What counts for each pattern of a configuration: a client's policy and strategy, and what becomes of the expired."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from redelivery.model.destinations import Destination, Queue, Topic
from redelivery.policies.brokers.artemis import ArtemisRules
from redelivery.policies.brokers.broker_j import BrokerJLevel, BrokerJRules
from redelivery.policies.brokers.classic import ClassicRules
from redelivery.policies.brokers.client_url import ClientRules
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.brokers.qpid import QpidRules
from redelivery.policies.brokers.rabbitmq import RabbitPolicy, RabbitRules
from redelivery.policies.brokers.rules import strategy_to
from redelivery.policies.checks import expression
from redelivery.policies.dead_letters import (
    DeadLetterStrategy,
    DiscardingDeadLetterStrategy,
    IndividualDeadLetterStrategy,
)
from redelivery.policies.destinations.address_settings import AddressSettings
from redelivery.policies.redelivery import RedeliveryPolicy

REST: Final = ">"
TOPIC: Final = "topic://"
ROUTE_TO_ALTERNATE: Final = "ROUTE_TO_ALTERNATE"
_OTHERS: Final = ("any.other.destination", "Z", "0-9")  # that a regular expression for all queues matches
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
        strategy = _as_explained(policies, key, strategies.strategy_for(target))
        found.append(Pattern(key, redeliveries.policy_for(target), strategy, _lifetime(policies.rules, key, strategy)))
    return found


def as_destination(key: str) -> Destination:
    """The destination of that name; a pattern is one too."""
    kind = Topic if key.startswith(TOPIC) else Queue
    return kind(key.partition("://")[2] or key)


def example_of(key: str) -> Destination:
    """A destination that a pattern matches."""
    return as_destination(_OTHERS[0] if key == REST else key.replace("*", "x").replace(REST, "x"))


def for_all(rules: RabbitRules, policy: RabbitPolicy) -> bool:
    """Whether a policy counts for every classic queue that the file does not list."""
    matches = all(expression(policy.pattern).search(each) is not None for each in _OTHERS)
    counting = (level for _, level in rules.levels_for(_OTHERS[0]))
    return matches and policy.virtual_host == rules.default_host and any(each is policy.level for each in counting)


def _as_explained(policies: BrokerPolicies, key: str, strategy: DeadLetterStrategy) -> DeadLetterStrategy:
    """The strategy of all others, where a client's strategies do not say what the explanation does."""
    rules = policies.rules
    if key != REST or not isinstance(rules, RabbitRules | QpidRules):
        return strategy
    others = policies.explain(_OTHERS[0]).dead_letter
    if isinstance(rules, RabbitRules) and any(for_all(rules, each) for each in rules.policies):
        return strategy_to(None if others is None or others.startswith("exchange ") else others)
    if isinstance(rules, QpidRules) and others is not None:
        suffix = rules.queue_suffix
        return IndividualDeadLetterStrategy(queue_prefix="", queue_suffix=suffix, process_non_persistent=True)
    return strategy


def _lifetime(rules: object, key: str, strategy: DeadLetterStrategy) -> Lifetime:
    name = example_of(key).name
    match rules:
        case ArtemisRules():
            return _of_settings(rules.settings_for(_address(rules, key)), rules)
        case BrokerJRules():
            levels = [level for _, level in rules.levels_for(name)]
            routed = _first(levels, "expiry_policy") == ROUTE_TO_ALTERNATE
            least, most = _first(levels, "minimum_message_ttl"), _first(levels, "maximum_message_ttl")
            return Lifetime(routed, least or None, most or None)  # type: ignore[arg-type]  # of the right types
        case RabbitRules():
            given = [level.message_ttl for _, level in rules.levels_for(name) if level.message_ttl is not None]
            unlisted = key == REST and not any(for_all(rules, each) for each in rules.policies)
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


def _address(rules: ArtemisRules, key: str) -> str:
    """The pattern as the file writes it; merged are the settings of all entries that match all of it."""
    wildcards, kinds = rules.wildcards, {"*": rules.wildcards.single_word, REST: rules.wildcards.any_words}
    if key == REST:
        return "jms" + wildcards.delimiter + wildcards.any_words if rules.dialect == "hornetq" else wildcards.any_words
    words = rules.address_of(as_destination(key)).split(".")
    return wildcards.delimiter.join(kinds.get(word, word) for word in words)


def _first(levels: Iterable[BrokerJLevel], field: str) -> object:
    return next((getattr(each, field) for each in levels if getattr(each, field) is not None), None)


def with_expired(pattern: Pattern) -> DeadLetterStrategy:
    """The strategy, which takes the expired only where they become dead letters."""
    wanted = pattern.lifetime.expired is True
    if pattern.strategy.process_expired == wanted or isinstance(pattern.strategy, DiscardingDeadLetterStrategy):
        return pattern.strategy
    return replace(pattern.strategy, process_expired=wanted)
