"""Asks an embedded broker about itself: one of this process for all, one of another for its queues."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from redelivery.broker.engine.statistics import ASKED, QueueStatistics, statistics
from redelivery.broker.registry import running
from redelivery.client.entry.sync import Connection
from redelivery.operate.doctor.observed import ObservedQueue
from redelivery.policies.brokers.classic.rules import ClassicRules, DeadLetterRules, PolicyEntry
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.connection_url import parse_connection_url

_SECONDS: Final = 5.0  # for an answer


def is_embedded_here(connection: Connection) -> bool:
    """Check whether the broker is reached by ``vm://``."""
    return connection.metadata.protocol == "vm"


def is_embedded(connection: Connection) -> bool:
    """Check whether it is one, of whichever process."""
    return is_embedded_here(connection) or connection.metadata.provider_name == "redelivery"


def embedded_queues(connection: Connection, names: Iterable[str] = ()) -> dict[str, ObservedQueue]:
    """All queues that are neither temporary nor a topic's; of another process, these are there, too, if only empty.

    Raises:
        RequestTimeoutError: it is a version that does not answer.
        JMSError: as `Connection.request`.
    """
    if is_embedded_here(connection):
        broker = running(parse_connection_url(connection.url).host)
        found = [] if broker is None else broker.core.call(lambda engine, _now: list(statistics(engine.queues)))
    else:
        said = connection.request(ASKED, "", _SECONDS, persistent=False).body
        empty = {name: ObservedQueue(name, 0, 0) for name in names}
        return empty | {each["name"]: _observed(QueueStatistics(**each)) for each in json.loads(str(said))}
    return {each.name: _observed(each) for each in found}


def _observed(queue: QueueStatistics) -> ObservedQueue:
    return ObservedQueue(
        queue.name,
        queue.messages,
        queue.consumers,
        in_flight=queue.in_flight,
        held_back=queue.retries,
        enqueued=queue.enqueued,
        dequeued=queue.dequeued,
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
