"""Asks RabbitMQ 4 over AMQP for queues by their names: their types, arguments and depths, and no policies."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from redelivery.client.entry.sync import Connection
from redelivery.client.operations.destinations import describe
from redelivery.client.sync.session import Session
from redelivery.model.destinations import Queue
from redelivery.operate.doctor.findings import Finding
from redelivery.operate.doctor.observed import ObservedQueue
from redelivery.operate.doctor.rabbitmq.reported import check_stream
from redelivery.policies.brokers.formats import read_content
from redelivery.policies.brokers.policies import BrokerPolicies

Described = Mapping[str, Mapping[str, Any]]
NOT_NAMED: Final = "queues that nobody named by --queue: pass --management http://user:password@host:15672"
_OF_ITS_OWN: Final = ("removed", "no-limit", "client-limit")
_ELSEWHERE: Final = ("unbound",)  # of queues that nobody named nothing is known


def describes_queues(connection: Connection) -> bool:
    """Check whether it is RabbitMQ 4 over AMQP."""
    meta = connection.metadata
    is_amqp = meta.protocol.upper().startswith("AMQP")
    return connection.dialect == "rabbitmq" and is_amqp and meta.capabilities.declares


def described_queues(connection: Connection, names: Iterable[str]) -> Described:
    """The queues among these names that exist, by name. Raises JMSError: the broker does not answer, or refuses."""
    with connection.session() as session:
        asked = ((name, _described(session, Queue(name))) for name in names)
        return {name: each for name, each in asked if each is not None}


def _described(session: Session, queue: Queue) -> Mapping[str, Any] | None:
    core = session._core
    return session._loop.inside("describe", lambda: core.do(describe(core, queue)))


def described_states(found: Described) -> dict[str, ObservedQueue]:
    """The numbers of their messages and consumers."""
    return {
        name: ObservedQueue(name, int(each.get("message_count") or 0), int(each.get("consumer_count") or 0))
        for name, each in found.items()
    }


def described_rules(found: Described, version: str) -> BrokerPolicies:
    """The rules in their own arguments."""
    queues = [
        {"name": name, "type": each.get("type"), "durable": True, "arguments": dict(each.get("arguments") or {})}
        for name, each in found.items()
    ]
    content = json.dumps({"rabbitmq_version": version, "queues": queues}, default=str).encode()
    return read_content(content, "the broker itself", format="rabbitmq", strict=False)


def check_streams(found: Described) -> Iterator[Finding]:
    """The findings about streams that are read as queues."""
    for name, each in found.items():
        number = int(each.get("consumer_count") or 0)
        if each.get("type") == "stream" and number:
            yield check_stream(f"queue://{name}", f"{number} consumer{' reads' if number == 1 else 's read'}")


def unless_a_policy(findings: Iterable[Finding]) -> Iterator[Finding]:
    """The findings of rules that are not all: none of them is certain."""
    for each in findings:
        if each.check in _OF_ITS_OWN:
            yield replace(each, level="warning", what=f"{each.what}, unless a policy says otherwise")
        elif each.check not in _ELSEWHERE:
            yield each
