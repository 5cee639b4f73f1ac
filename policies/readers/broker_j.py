"""Reads the JSON of Qpid Broker-J: a broker's ``config.json`` or initial configuration, or a virtual host's file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from redelivery.model.errors import ConfigError
from redelivery.model.suggestions import unknown_option
from redelivery.policies.brokers.broker_j import (
    DLQ_SUFFIX,
    AutoCreation,
    BrokerJHost,
    BrokerJLevel,
    BrokerJQueue,
    BrokerJRules,
)
from redelivery.policies.brokers.places import ConfigFileError, Setting
from redelivery.policies.checks import INT_MAX, LONG_MAX, read_flag, read_whole
from redelivery.policies.readers.expressions import bounded_expression
from redelivery.policies.readers.json_tree import Json, listed, parse_json
from redelivery.policies.readers.report import Report

_CONCERNS: Final = re.compile(r"redel|deliv|alternate|dead|dlq", re.IGNORECASE)
_POLICIES: Final = ("DELETE", "ROUTE_TO_ALTERNATE")
_READ: Final = (
    "maximumDeliveryAttempts",
    "alternateBinding",
    "expiryPolicy",
    "maximumMessageTtl",
    "minimumMessageTtl",
    "x-qpid-maximum-delivery-count",
    "x-qpid-dlq-enabled",
    "alternateExchange",
)
_OTHER: Final = frozenset({"ensureNondestructiveConsumers", "defaultAlternateBinding"})
_CONTEXT: Final = {
    "queue.maximumDeliveryAttempts": "maximumDeliveryAttempts",
    "queue.defaultAlternateBinding": "alternateBinding",
    "queue.maximumMessageTtl": "maximumMessageTtl",
    "queue.minimumMessageTtl": "minimumMessageTtl",
    "queue.defaultExpiryPolicy": "expiryPolicy",
}


def read_broker_j(root: Json, report: Report) -> BrokerJRules:
    """The rules of a document. What is wrong, or skipped, is in the report."""
    nodes = root.get("virtualhostnodes")
    hosts = root.get("virtualhosts")
    if nodes is None and hosts is None:
        return BrokerJRules((_host(root, "default", BrokerJLevel(), report),), "default")
    for name, section in root.items():
        if name not in ("virtualhostnodes", "virtualhosts", "context", "name", "modelVersion", "id"):
            report.skip(name, section.place)
    found: list[BrokerJHost] = []
    default = None
    for node in listed(nodes, "virtualhostnodes", report.problem):
        name = _name(node) or "default"
        if _flag(node.get("defaultVirtualHostNode")):
            default = name
        found += _hosts_of(node, name, report)
    for host in listed(hosts, "virtualhosts", report.problem):
        found.append(_host(host, _name(host), BrokerJLevel(), report))
    only = found[0].name if len(found) == 1 else None
    default = default if any(each.name == default for each in found) else None  # its virtual host is made elsewhere
    return BrokerJRules(tuple(found), default or only, _context(root, report))


def _hosts_of(node: Json, name: str, report: Report) -> Iterator[BrokerJHost]:
    """The virtual host of a node: within it, or as a str that the node is made with."""
    context = _context(node, report)
    initial = node.get("virtualHostInitialConfiguration")
    if initial is not None and isinstance(initial.value, str) and "${" not in initial.value[:2]:
        try:
            inside = parse_json(initial.value.encode(), initial.place.file, initial.place)
        except ConfigFileError as error:
            report.problem(f"virtualHostInitialConfiguration: {error.problems[0].text}", initial.place)
            return
        yield _host(inside, name, context, report)
    for host in listed(node.get("virtualhosts"), "virtualhosts", report.problem):
        yield _host(host, _name(host) or name, context, report)


def _host(host: Json, name: str, outer: BrokerJLevel, report: Report) -> BrokerJHost:
    queues = []
    for queue in listed(host.get("queues"), "queues", report.problem):
        if not _name(queue):
            report.problem("a queue without a name", queue.place)
            continue
        title = f"queue {_name(queue)!r}"
        level = _level(queue, title, _name(queue), report)
        queues.append(BrokerJQueue(_name(queue), level, _context(queue, report)))
    rules = []
    for rule in listed(host.get("nodeAutoCreationPolicies"), "nodeAutoCreationPolicies", report.problem):
        pattern = rule.get("pattern")
        kind = rule.get("nodeType")
        attributes = rule.get("attributes")
        if pattern is None or (kind is not None and kind.text.lower() != "queue"):
            continue
        if report.read(lambda _, text: bounded_expression(text), "pattern", pattern.text, pattern.place) is None:
            continue
        title = f"nodeAutoCreationPolicy {pattern.text!r}"
        rules.append(
            AutoCreation(pattern.text, _level(attributes, title, "", report) if attributes else BrokerJLevel())
        )
    context = _context(host, report)
    return BrokerJHost(name, tuple(queues), tuple(rules), context if context != BrokerJLevel() else outer)


def _level(element: Json, title: str, queue: str, report: Report) -> BrokerJLevel:
    values: dict[str, Any] = {}
    settings = []
    members = dict(element.items())
    arguments = members.pop("arguments", None)
    members |= dict(arguments.items()) if arguments else {}
    for name, value in members.items():
        if name in _READ:
            read = _value(name, value, queue, report)
            if read is not None:
                values |= read
                settings.append(Setting(name, _shown(value), title, value.place))
        elif _CONCERNS.search(name) and name not in _OTHER:
            report.problem(unknown_option(name, _READ, of=title), value.place)
    return BrokerJLevel(place=element.place, settings=tuple(settings), **values)


def _context(element: Json, report: Report) -> BrokerJLevel:
    """What the context variables of a level say of its queues."""
    values: dict[str, Any] = {}
    settings = []
    context = element.get("context")
    for name, value in context.items() if context else ():
        if name in _CONTEXT:
            read = _value(_CONTEXT[name], value, "", report)
            if read is not None:
                values |= read
                settings.append(Setting(name, _shown(value), "context", value.place))
    return BrokerJLevel(place=context.place if context else element.place, settings=tuple(settings), **values)


def _value(name: str, value: Json, queue: str, report: Report) -> dict[str, Any] | None:
    """The field of a setting and its value."""
    if name in ("maximumDeliveryAttempts", "x-qpid-maximum-delivery-count"):
        attempts = report.read(lambda n, text: read_whole(n, text, 0, INT_MAX), name, value.text, value.place)
        return None if attempts is None else {"maximum_delivery_attempts": attempts}
    if name in ("maximumMessageTtl", "minimumMessageTtl"):
        ttl = report.read(lambda n, text: read_whole(n, text, 0, LONG_MAX), name, value.text, value.place)
        field = "maximum_message_ttl" if name.startswith("max") else "minimum_message_ttl"
        return None if ttl is None else {field: ttl / 1000}
    if name == "expiryPolicy":
        policy = report.read(_expiry_policy, name, value.text, value.place)
        return None if policy is None else {"expiry_policy": policy}
    if name == "x-qpid-dlq-enabled":
        enabled = report.read(read_flag, name, value.text, value.place)
        return None if enabled is None else {"alternate": queue + DLQ_SUFFIX if enabled and queue else ""}
    if name == "alternateExchange":
        return {"alternate": value.text}
    return _alternate(value, report)


def _alternate(value: Json, report: Report) -> dict[str, Any] | None:
    """An alternate binding: an object, or in a context variable the same as a str."""
    if isinstance(value.value, str):
        try:
            value = parse_json(value.value.encode(), value.place.file, value.place)
        except ConfigFileError as error:
            report.problem(f"alternateBinding: {error.problems[0].text}", value.place)
            return None
    target = value.get("destination")
    if target is None or not isinstance(target.value, str):
        report.problem("an alternateBinding without a destination", value.place)
        return None
    if "${this:" in target.value:  # of the queue that it is used for
        return {"alternate": target.value}
    text = report.read(lambda _, text: text, "alternateBinding", target.value, target.place)
    return None if text is None else {"alternate": text}


def _expiry_policy(name: str, value: str) -> str:
    if value not in _POLICIES:
        raise ConfigError(f"{name}={value!r}: use one of {', '.join(_POLICIES)}")
    return value


def _name(element: Json) -> str:
    name = element.get("name")
    return name.text if name else ""


def _flag(element: Json | None) -> bool:
    return element is not None and element.text.lower() == "true"


def _shown(value: Json) -> str:
    target = value.get("destination")
    return target.text if target else value.text
