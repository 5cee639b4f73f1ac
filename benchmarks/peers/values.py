"""As much of AMQP's encoding as a peer of canned frames needs: fields stay encoded until somebody asks for one."""

from __future__ import annotations

import struct
from typing import Final

from redelivery.transports.amqp.codec import encoding

FIXED: Final = {4: 1, 5: 2, 6: 3, 7: 5, 8: 9, 9: 17}  # high nibble of the code: bytes of the whole value
CONSTANTS: Final[dict[int, object]] = {0x40: None, 0x41: True, 0x42: False, 0x43: 0, 0x44: 0}
SYMBOLS: Final = {b"amqp:declare:list": 0x31, b"amqp:discharge:list": 0x32, b"amqp:coordinator:list": 0x30}
NULL: Final = b"\x40"
VALUE_SECTION: Final = 0x77


class Symbol(str):
    """Encoded as a symbol."""

    __slots__ = ()


class Small(int):
    """Encoded as a ubyte."""

    __slots__ = ()


class Signed(int):
    """Encoded as a byte."""

    __slots__ = ()


class Encoded(bytes):
    """Is encoded already."""

    __slots__ = ()


def encode(value: object) -> bytes:
    """Encode None, bool, int (as uint), str, bytes (as binary), list, dict (as map), or one of the classes above."""
    match value:
        case None | bool():
            return NULL if value is None else b"\x41" if value else b"\x42"
        case Small() | Signed():
            return struct.pack("bb", 0x50 if isinstance(value, Small) else 0x51, value)
        case int():
            return encoding.write_uint(value) if value else b"\x43"
        case str():
            return encoding.write_symbol(value) if isinstance(value, Symbol) else encoding.write_text(value)
        case Encoded():
            return value
        case bytes():
            return encoding.binary_head(len(value)) + value
        case list():
            return encoding.write_list([encode(each) for each in value])
        case dict():
            return encoding.write_map([encode(each) for pair in value.items() for each in pair])
    raise TypeError(f"{value!r} has no encoding here")


def described(code: int, value: object) -> Encoded:
    """Encode a value with its descriptor."""
    return Encoded(b"\x00\x53" + bytes((code,)) + encode(value))


def end_of(data: bytes, at: int) -> int:
    """Return where the value that begins there ends."""
    code = data[at]
    if not code:
        return end_of(data, end_of(data, at + 1))
    width = FIXED.get(code >> 4)
    if width:
        return at + width
    if code >> 4 in (0xA, 0xC, 0xE):
        return at + 2 + data[at + 1]
    return at + 5 + int.from_bytes(data[at + 1 : at + 5], "big")


def fields_of(data: bytes, at: int, most: int = 99) -> tuple[list[bytes], int]:
    """Return the encoded fields of the list that begins there, ``most`` of them at most, and where the list ends."""
    code = data[at]
    if code == 0x45:
        return [], at + 1
    width = {0xC0: 1, 0xD0: 4}[code]
    end = at + 1 + width + int.from_bytes(data[at + 1 : at + 1 + width], "big")
    count = int.from_bytes(data[at + 1 + width : at + 1 + 2 * width], "big")
    at += 1 + 2 * width
    fields = []
    for _ in range(min(count, most)):
        after = end_of(data, at)
        fields.append(data[at:after])
        at = after
    return fields, end


def scalar(encoded: bytes) -> object:
    """Return None, a bool, an unsigned int, or the bytes of a string, symbol or binary."""
    code = encoded[0]
    if code in CONSTANTS:
        return CONSTANTS[code]
    if code == 0x56:
        return encoded[1] == 1
    if code >> 4 in (0x5, 0x6, 0x7, 0x8):
        return int.from_bytes(encoded[1:], "big")
    return encoded[2 if code >> 4 == 0xA else 5 :]


def number(encoded: bytes, default: int = 0) -> int:
    """Return an unsigned int; ``default`` for null."""
    value = scalar(encoded)
    assert value is None or isinstance(value, int), f"{value!r} is not a number"
    return default if value is None else value


def descriptor(encoded: bytes) -> tuple[int, int]:
    """Return the code of a described value and where the value itself begins; 0 where it is none that is known."""
    if not encoded or encoded[0]:
        return 0, 0
    after = end_of(encoded, 1)
    code = scalar(encoded[1:after])
    return (code if isinstance(code, int) else SYMBOLS.get(code, 0) if isinstance(code, bytes) else 0), after
