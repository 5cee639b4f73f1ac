"""Writes RabbitMQ's definitions: policies, queues and bindings."""

from __future__ import annotations

import json
from typing import Any

from redelivery.policies.brokers.rabbitmq import RabbitLevel, RabbitPolicy, RabbitRules
from redelivery.policies.checks import to_ms
from redelivery.policies.readers.rabbitmq import RABBIT_NAMES


def write_rabbitmq(rules: RabbitRules) -> str:
    """The document."""
    document: dict[str, Any] = {}
    if rules.version is not None:
        document["rabbitmq_version"] = rules.version
    document["policies"] = [policy_as_json(each) for each in rules.policies if not each.operator]
    operators = [policy_as_json(each) for each in rules.policies if each.operator]
    if operators:
        document["operator_policies"] = operators
    document["queues"] = [
        {
            "name": queue.name,
            "vhost": queue.virtual_host,
            "durable": True,
            "auto_delete": False,
            "arguments": {"x-queue-type": queue.kind, **_level(queue.level, "x-")},
        }
        for queue in rules.queues
    ]
    document["bindings"] = [
        {
            "source": each.exchange,
            "vhost": each.virtual_host,
            "destination": each.queue,
            "destination_type": "queue",
            "routing_key": each.routing_key,
            "arguments": {},
        }
        for each in rules.bindings
    ]
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def policy_as_json(policy: RabbitPolicy) -> dict[str, Any]:
    """A policy as definitions have it."""
    return {
        "vhost": policy.virtual_host,
        "name": policy.name,
        "pattern": policy.pattern,
        "apply-to": policy.apply_to,
        "definition": _level(policy.level, ""),
        "priority": policy.priority,
    }


def _level(level: RabbitLevel, prefix: str) -> dict[str, Any]:
    given = {name: getattr(level, field) for name, (field, _) in RABBIT_NAMES.items()}
    return {
        prefix + name: to_ms(value) if isinstance(value, float) else value
        for name, value in given.items()
        if value is not None
    }
