"""From a message to the bytes of an AMQP message, as Qpid JMS writes them (AMQP JMS mapping)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from redelivery.model.content.bodies import RawBody, decoded
from redelivery.model.destinations import Destination
from redelivery.model.errors import InvalidDestinationError, MessageFormatError, UnsupportedError
from redelivery.model.messages import Message
from redelivery.model.values import Body, Value, to_epoch_ms
from redelivery.transports.amqp.codec.bodies import BYTES, MAP, MESSAGE, STREAM, TEXT
from redelivery.transports.amqp.codec.encoding import (
    binary_head,
    text_head,
    write,
    write_fields,
    write_key,
    write_list,
    write_long,
    write_map,
    write_symbol,
    write_timestamp,
    write_uint,
)
from redelivery.transports.amqp.codec.ids import write_id
from redelivery.transports.amqp.codec.names import kind_of, to_address
from redelivery.transports.amqp.codec.raw import AmqpBody
from redelivery.transports.dialects.amqp import AmqpDialect
from redelivery.transports.wire.clock import epoch_ms

LARGE: Final = 65_536  # bytes: a body above this is not copied behind its head
_NULL: Final = b"\x40"
_BYTES_TYPE: Final = write_symbol("application/octet-stream")
_UINT_MAX: Final = (1 << 32) - 1
_PROPERTIES: Final = b"\x00\x53\x73"
_CREATED: Final = 10  # fields of the properties up to the time of creation
_DATA: Final = b"\x00\x53\x75"
_SEQUENCE: Final = b"\x00\x53\x76"
_VALUE: Final = b"\x00\x53\x77"
# The fields of most messages: only these, neither expiring nor delayed, need no check of the others.
_PLAIN: Final = frozenset(
    ("body", "destination", "persistent", "priority", "timestamp", "expiration", "delivery_time", "message_id")
)


def encode(
    message: Message, message_id: str, address: str, dialect: AmqpDialect, notes: Mapping[str, str] | None = None
) -> tuple[bytes, ...]:
    """The message: one part, or two where the body is large, to be sent one behind the other.

    Args:
        message: as stamped for its send.
        message_id: its JMSMessageID, a str that begins with "ID:".
        address: of the node that it is sent to, for the field ``to``.
        dialect: what the broker can do.
        notes: message annotations beside those of the mapping.

    Raises:
        MessageFormatError: AMQP cannot carry the body, a property or a header, which the text names.
        InvalidDestinationError: the message has no destination, or one that cannot be sent to.
        UnsupportedError: the broker has no delayed delivery.
    """
    fields = message.fields
    destination = fields.get("destination")
    if destination is None:
        raise InvalidDestinationError("a message without a destination cannot be sent")
    content = fields["body"]
    carried = None
    if isinstance(content, RawBody):
        carried = content if isinstance(content, AmqpBody) else None
        content = content if carried is not None else decoded(content)
    kind, body_head, body = _body(content)
    persistent, priority = fields.get("persistent", True), fields.get("priority", 4)
    sent = fields.get("timestamp") or 0
    created = write_timestamp(sent if isinstance(sent, int) else to_epoch_ms(sent)) if sent else _NULL
    if (
        carried is None
        and not notes
        and _PLAIN.issuperset(fields)
        and not fields.get("expiration")
        and not fields.get("delivery_time")
    ):
        start, between = _usual(persistent, priority, kind, destination, address)
        parts = [start, write_fields(write_id("message_id", message_id) + between + created, _CREATED)]
    else:
        types = (_content_type(kind), _NULL) if carried is None else carried.content()
        parts = _full(message, kind, destination, persistent, priority, dialect, notes or {})
        to = _key(address, "destination")
        parts += _properties(message, write_id("message_id", message_id), to, types, created, dialect)
    parts.append(body_head)
    if len(body) > LARGE:
        return b"".join(parts), body
    parts.append(body)
    return (b"".join(parts),)


@lru_cache(maxsize=1024)
def _start(persistent: bool, priority: int, kind: int | None, destination: Destination) -> bytes:
    """Header and annotations of a message that neither expires nor waits nor wants a reply."""
    return _header(persistent, priority, 0) + _annotations(kind, destination, None, [])


@lru_cache(maxsize=1024)
def _usual(
    persistent: bool, priority: int, kind: int | None, destination: Destination, address: str
) -> tuple[bytes, bytes]:
    """The bytes of a message of nothing but `_PLAIN`: before its properties, and these between id and creation."""
    to, content_type = _key(address, "destination"), _content_type(kind)
    return (
        _start(persistent, priority, kind, destination) + _PROPERTIES,
        b"".join((_NULL, to, _NULL, _NULL, _NULL, content_type, _NULL, _NULL)),
    )


def _content_type(kind: int | None) -> bytes:
    return _BYTES_TYPE if kind == BYTES else _NULL


def _header(persistent: bool, priority: int, ttl: int) -> bytes:
    fields = [write(persistent, "persistent"), b"\x50" + priority.to_bytes(1, "big")]
    if 0 < ttl <= _UINT_MAX:
        fields.append(write_uint(ttl))
    return b"\x00\x53\x70" + write_list(fields)


def _annotations(kind: int | None, destination: Destination, reply_to: Destination | None, more: list[bytes]) -> bytes:
    if destination.is_pattern:
        raise InvalidDestinationError(f"{destination} is a pattern: it can be consumed, not sent to")
    items = (
        [_DEST, _byte(kind_of(destination))]
        if kind is None
        else [*(_MSG_TYPE, _byte(kind), _DEST, _byte(kind_of(destination)))]
    )
    if reply_to is not None:
        items += [_REPLY_TO, _byte(kind_of(reply_to))]
    return b"\x00\x53\x72" + write_map(items + more)


_MSG_TYPE: Final = write_symbol("x-opt-jms-msg-type")
_DEST: Final = write_symbol("x-opt-jms-dest")
_REPLY_TO: Final = write_symbol("x-opt-jms-reply-to")


def _byte(number: int) -> bytes:
    return b"\x51" + number.to_bytes(1, "big")


def _full(
    message: Message,
    kind: int | None,
    destination: Destination,
    persistent: bool,
    priority: int,
    dialect: AmqpDialect,
    notes: Mapping[str, str],
) -> list[bytes]:
    """Header and annotations of any message."""
    fields = message.fields
    expires, due = _milliseconds(fields, "expiration"), _milliseconds(fields, "delivery_time")
    reply_to = fields.get("reply_to")
    if not expires and not due and reply_to is None and not notes:
        return [_start(persistent, priority, kind, destination)]
    now = epoch_ms()
    more = [part for name, value in notes.items() for part in (write_symbol(name), write(value, name))]
    if due > now:
        if dialect.delay_annotation is None:
            raise UnsupportedError("this broker has no delayed delivery over AMQP")
        more += [write_symbol(dialect.delay_annotation), write_long(due if dialect.delay_is_time else due - now)]
    # At least 1: a ttl of 0 is none to some brokers, and this message has expired.
    ttl = max(1, expires - now) if expires else 0
    return [_header(persistent, priority, ttl), _annotations(kind, destination, reply_to, more)]


def _milliseconds(fields: Mapping[str, Any], name: str) -> int:
    value = fields.get(name) or 0
    return value if isinstance(value, int) else to_epoch_ms(value)


def _properties(
    message: Message, message_id: bytes, to: bytes, types: tuple[bytes, bytes], created: bytes, dialect: AmqpDialect
) -> list[bytes]:
    """The sections `properties` and `application-properties` of any message; ``types``: of content and encoding."""
    own = message.fields
    reply_to, correlation, sequence = own.get("reply_to"), own.get("correlation_id"), own.get("group_sequence")
    expires = _milliseconds(own, "expiration")
    if sequence is not None and sequence >= _UINT_MAX:  # which stands for -1
        raise MessageFormatError(f"group_sequence={sequence} does not fit 32 bits, as AMQP has it")
    fields = [
        message_id,
        _NULL,
        to,
        write(own.get("type"), "type"),
        _NULL if reply_to is None else _key(to_address(reply_to, dialect), "reply_to"),
        _NULL if correlation is None else write_id("correlation_id", correlation),
        *types,
        write_timestamp(expires) if expires else _NULL,
        created,
        write(own.get("group_id"), "group_id"),
        _NULL if sequence is None else write_uint(sequence & _UINT_MAX),
    ]
    while fields[-1] == _NULL:
        fields.pop()
    parts = [_PROPERTIES, write_list(fields)]
    properties = own.get("properties")
    if properties:
        parts += [b"\x00\x53\x74", _map(properties, "property")]
    return parts


def _map(values: Mapping[str, Value], what: str) -> bytes:
    items = []
    for name, value in values.items():
        items.append(_key(name, what))
        items.append(write(value, what, name))
    return write_map(items)


def _key(text: str, what: str) -> bytes:
    try:
        return write_key(text)
    except UnicodeEncodeError as error:
        raise MessageFormatError(f"{what} {text!r}: AMQP cannot carry half a character in a name") from error


def _body(body: Body | AmqpBody) -> tuple[int | None, bytes, bytes]:
    """The kind of message, what stands before the body's bytes, and these."""
    if isinstance(body, AmqpBody):
        return body.kind(), b"", body.sections()
    if isinstance(body, str):
        try:
            data = body.encode("utf-8")
        except UnicodeEncodeError as error:
            raise MessageFormatError(
                f"body: {error.object[error.start]!r} is half a character, which AMQP cannot carry; send bytes"
            ) from error
        return TEXT, _VALUE + text_head(len(data)), data
    if isinstance(body, bytes):
        return BYTES, _DATA + binary_head(len(body)), body
    if body is None:
        return MESSAGE, _VALUE, _NULL
    if isinstance(body, dict):
        return MAP, _VALUE, _map(body, "map entry")
    return STREAM, _SEQUENCE, write_list([write(value, "stream item", at) for at, value in enumerate(body)])
