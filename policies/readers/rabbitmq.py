"""Reads RabbitMQ's exported definitions, or a list of policies (``rabbitmqctl list_policies --formatter json``)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from redelivery.model.errors import ConfigError
from redelivery.model.suggestions import unknown_option
from redelivery.policies.brokers.places import ConfigFileError, Setting
from redelivery.policies.brokers.rabbitmq import RabbitBinding, RabbitLevel, RabbitPolicy, RabbitQueue, RabbitRules
from redelivery.policies.checks import INT_MAX, LONG_MAX, read_whole
from redelivery.policies.readers.expressions import bounded_expression
from redelivery.policies.readers.json_tree import Json, listed, parse_json
from redelivery.policies.readers.report import Report

_CONCERNS: Final = re.compile(r"deliver|dead-?l|retry", re.IGNORECASE)
_SECTIONS: Final = (
    "policies",
    "operator_policies",
    "queues",
    "bindings",
    "rabbit_version",
    "rabbitmq_version",
    "product_version",
)
_APPLY_TO: Final = ("all", "queues", "classic_queues", "quorum_queues", "streams", "exchanges")
_STRATEGIES: Final = ("at-most-once", "at-least-once")
_RETRIES: Final = ("disabled", "all", "failed", "returned")


def _text(name: str, value: str) -> str:  # noqa: ARG001  # the others need the name for their errors
    return value


def _milliseconds(name: str, value: str) -> float:
    return read_whole(name, value, 0, LONG_MAX) / 1000


def _limit(name: str, value: str) -> int:
    return read_whole(name, value, -1, INT_MAX)


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
    "delayed-retry-type": ("delayed_retry_type", _one_of(_RETRIES)),
    "delayed-retry-min": ("delayed_retry_min", _milliseconds),
    "delayed-retry-max": ("delayed_retry_max", _milliseconds),
}
RABBIT_NAMES: Final = _NAMES


def read_rabbitmq(root: Json, report: Report) -> RabbitRules:
    """The rules of a document. What is wrong, or skipped, is in the report."""
    if isinstance(root.value, list):
        return RabbitRules(tuple(_policies(root, report, operator=False)))
    for name, section in root.items():
        if name not in _SECTIONS:
            report.skip(name, section.place)
    versions = [root.get(name) for name in ("rabbitmq_version", "rabbit_version", "product_version")]
    return RabbitRules(
        policies=(
            *_policies(root.get("policies"), report, operator=False),
            *_policies(root.get("operator_policies"), report, operator=True),
        ),
        queues=tuple(_queues(root.get("queues"), report)),
        bindings=tuple(_bindings(root.get("bindings"), report)),
        version=next((each.text for each in versions if each is not None), None),
    )


def _policies(section: Json | None, report: Report, *, operator: bool) -> Iterator[RabbitPolicy]:
    for policy in listed(section, "operator_policies" if operator else "policies", report.problem):
        pattern, definition = policy.get("pattern"), policy.get("definition")
        if pattern is None or definition is None:
            report.problem("a policy without a pattern or a definition", policy.place)
            continue
        if isinstance(definition.value, str):
            try:
                definition = parse_json(definition.value.encode(), definition.place.file, definition.place)
            except ConfigFileError as error:
                report.problem(f"definition: {error.problems[0].text}", definition.place)
                continue
        apply_to = _member(policy, "apply-to", "all")
        if apply_to not in _APPLY_TO:
            report.problem(f"apply-to={apply_to!r}: use one of {', '.join(_APPLY_TO)}", policy.place)
            continue
        if report.read(lambda _, text: bounded_expression(text), "pattern", pattern.text, pattern.place) is None:
            continue
        name = _member(policy, "name", pattern.text)
        priority = policy.get("priority")
        number = report.read(
            lambda n, text: read_whole(n, text, -INT_MAX, INT_MAX),
            "priority",
            priority.text if priority else "0",
            policy.place,
        )
        level = _level(definition, f"policy {name!r}", "", report)
        yield RabbitPolicy(name, pattern.text, level, _member(policy, "vhost", "/"), apply_to, number or 0, operator)


def _queues(section: Json | None, report: Report) -> Iterator[RabbitQueue]:
    for queue in listed(section, "queues", report.problem):
        name, arguments = _member(queue, "name", ""), queue.get("arguments")
        if not name:
            report.problem("a queue without a name", queue.place)
            continue
        kind = arguments.get("x-queue-type") if arguments else None
        level = _level(arguments, f"queue {name!r}", "x-", report) if arguments else RabbitLevel()
        kind_text = kind.text if kind else _member(queue, "type", "classic")
        yield RabbitQueue(name, kind_text, level, _member(queue, "vhost", "/"))


def _bindings(section: Json | None, report: Report) -> Iterator[RabbitBinding]:
    for binding in listed(section, "bindings", report.problem):
        if _member(binding, "destination_type", "queue") == "queue":
            yield RabbitBinding(
                _member(binding, "source", ""),
                _member(binding, "destination", ""),
                _member(binding, "routing_key", ""),
                _member(binding, "vhost", "/"),
            )


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
        elif _CONCERNS.search(name):
            report.problem(unknown_option(name, [prefix + each for each in _NAMES], of=title), value.place)
    return RabbitLevel(place=element.place, settings=tuple(settings), **values)


def _member(element: Json, name: str, default: str) -> str:
    found = element.get(name)
    return found.text if found is not None else default
