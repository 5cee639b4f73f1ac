"""Reads what a peer has written into proton's structures, so that malformed input raises MessageFormatError only.

proton's own classes raise whatever Python raises on half characters, lists as keys, or a hundred levels of nesting.
"""

from __future__ import annotations

from typing import Any, Final

from cproton_ffi import ffi, lib

from redelivery.model.errors import MessageFormatError
from redelivery.transports.amqp.codec.values import read, skip

_EMPTY: Final = 0x45  # list0
_NARROW: Final = (0xC0, 0xC1)  # list8, map8
_WIDE: Final = (0xD0, 0xD1)


def encoded(data: Any) -> bytes:
    """The encoding of a pn_data_t; empty where it holds nothing. Raises MessageFormatError."""
    size = lib.pn_data_encoded_size(data)
    space = bytearray(max(0, size))
    if size < 0 or (size and lib.pn_data_encode(data, ffi.from_buffer(space), size) < 0):
        raise MessageFormatError("a field holds what cannot be encoded")
    return bytes(space)


def text(characters: Any) -> str | None:
    """A string of the C library; invalid UTF-8 is replaced. None for NULL."""
    return None if characters == ffi.NULL else ffi.string(characters).decode("utf-8", "replace")


def symbols(data: Any) -> set[str]:
    """One symbol, or an array or list of them. Raises MessageFormatError."""
    raw = encoded(data)
    found = read(raw, 0)[0] if raw else None
    return {each for each in (found if isinstance(found, list) else [found]) if isinstance(each, str)}


def places(raw: bytes | bytearray, at: int) -> list[int]:
    """The places where the items of the list or map at ``at`` begin. Raises MessageFormatError."""
    try:
        code = raw[at]
        if code == _EMPTY:
            return []
        if code not in _NARROW + _WIDE:
            raise MessageFormatError(f"a list or map is needed, not the type 0x{code:02x}")
        wide = code in _WIDE
        count = int.from_bytes(raw[at + 5 : at + 9], "big") if wide else raw[at + 2]
        place = at + (9 if wide else 3)
        found = []
        for _ in range(count):
            found.append(place)
            place = skip(raw, place)
    except IndexError as error:
        raise MessageFormatError("a list or map is cut off") from error
    if place > len(raw):
        raise MessageFormatError("a list or map is cut off")
    return found


def described(raw: bytes | bytearray, at: int) -> tuple[object, int]:
    """The descriptor of the value at ``at``, None where it has none, and where its value begins.

    Raises:
        MessageFormatError: it is cut off.
    """
    if at >= len(raw):
        raise MessageFormatError("a value is cut off")
    if raw[at] != 0:
        return None, at
    return read(raw, at + 1)
