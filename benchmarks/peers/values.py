"""As much of AMQP's encoding as a peer of canned frames needs: fields stay encoded until somebody asks for one."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

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
    """None, bool, int (as uint), str, bytes (as binary), list, dict (as map), and the classes above."""
    match value:
        case None | bool():
            return NULL if value is None else b"\x41" if value else b"\x42"
        case Small():
            return bytes((0x50, value))
        case Signed():
            return struct.pack("bb", 0x51, value)
        case int():
            return b"\x43" if not value else bytes((0x52, value)) if value < 256 else b"\x70" + struct.pack(">I", value)
        case str():
            return variable(0xA3 if isinstance(value, Symbol) else 0xA1, value.encode())
        case Encoded():
            return value
        case bytes():
            return variable(0xA0, value)
        case list():
            return compound(0xC0, value)
        case dict():
            return compound(0xC1, [each for pair in value.items() for each in pair])
    raise TypeError(f"{value!r} has no encoding here")


def variable(code: int, data: bytes) -> bytes:
    """By its short code, which is 0x10 less than the long one; as brokers do, the short form where it fits."""
    if len(data) < 256:
        return bytes((code, len(data))) + data
    return bytes((code + 0x10,)) + struct.pack(">I", len(data)) + data


def compound(code: int, items: Sequence[object]) -> bytes:
    """A list or a map, by its short code."""
    fields = b"".join(map(encode, items))
    if len(fields) < 255:
        return bytes((code, len(fields) + 1, len(items))) + fields
    return bytes((code + 0x10,)) + struct.pack(">II", len(fields) + 4, len(items)) + fields


def symbols(*names: str) -> Encoded:
    """An array of a few short ones."""
    items = b"".join(encode(Symbol(name))[1:] for name in names)
    return Encoded(bytes((0xE0, len(items) + 2, len(names), 0xA3)) + items)


def described(code: int, value: object) -> Encoded:
    """A value with its descriptor."""
    return Encoded(b"\x00\x53" + bytes((code,)) + encode(value))


def end_of(data: bytes, at: int) -> int:
    """Where the value that begins there ends."""
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
    """The encoded fields of the list that begins there, the first ``most`` of them, and where the list ends."""
    code = data[at]
    if code == 0x45:
        return [], at + 1
    short = code == 0xC0
    if not short and code != 0xD0:
        raise ValueError(f"no list but 0x{code:02x}")
    width = 1 if short else 4
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
    """None, bool, an unsigned int, or the bytes of a string, symbol or binary."""
    code = encoded[0]
    if code in CONSTANTS:
        return CONSTANTS[code]
    if code == 0x56:
        return encoded[1] == 1
    if code >> 4 in (0x5, 0x6, 0x7, 0x8):
        return int.from_bytes(encoded[1:], "big")
    if code >> 4 in (0xA, 0xB):
        return encoded[2 if code >> 4 == 0xA else 5 :]
    raise ValueError(f"0x{code:02x} is no scalar")


def number(encoded: bytes, default: int = 0) -> int:
    """An unsigned int; ``default`` for null. Raises ValueError for anything else."""
    value = scalar(encoded)
    if value is None:
        return default
    if not isinstance(value, int):
        raise ValueError(f"{value!r} is not a number")
    return value


def descriptor(encoded: bytes) -> tuple[int, int]:
    """The code of a described value and where the value itself begins; 0 where it is none that is known."""
    if not encoded or encoded[0]:
        return 0, 0
    after = end_of(encoded, 1)
    code = scalar(encoded[1:after])
    return (code if isinstance(code, int) else SYMBOLS.get(code, 0) if isinstance(code, bytes) else 0), after


def body_value(payload: bytes) -> bytes:
    """The encoded value of a message's amqp-value section. Raises ValueError where it has none."""
    at = 0
    while at < len(payload):
        code, inner = descriptor(payload[at : at + 64])
        if code == VALUE_SECTION:
            return payload[at + inner :]
        at = end_of(payload, at)
    raise ValueError("no amqp-value section")
