"""Writes RabbitMQ's definitions: policies, queues and bindings."""

from __future__ import annotations

import json
from typing import Any

from redelivery.policies.brokers.rabbitmq import RabbitHost, RabbitLevel, RabbitPolicy, RabbitRules
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
    if rules.hosts:
        document["vhosts"] = [_host(each) for each in rules.hosts]
    if rules.exchanges is not None:
        document["exchanges"] = [
            {
                "name": each.name,
                "vhost": each.virtual_host,
                "type": each.kind,
                "durable": True,
                "auto_delete": False,
                "internal": False,
                "arguments": {} if each.alternate is None else {"alternate-exchange": each.alternate},
            }
            for each in rules.exchanges
        ]
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
            "destination_type": "exchange" if each.to_exchange else "queue",
            "routing_key": each.routing_key,
            "arguments": {name: _json(value) for name, value in each.arguments},
        }
        for each in rules.bindings
    ]
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _host(host: RabbitHost) -> dict[str, Any]:
    """With its default type in both places in which versions look for it."""
    if host.default_kind is None:
        return {"name": host.name}
    return {
        "name": host.name,
        "metadata": {"default_queue_type": host.default_kind},
        "default_queue_type": host.default_kind,
    }


def policy_as_json(policy: RabbitPolicy) -> dict[str, Any]:
    """A policy as definitions have it."""
    return {
        "vhost": policy.virtual_host,
        "name": policy.name,
        "pattern": policy.pattern,
        "apply-to": policy.apply_to,
        "definition": {**_level(policy.level, ""), **{name: _json(value) for name, value in policy.others}},
        "priority": policy.priority,
    }


def _level(level: RabbitLevel, prefix: str) -> dict[str, Any]:
    given = {name: getattr(level, field) for name, (field, _) in RABBIT_NAMES.items()}
    return {
        prefix + name: to_ms(value) if isinstance(value, float) else value
        for name, value in given.items()
        if value is not None
    }


def _json(value: Any) -> Any:
    """A list or an object again, as the reader has made it a tuple."""
    if not isinstance(value, tuple):
        return value
    if value and all(isinstance(each, tuple) and len(each) == 2 and isinstance(each[0], str) for each in value):
        return {name: _json(each) for name, each in value}
    return [_json(each) for each in value]
