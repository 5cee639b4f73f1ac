"""A configuration as the rules of another broker; each says what that broker cannot."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from redelivery.operate.conversion.losses import Losses
from redelivery.operate.conversion.patterns import (
    REST,
    ROUTE_TO_ALTERNATE,
    TOPIC,
    Pattern,
    example_of,
    patterns,
)
from redelivery.policies.brokers.broker_j import BrokerJHost, BrokerJLevel, BrokerJQueue, BrokerJRules
from redelivery.policies.brokers.classic import (
    ClassicRules,
    DeadLetterRules,
    PolicyEntry,
    RedeliveryEntry,
    RedeliveryPlugin,
)
from redelivery.policies.brokers.client_url import ClientRules
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.brokers.qpid import QpidHost, QpidLevel, QpidRules
from redelivery.policies.brokers.rabbitmq import QUORUM, RabbitHost, RabbitLevel, RabbitPolicy, RabbitQueue, RabbitRules
from redelivery.policies.dead_letters import (
    DEFAULT_DEAD_LETTER_QUEUE,
    BrokerDeadLetterStrategy,
    CopyTo,
    DeadLetterStrategy,
    DiscardingDeadLetterStrategy,
    IndividualDeadLetterStrategy,
    Native,
)
from redelivery.policies.redelivery import RedeliveryPolicy
from redelivery.policies.writers.qpid import can_be_named

_SHORTEST: Final = 1.0  # second, of ActiveMQ's redelivery plug-in


def _of_queues(policies: BrokerPolicies, losses: Losses) -> list[Pattern]:
    """The patterns of queues."""
    found = []
    for each in patterns(policies):
        if each.key.startswith(TOPIC):
            losses.add(f"{each.key}: there are rules for queues only")
        else:
            found.append(each)
    return found


def to_activemq(policies: BrokerPolicies, losses: Losses) -> ClassicRules:
    """The redelivery plug-in and a dead-letter strategy for each pattern."""
    entries, resent, default, last = [], [], None, None
    for each in patterns(policies):
        slow, strategy = _at_least_a_second(each.key, each.policy, losses), DeadLetterRules(_known(each))
        if isinstance(each.lifetime.expired, str):
            losses.add(f"{each.key}: expired messages are removed, and do not go to {each.lifetime.expired}")
        no_times(each, losses)
        if each.key == REST:
            default, last = RedeliveryEntry(REST, slow), PolicyEntry(REST, strategy)
            continue
        schemes = [each.key] if "://" in each.key else [f"queue://{each.key}", f"topic://{each.key}"]
        entries += [PolicyEntry(one, strategy) for one in schemes]
        resent += [RedeliveryEntry(one, slow) for one in schemes]
    losses.add("redeliveryPlugin redelivers what clients give up: their own policy must allow no redelivery")
    plugin = RedeliveryPlugin(tuple(resent), default)
    return ClassicRules(tuple(entries), last, (plugin,), scheduler_support=True)


def _known(pattern: Pattern) -> DeadLetterStrategy:
    """The strategy of a pattern as this broker has it: its own one is its shared one, and none is for the expired."""
    strategy = pattern.strategy
    if isinstance(strategy, BrokerDeadLetterStrategy):
        return DeadLetterRules().strategy
    if strategy.for_expired is None:
        return strategy
    kept = pattern.lifetime.expired is True or isinstance(strategy, DiscardingDeadLetterStrategy)
    return replace(strategy, for_expired=None, process_expired=kept)


def _at_least_a_second(key: str, policy: RedeliveryPolicy, losses: Losses) -> RedeliveryPolicy:
    first, later = policy.initial_redelivery_delay, policy.redelivery_delay
    if min(first, later) >= _SHORTEST:
        return policy
    losses.add(f"{key}: delays of less than a second become a second, as redeliveryPlugin needs it")
    return replace(policy, initial_redelivery_delay=max(first, _SHORTEST), redelivery_delay=max(later, _SHORTEST))


def to_qpid(policies: BrokerPolicies, losses: Losses) -> QpidRules:
    """The old broker's maximum for each queue, in one virtual host."""
    server, queues = QpidLevel("broker"), []
    for each in _of_queues(policies, losses):
        _no_delays(each, losses)
        no_times(each, losses)
        if each.lifetime.expired:
            losses.add(f"{each.key}: expired messages are removed")
        maximum, target = max(each.policy.maximum_redeliveries + 1, 0), dead_letter_queue(each, losses)
        if target is not None and target != f"{each.name}_DLQ":
            losses.add(f"{each.key}: dead letters go to a queue of their own with the suffix _DLQ, not to {target}")
        if each.key == REST:
            server = QpidLevel("broker", target is not None, maximum)
        elif not each.is_one:
            losses.add(f"{each.key}: there are no patterns, so it has the broker's values")
        elif not can_be_named(each.name):
            losses.add(f"{each.key}: config.xml needs a name that an element can have, so it has the broker's values")
        else:
            queues.append(QpidLevel(each.name, target is not None, maximum))
    return QpidRules(server, (QpidHost(QpidLevel("default"), tuple(queues)),) if queues else (), None)


