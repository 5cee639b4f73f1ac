"""Reads RabbitMQ's exported definitions, or a list of policies (``rabbitmqctl list_policies --formatter json``)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from redelivery.model.errors import ConfigError
from redelivery.model.suggestions import unknown_option
from redelivery.policies.brokers.places import ConfigFileError, Setting
from redelivery.policies.brokers.rabbitmq import (
    CLASSIC,
    KINDS,
    RESTRICTING,
    RabbitBinding,
    RabbitExchange,
    RabbitHost,
    RabbitLevel,
    RabbitPolicy,
    RabbitQueue,
    RabbitRules,
)
from redelivery.policies.checks import INT_MAX, LONG_MAX, read_whole
from redelivery.policies.readers.expressions import bounded_expression
from redelivery.policies.readers.json_tree import Json, listed, parse_json
from redelivery.policies.readers.report import Report

_CONCERNS: Final = re.compile(r"deliver|dead-?l|retry|ttl|message-t|expire|max-?len|overflow|alternat", re.IGNORECASE)
_SECTIONS: Final = ("policies", "operator_policies", "parameters", "queues", "exchanges", "bindings", "vhosts")
_ABOUT: Final = (
    *("rabbit_version", "rabbitmq_version", "product_name", "product_version", "rabbitmq_definition_format"),
    *("original_vhost_name", "original_cluster_name", "explanation", "metadata", "description", "default_queue_type"),
    *("limits", "tags"),
)
"""What an export says of itself, or of its only virtual host."""
_APPLY_TO: Final = ("all", "queues", "classic_queues", "quorum_queues", "streams", "exchanges")
_WHEN_FULL: Final = ("drop-head", "reject-publish", "reject-publish-dlx")
_TYPES: Final = ("direct", "fanout", "topic", "headers")
_HOST: Final = "/"
_OPERATOR: Final = "operator_policy"  # the component of such a parameter
_STRATEGIES: Final = ("at-most-once", "at-least-once")
_RETRIES: Final = ("disabled", "all", "failed", "returned")


def _text(name: str, value: str) -> str:  # noqa: ARG001  # the others need the name for their errors
    return value


def _milliseconds(name: str, value: str) -> float:
    return read_whole(name, value, 0, LONG_MAX) / 1000


def _limit(name: str, value: str) -> int:
    return read_whole(name, value, -1, INT_MAX)


def _size(name: str, value: str) -> int:
    return read_whole(name, value, 0, LONG_MAX)


def _one_of(choices: tuple[str, ...]) -> Callable[[str, str], str]:
    def read(name: str, value: str) -> str:
        if value not in choices:
            raise ConfigError(f"{name}={value!r}: use one of {', '.join(choices)}")
        return value

    return read


_NAMES: Final[dict[str, tuple[str, Callable[[str, str], object]]]] = {
    "dead-letter-exchange": ("dead_letter_exchange", _text),
    "dead-letter-routing-key": ("dead_letter_routing_key", _text),
    "dead-letter-strategy": ("dead_letter_strategy", _one_of(_STRATEGIES)),
    "delivery-limit": ("delivery_limit", _limit),
    "message-ttl": ("message_ttl", _milliseconds),
    "expires": ("expires", _milliseconds),
    "max-length": ("max_length", _size),
    "max-length-bytes": ("max_length_bytes", _size),
    "overflow": ("overflow", _one_of(_WHEN_FULL)),
    "delayed-retry-type": ("delayed_retry_type", _one_of(_RETRIES)),
    "delayed-retry-min": ("delayed_retry_min", _milliseconds),
    "delayed-retry-max": ("delayed_retry_max", _milliseconds),
    "alternate-exchange": ("alternate_exchange", _text),
}
RABBIT_NAMES: Final = _NAMES


_KNOWN: Final = frozenset({"consumer-disconnected-timeout", "x-message-deduplication"}) | RESTRICTING


def read_rabbitmq(root: Json, report: Report) -> RabbitRules:
    """The rules of a document. What is wrong, or skipped, is in the report."""
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
    """That of what names none: an export of one virtual host names it once, and 3.10 with the policies alone."""
    named = [each for name in ("policies", "parameters") for each in root.get(name) or () if each.get("vhost")]
    hosts = {_member(each, "vhost", _HOST) for each in named}
    return _member(root, "original_vhost_name", hosts.pop() if len(hosts) == 1 else _HOST)


def _hosts(root: Json, report: Report) -> tuple[RabbitHost, ...]:
    """The virtual hosts of an export, with the type of queue that each makes by default."""
    only = root.get("original_vhost_name")
    found = [] if only is None else [RabbitHost(only.text, _default_kind(root))]
    for host in listed(root.get("vhosts"), "vhosts", report.problem):
        found.append(RabbitHost(_member(host, "name", _HOST), _default_kind(host)))
    return tuple(found)


def _default_kind(host: Json) -> str | None:
    metadata = host.get("metadata")
    within = None if metadata is None else metadata.get("default_queue_type")
    given = host.get("default_queue_type") or within
    return given.text if given is not None and given.text in KINDS else None


def _parameters(section: Json | None, report: Report, host: str) -> Iterator[RabbitPolicy]:
    """The operator's policies, which an export has among the parameters of its plug-ins."""
    for parameter in listed(section, "parameters", report.problem):
        value = parameter.get("value")
        if _member(parameter, "component", "") == _OPERATOR and value is not None and isinstance(value.value, dict):
            named = {name: each for name, each in parameter.items() if name in ("name", "vhost")}
            yield from _policy(Json({**value.value, **named}, value.place), report, host, operator=True)
        else:
            report.skip(f"parameters: {_member(parameter, 'component', '?')}", parameter.place)


