"""Asks Artemis about itself: over AMQP, by ``activemq.management``, or over HTTP, by its console's Jolokia."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from redelivery.client.entry.sync import Connection
from redelivery.model.errors import ConnectionLostError, JMSError, RequestTimeoutError, SecurityError
from redelivery.model.messages import Message
from redelivery.operate.doctor.observed import ObservedQueue, observed
from redelivery.operate.management.artemis import ArtemisManagement, is_listed, listed, managed
from redelivery.operate.management.opening import management_of
from redelivery.policies.brokers.artemis.names import NAMES
from redelivery.policies.brokers.artemis.rules import AddressEntry, ArtemisRules
from redelivery.policies.destinations.address_settings import AddressSettings

_SECONDS: Final = 5.0  # for an answer
_FIELDS: Final = {
    "deadLetterAddress": "dead-letter-address",
    "expiryAddress": "expiry-address",
    "maxDeliveryAttempts": "max-delivery-attempts",
    "redeliveryDelay": "redelivery-delay",
    "redeliveryMultiplier": "redelivery-delay-multiplier",
    "maxRedeliveryDelay": "max-redelivery-delay",
    "redeliveryCollisionAvoidanceFactor": "redelivery-collision-avoidance-factor",
    "autoCreateDeadLetterResources": "auto-create-dead-letter-resources",
    "deadLetterQueuePrefix": "dead-letter-queue-prefix",
    "deadLetterQueueSuffix": "dead-letter-queue-suffix",
}


def managed_as(connection: Connection) -> str | None:
    """The dialect of a broker that answers questions over this connection, or None: ``artemis`` or ``qpid``."""
    if asked_over_http(connection) is not None:
        return "artemis"
    meta = connection.metadata
    if not meta.protocol.upper().startswith("AMQP") or meta.provider_name == "redelivery":
        return None  # the embedded broker obeys other brokers' files, and has no management
    return connection.dialect if connection.dialect in ("artemis", "qpid") else None


def asked_over_http(connection: Connection) -> ArtemisManagement | None:
    """The management of ``management=``, of an Artemis that answers nothing over this protocol; None: there is none."""
    if connection.metadata.protocol.upper().startswith("AMQP"):
        return None
    found = management_of(connection)
    return found if isinstance(found, ArtemisManagement) else None


def artemis_addresses(connection: Connection) -> tuple[str, ...]:
    """The addresses of all queues that are neither temporary nor the broker's own, in their order.

    Raises:
        JMSError: as `artemis_queues`.
    """
    queues = artemis_queues(connection).values()
    return tuple(dict.fromkeys(each.address for each in queues if each.address is not None))


def artemis_queues(connection: Connection) -> dict[str, ObservedQueue]:
    """All queues that are neither temporary nor the broker's own.

    Raises:
        JMSError: the broker does not answer, or refuses (it needs the permissions ``send`` and ``manage``).
    """
    ask = partial(_artemis, connection)
    found = map(managed, filter(is_listed, listed(lambda *asked: ask("listQueues", list(asked)))))
    return {each.name: observed(each) for each in found}


def artemis_rules(connection: Connection, addresses: Iterable[str]) -> ArtemisRules:
    """The settings that the broker has for these addresses, each as an exact match.

    Raises:
        JMSError: the broker does not answer, or refuses.
    """
    entries = []
    for address in addresses:
        reported = json.loads(_artemis(connection, "getAddressSettingsAsJSON", [address]))
        values: dict[str, Any] = {}
        for name, element in _FIELDS.items():
            field, kind = NAMES[element]
            if reported.get(name) is not None:
                text = str(reported[name]).lower() if isinstance(reported[name], bool) else str(reported[name])
                with suppress(ValueError):  # what a later version may say otherwise
                    values[field] = kind.read(element, text)
        entries.append(AddressEntry(address, AddressSettings(**values)))
    return ArtemisRules(entries=tuple(entries), lists_queues=False)


def artemis_time(connection: Connection) -> float:
    """The broker's time, in milliseconds since 1970: at which it made the newest consumer, which is one of ours.

    Raises:
        JMSError: the broker does not answer, or refuses.
    """
    with connection.session() as session, session.consumer(session.temporary_queue()):
        answer = json.loads(_artemis(connection, "listAllConsumersAsJSON", []))
    return float(max(int(each["creationTime"]) for each in answer))


def _artemis(connection: Connection, operation: str, arguments: list[object]) -> str:
    over_http = asked_over_http(connection)
    if over_http is not None:
        return str(over_http.call(operation, *arguments))
    properties = {"_AMQ_ResourceName": "broker", "_AMQ_OperationName": operation}
    question = Message(json.dumps(arguments), properties=properties)
    try:
        answer = connection.request("activemq.management", question, _SECONDS)
    except (ConnectionLostError, RequestTimeoutError):
        raise
    except JMSError as error:  # some versions answer a user who may not send there with an error of their own
        raise SecurityError(
            "this user may not ask Artemis about queues: that takes the permissions send and manage for the address "
            f"activemq.management; or pass --management http://user:password@host:8161 over stomp:// ({error})"
        ) from error
    if answer.properties.get("_AMQ_OperationSucceeded") is not True or not isinstance(answer.body, str):
        raise JMSError(f"the broker does not do {operation}: {str(answer.body)[:200]}")
    results = json.loads(answer.body)
    return str(results[0]) if isinstance(results, list) and results else "{}"
