"""Reads RabbitMQ's exported definitions, or a list of policies (``rabbitmqctl list_policies --formatter json``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from redelivery.policies.brokers.rabbitmq.names import (
    ARGUMENT,
    ARGUMENTS,
    BOUND,
    CONCERNS,
    DEFINITIONS,
    EXCHANGES,
    NAMES,
    OF_BROKER_J,
    UNREAD,
)
from redelivery.policies.brokers.rabbitmq.rules import RabbitRules
from redelivery.policies.brokers.rabbitmq.values import (
    CLASSIC,
    KINDS,
    RESTRICTING,
    RabbitBinding,
    RabbitExchange,
    RabbitHost,
    RabbitLevel,
    RabbitPolicy,
    RabbitQueue,
)
from redelivery.policies.checks import INT_MAX
from redelivery.policies.files.expressions import bounded_expression
from redelivery.policies.files.json_tree import Json, inside, listed
from redelivery.policies.files.places import problem_at
from redelivery.policies.files.report import ReadingReport
from redelivery.policies.kinds import Names, whole

_SECTIONS: Final = ("policies", "operator_policies", "parameters", "queues", "exchanges", "bindings", "vhosts")
_ABOUT: Final = (
    *("rabbit_version", "rabbitmq_version", "product_name", "product_version", "rabbitmq_definition_format"),
    *("original_vhost_name", "original_cluster_name", "explanation", "metadata", "description", "default_queue_type"),
    *("limits", "tags"),
)
"""What an export says of itself, or of its only virtual host."""
_APPLY_TO: Final = ("all", "queues", "classic_queues", "quorum_queues", "streams", "exchanges")
_TYPES: Final = ("direct", "fanout", "topic", "headers")
_DELAYED: Final = "x-delayed-message"
_HOST: Final = "/"
_OPERATOR: Final = "operator_policy"  # the component of such a parameter
_POLICY: Final = frozenset({"pattern", "definition"})  # that each policy has
_KNOWN: Final = frozenset({"consumer-disconnected-timeout", "x-message-deduplication"}) | RESTRICTING
_KNOWN_ARGUMENTS: Final = _KNOWN | {ARGUMENT + each for each in _KNOWN}
_PRIORITY: Final = whole(-INT_MAX)


def is_rabbitmq(root: Json, _file: str) -> bool:
    """Say whether a document, which is not Broker-J's, is RabbitMQ's.

    Raises:
        ConfigFileError: a list of something else.
    """
    if isinstance(root.value, list):
        objects = [{name for name, _ in each.items()} for each in root]
        if not root.value or any(each >= _POLICY or "apply-to" in each for each in objects):
            return True
        if any(objects):
            what = (
                "a list in which no object has a pattern and a definition: it is not what RabbitMQ's `rabbitmqctl"
                " list_policies --formatter json` prints; pass that, its exported definitions, or another file"
            )
            raise problem_at(root.place, what)
    names = {name for name, _ in root.items()}
    return bool(names & (DEFINITIONS | BOUND)) or ("queues" in names and not names & OF_BROKER_J)


def read_rabbitmq(root: Json, report: ReadingReport) -> RabbitRules:
    """Read the rules of a document. What is wrong, or skipped, is in the report."""
    if isinstance(root.value, list):
        return RabbitRules(tuple(_policies(root, report, _HOST, operator=False)))
    for name, section in root.items():
        if name not in (*_SECTIONS, *_ABOUT):
            report.skip(name, section.place)
    versions = [root.get(name) for name in ("rabbitmq_version", "rabbit_version", "product_version")]
    host = _only_host(root)
    exchanges = root.get("exchanges")
    return RabbitRules(
        policies=(
            *_policies(root.get("policies"), report, host, operator=False),
            *_policies(root.get("operator_policies"), report, host, operator=True),
            *_parameters(root.get("parameters"), report, host),
        ),
        queues=tuple(_queues(root.get("queues"), report, host, hosts := _hosts(root, report))),
        bindings=tuple(_bindings(root.get("bindings"), report, host)),
        version=next((each.text for each in versions if each is not None), None),
        exchanges=None if exchanges is None else tuple(_exchanges(exchanges, report, host)),
        hosts=hosts,
    )


def _only_host(root: Json) -> str:
    """Return the host of what names none: an export of one virtual host names it once, 3.10 with the policies alone."""
    named = [each for name in ("policies", "parameters") for each in root.get(name) or () if each.get("vhost")]
    hosts = {each.member("vhost", _HOST) for each in named}
    return root.member("original_vhost_name", hosts.pop() if len(hosts) == 1 else _HOST)


def _hosts(root: Json, report: ReadingReport) -> tuple[RabbitHost, ...]:
    """Read the virtual hosts of an export, with the type of queue that each makes by default."""
    only = root.get("original_vhost_name")
    found = [] if only is None else [RabbitHost(only.text, _default_kind(root))]
    for host in listed(root.get("vhosts"), "vhosts", report.problem):
        found.append(RabbitHost(host.member("name", _HOST), _default_kind(host)))
    return tuple(found)


def _default_kind(host: Json) -> str | None:
    metadata = host.get("metadata")
    within = None if metadata is None else metadata.get("default_queue_type")
    given = host.get("default_queue_type") or within
    return given.text if given is not None and given.text in KINDS else None


def _parameters(section: Json | None, report: ReadingReport, host: str) -> Iterator[RabbitPolicy]:
    """Read the operator's policies, which an export has among the parameters of its plug-ins."""
    for parameter in listed(section, "parameters", report.problem):
        value = parameter.get("value")
        if parameter.member("component") == _OPERATOR and value is not None and isinstance(value.value, dict):
            named = {name: each for name, each in parameter.items() if name in ("name", "vhost")}
            yield from _policy(Json({**value.value, **named}, value.place), report, host, operator=True)
        else:
            component, queue = parameter.member("component", "?"), "" if value is None else value.member("src-queue")
            why = f"the shovel {parameter.member('name')!r} takes the messages of {queue} elsewhere: dead letters too"
            names = (queue,) if queue and component == "shovel" else ()
            report.skip(f"parameters: {component}", parameter.place, why if names else "", names=names)


