"""Property and body values, typed as JMS types them (Jakarta Messaging 3.1, "Message properties", "Message bodies").

| Python | JMS |
|---|---|
| bool | boolean |
| int | int where it fits 32 bits, else long, else MessageFormatError |
| float | double |
| str | String |
| bytes | byte[], in map and stream bodies only |
| Byte, Short, Long, Float | byte, short, long, float |
| None | null, where the protocol can carry it |

Times are milliseconds since 1970 on the wire, aware datetimes for people.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import MappingProxyType, NoneType
from typing import Final, TypeAlias

from redelivery.model.content.errors import MessageFormatError

Value: TypeAlias = bool | int | float | str | bytes | None
Body: TypeAlias = str | bytes | dict[str, Value] | list[Value] | None

_FIRST_MS: Final = -62_135_596_800_000  # of the year 1
_LAST_MS: Final = 253_402_300_799_999  # of the year 9999
INT_MIN, INT_MAX = -(1 << 31), (1 << 31) - 1
LONG_MIN, LONG_MAX = -(1 << 63), (1 << 63) - 1
# JMS's headers, which are not properties -> the argument of a send
_HEADERS: Final = {
    "JMSCorrelationID": "correlation_id=",
    "JMSDeliveryMode": "persistent=",
    "JMSDeliveryTime": "delivery_delay=",
    "JMSDestination": "",
    "JMSExpiration": "ttl=",
    "JMSMessageID": "",
    "JMSPriority": "priority=",
    "JMSRedelivered": "",
    "JMSReplyTo": "reply_to=",
    "JMSTimestamp": "",
    "JMSType": "type=",
}
_SURE: Final = frozenset((str, bool, float, NoneType))  # every value of these is one of JMS


class _Whole(int):
    """An int that must fit a number of bits."""

    bits = 64

    def __new__(cls, value: int) -> _Whole:
        limit = 1 << (cls.bits - 1)
        if not isinstance(value, int) or isinstance(value, bool):
            raise MessageFormatError(f"{value!r} is not an integer, as a JMS {cls.__name__.lower()} must be")
        if not -limit <= value < limit:
            raise MessageFormatError(f"{value} does not fit a JMS {cls.__name__.lower()} ({cls.bits} bits)")
        return super().__new__(cls, value)


class Byte(_Whole):
    """A JMS byte: ``value`` is from -128 to 127."""

    bits = 8


class Short(_Whole):
    """A JMS short: ``value`` is from -32768 to 32767."""

    bits = 16


class Long(_Whole):
    """A JMS long, even where ``value`` would fit an int."""


class Float(float):
    """A JMS float: ``value`` is within the range of 32 bits; a plain Python float is a double."""

    def __init__(self, value: float) -> None:
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise MessageFormatError(f"{value!r} is not a number, as a JMS float must be")
        try:
            struct.pack("<f", value)
        except OverflowError:
            raise MessageFormatError(f"{value!r} does not fit a JMS float (32 bits)") from None


def check_value(name: str, value: object, *, bytes_allowed: bool) -> Value:
    """The value itself, if JMS has a type for it.

    Raises:
        MessageFormatError: it has none, or the number does not fit 64 bits; the text names ``name``.
    """
    if value is None or isinstance(value, (bool, float, str)):
        return value
    if isinstance(value, int):
        if LONG_MIN <= value <= LONG_MAX:
            return value
        raise MessageFormatError(f"{name}: {value} does not fit a JMS long (64 bits)")
    if bytes_allowed and isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    kinds = "bool, int, float, str, None" + (", bytes" if bytes_allowed else "")
    raise MessageFormatError(f"{name}: a value of type {type(value).__name__} is not a JMS value; use {kinds}")


def check_name(name: object) -> str:
    """The name of a property, if it is one. Which names a protocol can carry is the protocol's own affair."""
    if not isinstance(name, str) or not name:
        raise MessageFormatError(f"{name!r} is not the name of a property: it must be a str that is not empty")
    return name


def check_own(properties: Mapping[str, object]) -> Mapping[str, object]:
    """The properties that an application makes, if none is one of JMS's headers, which have arguments of their own.

    Raises:
        MessageFormatError: one is; the text says how it is given. (A message of others may have such a property.)
    """
    if isinstance(properties, Mapping) and not _HEADERS.keys().isdisjoint(properties):
        name = next(each for each in properties if each in _HEADERS)
        instead = _HEADERS[name]
        how = f"write {instead} instead" if instead else "the provider sets it"
        raise MessageFormatError(f"property {name!r} is one of JMS's headers: {how}")
    return properties


def check_properties(properties: Mapping[str, object] | None) -> Mapping[str, Value]:
    """A read-only copy of the properties with every name and value checked."""
    if not properties:
        return MappingProxyType({})
    checked: dict[str, Value] = {}
    for name, value in properties.items():
        if not name or name.__class__ is not str:
            check_name(name)
        kind = value.__class__  # the usual ones in fewer steps: this is done at every send
        if kind not in _SURE and (kind is not int or not LONG_MIN <= value <= LONG_MAX):  # type: ignore[operator]
            value = check_value(f"property {name!r}", value, bytes_allowed=False)
        checked[name] = value  # type: ignore[assignment]  # of one of these types
    return MappingProxyType(checked)


def check_body(body: object) -> Body:
    """The body, if it is text, bytes, a map, a stream or None; mappings and sequences are copied.

    Raises:
        MessageFormatError: it is something else, or holds something else.
    """
    if body is None or isinstance(body, (str, bytes)):
        return body
    if isinstance(body, (bytearray, memoryview)):
        return bytes(body)
    if isinstance(body, Mapping):
        return {
            check_name(name): check_value(f"map entry {name!r}", value, bytes_allowed=True)
            for name, value in body.items()
        }
    if isinstance(body, Sequence):
        return [check_value(f"stream item {at}", value, bytes_allowed=True) for at, value in enumerate(body)]
    raise MessageFormatError(
        f"a value of type {type(body).__name__} is not a body; use str (text), bytes, dict (map), list (stream) or None"
    )


def body_kind(body: Body) -> str:
    """``text``, ``bytes``, ``map``, ``stream`` or ``none``."""
    if isinstance(body, str):
        return "text"
    if isinstance(body, bytes):
        return "bytes"
    if body is None:
        return "none"
    return "map" if isinstance(body, dict) else "stream"


def from_epoch_ms(value: int) -> datetime | None:
    """A time from milliseconds since 1970; 0 is JMS's "not set".

    What Python cannot represent (Java's largest long is a common "never") becomes its first or last time.
    """
    if not value:
        return None
    return datetime.fromtimestamp(min(max(value, _FIRST_MS), _LAST_MS) / 1000, UTC)


def to_epoch_ms(value: datetime | None) -> int:
    """Milliseconds since 1970 of an aware time; 0 for None."""
    return round(value.timestamp() * 1000) if value else 0
