"""Reads the JSON of Qpid Broker-J: a broker's ``config.json`` or initial configuration, or a virtual host's file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from redelivery.model.suggestions import unknown_option
from redelivery.policies.brokers.broker_j import names
from redelivery.policies.brokers.broker_j.rules import (
    AutoCreation,
    BrokerJExchange,
    BrokerJHost,
    BrokerJLevel,
    BrokerJQueue,
    BrokerJRules,
)
from redelivery.policies.brokers.rabbitmq.names import BOUND, DEFINITIONS, OF_BROKER_J
from redelivery.policies.checks import read_flag
from redelivery.policies.files.expressions import bounded_expression
from redelivery.policies.files.json_tree import Json, inside, listed
from redelivery.policies.files.places import Place, Setting
from redelivery.policies.files.report import ReadingReport

_ABOUT: Final = ("virtualhostnodes", "virtualhosts", "context", "name", "modelVersion", "id")


def is_broker_j(root: Json, _file: str) -> bool:
    """Say whether a document is Broker-J's; RabbitMQ's have queues too, and other names that say whose they are."""
    names = {name for name, _ in root.items()}
    return not names & DEFINITIONS and bool(names & OF_BROKER_J or ("queues" in names and not names & BOUND))


def read_broker_j(root: Json, report: ReadingReport) -> BrokerJRules:
    """Read the rules of a document. What is wrong, or skipped, is in the report."""
    nodes = root.get("virtualhostnodes")
    hosts = root.get("virtualhosts")
    if nodes is None and hosts is None:
        return BrokerJRules((_host(root, "default", BrokerJLevel(), report),), "default")
    for name, section in root.items():
        if name not in _ABOUT:
            report.skip(name, section.place)
    _skip_of_host(root, report)
    found: list[BrokerJHost] = []
    default = None
    for node in listed(nodes, "virtualhostnodes", report.problem):
        name = node.member("name") or "default"
        if node.member("defaultVirtualHostNode").lower() == "true":
            default = name
        found += _hosts_of(node, name, report)
    for host in listed(hosts, "virtualhosts", report.problem):
        found.append(_host(host, host.member("name"), BrokerJLevel(), report))
    only = found[0].name if len(found) == 1 else None
    default = default if any(each.name == default for each in found) else None  # its virtual host is made elsewhere
    return BrokerJRules(tuple(found), default or only, _context(root, report))


def _hosts_of(node: Json, name: str, report: ReadingReport) -> Iterator[BrokerJHost]:
    """Read the virtual host of a node: within it, or as a str that the node is made with."""
    _skip_of_host(node, report)
    context = _context(node, report)
    initial = node.get("virtualHostInitialConfiguration")
    if initial is not None and isinstance(initial.value, str) and "${" not in initial.value[:2]:
        document = inside(initial, "virtualHostInitialConfiguration", report.problem)
        if document is None:
            return
        yield _host(document, name, context, report)
    for host in listed(node.get("virtualhosts"), "virtualhosts", report.problem):
        yield _host(host, host.member("name") or name, context, report)


def _host(host: Json, name: str, outer: BrokerJLevel, report: ReadingReport) -> BrokerJHost:
    _skip_of_host(host, report)
    queues = []
    for queue in listed(host.get("queues"), "queues", report.problem):
        named = queue.member("name")
        if not named:
            report.problem("a queue without a name", queue.place)
            continue
        for section in (queue, *filter(None, [queue.get("arguments")])):
            report.skip_decisive(names.OF_A_QUEUE_UNREAD, _members(section), names=(named,))
        queues.append(BrokerJQueue(named, _level(queue, f"queue {named!r}", named, report), _context(queue, report)))
    rules = []
    for rule in listed(host.get("nodeAutoCreationPolicies"), "nodeAutoCreationPolicies", report.problem):
        pattern = rule.get("pattern")
        attributes = rule.get("attributes")
        if pattern is None or rule.member("nodeType", "queue").lower() != "queue":
            continue
        if report.read(lambda _, text: bounded_expression(text), "pattern", pattern.text, pattern.place) is None:
            continue
        title = f"nodeAutoCreationPolicy {pattern.text!r}"
        if attributes is not None:
            report.skip_decisive(names.OF_A_QUEUE_UNREAD, _members(attributes))
        level = _level(attributes, title, "", report) if attributes else BrokerJLevel()
        by_publishing = report.read(
            read_flag, "createdOnPublish", rule.member("createdOnPublish") or "false", rule.place
        )
        rules.append(AutoCreation(pattern.text, level, by_publishing is not False))
    context = _context(host, report)
    known = context if context != BrokerJLevel() else outer
    return BrokerJHost(name, tuple(queues), tuple(rules), known, tuple(_exchanges(host, report)))


def _exchanges(host: Json, report: ReadingReport) -> Iterator[BrokerJExchange]:
    for each in listed(host.get("exchanges"), "exchanges", report.problem):
        bindings = listed(each.get("durableBindings"), "durableBindings", report.problem)
        bound = tuple((one.member("destination"), one.member("bindingKey")) for one in bindings)
        yield BrokerJExchange(each.member("name"), each.member("type"), bound)


def _skip_of_host(host: Json, report: ReadingReport) -> None:
    """Note what decides in a virtual host or its node, beside its queues."""
    context = host.get("context")
    for section in (host, *([context] if context else [])):
        report.skip_decisive(names.OF_A_HOST_UNREAD, _members(section))
    for exchange in host.get("exchanges") or ():
        report.skip_decisive(names.OF_AN_EXCHANGE_UNREAD, _members(exchange), names=(exchange.member("name"),))


def _members(section: Json) -> list[tuple[str, str, Place]]:
    """List the members of an object: name, text and place of each."""
    return [(name, (each.get("destination") or each).text, each.place) for name, each in section.items()]


def _level(element: Json, title: str, queue: str, report: ReadingReport) -> BrokerJLevel:
    members = dict(element.items())
    arguments = members.pop("arguments", None)
    members |= dict(arguments.items()) if arguments else {}
    given = []
    for name, value in members.items():
        if name in names.OF_A_QUEUE and value.value is not None:
            given.append((name, name, value))
        elif names.CONCERNS.search(name) and name not in (*names.OTHERS, *names.OF_A_QUEUE):
            report.problem(unknown_option(name, names.OF_A_QUEUE, of=title), value.place)
    return _read(given, element, title, queue, report)


def _context(element: Json, report: ReadingReport) -> BrokerJLevel:
    """Read what the context variables of a level say of its queues."""
    context = element.get("context")
    variables = context.items() if context else ()
    given = [(name, names.CONTEXT[name], value) for name, value in variables if name in names.CONTEXT]
    return _read(given, context or element, "context", "", report)


def _read(given: list[tuple[str, str, Json]], at: Json, title: str, queue: str, report: ReadingReport) -> BrokerJLevel:
    values: dict[str, Any] = {}
    settings = []
    for name, meant, value in given:
        read = _value(meant, value, queue, report)
        if read is not None:
            values[names.OF_A_QUEUE[meant][0]] = read
            target = value.get("destination")
            settings.append(Setting(name, (target or value).text, title, value.place))
    return BrokerJLevel(place=at.place, settings=tuple(settings), **values)


def _value(name: str, value: Json, queue: str, report: ReadingReport) -> Any:
    if name == names.DLQ_ENABLED:
        enabled = report.read(read_flag, name, value.text, value.place)
        return None if enabled is None else queue + names.DLQ_SUFFIX if enabled and queue else ""
    if name == names.ALTERNATE_EXCHANGE:
        return value.text
    if name == names.ALTERNATE:
        return _alternate(value, report)
    return report.read(names.OF_A_QUEUE[name][1].read, name, value.text, value.place)


def _alternate(value: Json, report: ReadingReport) -> str | None:
    """Read an alternate binding: an object, or in a context variable the same as a str; an empty str for none."""
    if value.value == "":
        return ""
    found = inside(value, names.ALTERNATE, report.problem) if isinstance(value.value, str) else value
    if found is None:
        return None
    target = found.get("destination")
    if target is None or not isinstance(target.value, str):
        report.problem("an alternateBinding without a destination", value.place)
        return None
    if "${this:" in target.value:  # of the queue that it is used for
        return target.value
    return report.text(target.value, target.place)
