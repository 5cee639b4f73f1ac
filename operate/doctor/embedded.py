"""Asks an embedded broker of this process about itself; it says nothing to other processes."""

from __future__ import annotations

from redelivery.broker.registry import running
from redelivery.client.entry.sync import Connection
from redelivery.operate.doctor.observed import ObservedQueue
from redelivery.policies.brokers.classic.rules import ClassicRules, DeadLetterRules, PolicyEntry
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.connection_url import parse_connection_url


def is_embedded_here(connection: Connection) -> bool:
    """Check whether the broker is reached by ``vm://``."""
    return connection.metadata.protocol == "vm"


def embedded_queues(connection: Connection) -> dict[str, ObservedQueue]:
    """All queues that are neither temporary nor a topic's."""
    broker = running(parse_connection_url(connection.url).host)
    if broker is None:
        return {}
    return broker.core.call(
        lambda engine, _now: {
            name: ObservedQueue(name, len(queue), len(queue.consumers))
            for name, queue in engine.queues.items()
            if queue.binding is None and "://" not in name
        }
    )


def embedded_rules(connection: Connection) -> BrokerPolicies | None:
    """The rules that it obeys: those of a file, or ActiveMQ's with its dead-letter strategies."""
    broker = running(parse_connection_url(connection.url).host)
    if broker is None:
        return None
    config = broker.core.config
    rules = config.rules
    if rules is None:
        strategies = config.dead_letter_strategies
        entries = tuple(PolicyEntry(key, DeadLetterRules(strategy)) for key, strategy in strategies.items())
        rules = ClassicRules(entries, PolicyEntry(">", DeadLetterRules(config.dead_letter_strategy)))
    return BrokerPolicies("the broker itself", rules.dialect, rules)
