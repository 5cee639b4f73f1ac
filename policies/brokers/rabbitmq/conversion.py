"""Other rules as RabbitMQ's policies, and what others leave out of RabbitMQ's own."""

from __future__ import annotations

import re
from dataclasses import replace

from redelivery.model.destinations import Queue
from redelivery.policies.brokers.broker_j.rules import BrokerJLevel, BrokerJRules
from redelivery.policies.brokers.patterns import (
    Losses,
    dead_letter_queue,
    keeps,
    no_delays,
    patterns_of_queues,
    say_hosts,
)
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.brokers.rabbitmq.rules import RabbitRules
from redelivery.policies.brokers.rabbitmq.values import (
    ENDLESS,
    QUORUM,
    RabbitHost,
    RabbitLevel,
    RabbitPolicy,
    RabbitQueue,
)
from redelivery.policies.destinations.overlaps import is_exact
from redelivery.policies.destinations.patterns import ONE, REST
from redelivery.policies.files.expression_keys import keys_of


def to_rabbitmq(policies: BrokerPolicies, losses: Losses) -> RabbitRules:
    """Make a policy for each pattern, by a regular expression; queues that are named become quorum queues.

    So do those that get dead letters. A queue whose dead letters would come back to it keeps them, by a policy of its
    own: RabbitMQ would drop them.
    """
    rules, queues = list[RabbitPolicy](), list[RabbitQueue]()
    created = _created(policies)
    as_created = {key for each in created for key in keys_of(each.pattern, within=True).keys} - {REST}
    found = [each for each in patterns_of_queues(policies, losses) if each.key not in as_created]
    for number, each in enumerate(reversed(found)):
        no_delays(each, losses)
        target, words = dead_letter_queue(each, losses), each.name.split(".")
        escaped = [re.escape(word) if word not in (ONE, REST) else r"[^.]+" for word in words]
        if words[-1] == REST:
            pattern = "^" + r"\.".join(escaped[:-1]) + (r"(\.|$)" if escaped[:-1] else "")
        else:
            pattern = "^" + r"\.".join(escaped) + "$"
            if ONE not in words:
                queues.append(RabbitQueue(each.name, QUORUM))
        if isinstance(each.lifetime.expired, str) and target is not None:
            losses.add(f"{each.key}: expired messages go to {target}, not to {each.lifetime.expired}")
        elif not each.lifetime.expired and target is not None:
            losses.add(f"{each.key}: expired messages become dead letters too")
        if each.lifetime.least is not None:
            losses.add(f"{each.key}: the shortest time to live ({each.lifetime.least:g} s) is lost")
        level = _level(target, -1 if keeps(each) else each.policy.maximum_redeliveries, each.lifetime.most)
        rules.append(
            RabbitPolicy(each.key, pattern, level, apply_to="queues", priority=number and number + len(created))
        )
    rules[1:1] = [replace(each, priority=number) for number, each in enumerate(reversed(created), 1)]
    losses.add("a delivery-limit counts in quorum queues only")
    # A policy with a limit has no effect on a classic queue, so that it would have no dead letters either.
    losses.add("the virtual host's default_queue_type becomes quorum, as RabbitMQ 3.11 and later understand")
    return _with_targets(RabbitRules(tuple(rules), tuple(queues), hosts=(RabbitHost("/", QUORUM),)))


def _with_targets(made: RabbitRules) -> RabbitRules:
    """Add the queues of dead letters, and a policy for each that would be its own one."""
    there = {each.name for each in made.queues}
    targets = dict.fromkeys(each.level.dead_letter_routing_key for each in made.policies)
    queues = [RabbitQueue(name, QUORUM) for name in targets if name and name not in there]
    policies: list[RabbitPolicy] = []
    for queue in queues:
        _, level = made.levels_for(queue.name)[0]
        if level.dead_letter_routing_key == queue.name:
            own = _level(None, -1, level.message_ttl)
            pattern, priority = f"^{re.escape(queue.name)}$", len(made.policies) + len(policies)
            policies.append(RabbitPolicy(queue.name, pattern, own, apply_to="queues", priority=priority))
    return replace(made, policies=(*made.policies, *policies), queues=(*made.queues, *queues))


def _level(target: str | None, limit: int, ttl: float | None) -> RabbitLevel:
    """Make the settings of a policy; a ``limit`` below 0 is none, as each version of RabbitMQ takes it."""
    exchange = None if target is None else ""
    return RabbitLevel(exchange, target, delivery_limit=ENDLESS if limit < 0 else limit, message_ttl=ttl)


def _created(policies: BrokerPolicies) -> list[RabbitPolicy]:
    """Make policies of Broker-J's rules for queues that it makes by itself: their patterns are regular expressions."""
    rules, found = policies.rules, []
    if not isinstance(rules, BrokerJRules):
        return []
    for host in rules.ordered_hosts[:1]:
        for rule in (each for each in host.auto_creation if each.level != BrokerJLevel()):
            levels = (rule.level, host.context, rules.context)
            attempts = next((e.maximum_delivery_attempts for e in levels if e.maximum_delivery_attempts is not None), 0)
            ttl = next((each.maximum_message_ttl for each in levels if each.maximum_message_ttl), None)
            target = next((each.alternate for each in levels if each.alternate is not None), None)
            level = _level(target or None, attempts - 1, ttl)
            found.append(RabbitPolicy(rule.pattern, f"^(?:{rule.pattern})$", level, apply_to="queues"))
    return found


def say_unsaid(rules: RabbitRules, _to: str, losses: Losses) -> None:
    """Say what is lost of virtual hosts, and of policies by regular expressions for queues that the file lists not."""
    used = {*(each.virtual_host for each in rules.queues), *(each.virtual_host for each in rules.policies)}
    say_hosts((each for each in rules.queues_by_host() if each[0] in used), losses)
    for policy in rules.policies:
        if not rules.for_all(policy) and not keys_of(policy.pattern, within=True).complete:
            losses.add(f"{policy.title} ({policy.pattern}): only the queues that the file lists keep it")
    levels = [(f"policy {each.name!r}", each.level) for each in rules.policies]
    for where, level in [*levels, *((f"queue {each.name!r}", each.level) for each in rules.queues)]:
        if level.dead_letter_strategy is not None:
            losses.add(f"{where}: dead-letter-strategy = {level.dead_letter_strategy} is lost")
        if level.delayed_retry_min is not None or level.delayed_retry_type is not None:
            losses.add(f"{where}: the delays (delayed-retry) are lost")
    for queue in (each for each in rules.queues if is_exact(each.name)):
        found = rules.rules_for(Queue(queue.name))
        if found.dead_letter is not None and not found.dead_letter_queues:
            target = found.dead_letter
            losses.add(f"queue {queue.name!r}: dead letters are removed, as the file does not say where {target} leads")
        elif len(found.dead_letter_queues) > 1:
            losses.add(f"queue {queue.name!r}: its dead letters go to one queue, not to {found.dead_letter}")
