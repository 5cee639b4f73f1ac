"""Stored messages as bytes: the headers and properties as JSON, the body as it came.

What came over AMQP is kept as the bytes that came, since it leaves so again. JSON has no bytes and one kind of
number, so other values stand as lists of two: their kind, and what it is made of.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from types import MappingProxyType, ModuleType, NoneType
from typing import Any, Final, Protocol
from zlib import crc32

from redelivery.broker.engine.queues import Binding
from redelivery.broker.engine.stored import StoredMessage, WireBody, detached
from redelivery.model.destinations import Queue, SubscriptionName, TemporaryQueue, TemporaryTopic, Topic
from redelivery.model.errors import ConfigError
from redelivery.model.selectors.selector import Selector
from redelivery.model.values import Body, Byte, Float, Long, Short, Value
from redelivery.model.version import lacks_proton

PART: Final = 48 << 10  # characters, or bytes: a multiple of 3, or base64 would pad within
_PLAIN: Final = frozenset((str, bool, int, float, NoneType))
_NUMBERS: Final[Mapping[str, type[int] | type[float]]] = {"byte": Byte, "short": Short, "long": Long, "float": Float}
_KINDS: Final = {kind: name for name, kind in _NUMBERS.items()}
_DESTINATIONS: Final = {kind.scheme: kind for kind in (Queue, Topic, TemporaryQueue, TemporaryTopic)}
# Fields that JSON has as they are, with what is not written down.
_FIELDS: Final[Mapping[str, object]] = {
    "message_id": "",
    "timestamp": 0,
    "expiration": 0,
    "delivery_time": 0,
    "priority": 4,
    "persistent": True,
    "type": None,
    "group_id": None,
    "group_sequence": None,
    "size": 0,
    "identity": "",
    "resends": 0,
    "own_expiration": None,
}
_PLACES: Final = ("destination", "reply_to", "original_destination")


class LateSource(WireBody, Protocol):
    """A body in the file."""

    def data(self) -> bytes:
        """The body's bytes."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """A body as bytes. ``protocol``: how they are read: text, bytes, map, stream, none, or amqp for a whole message."""

    protocol: str
    data: bytes


def encode_head(message: StoredMessage, protocol: str) -> bytes:
    """All but the body, whose protocol it names."""
    head: dict[str, Any] = {
        name: value for name, left_out in _FIELDS.items() if (value := _get(message, name)) != left_out
    }
    for name in _PLACES:
        place = _get(message, name)
        if place is not None:
            head[name] = [place.scheme, place.name]
    if message.correlation_id is not None:
        head["correlation_id"] = _write(message.correlation_id)
    if message.properties:
        head["properties"] = {name: _write(value) for name, value in message.properties.items()}
    if message.origin and message.delivery_time and isinstance(message.destination, Topic):
        head["origin"] = message.origin  # for subscriptions with no_local, when its time has come
    head["body"] = protocol
    return json.dumps(head, separators=(",", ":")).encode()


def encode_name(name: str) -> bytes:
    """A queue's name, whatever Python has in it."""
    return name.encode("utf-8", "surrogatepass")


def decode_name(data: bytes) -> str:
    """The name again."""
    return data.decode("utf-8", "surrogatepass")


def encode_binding(binding: Binding) -> bytes:
    """A durable subscription."""
    named, selector = binding.named, binding.selector
    assert named is not None, "a durable subscription has a name"
    return json.dumps(
        {
            "topic": binding.topic.name,
            "no_local": binding.no_local,
            "selector": None if selector is None else [selector.text, selector.lenient],
            "named": [named.name, named.durable, named.shared],
            "client_id": binding.client_id,
        }
    ).encode()


def decode_binding(data: bytes) -> Binding:
    """The subscription again."""
    found: dict[str, Any] = json.loads(data)
    selector = found["selector"]
    return Binding(
        Topic(found["topic"]),
        found["no_local"],
        None if selector is None else Selector(selector[0], lenient=selector[1]),
        SubscriptionName(*found["named"]),
        found["client_id"],
    )


def protocol_of(message: StoredMessage) -> str:
    """The protocol that `encode_body` would name."""
    if message.wire is not None:
        return "amqp"
    if isinstance(protocol := getattr(message.body, "protocol", None), str):
        return protocol  # of a `redelivery.broker.engine.stored.EncodedBody`
    return next(name for name, kind in _PROTOCOLS.items() if isinstance(message.body, kind))


def encode_body(message: StoredMessage) -> Encoded:
    """The body."""
    if message.wire is not None:
        raw = message.wire.raw
        return Encoded("amqp", raw if isinstance(raw, bytes) else bytes(raw))
    body = detached(message.body)
    match body:
        case None:
            return Encoded("none", b"")
        case str():
            return Encoded("text", body.encode("utf-8", "surrogatepass"))
        case bytes():
            return Encoded("bytes", body)
        case dict():
            return Encoded("map", json.dumps({name: _write(value) for name, value in body.items()}).encode())
        case list():
            return Encoded("stream", json.dumps([_write(value) for value in body]).encode())


