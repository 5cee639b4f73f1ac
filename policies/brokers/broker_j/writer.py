"""Writes an initial configuration of Qpid Broker-J, to which ports and authentication must be added."""

from __future__ import annotations

import json
from typing import Any

from redelivery.policies.brokers.broker_j.names import CONTEXT, written
from redelivery.policies.brokers.broker_j.rules import BrokerJExchange, BrokerJHost, BrokerJLevel, BrokerJRules
from redelivery.policies.kinds import FLAG


def write_broker_j(rules: BrokerJRules) -> str:
    """Write the document."""
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
                "createdOnPublish": FLAG.spell(rule.on_publish),
                "createdOnConsume": "true",
                "nodeType": "queue",
                "attributes": written(rule.level),
            }
            for rule in host.auto_creation
        ]
    document["queues"] = [
        {"name": queue.name, "type": "standard", **written(queue.level), **_context(queue.context)}
        for queue in host.queues
    ]
    if host.exchanges:
        document["exchanges"] = [_exchange(each) for each in host.exchanges]
    return document


def _exchange(exchange: BrokerJExchange) -> dict[str, Any]:
    bindings = [
        {"destination": queue, "bindingKey": key, "name": key, "arguments": {}} for queue, key in exchange.bindings
    ]
    return {"name": exchange.name, "type": exchange.kind, "durableBindings": bindings}


def _context(level: BrokerJLevel) -> dict[str, Any]:
    given = written(level)
    texts = {
        variable: json.dumps(given[name], ensure_ascii=False) if isinstance(given[name], dict) else str(given[name])
        for variable, name in CONTEXT.items()
        if name in given
    }
    return {"context": texts} if texts else {}
