"""Between AMQP messages and stored ones. What came by AMQP leaves by AMQP as it came, but for its header.

A dead letter gets its new address and what says its origin, where the broker's rules have it say so; all else stays,
whatever its types.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Final, Protocol, TypeAlias

from redelivery.broker.engine.rules.rules import Origin
from redelivery.broker.engine.stored import StoredMessage, detached, size_of
from redelivery.broker.servers.amqp.codec.sections import Header, dead_letter, write_header
from redelivery.broker.servers.amqp.codec.terminus import DIALECT
from redelivery.broker.views import TRANSFORMATION_ERROR, is_letter, properties_of, shown
from redelivery.model.content.bodies import RawBody
from redelivery.model.destinations import Destination, Queue
from redelivery.model.errors import InvalidDestinationError, MessageFormatError
from redelivery.model.messages import Message
from redelivery.model.values import Body, Value
from redelivery.transports.amqp.codec.encoding import write, write_text
from redelivery.transports.amqp.codec.messages import AmqpFormat, AmqpMessage
from redelivery.transports.amqp.codec.names import to_address
from redelivery.transports.amqp.codec.raw import AmqpBody
from redelivery.transports.amqp.codec.sections import (
    DELIVERY_ANNOTATIONS,
    HEADER,
    descriptor,
    find,
    read_annotations,
    read_header,
)
from redelivery.transports.amqp.codec.sends import encode
from redelivery.transports.amqp.codec.values import skip

Parts: TypeAlias = "tuple[bytes | memoryview, ...]"

_NOWHERE: Final = Queue("an anonymous link")
_DELAY, _TIME = "x-opt-delivery-delay", "x-opt-delivery-time"


class Wire:
    """A message as it came: what it leaves as, and its body for other protocols."""

    __slots__ = ("_received", "rest")

    def __init__(self, received: AmqpMessage) -> None:
        self._received = received
        self.rest = _behind_header(received.raw)

    @property
    def raw(self) -> bytes | bytearray:
        """All of it."""
        return self._received.raw

    def read(self) -> Body:
        """See `redelivery.broker.engine.stored.WireBody`."""
        return detached(self._received.body())

    def carried(self) -> RawBody:
        """See `redelivery.broker.engine.stored.WireBody`."""
        return AmqpBody(self._received)

    def __len__(self) -> int:
        return len(self._received.raw)


class LateWire:
    """The same, where a store has the bytes: ``source.data()`` reads them."""

    __slots__ = ("source",)

    def __init__(self, source: LateBytes) -> None:
        self.source = source

    @property
    def raw(self) -> bytes:
        """All of it."""
        return self.source.data()

    def read(self) -> Body:
        """See `redelivery.broker.engine.stored.WireBody`."""
        return detached(kept(self.raw, _NOWHERE).read())

    def carried(self) -> RawBody:
        """See `redelivery.broker.engine.stored.WireBody`."""
        return kept(self.raw, _NOWHERE).carried()

    def __len__(self) -> int:
        return len(self.source)


class LateBytes(Protocol):
    """The bytes of a message that a store has."""

    def data(self) -> bytes:
        """All of them."""

    def __len__(self) -> int:
        """The number of bytes."""


def read_message(
    raw: bytes | bytearray, destination: Destination | None, message_id: str, *, now: int, origin: str
) -> StoredMessage:
    """The message of a transfer; ``now`` in epoch milliseconds.

    ``destination``: of the link; None: the message names it. ``message_id``: the broker's own id for it.

    Raises:
        MessageFormatError: it cannot be read; the body is read later.
        InvalidDestinationError: the message has no address, or a pattern.
    """
    received = AmqpMessage(raw, AmqpFormat(DIALECT, _NOWHERE if destination is None else destination))
    wire = Wire(received)
    target = destination or received.header("destination")
    if target is _NOWHERE:
        raise InvalidDestinationError("a message on an anonymous link must say in `to` where it goes")
    if target.is_pattern:
        raise InvalidDestinationError(f"a message cannot be sent to {target}: it is a pattern")
    properties = received.properties()
    timestamp = received.header("timestamp")
    return StoredMessage(
        message_id=received.header("message_id") or message_id,
        destination=target,
        body=wire,
        properties=properties,
        timestamp=now if timestamp is None else round(timestamp.timestamp() * 1000),
        expiration=received.expires_at(),
        delivery_time=_delivery_time(raw, now),
        priority=received.header("priority"),
        persistent=received.header("persistent"),
        correlation_id=received.header("correlation_id"),
        reply_to=received.header("reply_to"),
        type=received.header("type"),
        group_id=received.header("group_id"),
        group_sequence=received.header("group_sequence"),
        origin=origin,
        size=size_of(wire, properties),
        identity=message_id,
        wire=wire,
    )


def kept(raw: bytes, destination: Destination) -> Wire:
    """A message as it came, from a store."""
    return Wire(AmqpMessage(raw, AmqpFormat(DIALECT, destination)))


def write_message(stored: StoredMessage, count: int, *, first: bool, now: int, origin: Origin) -> Parts:
    """The message of a delivery, in parts; ``now`` in epoch milliseconds.

    ``count``: which delivery it is, 1 for the first. ``first``: it was sent to no client before. ``origin``: where a
    dead letter says where it comes from.
    """
    left = max(1, stored.expiration - now) if stored.expiration else None
    if not isinstance(stored.wire, (Wire, LateWire)):
        properties = properties_of(stored) if origin is Origin.PROPERTIES else stored.properties
        return _written(stored, properties, Header(stored.persistent, stored.priority, left, first, count - 1))
    raw = stored.wire.raw
    durable, priority, ttl, _, _ = read_header(find(raw)[0])
    if origin is Origin.ANNOTATIONS and (is_letter(stored) or stored.own_expiration is not None):
        header = Header(durable, priority, None, first, count - 1)
        return write_header(header), *dead_letter(raw, shown(stored), stored.expiration, stored.properties)
    if origin is not Origin.PROPERTIES or stored.original_destination is None:
        ttl = ttl if origin is Origin.ANNOTATIONS else ttl and (left or ttl)  # Artemis shows it as it was sent
        header = Header(durable, priority, ttl, first, count - 1)
        rest = stored.wire.rest if isinstance(stored.wire, Wire) else _behind_header(raw)
        return write_header(header), memoryview(raw)[rest:]
    header = Header(True, priority, left, first, count - 1)
    return write_header(header), *dead_letter(raw, stored.destination, stored.expiration, properties_of(stored))


def _written(stored: StoredMessage, properties: Mapping[str, Value], header: Header) -> Parts:
    """A message that came by another protocol."""
    message = Message()
    message.stamp(
        body=detached(stored.body),
        destination=stored.destination,
        properties=properties,
        timestamp=stored.timestamp,
        persistent=stored.persistent,
        priority=stored.priority,
        correlation_id=stored.correlation_id,
        reply_to=stored.reply_to,
        type=stored.type,
        group_id=stored.group_id,
        group_sequence=stored.group_sequence,
        expiration=stored.expiration,
    )
    address = to_address(shown(stored), DIALECT)
    try:
        parts = encode(message, stored.message_id, address, DIALECT)
    except MessageFormatError as error:
        note = {TRANSFORMATION_ERROR: f"what AMQP cannot carry was left out: {error}"}
        message.stamp(properties={**_fitting(properties), **note})
        message.stamp(body=_fitting_body(message.body), correlation_id=None, type=None, group_id=None, reply_to=None)
        parts = encode(message, stored.message_id, address, DIALECT)
    raw = b"".join(parts)
    return write_header(header), memoryview(raw)[_behind_header(raw) :]


def _fitting(properties: Mapping[str, Value]) -> dict[str, Value]:
    fitting = {}
    for name, value in properties.items():
        with suppress(MessageFormatError, UnicodeEncodeError):
            write_text(name)
            write(value, "property", name)
            fitting[name] = value
    return fitting


def _fitting_body(body: Body) -> Body:
    try:
        encode(_anything(body), "ID:1", "a", DIALECT)
    except MessageFormatError:
        return None
    return body


def _anything(body: Body) -> Message:
    message = Message(body)
    message.stamp(destination=_NOWHERE)
    return message


def _behind_header(raw: bytes | bytearray) -> int:
    """The place where the sections begin that a broker must not change. Raises MessageFormatError."""
    at = 0
    try:
        while at < len(raw):
            code, start = descriptor(raw, at)
            if code not in (HEADER, DELIVERY_ANNOTATIONS):
                break
            at = skip(raw, start)
    except IndexError as error:
        raise MessageFormatError(f"the message is cut off after {len(raw)} bytes") from error
    return at


def _delivery_time(raw: bytes | bytearray, now: int) -> int:
    """Epoch milliseconds; 0 where it is not delayed."""
    annotations = read_annotations(find(raw)[1])
    at, delay = annotations.get(_TIME), annotations.get(_DELAY)
    if not isinstance(at, int) and isinstance(delay, int):
        at = now + delay
    return at if isinstance(at, int) and at > now else 0
