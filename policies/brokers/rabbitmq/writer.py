"""Writes RabbitMQ's definitions: policies, queues and bindings."""

from __future__ import annotations

import json
from typing import Any, Final

from redelivery.policies.brokers.rabbitmq.names import ARGUMENT, plain_json, written
from redelivery.policies.brokers.rabbitmq.rules import RabbitRules
from redelivery.policies.brokers.rabbitmq.values import RabbitBinding, RabbitHost, RabbitPolicy

_LASTING: Final = {"durable": True, "auto_delete": False}


def write_rabbitmq(rules: RabbitRules) -> str:
    """Write the document."""
    document: dict[str, Any] = {}
    if rules.version is not None:
        document["rabbitmq_version"] = rules.version
    document["policies"] = [_policy(each) for each in rules.policies if not each.operator]
    operators = [_policy(each) for each in rules.policies if each.operator]
    if operators:
        document["operator_policies"] = operators
    if rules.hosts:
        document["vhosts"] = [_host(each) for each in rules.hosts]
    if rules.exchanges is not None:
        document["exchanges"] = [
            {"name": each.name, "vhost": each.virtual_host, "type": each.kind, **_LASTING, "internal": False}
            | {"arguments": {} if each.alternate is None else {"alternate-exchange": each.alternate}}
            for each in rules.exchanges
        ]
    document["queues"] = [
        {"name": each.name, "vhost": each.virtual_host, **_LASTING}
        | {"arguments": {"x-queue-type": each.kind, **written(each.level, ARGUMENT)}}
        for each in rules.queues
    ]
    document["bindings"] = [_binding(each) for each in rules.bindings]
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _host(host: RabbitHost) -> dict[str, Any]:
    """Write a virtual host with its default type in both places in which versions look for it."""
    if host.default_kind is None:
        return {"name": host.name}
    return {
        "name": host.name,
        "metadata": {"default_queue_type": host.default_kind},
        "default_queue_type": host.default_kind,
    }


def _binding(binding: RabbitBinding) -> dict[str, Any]:
    return {
        "source": binding.exchange,
        "vhost": binding.virtual_host,
        "destination": binding.queue,
        "destination_type": "exchange" if binding.to_exchange else "queue",
        "routing_key": binding.routing_key,
        "arguments": {name: plain_json(value) for name, value in binding.arguments},
    }


def _policy(policy: RabbitPolicy) -> dict[str, Any]:
    return {
        "vhost": policy.virtual_host,
        "name": policy.name,
        "pattern": policy.pattern,
        "apply-to": policy.apply_to,
        "definition": policy.definition,
        "priority": policy.priority,
    }
