"""Makes, of what RabbitMQ's management shows of a message, the frame by which it would come over STOMP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import quote

from redelivery.model.destinations import Destination
from redelivery.model.messages import Message
from redelivery.model.values import Value
from redelivery.operate.management.shown import deaths, headers_of, payload
from redelivery.transports.dialects.rabbitmq import STOMP
from redelivery.transports.stomp.codec.formats import StompFormat
from redelivery.transports.stomp.codec.frames import encode_head
from redelivery.transports.stomp.codec.messages import StompMessage

_PROPERTIES: Final = (  # as the broker calls them -> as a frame does, in its order
    ("content_type", "content-type"),
    ("content_encoding", "content-encoding"),
    ("type", "type"),
    ("timestamp", "timestamp"),
    ("message_id", "amqp-message-id"),
    ("expiration", "expiration"),
    ("reply_to", "reply-to"),
    ("correlation_id", "correlation-id"),
    ("priority", "priority"),
    ("user_id", "user-id"),
    ("app_id", "app-id"),
)
_PERSISTENT: Final = 2
_EXCHANGES: Final = {"": "/queue/", "amq.topic": "/topic/"}


def as_stomp(shown: Mapping[str, Any], queue: Destination) -> Message:
    """The message, as it would have been received from this queue."""
    head = encode_head("MESSAGE", _pairs(shown))
    return Message.received(_BrowsedOverStomp(head, shown, StompFormat(STOMP, "1.2", queue)), 0, None)


class _BrowsedOverStomp(StompMessage):
    __slots__ = ("_shown",)

    def __init__(self, head: bytes, shown: Mapping[str, Any], format: StompFormat) -> None:
        super().__init__(head, payload(shown), format)
        self._shown = shown

    def properties(self) -> Mapping[str, Value]:
        """See `StompFields`; with their types, which a frame does not have."""
        found, sent = super().properties(), headers_of(self._shown)
        return MappingProxyType({name: sent.get(name, value) for name, value in found.items()})

    def noted(self) -> Mapping[str, object]:
        """See `StompFields`; and when it became a dead letter, which no frame says."""
        return {**super().noted(), **deaths(self._shown)}

    def consumed_from(self) -> Destination:
        """See `redelivery.model.content.dead_letters.Noting`."""
        return self.format.destination


def _pairs(shown: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    exchange, key = str(shown.get("exchange", "")), str(shown.get("routing_key", ""))
    prefix = _EXCHANGES.get(exchange) or f"/exchange/{quote(exchange, safe='')}/"
    yield "destination", prefix + quote(key, safe="")
    yield "redelivered", "true" if shown.get("redelivered") else "false"
    for name, value in headers_of(shown).items():
        if name and isinstance(value, (str, int, float)):  # what is a table or a list never comes over STOMP
            yield name, str(value).lower() if isinstance(value, bool) else str(value)
    properties = shown["properties"]
    for name, header in _PROPERTIES:
        if properties.get(name) is not None:
            yield header, str(properties[name])
    if properties.get("delivery_mode") == _PERSISTENT:
        yield "persistent", "true"