def to_broker_j(policies: BrokerPolicies, losses: Losses) -> BrokerJRules:
    """Attributes for each queue, and context variables for all others, in one virtual host."""
    *found, others = _of_queues(policies, losses)
    context, queues = _broker_j_level(others, losses), []
    for each in found:
        level = _broker_j_level(each, losses)
        if not each.is_one:
            losses.add(f"{each.key}: there are no patterns, so it has the virtual host's values")
            continue
        if context.expiry_policy and not level.expiry_policy:
            level = replace(level, expiry_policy="DELETE")
        for name in ("minimum_message_ttl", "maximum_message_ttl"):
            if getattr(context, name) is not None and getattr(level, name) is None:
                losses.add(f"{each.key}: it has the virtual host's times to live")
        queues.append(BrokerJQueue(each.name, replace(level, alternate=level.alternate or "")))
    return BrokerJRules((BrokerJHost("default", tuple(queues), context=context),), "default")


def _broker_j_level(pattern: Pattern, losses: Losses) -> BrokerJLevel:
    _no_delays(pattern, losses)
    target, lifetime = dead_letter_queue(pattern, losses), pattern.lifetime
    routed = lifetime.expired is True and target is not None
    if isinstance(lifetime.expired, str):
        losses.add(f"{pattern.key}: expired messages are removed, and do not go to {lifetime.expired}")
    if routed:
        losses.add(f"{pattern.key}: an expired message with a time to live of its own expires in {target} too")
    attempts = max(pattern.policy.maximum_redeliveries + 1, 0)
    return BrokerJLevel(attempts, target, ROUTE_TO_ALTERNATE if routed else None, lifetime.most, lifetime.least)


def to_rabbitmq(policies: BrokerPolicies, losses: Losses) -> RabbitRules:
    """A policy for each pattern, by a regular expression; queues that are named become quorum queues."""
    rules, queues = [], []
    created = list(_created(policies))
    for number, each in enumerate(reversed(_of_queues(policies, losses))):
        _no_delays(each, losses)
        target, words = dead_letter_queue(each, losses), each.name.split(".")
        escaped = [re.escape(word) if word not in ("*", REST) else r"[^.]+" for word in words]
        if words[-1] == REST:
            pattern = "^" + r"\.".join(escaped[:-1]) + (r"(\.|$)" if escaped[:-1] else "")
        else:
            pattern = "^" + r"\.".join(escaped) + "$"
            if "*" not in words:
                queues.append(RabbitQueue(each.name, QUORUM))
        if isinstance(each.lifetime.expired, str) and target is not None:
            losses.add(f"{each.key}: expired messages go to {target}, not to {each.lifetime.expired}")
        elif not each.lifetime.expired and target is not None:
            losses.add(f"{each.key}: expired messages become dead letters too")
        if each.lifetime.least is not None:
            losses.add(f"{each.key}: the shortest time to live ({each.lifetime.least:g} s) is lost")
        level = _level(target, each.policy.maximum_redeliveries, each.lifetime.most)
        rules.append(
            RabbitPolicy(each.key, pattern, level, apply_to="queues", priority=number and number + len(created))
        )
    rules[1:1] = [replace(each, priority=number) for number, each in enumerate(reversed(created), 1)]
    losses.add("a delivery-limit counts in quorum queues only")
    # A policy with a limit has no effect on a classic queue, so that it would have no dead letters either.
    losses.add("the virtual host's default_queue_type becomes quorum, as RabbitMQ 3.11 and later understand")
    return RabbitRules(tuple(rules), tuple(queues), hosts=(RabbitHost("/", QUORUM),))


