"""JMS values written as AMQP 1.0 types: byte, short, int, long, float, double, boolean, string, binary, null."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from redelivery.model.errors import MessageFormatError
from redelivery.model.values import INT_MAX, INT_MIN, Byte, Float, Long, Short, Value

_U32: Final = struct.Struct(">I").pack
_INT: Final = struct.Struct(">Bi").pack
_LONG: Final = struct.Struct(">Bq").pack
_DOUBLE: Final = struct.Struct(">Bd").pack
_FLOAT: Final = struct.Struct(">Bf").pack


def write(value: Value, what: str, name: object = None) -> bytes:
    """A JMS value's encoding.

    Raises:
        MessageFormatError: AMQP has none; the text names the value, as ``what`` and the ``name`` if there is one.
    """
    writer = _WRITERS.get(type(value))
    if writer is not None:
        try:
            return writer(value)
        except (UnicodeEncodeError, struct.error) as error:
            raise MessageFormatError(f"{_named(what, name)}: AMQP cannot carry {shown(value)}: {error}") from error
    for kind in _KINDS:
        if isinstance(value, kind):  # an enumeration, or a class of the application's own
            return write(kind(value), what, name)
    raise MessageFormatError(f"{_named(what, name)}: a value of type {type(value).__name__} is not a JMS value")


def _named(what: str, name: object) -> str:
    return what if name is None else f"{what} {name!r}"


def text_head(length: int) -> bytes:
    """The bytes before the UTF-8 of a string of so many bytes."""
    return b"\xa1" + length.to_bytes(1, "big") if length < 256 else b"\xb1" + _U32(length)


def binary_head(length: int) -> bytes:
    """The bytes before a binary of so many bytes."""
    return b"\xa0" + length.to_bytes(1, "big") if length < 256 else b"\xb0" + _U32(length)


def write_text(text: str) -> bytes:
    """A string's encoding. Raises UnicodeEncodeError."""
    data = text.encode("utf-8")
    return text_head(len(data)) + data


def write_symbol(text: str) -> bytes:
    """The encoding of a symbol of at most 255 characters of ASCII."""
    return b"\xa3" + len(text).to_bytes(1, "big") + text.encode("ascii")


def write_list(items: list[bytes]) -> bytes:
    """A list of encoded items."""
    return _compound(b"\xc0", b"\xd0", items) if items else b"\x45"


def write_fields(data: bytes, count: int) -> bytes:
    """A list of so many items, which are encoded one behind the other."""
    return _sized(b"\xc0", b"\xd0", data, count)


def write_map(items: list[bytes]) -> bytes:
    """A map of encoded keys and values, in turn."""
    return _compound(b"\xc1", b"\xd1", items)


def write_uint(number: int) -> bytes:
    """A number from 0 to 2^32 - 1."""
    return b"\x52" + number.to_bytes(1, "big") if number < 256 else b"\x70" + _U32(number)


def write_ulong(number: int) -> bytes:
    """A number from 0 to 2^64 - 1."""
    return b"\x80" + number.to_bytes(8, "big")


def write_timestamp(milliseconds: int) -> bytes:
    """Milliseconds since 1970."""
    return _LONG(0x83, milliseconds)


@lru_cache(maxsize=1024)
def write_key(name: str) -> bytes:
    """As `write_text`, kept: names of properties and addresses repeat."""
    return write_text(name)


def _compound(small: bytes, large: bytes, items: list[bytes]) -> bytes:
    return _sized(small, large, b"".join(items), len(items))


def _sized(small: bytes, large: bytes, data: bytes, count: int) -> bytes:
    size = len(data)
    if size < 255 and count < 256:
        return small + bytes((size + 1, count)) + data
    return large + _U32(size + 4) + _U32(count) + data


def _write_int(number: int) -> bytes:
    if -128 <= number < 128:
        return b"\x54" + number.to_bytes(1, "big", signed=True)
    return _INT(0x71, number) if INT_MIN <= number <= INT_MAX else _LONG(0x81, number)


def write_long(number: int) -> bytes:
    """A number of 64 bits with a sign."""
    return b"\x55" + number.to_bytes(1, "big", signed=True) if -128 <= number < 128 else _LONG(0x81, number)


def shown(value: object) -> str:
    """The value in an error's text, of a bounded length."""
    text = repr(value)
    return text if len(text) <= 80 else text[:80] + "…"


def _write_nested_map(value: Mapping[str, Any]) -> bytes:
    items = []
    for name, item in value.items():
        items.append(write_text(name))
        items.append(write(item, "map entry", name))
    return write_map(items)


def _write_nested_list(value: list[Any]) -> bytes:
    return write_list([write(item, "list item", at) for at, item in enumerate(value)])


_WRITERS: Final[Mapping[type, Callable[[Any], bytes]]] = {
    dict: _write_nested_map,  # what others have sent may be sent again; no check of ours lets an application begin it
    list: _write_nested_list,
    type(None): lambda _: b"\x40",
    bool: lambda value: b"\x41" if value else b"\x42",
    int: _write_int,
    float: lambda value: _DOUBLE(0x82, value),
    str: write_text,
    bytes: lambda value: binary_head(len(value)) + value,
    Byte: lambda value: b"\x51" + value.to_bytes(1, "big", signed=True),
    Short: lambda value: b"\x61" + value.to_bytes(2, "big", signed=True),
    Long: write_long,
    Float: lambda value: _FLOAT(0x72, value),
}
_KINDS: Final[tuple[Any, ...]] = (Byte, Short, Long, Float, int, float, str, bytes)
