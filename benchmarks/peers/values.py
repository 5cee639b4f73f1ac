"""As much of AMQP's encoding as a peer of canned frames needs beside what the client has."""

from __future__ import annotations

from collections.abc import Mapping

from redelivery.transports.amqp.codec import encoding


class Encoded(bytes):
    """Is encoded already."""

    __slots__ = ()


def ubyte(number: int) -> Encoded:
    """Encode a number of a byte."""
    return Encoded(bytes((0x50, number)))


def symbol(text: str) -> Encoded:
    """Encode a symbol."""
    return Encoded(encoding.write_symbol(text))


def encode(value: object) -> bytes:
    """Encode None, bool, int (as uint), str, bytes (as binary), list, or a map of what is encoded already."""
    match value:
        case Encoded():
            return value
        case None | bool() | str() | bytes():
            return encoding.write(value, "a field")
        case int():
            return encoding.write_uint(value) if value else b"\x43"
        case list():
            return encoding.write_list([encode(each) for each in value])
        case Mapping():
            return encoding.write_map([each for pair in value.items() for each in pair])
    raise TypeError(f"{value!r} has no encoding here")


def described(code: int, value: object) -> Encoded:
    """Encode a value with its descriptor."""
    return Encoded(b"\x00\x53" + bytes((code,)) + encode(value))
