"""A configuration as the rules of another broker; each says what that broker cannot."""

from __future__ import annotations

from redelivery.model.destinations import Destination, Queue, Topic
from redelivery.operate.losses import Losses
from redelivery.policies.brokers.artemis import AddressEntry, ArtemisRules
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
from redelivery.policies.brokers.rabbitmq import QUORUM, RabbitLevel, RabbitPolicy, RabbitQueue, RabbitRules
from redelivery.policies.dead_letters import (
    DEFAULT_DEAD_LETTER_QUEUE,
    CopyTo,
    DeadLetterStrategy,
    IndividualDeadLetterStrategy,
    Native,
    SharedDeadLetterStrategy,
)
from redelivery.policies.destinations.address_settings import AddressSettings
from redelivery.policies.redelivery import RedeliveryPolicy
from redelivery.policies.writers.qpid import can_be_named

_REST = ">"
_TOPIC = "topic://"
_SHORTEST = 1.0  # second, of ActiveMQ's redelivery plug-in


def _patterns(policies: BrokerPolicies) -> dict[str, tuple[RedeliveryPolicy, DeadLetterStrategy]]:
    """Each pattern that either map names, with what counts for it; ``>`` last, for all others."""
    redeliveries, strategies = policies.redelivery_policies, policies.dead_letter_strategies
    keys = dict.fromkeys([*(each.key for each in redeliveries.entries), *(each.key for each in strategies.entries)])
    keys.pop(_REST, None)
    found = {}
    for key in (*keys, _REST):
        target = _destination(key)
        found[key] = (redeliveries.policy_for(target), strategies.strategy_for(target))
    return found


def _queue_patterns(policies: BrokerPolicies, losses: Losses) -> dict[str, tuple[RedeliveryPolicy, DeadLetterStrategy]]:
    """The same of queues."""
    found = _patterns(policies)
    for key in [each for each in found if each.startswith(_TOPIC)]:
        losses.add(f"{key}: there are rules for queues only")
        del found[key]
    return found


def _destination(key: str) -> Destination:
    kind = Topic if key.startswith(_TOPIC) else Queue
    return kind(key.partition("://")[2] or key)


def to_artemis(policies: BrokerPolicies, losses: Losses) -> ArtemisRules:
    """Address settings for each pattern."""
    return ArtemisRules(entries=tuple(_address_entries(policies, losses, "")))


def to_hornetq(policies: BrokerPolicies, losses: Losses) -> ArtemisRules:
    """The same with HornetQ's names of addresses, and without collision avoidance."""
    return ArtemisRules("hornetq", tuple(_address_entries(policies, losses, "jms.")))


def _address_entries(policies: BrokerPolicies, losses: Losses, prefix: str) -> list[AddressEntry]:
    entries: list[AddressEntry] = []
    patterns = sorted(_patterns(policies).items(), key=lambda each: (each[0] == _REST, each[0].startswith(_TOPIC)))
    for key, (policy, strategy) in patterns:
        scheme, separator, name = key.rpartition("://")
        match = name.replace(">", "#")
        if separator and not prefix:
            losses.add(f"an address-setting is for queues and topics alike: {key} becomes {match}")
        schemes = [scheme] if separator else ["queue", "topic"]
        matches = [f"{prefix}{each}.{match}" for each in schemes] if prefix and key != _REST else [match]
        if policy.initial_redelivery_delay != policy.redelivery_delay and not policy.use_exponential_back_off:
            losses.add(f"{key}: the first delay ({policy.initial_redelivery_delay:g} s) is that of all redeliveries")
        values: dict[str, object] = {
            "redelivery_delay": policy.initial_redelivery_delay,
            "max_delivery_attempts": policy.maximum_redeliveries + 1 if policy.maximum_redeliveries >= 0 else -1,
        }
        if policy.use_exponential_back_off:
            values["redelivery_delay_multiplier"] = policy.back_off_multiplier
            cap = policy.maximum_redelivery_delay
            values["max_redelivery_delay"] = 10**9 if cap is None else cap
        if policy.use_collision_avoidance and prefix:
            losses.add(f"{key}: HornetQ has no collision avoidance")
        elif policy.use_collision_avoidance:
            values["redelivery_collision_avoidance_factor"] = policy.collision_avoidance_percent / 100
            losses.add(f"{key}: collision avoidance moves the first delay too, and does not add up")
        values |= _dead_letter_address(key, prefix, strategy, losses)
        settings = AddressSettings(**values)  # type: ignore[arg-type]  # of the right types
        for each in matches:
            if any(other.match == each for other in entries):
                losses.add(f"{key}: {each} has the settings of the queues of that name")
            else:
                entries.append(AddressEntry(each, settings))
    return entries