def _policies(section: Json | None, report: Report, host: str, *, operator: bool) -> Iterator[RabbitPolicy]:
    for policy in listed(section, "operator_policies" if operator else "policies", report.problem):
        yield from _policy(policy, report, host, operator=operator)


def _policy(policy: Json, report: Report, host: str, *, operator: bool) -> Iterator[RabbitPolicy]:
    pattern, definition = policy.get("pattern"), policy.get("definition")
    if pattern is None or definition is None:
        report.problem("a policy without a pattern or a definition", policy.place)
        return
    if isinstance(definition.value, str):
        try:
            definition = parse_json(definition.value.encode(), definition.place.file, definition.place)
        except ConfigFileError as error:
            report.problem(f"definition: {error.problems[0].text}", definition.place)
            return
    if not isinstance(definition.value, dict):
        report.problem("definition is not an object", definition.place)
        return
    apply_to = _member(policy, "apply-to", "all")
    if apply_to not in _APPLY_TO:
        report.problem(f"apply-to={apply_to!r}: use one of {', '.join(_APPLY_TO)}", policy.place)
        return
    if report.read(lambda _, text: bounded_expression(text), "pattern", pattern.text, pattern.place) is None:
        return
    name = _member(policy, "name", pattern.text)
    priority = policy.get("priority")
    number = report.read(
        lambda n, text: read_whole(n, text, -INT_MAX, INT_MAX),
        "priority",
        priority.text if priority else "0",
        policy.place,
    )
    level = _level(definition, f"{'operator policy' if operator else 'policy'} {name!r}", "", report)
    others = tuple((each, _plain(value)) for each, value in definition.items() if each in RESTRICTING - _NAMES.keys())
    virtual_host = _member(policy, "vhost", host)
    yield RabbitPolicy(name, pattern.text, level, virtual_host, apply_to, number or 0, operator, others)


def _queues(section: Json | None, report: Report, host: str, hosts: tuple[RabbitHost, ...]) -> Iterator[RabbitQueue]:
    default = {each.name: each.default_kind for each in hosts}
    for queue in listed(section, "queues", report.problem):
        name, arguments = _member(queue, "name", ""), queue.get("arguments")
        if not name:
            report.problem("a queue without a name", queue.place)
            continue
        virtual_host = _member(queue, "vhost", host)
        kind = (arguments.get("x-queue-type") if arguments else None) or queue.get("type")
        usual = (default.get(virtual_host) if _lasts(queue) else None) or CLASSIC
        level = _level(arguments, f"queue {name!r}", "x-", report) if arguments else RabbitLevel()
        yield RabbitQueue(name, kind.text if kind else usual, level, virtual_host)


def _lasts(queue: Json) -> bool:
    """Whether it is one of those that the virtual host's default type is for: durable, and nobody's own."""
    return (
        _member(queue, "durable", "true") == "true"
        and _member(queue, "auto_delete", "false") == "false"
        and _member(queue, "exclusive", "false") == "false"
    )


def _exchanges(section: Json, report: Report, host: str) -> Iterator[RabbitExchange]:
    for exchange in listed(section, "exchanges", report.problem):
        name, arguments = _member(exchange, "name", ""), exchange.get("arguments")
        if not name:
            report.problem("an exchange without a name", exchange.place)
            continue
        kind = _member(exchange, "type", "direct")
        delayed = arguments.get("x-delayed-type") if arguments else None
        if kind not in _TYPES and delayed is not None:  # the plug-in's, which does as that one, later
            kind = delayed.text
        alternate = arguments.get("alternate-exchange") if arguments else None
        yield RabbitExchange(name, kind, _member(exchange, "vhost", host), alternate.text if alternate else None)


def _bindings(section: Json | None, report: Report, host: str) -> Iterator[RabbitBinding]:
    for binding in listed(section, "bindings", report.problem):
        arguments = binding.get("arguments")
        yield RabbitBinding(
            _member(binding, "source", ""),
            _member(binding, "destination", ""),
            _member(binding, "routing_key", ""),
            _member(binding, "vhost", host),
            _member(binding, "destination_type", "queue") == "exchange",
            tuple((name, _plain(value)) for name, value in arguments.items()) if arguments else (),
        )


def _plain(value: Json) -> Any:
    """The value without its places, as a key of a set can be."""
    if isinstance(value.value, dict):
        return tuple((name, _plain(each)) for name, each in value.items())
    return tuple(map(_plain, value)) if isinstance(value.value, list) else value.value


def _level(element: Json, title: str, prefix: str, report: Report) -> RabbitLevel:
    values: dict[str, Any] = {}
    settings = []
    for name, value in element.items():
        plain = name.removeprefix(prefix)
        if plain in _NAMES and name.startswith(prefix):
            field, reader = _NAMES[plain]
            read = report.read(reader, name, value.text, value.place) if value.value is not None else None
            if read is not None:
                values[field] = read
                settings.append(Setting(name, value.text, title, value.place))
        elif _CONCERNS.search(name) and plain not in _KNOWN:
            report.problem(unknown_option(name, [prefix + each for each in _NAMES], of=title), value.place)
    return RabbitLevel(place=element.place, settings=tuple(settings), **values)


def _member(element: Json, name: str, default: str) -> str:
    found = element.get(name)
    return found.text if found is not None else default
