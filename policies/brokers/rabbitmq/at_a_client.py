"""RabbitMQ's rules as a client's: its redelivery policies and dead-letter strategies."""

from __future__ import annotations

from typing import Protocol

from redelivery.model.destinations import Destination, Queue
from redelivery.policies.brokers.rabbitmq.values import QUORUM, RabbitPolicy
from redelivery.policies.brokers.rules import OTHERS, DestinationRules, policy_at_once, strategy_to
from redelivery.policies.dead_letters import BrokerDeadLetterStrategy, DeadLetterStrategy
from redelivery.policies.destinations.examples import sample_of
from redelivery.policies.destinations.overlaps import is_exact, usable
from redelivery.policies.destinations.patterns import REST
from redelivery.policies.destinations.redelivery_map import RedeliveryPolicyMap
from redelivery.policies.destinations.strategy_map import DeadLetterStrategyMap
from redelivery.policies.files.expression_keys import keys_of
from redelivery.policies.redelivery import RedeliveryPolicy


class QueueRules(Protocol):
    """The rules of queues, as `RabbitRules` has them."""

    @property
    def policies(self) -> tuple[RabbitPolicy, ...]: ...  # noqa: D102  # see RabbitRules, here and below

    @property
    def default_host(self) -> str: ...  # noqa: D102

    def names(self) -> tuple[str, ...]: ...  # noqa: D102

    def for_all(self, policy: RabbitPolicy) -> bool: ...  # noqa: D102

    def limit_for(self, queue: str) -> int | None: ...  # noqa: D102

    def kind_of(self, queue: str) -> str: ...  # noqa: D102

    def rules_for(self, destination: Destination) -> DestinationRules: ...  # noqa: D102


def policies_of(rules: QueueRules) -> RedeliveryPolicyMap:
    """Return each quorum queue's limit; a client's own policy is left to the others."""
    keys = _keys(rules)
    kinds = {key: rules.kind_of(name) for key, name in {**keys, REST: OTHERS[0]}.items()}
    entries = {key: policy_at_once(rules.limit_for(name)) for key, name in keys.items() if kinds[key] == QUORUM}
    if kinds[REST] != QUORUM:
        return RedeliveryPolicyMap(usable(entries))
    entries |= {key: RedeliveryPolicy() for key in keys if kinds[key] != QUORUM}
    entries[f"topic://{REST}"] = RedeliveryPolicy()  # the queue of a subscription is exclusive, and so a classic one
    return RedeliveryPolicyMap(usable(entries), default=policy_at_once(rules.limit_for(OTHERS[0])))


def strategies_of(rules: QueueRules) -> DeadLetterStrategyMap:
    """Return each queue's dead-letter queue, and where that of queues is that no key names."""
    default = strategy_to(None)
    if any(rules.for_all(each) for each in rules.policies):
        default = _strategy(rules, OTHERS[0])
    unnamed = (each for each in _policies(rules) if not keys_of(each.pattern, within=True).complete)
    if any(each.level.dead_letter_exchange is not None and not rules.for_all(each) for each in unnamed):
        default = BrokerDeadLetterStrategy(configured=True)
    entries = {key: _strategy(rules, name) for key, name in _keys(rules).items()}
    return DeadLetterStrategyMap(usable(entries), default=default)


def _policies(rules: QueueRules) -> list[RabbitPolicy]:
    return [each for each in rules.policies if each.virtual_host == rules.default_host]


def _keys(rules: QueueRules) -> dict[str, str]:
    """The queues, and the keys of others that a policy is for: each with a queue that it is for."""
    keys = dict.fromkeys(key for each in _policies(rules) for key in keys_of(each.pattern, within=True).keys)
    keys.pop(REST, None)
    named = {**{key: sample_of(key).name for key in keys}, **{name: name for name in rules.names() if is_exact(name)}}
    return {f"queue://{key}": name for key, name in named.items()}


def _strategy(rules: QueueRules, queue: str) -> DeadLetterStrategy:
    found = rules.rules_for(Queue(queue))
    targets = found.dead_letter_queues
    if found.dead_letter is not None and (len(targets) != 1 or found.dead_letter != targets[0]):
        return BrokerDeadLetterStrategy(configured=True)
    return strategy_to(None if found.dead_letter is None or targets[0] == queue else targets[0])