def _dead_letter_address(key: str, prefix: str, strategy: DeadLetterStrategy, losses: Losses) -> dict[str, object]:
    """The settings of dead letters; queues of their own are those that Artemis creates."""
    if isinstance(strategy, IndividualDeadLetterStrategy) and not prefix:
        of_topics = key.startswith(_TOPIC)
        return {
            "dead_letter_address": DEFAULT_DEAD_LETTER_QUEUE,
            "auto_create_dead_letter_resources": True,
            "dead_letter_queue_prefix": strategy.topic_prefix if of_topics else strategy.queue_prefix,
            "dead_letter_queue_suffix": strategy.topic_suffix if of_topics else strategy.queue_suffix,
        }
    target = _dead_letter_queue(key, strategy, losses)
    if target is None and key != _REST:
        losses.add(f"{key}: dead letters are not removed where a less specific address-setting has an address for them")
    return {} if target is None else {"dead_letter_address": f"{prefix}queue.{target}" if prefix else target}


def to_activemq(policies: BrokerPolicies, losses: Losses) -> ClassicRules:
    """The redelivery plug-in and a dead-letter strategy for each pattern."""
    entries, resent, default = [], [], None
    for key, (policy, strategy) in _patterns(policies).items():
        slow = _at_least_a_second(key, policy, losses)
        if key == _REST:
            default = RedeliveryEntry(_REST, slow)
            last = PolicyEntry(_REST, DeadLetterRules(_known(strategy)))
            continue
        schemes = [key] if "://" in key else [f"queue://{key}", f"topic://{key}"]
        entries += [PolicyEntry(each, DeadLetterRules(_known(strategy))) for each in schemes]
        resent += [RedeliveryEntry(each, slow) for each in schemes]
    losses.add("redeliveryPlugin redelivers what clients give up: their own policy must allow no redelivery")
    plugin = RedeliveryPlugin(tuple(resent), default)
    return ClassicRules(tuple(entries), last, (plugin,), scheduler_support=True)


def _known(strategy: DeadLetterStrategy) -> DeadLetterStrategy:
    """The broker's own strategy is its shared one."""
    return DeadLetterRules().strategy if type(strategy).__name__ == "BrokerDeadLetterStrategy" else strategy


def _at_least_a_second(key: str, policy: RedeliveryPolicy, losses: Losses) -> RedeliveryPolicy:
    from dataclasses import replace

    first, later = policy.initial_redelivery_delay, policy.redelivery_delay
    if min(first, later) >= _SHORTEST:
        return policy
    losses.add(f"{key}: delays of less than a second become a second, as redeliveryPlugin needs it")
    return replace(policy, initial_redelivery_delay=max(first, _SHORTEST), redelivery_delay=max(later, _SHORTEST))


def to_qpid(policies: BrokerPolicies, losses: Losses) -> QpidRules:
    """The old broker's maximum for each queue, in one virtual host."""
    server, queues = QpidLevel("broker"), []
    for key, (policy, strategy) in _queue_patterns(policies, losses).items():
        _no_delays(key, policy, losses)
        maximum = max(policy.maximum_redeliveries + 1, 0)
        target = _dead_letter_queue(key, strategy, losses)
        if target is not None:
            losses.add(f"{key}: dead letters go to a queue of their own with the suffix _DLQ, not to {target}")
        name = key.partition("://")[2] or key
        if key == _REST:
            server = QpidLevel("broker", target is not None, maximum)
        elif set(name.split(".")) & {"*", ">"}:
            losses.add(f"{key}: there are no patterns, so it has the broker's values")
        elif not can_be_named(name):
            losses.add(f"{key}: config.xml needs a name that an element can have, so it has the broker's values")
        else:
            queues.append(QpidLevel(name, target is not None, maximum))
    return QpidRules(server, (QpidHost(QpidLevel("default"), tuple(queues)),) if queues else (), None)


