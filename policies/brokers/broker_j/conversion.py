"""Other rules as attributes of Broker-J's queues, and what others leave out of Broker-J's own."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from redelivery.policies.brokers.broker_j.names import ROUTE_TO_ALTERNATE
from redelivery.policies.brokers.broker_j.rules import (
    AutoCreation,
    BrokerJHost,
    BrokerJLevel,
    BrokerJQueue,
    BrokerJRules,
)
from redelivery.policies.brokers.patterns import (
    Losses,
    Pattern,
    dead_letter_queue,
    keeps,
    no_delays,
    patterns_of_queues,
    say_hosts,
)
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.files.expression_keys import keys_of

_ANY: Final = AutoCreation(".*")
_ENDLESS: Final = BrokerJLevel(0, alternate="")


def to_broker_j(policies: BrokerPolicies, losses: Losses) -> BrokerJRules:
    """Make attributes for each queue, and context variables for all others, in one virtual host.

    It has each queue that is named, also for dead letters, and makes others as they are used where the other broker
    does. A queue whose dead letters would come back to it keeps them: Broker-J would remove them.
    """
    *found, others = patterns_of_queues(policies, losses)
    context, queues = _level(others, losses), list[BrokerJQueue]()
    for each in found:
        level = _level(each, losses)
        if not each.is_one:
            losses.add(f"{each.key}: there are no patterns, so it has the virtual host's values")
            continue
        if context.expiry_policy and not level.expiry_policy:
            level = replace(level, expiry_policy="DELETE")
        _say_times(each.key, level, context, losses)
        queues.append(BrokerJQueue(each.name, replace(level, alternate=level.alternate or "")))
    there = {each.name for each in queues}
    for name in dict.fromkeys(level.alternate for level in (*(each.level for each in queues), context)):
        if name and name not in there:
            queues.append(BrokerJQueue(name, _ENDLESS if name == context.alternate else BrokerJLevel()))
            _say_times(name, queues[-1].level, context, losses)
    created = (_ANY,) if policies.rules.makes_queues else ()
    return BrokerJRules((BrokerJHost("default", tuple(queues), created, context),), "default")


def _say_times(key: str, level: BrokerJLevel, context: BrokerJLevel, losses: Losses) -> None:
    for name in ("minimum_message_ttl", "maximum_message_ttl"):
        if getattr(context, name) is not None and getattr(level, name) is None:
            losses.add(f"{key}: it has the virtual host's times to live")


def _level(pattern: Pattern, losses: Losses) -> BrokerJLevel:
    no_delays(pattern, losses)
    target, lifetime = dead_letter_queue(pattern, losses), pattern.lifetime
    routed = lifetime.expired is True and target is not None
    if isinstance(lifetime.expired, str):
        losses.add(f"{pattern.key}: expired messages are removed, and do not go to {lifetime.expired}")
    if routed:
        losses.add(f"{pattern.key}: an expired message with a time to live of its own expires in {target} too")
    attempts = 0 if keeps(pattern) else max(pattern.policy.maximum_redeliveries + 1, 0)
    return BrokerJLevel(attempts, target, ROUTE_TO_ALTERNATE if routed else None, lifetime.most, lifetime.least)


def say_unsaid(rules: BrokerJRules, to: str, losses: Losses) -> None:
    """Say what is lost of virtual hosts, and of queues that are made by a regular expression."""
    say_hosts(rules.queues_by_host(), losses)
    for number, host in enumerate(rules.ordered_hosts):
        for rule in host.auto_creation:
            if rule == _ANY:
                continue
            if number or (to != "rabbitmq" and not keys_of(rule.pattern, within=False).complete):
                losses.add(f"virtual host {host.name!r}: nodeAutoCreationPolicy {rule.pattern!r} is lost")
            elif to == "rabbitmq" and (
                rule.level.minimum_message_ttl is not None or rule.level.expiry_policy is not None
            ):
                losses.add(f"nodeAutoCreationPolicy {rule.pattern!r}: what happens to the expired is RabbitMQ's rule")
