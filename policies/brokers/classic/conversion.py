"""Other rules as ActiveMQ Classic's plug-in and strategies, and what others leave out of Classic's own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from redelivery.model.destinations import Topic, destination
from redelivery.policies.brokers.classic.arrivals import lost_of_arrivals
from redelivery.policies.brokers.classic.names import AUDIT, DISCARDING, ENTRY, STRATEGY
from redelivery.policies.brokers.classic.reader import read_activemq
from redelivery.policies.brokers.classic.rules import (
    ClassicRules,
    DeadLetterRules,
    DiscardingPlugin,
    PolicyEntry,
    RedeliveryEntry,
    RedeliveryPlugin,
)
from redelivery.policies.brokers.classic.writer import write_activemq
from redelivery.policies.brokers.patterns import Losses, Pattern, as_activemq, no_times, patterns, survives
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.dead_letters import (
    BrokerDeadLetterStrategy,
    DeadLetterStrategy,
    DiscardingDeadLetterStrategy,
    SharedDeadLetterStrategy,
)
from redelivery.policies.destinations.patterns import REST
from redelivery.policies.kinds import Names, changed
from redelivery.policies.redelivery import RedeliveryPolicy

_SHORTEST: Final = 1.0  # second, of ActiveMQ's redelivery plug-in
_EXPIRATION: Final = {"expiration": STRATEGY["expiration"]}
_OF_TOPICS: Final = {
    "useQueueForQueueMessages": "use_queue_for_queue_messages",
    "useQueueForTopicMessages": "use_queue_for_topic_messages",
}


def to_activemq(policies: BrokerPolicies, losses: Losses) -> ClassicRules:
    """Make the redelivery plug-in and a dead-letter strategy for each pattern."""
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
        if not survives(ClassicRules((PolicyEntry(schemes[0], strategy),)), write_activemq, read_activemq):
            losses.add(f"{each.key} is lost: its names cannot stand in a policyEntry")
            continue
        entries += [PolicyEntry(one, strategy) for one in schemes]
        resent += [RedeliveryEntry(one, slow) for one in schemes]
    losses.add("redeliveryPlugin redelivers what clients give up: their own policy must allow no redelivery")
    plugin = RedeliveryPlugin(tuple(resent), default)
    return ClassicRules(tuple(entries), last, (plugin,), scheduler_support=True)


def _known(pattern: Pattern) -> DeadLetterStrategy:
    """Return the strategy as this broker has it: its own one is its shared one, and none is for the expired."""
    strategy = pattern.strategy
    if isinstance(strategy, BrokerDeadLetterStrategy):
        return DeadLetterRules().strategy
    if strategy.for_expired is None:
        return strategy
    kept = pattern.lifetime.expired is True or isinstance(strategy, DiscardingDeadLetterStrategy)
    return replace(strategy, for_expired=None, process_expired=kept)


def _at_least_a_second(key: str, policy: RedeliveryPolicy, losses: Losses) -> RedeliveryPolicy:
    policy = as_activemq(key, policy, losses)
    first, later = policy.initial_redelivery_delay, policy.redelivery_delay
    if min(first, later) >= _SHORTEST:
        return policy
    losses.add(f"{key}: delays of less than a second become a second, as redeliveryPlugin needs it")
    return replace(policy, initial_redelivery_delay=max(first, _SHORTEST), redelivery_delay=max(later, _SHORTEST))


def say_unsaid(rules: ClassicRules, to: str, losses: Losses) -> None:
    """Say what only its strategies and plug-ins can do. A client's strategies can some of it."""
    brokers = to not in ("python", "uri")
    entries = [*rules.entries, *([rules.default_entry] if rules.default_entry else [])]
    for entry in entries:
        where, of = f"policyEntry {entry.pattern}", entry.dead_letters or DeadLetterRules()
        _say_changed(where, ENTRY, entry, PolicyEntry(">"), losses)
        _say_changed(where, AUDIT, of, DeadLetterRules(), losses)
        if not brokers:
            continue
        _say_changed(where, _EXPIRATION, of.strategy, SharedDeadLetterStrategy(), losses)
        for name, field in _OF_TOPICS.items():
            if getattr(of.strategy, field, True) is False:
                losses.add(f"{where}: {name} = false is lost: the dead letters are in queues")
        if isinstance(of.strategy, SharedDeadLetterStrategy):
            target = destination(of.strategy.dead_letter_queue)
            if isinstance(target, Topic):
                losses.add(f"{where}: the dead letters are in a queue, not in {target}")
    _say_arrivals(rules, entries, losses)
    strategies = [(each.dead_letters or DeadLetterRules()).strategy for each in (*entries, PolicyEntry(">"))]
    if brokers and not all(each.process_non_persistent for each in strategies):
        losses.add("processNonPersistent = false is lost: non-persistent messages become dead letters too")
    discarding = rules.discarding
    if discarding is not None and not (discarding.drop_all and to == "python"):
        names = {name: each for name, each in DISCARDING.items() if name != "dropAll"}
        if to == "python":
            names = {name: each for name, each in names.items() if name.startswith("dropTemporary")}
        _say_changed("discardingDLQBrokerPlugin", names, discarding, DiscardingPlugin(), losses)


def _say_arrivals(rules: ClassicRules, entries: Iterable[PolicyEntry], losses: Losses) -> None:
    for entry in entries:
        if entry.pending_limit is not None and entry.pending_limit.of(1) is not None:
            losses.add(f"policyEntry {entry.pattern}: pendingMessageLimitStrategy {entry.pending_limit} is lost")
        if entry.slow_consumers is not None and entry.slow_consumers.ends_some:
            losses.add(f"policyEntry {entry.pattern}: {entry.slow_consumers} is lost")
    for text in lost_of_arrivals(rules.arrivals):
        losses.add(text)


def _say_changed(where: str, names: Names, value: object, usual: object, losses: Losses) -> None:
    for name, text in changed(names, value, usual).items():
        losses.add(f"{where}: {name} = {text} is lost")
