"""Names and attributes, by OpenTelemetry's semantic conventions for messaging; ours begin with ``redelivery.``."""

from __future__ import annotations

from typing import Final

from redelivery.model.destinations import Destination, TemporaryQueue, TemporaryTopic
from redelivery.model.errors import MessageFormatError
from redelivery.model.messages import MessageSource
from redelivery.model.tracing import Server

SYSTEM: Final = "messaging.system"
OPERATION: Final = "messaging.operation.name"
OPERATION_TYPE: Final = "messaging.operation.type"
DESTINATION: Final = "messaging.destination.name"
TEMPORARY: Final = "messaging.destination.temporary"
SUBSCRIPTION: Final = "messaging.destination.subscription.name"
MESSAGE_ID: Final = "messaging.message.id"
CORRELATED: Final = "messaging.message.conversation_id"
COUNT: Final = "messaging.batch.message_count"
CLIENT: Final = "messaging.client.id"
ADDRESS: Final = "server.address"
PORT: Final = "server.port"
ERROR: Final = "error.type"
DELIVERY_COUNT: Final = "redelivery.delivery_count"
FIRST_DELIVERY: Final = "redelivery.first_delivery"
URL: Final = "redelivery.url"

SENDING: Final = ("send", "send")  # the operation's name and type
RECEIVING: Final = ("receive", "receive")
PROCESSING: Final = ("process", "process")

Attributes = dict[str, str | int | bool]
_TEMPORARY: Final = (TemporaryQueue, TemporaryTopic)


def of_server(server: Server) -> Attributes:
    """The attributes that every span and number of a session has."""
    found: Attributes = {SYSTEM: server.system, ADDRESS: server.address}
    if server.port is not None:
        found[PORT] = server.port
    return found


def of_operation(operation: tuple[str, str]) -> Attributes:
    """The attributes that every span has, and the duration of an operation."""
    return {OPERATION: operation[0], OPERATION_TYPE: operation[1]}


def of_number(
    operation: tuple[str, str], destination: Destination | None, subscription: str | None = None
) -> Attributes:
    """The attributes that every number has: few values each, so a temporary destination is not named."""
    found: Attributes = {OPERATION: operation[0]}
    if destination is not None and not isinstance(destination, _TEMPORARY):
        found[DESTINATION] = destination.name
    if subscription is not None:
        found[SUBSCRIPTION] = subscription
    return found


def of_destination(destination: Destination | None) -> Attributes:
    """For a span."""
    if destination is None:
        return {}
    if isinstance(destination, _TEMPORARY):
        return {DESTINATION: destination.name, TEMPORARY: True}
    return {DESTINATION: destination.name}


def of_message(source: MessageSource, subscription: str | None) -> Attributes:
    """For a span of one message that was received."""
    found: Attributes = {} if subscription is None else {SUBSCRIPTION: subscription}
    for name, header in ((MESSAGE_ID, "message_id"), (CORRELATED, "correlation_id")):
        value = _header(source, header)
        if isinstance(value, str):
            found[name] = value
    return found


def span_name(operation: tuple[str, str], destination: Destination | None) -> str:
    """``send orders``; without the destination where that is temporary, or where there are several."""
    if destination is None or isinstance(destination, _TEMPORARY):
        return operation[0]
    return f"{operation[0]} {destination.name}"


def error_type(error: BaseException) -> str:
    """The name of its class, with its module where that is not Python's own."""
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _header(source: MessageSource, name: str) -> object:
    try:
        return source.header(name)
    except MessageFormatError:
        return None
