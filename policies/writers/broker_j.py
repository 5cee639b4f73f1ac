"""Writes an initial configuration of Qpid Broker-J, to which ports and authentication must be added."""

from __future__ import annotations

import json
from typing import Any

from redelivery.model.errors import ConfigError
from redelivery.policies.brokers.broker_j import BrokerJHost, BrokerJLevel, BrokerJRules
from redelivery.policies.checks import to_ms


def write_broker_j(rules: BrokerJRules) -> str:
    """The document.

    Raises:
        ConfigError: a context variable cannot say that there is no alternate binding.
    """
    nodes = []
    for host in rules.hosts:
        node: dict[str, Any] = {"name": host.name, "type": "Memory"}
        if host.name == rules.default_host:
            node["defaultVirtualHostNode"] = "true"
        node["virtualHostInitialConfiguration"] = json.dumps(_host(host), ensure_ascii=False)
        nodes.append(node)
    document: dict[str, Any] = {"name": "${broker.name}", "modelVersion": "9.0"}
    document |= _context(rules.context)
    document["virtualhostnodes"] = nodes
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _host(host: BrokerJHost) -> dict[str, Any]:
    document: dict[str, Any] = {"type": "Memory", **_context(host.context)}
    if host.auto_creation:
        document["nodeAutoCreationPolicies"] = [
            {
                "pattern": rule.pattern,
                "createdOnPublish": "true",
                "createdOnConsume": "true",
                "nodeType": "queue",
                "attributes": level_as_json(rule.level),
            }
            for rule in host.auto_creation
        ]
    document["queues"] = [
        {"name": queue.name, "type": "standard", **level_as_json(queue.level), **_context(queue.context)}
        for queue in host.queues
    ]
    return document


def level_as_json(level: BrokerJLevel) -> dict[str, Any]:
    """The attributes of a queue that a level sets."""
    document: dict[str, Any] = {}
    if level.maximum_delivery_attempts is not None:
        document["maximumDeliveryAttempts"] = level.maximum_delivery_attempts
    if level.alternate:
        document["alternateBinding"] = {"destination": level.alternate}
    elif level.alternate == "":
        document["x-qpid-dlq-enabled"] = "false"
    if level.expiry_policy is not None:
        document["expiryPolicy"] = level.expiry_policy
    if level.maximum_message_ttl is not None:
        document["maximumMessageTtl"] = to_ms(level.maximum_message_ttl)
    if level.minimum_message_ttl is not None:
        document["minimumMessageTtl"] = to_ms(level.minimum_message_ttl)
    return document


def _context(level: BrokerJLevel) -> dict[str, Any]:
    if level.alternate == "":
        raise ConfigError("a context variable cannot say that there is no alternate binding")
    variables = {
        "queue.maximumDeliveryAttempts": level.maximum_delivery_attempts,
        "queue.defaultAlternateBinding": _text({"destination": level.alternate}) if level.alternate else None,
        "queue.defaultExpiryPolicy": level.expiry_policy,
        "queue.maximumMessageTtl": None if level.maximum_message_ttl is None else to_ms(level.maximum_message_ttl),
        "queue.minimumMessageTtl": None if level.minimum_message_ttl is None else to_ms(level.minimum_message_ttl),
    }
    given = {name: str(value) for name, value in variables.items() if value is not None}
    return {"context": given} if given else {}


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