def _policies(section: Json | None, report: ReadingReport, host: str, *, operator: bool) -> Iterator[RabbitPolicy]:
    for policy in listed(section, "operator_policies" if operator else "policies", report.problem):
        yield from _policy(policy, report, host, operator=operator)


def _policy(policy: Json, report: ReadingReport, host: str, *, operator: bool) -> Iterator[RabbitPolicy]:
    pattern, definition = policy.get("pattern"), policy.get("definition")
    if pattern is None or definition is None:
        report.problem("a policy without a pattern or a definition", policy.place)
        return
    if isinstance(definition.value, str):
        definition = inside(definition, "definition", report.problem)
        if definition is None:
            return
    if not isinstance(definition.value, dict):
        report.problem("definition is not an object", definition.place)
        return
    apply_to = policy.member("apply-to", "all")
    if apply_to not in _APPLY_TO:
        report.problem(f"apply-to={apply_to!r}: use one of {', '.join(_APPLY_TO)}", policy.place)
        return
    if report.read(lambda _, text: bounded_expression(text), "pattern", pattern.text, pattern.place) is None:
        return
    name = policy.member("name", pattern.text)
    priority = report.read(_PRIORITY.read, "priority", policy.member("priority", "0"), policy.place)
    level = _level(definition, f"{'operator policy' if operator else 'policy'} {name!r}", NAMES, report)
    others = tuple((each, _plain(value)) for each, value in definition.items() if each in RESTRICTING - NAMES.keys())
    virtual_host = policy.member("vhost", host)
    yield RabbitPolicy(name, pattern.text, level, virtual_host, apply_to, priority or 0, operator, others)


def _queues(
    section: Json | None, report: ReadingReport, host: str, hosts: tuple[RabbitHost, ...]
) -> Iterator[RabbitQueue]:
    default = {each.name: each.default_kind for each in hosts}
    for queue in listed(section, "queues", report.problem):
        name, arguments = queue.member("name"), queue.get("arguments")
        if not name:
            report.problem("a queue without a name", queue.place)
            continue
        virtual_host = queue.member("vhost", host)
        kind = (arguments.get("x-queue-type") if arguments else None) or queue.get("type")
        usual = (default.get(virtual_host) if _lasts(queue) else None) or CLASSIC
        level = _level(arguments, f"queue {name!r}", ARGUMENTS, report, name) if arguments else RabbitLevel()
        yield RabbitQueue(name, kind.text if kind else usual, level, virtual_host)


def _lasts(queue: Json) -> bool:
    """Say whether it is one of those that the virtual host's default type is for: durable, and nobody's own."""
    return (
        queue.member("durable", "true") == "true"
        and queue.member("auto_delete", "false") == "false"
        and queue.member("exclusive", "false") == "false"
    )


def _exchanges(section: Json, report: ReadingReport, host: str) -> Iterator[RabbitExchange]:
    for exchange in listed(section, "exchanges", report.problem):
        name, arguments = exchange.member("name"), exchange.get("arguments")
        if not name:
            report.problem("an exchange without a name", exchange.place)
            continue
        kind = exchange.member("type", "direct")
        if kind not in _TYPES and kind != _DELAYED:
            report.skip(f"exchange {name}", exchange.place, EXCHANGES.format(kind))
        delayed = arguments.get("x-delayed-type") if arguments else None
        if kind not in _TYPES and delayed is not None:  # the plug-in's, which does as that one, later
            kind = delayed.text
        alternate = arguments.get("alternate-exchange") if arguments else None
        yield RabbitExchange(name, kind, exchange.member("vhost", host), alternate.text if alternate else None)


def _bindings(section: Json | None, report: ReadingReport, host: str) -> Iterator[RabbitBinding]:
    for binding in listed(section, "bindings", report.problem):
        arguments = binding.get("arguments")
        yield RabbitBinding(
            binding.member("source"),
            binding.member("destination"),
            binding.member("routing_key"),
            binding.member("vhost", host),
            binding.member("destination_type", "queue") == "exchange",
            tuple((name, _plain(value)) for name, value in arguments.items()) if arguments else (),
        )


def _plain(value: Json) -> Any:
    """Return the value without its places, as a key of a set can be."""
    if isinstance(value.value, dict):
        return tuple((name, _plain(each)) for name, each in value.items())
    return tuple(map(_plain, value)) if isinstance(value.value, list) else value.value


def _level(element: Json, title: str, names: Names, report: ReadingReport, queue: str = "") -> RabbitLevel:
    unread = ((name, each.text, each.place) for name, each in element.items() if each.value is not None)
    report.skip_decisive(UNREAD, unread, part=None if queue else element.place, names=(queue,) if queue else ())
    found = ((name, each) for name, each in element.items() if each.value is not None or name not in names)
    given = ((name, each.text, each.place) for name, each in found)
    known = {*UNREAD, *(_KNOWN if names is NAMES else _KNOWN_ARGUMENTS)}
    read = report.settings(names, given, title, concerns=CONCERNS, known=known)
    return RabbitLevel(place=element.place, settings=read.settings, **read.fields)