def to_broker_j(policies: BrokerPolicies, losses: Losses) -> BrokerJRules:
    """Attributes for each queue, and context variables for all others, in one virtual host."""
    context, queues = BrokerJLevel(), []
    for key, (policy, strategy) in _queue_patterns(policies, losses).items():
        _no_delays(key, policy, losses)
        target = _dead_letter_queue(key, strategy, losses)
        attempts = max(policy.maximum_redeliveries + 1, 0)
        name = key.partition("://")[2] or key
        if key == _REST:
            context = BrokerJLevel(attempts, target)
        elif set(name.split(".")) & {"*", ">"}:
            losses.add(f"{key}: there are no patterns, so it has the virtual host's values")
        else:
            queues.append(BrokerJQueue(name, BrokerJLevel(attempts, target or "")))
    return BrokerJRules((BrokerJHost("default", tuple(queues), context=context),), "default")


def to_rabbitmq(policies: BrokerPolicies, losses: Losses) -> RabbitRules:
    """A policy for each pattern, by a regular expression; queues that are named become quorum queues."""
    import re

    rules, queues = [], []
    for number, (key, (policy, strategy)) in enumerate(reversed(_queue_patterns(policies, losses).items())):
        _no_delays(key, policy, losses)
        target = _dead_letter_queue(key, strategy, losses)
        name = key.partition("://")[2] or key
        words = [re.escape(word) if word not in ("*", ">") else r"[^.]+" for word in name.split(".")]
        if name.split(".")[-1] == ">":
            pattern = "^" + r"\.".join(words[:-1]) + (r"(\.|$)" if words[:-1] else "")
        else:
            pattern = "^" + r"\.".join(words) + "$"
            if "*" not in name.split("."):
                queues.append(RabbitQueue(name, QUORUM))
        level = RabbitLevel(
            dead_letter_exchange=None if target is None else "",
            dead_letter_routing_key=target,
            delivery_limit=policy.maximum_redeliveries,
        )
        rules.append(RabbitPolicy(key, pattern, level, apply_to="queues", priority=number))
    losses.add("a delivery-limit counts in quorum queues only")
    return RabbitRules(tuple(rules), tuple(queues))


def to_client_url(policies: BrokerPolicies, losses: Losses) -> ClientRules:
    """The policy of all destinations that are not named: a URL has one."""
    for key, (policy, strategy) in _patterns(policies).items():
        if key != _REST and policy != policies.redelivery_policies.default:
            losses.add(f"a URL has one policy for all destinations: that of {key} is lost")
        if not isinstance(_decision(key, strategy), Native):
            losses.add("a URL says nothing about dead letters")
    return ClientRules(policies.redelivery_policies.default)


def _no_delays(key: str, policy: RedeliveryPolicy, losses: Losses) -> None:
    if policy.initial_redelivery_delay or policy.redelivery_delay:
        losses.add(f"{key}: the delays are lost, as this broker redelivers at once")


def _decision(key: str, strategy: DeadLetterStrategy) -> object:
    target = _destination(key.replace("*", "x").replace(">", "x"))
    return strategy.decide(target, persistent=True, expired=False, native_available=True)


def _dead_letter_queue(key: str, strategy: DeadLetterStrategy, losses: Losses) -> str | None:
    """The one queue of a strategy; None where it discards."""
    if isinstance(strategy, IndividualDeadLetterStrategy):
        losses.add(f"{key}: dead-letter queues of their own become one, {DEFAULT_DEAD_LETTER_QUEUE}")
        return DEFAULT_DEAD_LETTER_QUEUE
    decision = _decision(key, strategy)
    if isinstance(decision, Native):
        return DEFAULT_DEAD_LETTER_QUEUE
    if not isinstance(decision, CopyTo):
        return None
    if not (strategy.process_expired and isinstance(strategy, SharedDeadLetterStrategy)):
        losses.add(f"{key}: which messages become dead letters (expired, non-persistent) is the broker's own rule")
    return decision.destination.name
