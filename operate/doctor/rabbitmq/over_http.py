"""Asks RabbitMQ's management over HTTP about itself: its rules, its queues, and what is wrong with it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar
from urllib.parse import quote

from redelivery.client.entry.sync import Connection
from redelivery.model.errors import JMSError, SecurityError
from redelivery.operate.doctor.rabbitmq.reported import Feature, Reported
from redelivery.operate.management.opening import management_of
from redelivery.operate.management.rabbitmq import RabbitManagement
from redelivery.policies.brokers.formats import read_content
from redelivery.policies.brokers.policies import BrokerPolicies

T = TypeVar("T")

_QUEUE: Final = ("name", "vhost", "type", "durable", "auto_delete", "arguments")
_STREAM: Final = "stream"
_LISTED_SINCE: Final = (3, 13)


def management_over_http(connection: Connection) -> RabbitManagement | None:
    """That of ``management=``, where it is RabbitMQ's; None: there is none."""
    found = management_of(connection)
    return found if isinstance(found, RabbitManagement) else None


def rabbit_rules(management: RabbitManagement, unchecked: list[str]) -> BrokerPolicies:
    """The rules of the virtual host, from what it lists, as its exported definitions have them.

    Raises:
        JMSError: it does not answer, or refuses.
    """
    api = management.api
    queues = [each for each in api.queues() if not each.get("exclusive")]
    document: dict[str, Any] = {
        "rabbitmq_version": ".".join(map(str, management.version)),
        "original_vhost_name": api.vhost,
        "default_queue_type": _default_kind(management),
        "queues": [{name: each.get(name) for name in _QUEUE} for each in queues],
        "exchanges": [each for each in _asked(management, "exchanges") if each["name"]],
        "bindings": [each for each in _asked(management, "bindings") if each["source"]],
    }
    try:
        document["policies"], document["operator_policies"] = api.policies(), api.operator_policies()
    except SecurityError as error:
        unchecked.append(f"policies by themselves, beside what each queue says of its own: {error}")
        document["policies"] = _of_queues(queues)
    content = json.dumps(document).encode()
    return read_content(content, "the broker itself", format="rabbitmq", strict=False)


def _default_kind(management: RabbitManagement) -> str | None:
    """The type of queues that do not say theirs, None where the user may not see it; all existing queues say it."""
    try:
        found = _asked(management, "vhosts")
    except SecurityError:
        return None
    return found.get("default_queue_type") if isinstance(found, dict) else None


def _of_queues(queues: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The settings that hold for each queue of all policies, as a policy of its own."""
    return [
        {
            "name": str(each.get("policy") or each.get("operator_policy")),
            "vhost": each["vhost"],
            "pattern": f"^{re.escape(each['name'])}$",
            "apply-to": "queues",
            "definition": each["effective_policy_definition"],
        }
        for each in queues
        if isinstance(each.get("effective_policy_definition"), dict) and each["effective_policy_definition"]
    ]


def rabbit_reported(management: RabbitManagement, unchecked: list[str]) -> Reported:
    """The further reports of the management; what it refuses is added to ``unchecked``.

    Raises:
        JMSError: it does not answer.
    """
    return Reported(
        deprecated=_noting(unchecked, "deprecated features", lambda: _deprecated(management), ()),
        guests=_noting(unchecked, "who is logged in", lambda: _guests(management), 0),
        streams=_noting(unchecked, "who reads streams", lambda: _streams(management), {}),
    )


def _deprecated(management: RabbitManagement) -> tuple[Feature, ...]:
    if management.version < _LISTED_SINCE:
        return ()
    found = management.api.client.call("GET", "/api/deprecated-features/used", doing="listing them")
    return tuple(Feature(str(each["name"]), str(each.get("deprecation_phase", ""))) for each in found or ())


def _guests(management: RabbitManagement) -> int:
    found = management.api.client.call("GET", "/api/connections?columns=user", doing="listing connections")
    return sum(each.get("user") == "guest" for each in found or ())


def _streams(management: RabbitManagement) -> dict[str, int]:
    """Streams, and how many consumers each has that do not say where in it they begin."""
    found = {each.name: 0 for each in management.queues() if each.kind == _STREAM}
    for consumer in _asked(management, "consumers") if found else ():
        name = consumer.get("queue", {}).get("name")
        arguments = consumer.get("arguments")
        if name in found and not (isinstance(arguments, dict) and "x-stream-offset" in arguments):
            found[name] += 1
    return {name: number for name, number in found.items() if number}


def _asked(management: RabbitManagement, kind: str) -> Any:
    """The management's list of the virtual host, or its facts about it."""
    path = f"/api/{kind}/{quote(management.api.vhost, safe='')}"
    return management.api.client.call("GET", path, doing=f"asking for {kind}") or []


def _noting(unchecked: list[str], what: str, ask: Callable[[], T], otherwise: T) -> T:
    try:
        return ask()
    except JMSError as error:
        unchecked.append(f"{what}: {error}")
        return otherwise