def _level(target: str | None, limit: int | None, ttl: float | None) -> RabbitLevel:
    exchange = None if target is None else ""
    return RabbitLevel(exchange, target, delivery_limit=limit, message_ttl=ttl)


def _created(policies: BrokerPolicies) -> list[RabbitPolicy]:
    """Broker-J's rules for queues that it makes by itself: their patterns are regular expressions too."""
    rules, found = policies.rules, []
    if not isinstance(rules, BrokerJRules):
        return []
    for host in sorted(rules.hosts, key=lambda each: each.name != rules.default_host)[:1]:
        for rule in host.auto_creation:
            levels = (rule.level, host.context, rules.context)
            attempts = next((e.maximum_delivery_attempts for e in levels if e.maximum_delivery_attempts is not None), 0)
            ttl = next((each.maximum_message_ttl for each in levels if each.maximum_message_ttl), None)
            target = next((each.alternate for each in levels if each.alternate is not None), None)
            level = _level(target or None, attempts - 1, ttl)
            found.append(RabbitPolicy(rule.pattern, f"^(?:{rule.pattern})$", level, apply_to="queues"))
    return found


def to_client_url(policies: BrokerPolicies, losses: Losses) -> ClientRules:
    """The policy of all destinations that are not named: a URL has one."""
    default = policies.redelivery_policies.default
    for each in patterns(policies):
        if each.key != REST and each.policy != default:
            losses.add(f"a URL has one policy for all destinations: that of {each.key} is lost")
        if not isinstance(_decision(each), Native):
            losses.add("a URL says nothing about dead letters")
        no_times(each, losses)
    return ClientRules(default)


def no_times(pattern: Pattern, losses: Losses) -> None:
    """Say that times to live are not changed."""
    lifetime = pattern.lifetime
    for what, seconds in (("shortest", lifetime.least), ("longest", lifetime.most)):
        if seconds is not None:
            losses.add(f"{pattern.key}: the {what} time to live ({seconds:g} s) is lost")


def _no_delays(pattern: Pattern, losses: Losses) -> None:
    if pattern.policy.initial_redelivery_delay or pattern.policy.redelivery_delay:
        losses.add(f"{pattern.key}: the delays are lost, as this broker redelivers at once")


def _decision(pattern: Pattern) -> object:
    return pattern.strategy.decide(example_of(pattern.key), persistent=True, expired=False, native_available=True)


def dead_letter_queue(pattern: Pattern, losses: Losses) -> str | None:
    """The one queue of a strategy; None where it discards."""
    strategy = pattern.strategy
    decision = _decision(pattern)
    if isinstance(strategy, IndividualDeadLetterStrategy) and pattern.is_one and isinstance(decision, CopyTo):
        return decision.destination.name
    if isinstance(strategy, IndividualDeadLetterStrategy):
        losses.add(f"{pattern.key}: dead-letter queues of their own become one, {DEFAULT_DEAD_LETTER_QUEUE}")
        return DEFAULT_DEAD_LETTER_QUEUE
    if isinstance(decision, Native):
        return DEFAULT_DEAD_LETTER_QUEUE
    return decision.destination.name if isinstance(decision, CopyTo) else None
