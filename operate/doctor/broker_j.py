"""Asks Broker-J about itself over AMQP, by ``$management`` (AMQP Management, working draft 9)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, cast

from redelivery.client.entry.sync import Connection
from redelivery.model.errors import JMSError, UnsupportedError
from redelivery.model.messages import Message
from redelivery.operate.doctor.observed import ObservedQueue
from redelivery.policies.brokers.broker_j.names import CONTEXT
from redelivery.policies.brokers.broker_j.rules import BrokerJRules
from redelivery.policies.brokers.formats import read_content
from redelivery.transports.amqp.codec.messages import AmqpFields

_SECONDS: Final = 5.0  # for an answer
_QUEUE: Final = "org.apache.qpid.Queue"
_HOST: Final = "org.apache.qpid.VirtualHost"
_STATISTICS: Final = (
    *("queueDepthMessages", "consumerCount", "unacknowledgedMessages"),
    *("totalEnqueuedMessages", "totalDequeuedMessages"),
)
_SELF: Final = {"type": "org.amqp.management", "identity": "self"}
_OF_A_CLIENT: Final = ("DELETE_ON_CONNECTION_CLOSE", "DELETE_ON_SESSION_END", "DELETE_ON_CREATING_LINK_CLOSE")
_DEFAULTS: Final[Mapping[str, str]] = {name: variable for variable, name in CONTEXT.items()}
"""Attribute of a queue -> the context variable that has its default."""


def broker_j_names(connection: Connection) -> tuple[str, ...]:
    """The queues of the virtual host that are not a client's own.

    Raises:
        JMSError: the broker does not answer, or refuses.
    """
    # In one answer: with a count that is not smaller than their number, the broker answers with none.
    answer = _nested(_asked(connection, {**_SELF, "operation": "QUERY", "entityType": _QUEUE}), "QUERY")
    name, lifetime = answer["attributeNames"].index("name"), answer["attributeNames"].index("lifetimePolicy")
    return tuple(str(each[name]) for each in answer["results"] if each[lifetime] not in _OF_A_CLIENT)


def broker_j_queues(connection: Connection, names: Iterable[str]) -> dict[str, ObservedQueue]:
    """The queues among these names that exist. Raises JMSError: the broker does not answer, or refuses."""
    found = {}
    for name in names:
        answer = _asked(connection, {"type": _QUEUE, "operation": "getStatistics", **_at(name)})
        if answer.properties.get("statusCode") == 200 and isinstance(answer.body, dict):
            found[name] = _observed(name, answer.body)
    return found


def _observed(name: str, statistics: Mapping[str, Any]) -> ObservedQueue:
    said = {each: None if statistics.get(each) is None else int(statistics[each]) for each in _STATISTICS}
    depth, consumers, in_flight, enqueued, dequeued = said.values()
    return ObservedQueue(name, depth, consumers, in_flight=in_flight, enqueued=enqueued, dequeued=dequeued)


def broker_j_rules(connection: Connection, names: Iterable[str]) -> BrokerJRules:
    """The rules for the existing ones of these queues, and for all others, as the broker makes them of all its levels.

    All others are as a temporary queue, which has nothing of its own, where no nodeAutoCreationPolicy matches. Raises
    JMSError: the broker does not answer, or refuses.
    """
    host = _read(connection, _HOST, "")
    if host is None:
        raise JMSError("the broker does not say what its virtual host has")
    queues = [found for name in names if (found := _read(connection, _QUEUE, name)) is not None]
    with connection.session() as session, session.consumer(temporary := session.temporary_queue()):
        usual = _read(connection, _QUEUE, temporary.name) or {}
    document = {
        "name": "default",
        "modelVersion": "9.0",
        "context": {_DEFAULTS[name]: _text(value) for name, value in _kept(usual).items()},
        "nodeAutoCreationPolicies": host.get("nodeAutoCreationPolicies") or [],
        "queues": [{"name": each["name"], **_kept(each)} for each in queues],
    }
    content = json.dumps(document, default=str).encode()
    rules = read_content(content, "the broker itself", format="broker_j", strict=False).rules
    return replace(cast(BrokerJRules, rules), lists_queues=False)


def broker_j_time(connection: Connection) -> float:
    """The broker's time, in milliseconds since 1970: at which it answered.

    Raises:
        UnsupportedError: its answers have no time.
        JMSError: the broker does not answer, or refuses.
    """
    answer = _asked(connection, {})
    if answer.timestamp is None:
        raise UnsupportedError("the answers of this broker's management have no time")
    return answer.timestamp.timestamp() * 1000


def _kept(queue: Mapping[str, Any]) -> dict[str, Any]:
    return {name: queue[name] for name in _DEFAULTS if queue.get(name) is not None}


def _text(value: Any) -> str:
    return json.dumps(value, default=str) if isinstance(value, dict) else str(value)


def _at(name: str) -> dict[str, Any]:
    return {"index": "object-path", "key": name.replace("\\", r"\\").replace("/", r"\/")}


def _read(connection: Connection, kind: str, name: str) -> dict[str, Any] | None:
    """The attributes of an object, those that it takes from elsewhere too; None where there is none."""
    answer = _asked(connection, {"type": kind, "operation": "READ", "actuals": False, **_at(name)})
    return None if answer.properties.get("statusCode") == 404 else _nested(answer, "READ")


def _asked(connection: Connection, properties: dict[str, Any]) -> Message:
    # A broker without a store refuses what is persistent.
    return connection.request("$management", Message({}, properties=properties), _SECONDS, persistent=False)


def _nested(answer: Message, operation: str) -> dict[str, Any]:
    code, source = answer.properties.get("statusCode"), answer.source
    found = source.nested_body() if code == 200 and isinstance(source, AmqpFields) else None
    if not isinstance(found, dict):
        reason = str(answer.properties.get("statusDescription") or code)
        raise JMSError(f"the broker does not do {operation}: {reason[:200]}")
    return found
