"""Property values as Spark's Variant, and back: each JMS type has one of its own, so that nothing is lost.

A Variant (Parquet's Variant encoding, version 1) is two byte strings: the value, and names that only objects need. The
first byte of a value holds, from the lowest bit, 2 bits (0: primitive, 1: short text) and 6 bits (the primitive's
type, or the short text's length).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Final

from redelivery.model.errors import MessageFormatError
from redelivery.model.values import INT_MAX, INT_MIN, Byte, Float, Long, Short, Value

NO_NAMES: Final = b"\x01\x00\x00"
"""The second byte string of every value that is not an object: version 1, no name."""

_SHORT_TEXT: Final = 63  # bytes
_NULL, _TRUE, _FALSE = b"\x00", b"\x04", b"\x08"
_INT8, _INT16, _INT32, _INT64 = (struct.Struct(f"<B{code}") for code in "bhiq")
_DOUBLE, _FLOAT = struct.Struct("<Bd"), struct.Struct("<Bf")
_BINARY: Final = 15
_LONG_TEXT: Final = 16
_LENGTH: Final = struct.Struct("<BI")


def encode(value: Value) -> bytes:
    """The value as a Variant's first byte string; the second is `NO_NAMES`.

    A whole number is as wide as its JMS type: Byte 8 bits, Short 16, an int that fits it 32, else 64. Raises
    MessageFormatError: a str has half a surrogate pair, which UTF-8 cannot carry.
    """
    if isinstance(value, str):
        try:
            raw = value.encode()
        except UnicodeEncodeError as error:
            raise MessageFormatError(
                f"a property has half a surrogate pair, which UTF-8 cannot carry: {error}"
            ) from error
        if len(raw) <= _SHORT_TEXT:
            return bytes((len(raw) << 2 | 1,)) + raw
        return _LENGTH.pack(_LONG_TEXT << 2, len(raw)) + raw
    if value is None:
        return _NULL
    if isinstance(value, bool):
        return _TRUE if value else _FALSE
    if isinstance(value, int):
        return _whole(value)
    if isinstance(value, float):
        return _FLOAT.pack(14 << 2, value) if isinstance(value, Float) else _DOUBLE.pack(7 << 2, value)
    return _LENGTH.pack(_BINARY << 2, len(value)) + value


def decode(value: bytes) -> Value:
    """The JMS value of a Variant's first byte string: what `encode` was given; a decimal number is a double.

    Raises:
        MessageFormatError: JMS has no such type (array, object, date, …), or the bytes are not a Variant.
    """
    try:
        head = value[0]
        if head & 3 == 1:
            return _text(value, 1, head >> 2)
        reader = _READERS.get(head >> 2) if head & 3 == 0 else None
        if reader is not None:
            return reader(value)
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise MessageFormatError(f"a value is not a Variant: {error}") from error
    raise MessageFormatError(
        "a Variant of this type (array, object, date, timestamp, …) is not a JMS value: use a boolean, number or str"
    )


def _whole(value: int) -> bytes:
    if isinstance(value, Byte):
        return _INT8.pack(3 << 2, value)
    if isinstance(value, Short):
        return _INT16.pack(4 << 2, value)
    if isinstance(value, Long) or not INT_MIN <= value <= INT_MAX:
        return _INT64.pack(6 << 2, value)
    return _INT32.pack(5 << 2, value)


def _text(value: bytes, start: int, length: int) -> str:
    return _slice(value, start, length).decode()


def _slice(value: bytes, start: int, length: int) -> bytes:
    if len(value) < start + length:
        raise IndexError("it is cut off")
    return value[start : start + length]


def _decimal(width: int) -> Callable[[bytes], Value]:
    def read(value: bytes) -> Value:
        unscaled = int.from_bytes(_slice(value, 2, width), "little", signed=True)
        return float(Decimal(unscaled).scaleb(-value[1]))

    return read


def _long_or_int(value: bytes) -> Value:
    number: int = _INT64.unpack_from(value)[1]
    return Long(number) if INT_MIN <= number <= INT_MAX else number


_READERS: Final[Mapping[int, Callable[[bytes], Value]]] = {
    0: lambda _: None,
    1: lambda _: True,
    2: lambda _: False,
    3: lambda value: Byte(_INT8.unpack_from(value)[1]),
    4: lambda value: Short(_INT16.unpack_from(value)[1]),
    5: lambda value: _INT32.unpack_from(value)[1],
    6: _long_or_int,
    7: lambda value: _DOUBLE.unpack_from(value)[1],
    8: _decimal(4),
    9: _decimal(8),
    10: _decimal(16),
    14: lambda value: Float(_FLOAT.unpack_from(value)[1]),
    _BINARY: lambda value: _slice(value, 5, _LENGTH.unpack_from(value)[1]),
    _LONG_TEXT: lambda value: _text(value, 5, _LENGTH.unpack_from(value)[1]),
}
