"""The AMQP 1.0 types of a fixed width, as JMS values: what follows the constructor, whose code is the key of the table.

A reader raises struct.error or IndexError where the bytes are cut off; `values` says so.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final, TypeAlias
from uuid import UUID

from redelivery.model.errors import MessageFormatError
from redelivery.model.values import INT_MAX, INT_MIN, LONG_MAX, Byte, Float, Long, Short

Reader: TypeAlias = Callable[[bytes | bytearray, int], Any]

_new_int: Final = int.__new__  # the wire's width is the check that Byte and Long would make
_new_float: Final = float.__new__


def _fixed(form: str, make: Callable[[Any], Any] | None = None) -> Reader:
    unpack = struct.Struct(">" + form).unpack_from
    if make is None:
        return lambda raw, at: unpack(raw, at)[0]
    return lambda raw, at: make(unpack(raw, at)[0])


def _long(number: int) -> int:
    return _new_int(Long, number) if INT_MIN <= number <= INT_MAX else number


def _ulong(number: int) -> int | str:
    return number if number <= LONG_MAX else str(number)


def _char(number: int) -> str:
    if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
        raise MessageFormatError(f"a char in the message is none: U+{number:04X}")
    return chr(number)


def _decimal(bits: int) -> Reader:
    """IEEE 754-2008 with a binary significand: sign, exponent, significand; a long significand has a hidden start."""
    exponent_bits, precision = {32: (8, 7), 64: (10, 16), 128: (14, 34)}[bits]
    short = bits - 1 - exponent_bits
    bias = (3 << (exponent_bits - 3)) + precision - 2

    def decode(raw: bytes | bytearray, at: int) -> str:
        if len(raw) < at + bits // 8:
            raise IndexError
        number = int.from_bytes(raw[at : at + bits // 8], "big")
        sign = number >> (bits - 1)
        kind = number >> (bits - 6) & 0b11111
        if kind >= 0b11110:
            return "NaN" if kind == 0b11111 else "-Infinity" if sign else "Infinity"
        if kind >= 0b11000:
            exponent = number >> (short - 2) & ((1 << exponent_bits) - 1)
            significand = 1 << short | number & ((1 << (short - 2)) - 1)
        else:
            exponent = number >> short & ((1 << exponent_bits) - 1)
            significand = number & ((1 << short) - 1)
        digits = str(significand) if significand < 10**precision else "0"
        return str(Decimal((sign, tuple(map(int, digits)), exponent - bias)))

    return decode


def _uuid(raw: bytes | bytearray, at: int) -> str:
    if len(raw) < at + 16:
        raise IndexError
    return str(UUID(bytes=bytes(raw[at : at + 16])))


FIXED: Final[Mapping[int, Reader]] = {
    0x40: lambda _raw, _at: None,
    0x41: lambda _raw, _at: True,
    0x42: lambda _raw, _at: False,
    0x43: lambda _raw, _at: 0,
    0x44: lambda _raw, _at: 0,
    0x45: lambda _raw, _at: [],
    0x50: _fixed("B"),
    0x51: _fixed("b", lambda number: _new_int(Byte, number)),
    0x52: _fixed("B"),
    0x53: _fixed("B"),
    0x54: _fixed("b"),
    0x55: _fixed("b", _long),
    0x56: _fixed("?"),
    0x60: _fixed("H"),
    0x61: _fixed("h", lambda number: _new_int(Short, number)),
    0x70: _fixed("I"),
    0x71: _fixed("i"),
    0x72: _fixed("f", lambda number: _new_float(Float, number)),
    0x73: _fixed("I", _char),
    0x74: _decimal(32),
    0x80: _fixed("Q", _ulong),
    0x81: _fixed("q", _long),
    0x82: _fixed("d"),
    0x83: _fixed("q", lambda number: _new_int(Long, number)),
    0x84: _decimal(64),
    0x94: _decimal(128),
    0x98: _uuid,
}
