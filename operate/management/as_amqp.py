"""Makes, of what RabbitMQ's management shows of a message, the sections by which it would come over AMQP 1.0."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from redelivery.model.destinations import Destination
from redelivery.model.messages import Message
from redelivery.operate.management.interface import PartlyReceived
from redelivery.operate.management.shown import deaths, headers_of, payload
from redelivery.transports.amqp.codec.encoding import (
    binary_head,
    write,
    write_list,
    write_map,
    write_symbol,
    write_text,
    write_timestamp,
    write_uint,
)
from redelivery.transports.amqp.codec.messages import AmqpFormat, AmqpMessage
from redelivery.transports.dialects.amqp import AmqpDialect
from redelivery.transports.dialects.rabbitmq import AMQP, AMQP_4

_SECTIONS: Final = "amqp-1.0"  # the type of a message whose payload is AMQP's own sections of a body
_OLD: Final = "x-amqp-1.0-"  # headers in which RabbitMQ 3 keeps the sections before the body as they came
_OLD_SECTIONS: Final = ("message-annotations", "properties", "app-properties")
_NOT_TEXT: Final = "Not UTF-8, base64 is: "  # before what is not text
_NOTED: Final = re.compile(r"x-")
_NULL: Final = b"\x40"
_MILLISECONDS: Final = 100_000_000_000  # a time below is in seconds
_PERSISTENT: Final = 2
_KIND: Final = "x-opt-jms-msg-type"


def is_amqp(shown: Mapping[str, Any]) -> bool:
    """Check whether its sender spoke AMQP 1.0, so that it says more in this form than in any other."""
    headers = headers_of(shown)
    return _is_sections(shown) or _KIND in headers or any(name.startswith(_OLD) for name in headers)


def as_amqp(shown: Mapping[str, Any], queue: Destination, version: tuple[int, ...]) -> Message:
    """The message, as it would have been received from this queue of a broker of that version."""
    body = payload(shown)
    if not _is_sections(shown):
        body = b"\x00\x53\x75" + binary_head(len(body)) + body
    dialect = AMQP_4 if version >= (4,) else AMQP
    raw = _header(shown) + _sections(shown, dialect) + body
    headers = () if version >= (4,) else [name for name in headers_of(shown) if not name.startswith(_OLD)]
    return Message.received(_BrowsedOverAmqp(raw, shown, AmqpFormat(dialect, queue), frozenset(headers)), 0, None)


class _BrowsedOverAmqp(AmqpMessage, PartlyReceived):
    __slots__ = ("_shown", "_unreceived")

    def __init__(self, raw: bytes, shown: Mapping[str, Any], format: AmqpFormat, unreceived: frozenset[str]) -> None:
        super().__init__(raw, format)
        self._shown = shown
        self._unreceived = unreceived

    def unreceived(self) -> frozenset[str]:
        """See `PartlyReceived`: RabbitMQ 3 hands on no headers of AMQP 0-9-1."""
        return self._unreceived

    def noted(self) -> Mapping[str, object]:
        """See `AmqpFields`; and what the broker's own headers say of a dead letter."""
        return {**super().noted(), **deaths(self._shown)}

    def consumed_from(self) -> Destination:
        """See `redelivery.model.content.dead_letters.Noting`."""
        return self.format.destination


def _is_sections(shown: Mapping[str, Any]) -> bool:
    return bool(shown["properties"].get("type") == _SECTIONS)


def _header(shown: Mapping[str, Any]) -> bytes:
    properties = shown["properties"]
    priority, durable = properties.get("priority"), properties.get("delivery_mode") == _PERSISTENT
    fields = [
        b"\x41" if durable else b"\x42",
        b"\x50" + bytes((min(255, max(0, priority)),)) if isinstance(priority, int) else _NULL,
        _ttl(properties),
        b"\x42" if shown.get("redelivered") else b"\x41",
    ]
    return b"\x00\x53\x70" + write_list(fields)


def _ttl(properties: Mapping[str, Any]) -> bytes:
    text = str(properties.get("expiration", ""))
    return write_uint(min(int(text), 0xFFFF_FFFF)) if text.isascii() and text.isdigit() and len(text) < 12 else _NULL


def _sections(shown: Mapping[str, Any], dialect: AmqpDialect) -> bytes:
    headers = headers_of(shown)
    kept = [_bytes(headers[name]) for each in _OLD_SECTIONS if isinstance(headers.get(name := _OLD + each), str)]
    if kept:
        return b"".join(kept)
    noted = [each for each in headers if _NOTED.match(each)]
    annotations = [part for name in noted if (part := _entry(name, headers[name], symbol=True))]
    own = [part for name in headers if name not in noted and (part := _entry(name, headers[name]))]
    found = b"\x00\x53\x72" + write_map(_pairs(annotations)) if annotations else b""
    found += b"\x00\x53\x73" + write_list(_properties(shown, dialect))
    return found + (b"\x00\x53\x74" + write_map(_pairs(own)) if own else b"")


def _pairs(entries: list[tuple[bytes, bytes]]) -> list[bytes]:
    return [each for entry in entries for each in entry]


def _entry(name: str, value: Any, *, symbol: bool = False) -> tuple[bytes, bytes] | None:
    if isinstance(value, (dict, list)):  # `deaths` reads those that are known
        return None
    if symbol and (len(name) > 255 or not name.isascii()):
        return None
    return (write_symbol(name) if symbol else write_text(name)), write(value, "header", name)


def _properties(shown: Mapping[str, Any], dialect: AmqpDialect) -> list[bytes]:
    said = shown["properties"]
    sent = said.get("timestamp")
    sent = sent * 1000 if isinstance(sent, int) and sent < _MILLISECONDS else sent
    ttl, kind = str(said.get("expiration", "")), said.get("type")
    expires = sent + int(ttl) if isinstance(sent, int) and ttl.isdigit() and len(ttl) < 12 else None
    return [
        _text(said.get("message_id")),
        _NULL,
        _text(_address(shown, dialect)),
        _text(None if kind == _SECTIONS else kind),
        _text(said.get("reply_to")),
        _text(said.get("correlation_id")),
        _text(said.get("content_type")),
        _text(said.get("content_encoding")),
        _NULL if expires is None else write_timestamp(expires),
        write_timestamp(sent) if isinstance(sent, int) else _NULL,
        _text(said.get("app_id")),
    ]


def _address(shown: Mapping[str, Any], dialect: AmqpDialect) -> str | None:
    exchange, key = str(shown.get("exchange", "")), str(shown.get("routing_key", ""))
    if exchange not in ("", "amq.topic"):
        return None  # by another exchange: JMS has no destination for that
    key = quote(key, safe="") if dialect.percent_encoded else key.replace("/", dialect.slash)
    return (dialect.topic_prefix if exchange else dialect.queue_prefix) + key


def _text(value: object) -> bytes:
    return _NULL if value is None else write_text(str(value))


def _bytes(shown: str) -> bytes:
    if not shown.startswith(_NOT_TEXT):
        return shown.encode()
    try:
        return b64decode(shown.removeprefix(_NOT_TEXT))
    except NotBase64:
        return b""