def encoded_parts(body: Mapping[str, Value] | Sequence[Value]) -> Iterator[bytes]:
    """The bytes of a map or stream as `encode_body` has them, a part at a time: only names are not divided."""
    if isinstance(body, Mapping):
        first, last, values = b"{", b"}", iter(body.values())
        names: Iterator[str | None] = iter(body)
    else:
        first, last, values, names = b"[", b"]", iter(body), repeat(None)
    before = first
    for name, value in zip(names, values, strict=False):
        yield before
        before = b", "
        if name is not None:
            yield from _parts(name)
            yield b": "
        yield from _parts(value)
    yield last if before != first else first + last


def _parts(value: Value) -> Iterator[bytes]:
    """The JSON of one value: that of a long str or bytes is what its slices make."""
    if isinstance(value, bytes) and len(value) > PART:
        yield b'["bytes", "'
        yield from (b64encode(value[at : at + PART]) for at in range(0, len(value), PART))
        yield b'"]'
    elif isinstance(value, str) and len(value) > PART:
        yield b'"'
        yield from (json.dumps(value[at : at + PART])[1:-1].encode() for at in range(0, len(value), PART))
        yield b'"'
    else:
        yield json.dumps(_write(value)).encode()


def checksum(*parts: bytes | memoryview) -> int:
    """The sum that finds a change of stored bytes that are read again."""
    crc = 0
    for part in parts:
        crc = crc32(part, crc)
    return crc


def check(crc: int | None, *parts: bytes) -> None:
    """Raise ValueError where bytes have changed. None: an older version has written them, without a checksum."""
    if crc is not None and crc != checksum(*parts):
        raise ValueError("the bytes of a message are not those that were written")


def decode(head: bytes, body: bytes, crc: int | None) -> StoredMessage:
    """The message again.

    Raises:
        ValueError: see `check`.
        ConfigError: it came over AMQP, which is not installed now.
    """
    check(crc, head, body)
    fields, protocol = _fields(head)
    if protocol == "amqp":
        wire = _amqp().kept(body, fields["destination"])
        return StoredMessage(**fields, body=wire, wire=wire)
    return StoredMessage(**fields, body=body_of(protocol, body))


def decode_late(head: bytes, crc: int | None, body: Callable[[str, int], LateSource]) -> StoredMessage:
    """The message again, of which only ``body(protocol, size of the message)`` knows the body. Raises as `decode`."""
    check(crc, head)
    fields, protocol = _fields(head)
    source = body(protocol, fields.get("size", 0))
    if protocol == "amqp":
        wire = late_wire(source)
        return StoredMessage(**fields, body=wire, wire=wire)
    return StoredMessage(**fields, body=source)


def late_wire(source: LateSource) -> Any:
    """A message that came over AMQP, of which only ``source`` has the bytes. Raises as `decode`."""
    return _amqp().LateWire(source)


def body_of(protocol: str, data: bytes) -> Body:
    """A body from its bytes."""
    return _BODIES[protocol](data)


def _fields(head: bytes) -> tuple[dict[str, Any], str]:
    found: dict[str, Any] = json.loads(head)
    protocol: str = found.pop("body")
    for name in _PLACES:
        if name in found:
            scheme, place = found[name]
            found[name] = _DESTINATIONS[scheme](place)
    if "correlation_id" in found:
        found["correlation_id"] = _read(found["correlation_id"])
    properties = found.pop("properties", None)
    if properties:
        found["properties"] = MappingProxyType({name: _read(value) for name, value in properties.items()})
    found.setdefault("message_id", "")
    return found, protocol


_get: Final[Callable[[StoredMessage, str], Any]] = getattr
_PROTOCOLS: Final[Mapping[str, type]] = {"none": NoneType, "text": str, "bytes": bytes, "map": dict, "stream": list}
_BODIES: Final[Mapping[str, Callable[[bytes], Body]]] = {
    "none": lambda _: None,
    "text": lambda data: data.decode("utf-8", "surrogatepass"),
    "bytes": bytes,
    "map": lambda data: {name: _read(value) for name, value in json.loads(data).items()},
    "stream": lambda data: [_read(value) for value in json.loads(data)],
}


def _write(value: Value) -> Any:
    kind = type(value)
    if kind in _PLAIN:
        return value
    if isinstance(value, bytes):
        return ["bytes", b64encode(value).decode()]
    if isinstance(value, dict):
        return ["map", {name: _write(item) for name, item in value.items()}]
    if isinstance(value, list):
        return ["list", [_write(item) for item in value]]
    return [_KINDS[kind], value]  # type: ignore[index]  # a value of the model is one of these


def _read(value: Any) -> Value:
    if not isinstance(value, list):
        return value  # type: ignore[no-any-return]  # plain, see _write
    kind, content = value
    if kind == "map":
        return {name: _read(item) for name, item in content.items()}  # type: ignore[return-value]  # as AMQP has it
    if kind == "list":
        return [_read(item) for item in content]  # type: ignore[return-value]  # as above
    return b64decode(content) if kind == "bytes" else _NUMBERS[kind](content)


def _amqp() -> ModuleType:
    try:
        from redelivery.broker.servers.amqp.codec import messages
    except ModuleNotFoundError as error:
        if (lacks := lacks_proton(error)) is None:
            raise
        raise ConfigError(f"the store holds messages that came over AMQP, and needs {lacks}") from error
    return messages
