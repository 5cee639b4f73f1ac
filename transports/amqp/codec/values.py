"""AMQP 1.0 types (part 1 of the standard) read as JMS values; `encoding` is the other way.

| AMQP | Python |
|---|---|
| boolean, string, binary, double, null | bool, str, bytes, float, None |
| byte, short, float | Byte, Short, Float |
| int | int |
| long | Long; int where the number needs more than 32 bits |
| ubyte, ushort, uint, ulong | int; a str where it does not fit a JMS long |
| timestamp | Long, epoch milliseconds |
| char, symbol, uuid, decimal32, decimal64, decimal128 | str |
| list, array, map | list, list, dict |
| a described value | the value |
"""

from __future__ import annotations

import struct
from typing import Any, Final

from redelivery.model.errors import MessageFormatError
from redelivery.transports.amqp.codec.primitives import FIXED
from redelivery.transports.amqp.codec.texts import modified_utf_8

# Values within values: JMS nests one level, and a peer must not make us recurse for ever.
_MOST_NESTED: Final = 32
# Items of an array may take no bytes at all (null, true), so that its size does not bound their number.
_MOST_EMPTY_ITEMS: Final = 255
_VARIABLE: Final = {
    code: length
    for length, kinds in ((0, b"\xa0\xa1\xa3\xc0\xc1\xe0"), (-1, b"\xb0\xb1\xb3\xd0\xd1\xf0"))
    for code in kinds
}
# The length of a value by its constructor: 0 where one byte says it, -1 where four do, -2 where there is no such
# type, -3 where a descriptor comes first.
LENGTHS: Final = tuple(
    (1, 2, 3, 5, 9, 17)[(code >> 4) - 4] if code in FIXED else -3 if code == 0 else _VARIABLE.get(code, -2)
    for code in range(256)
)


def skip(raw: bytes | bytearray, at: int) -> int:
    """The place where the value at ``at`` ends, maybe past the end. Raises MessageFormatError, and IndexError there."""
    values = 1
    while values:
        length = LENGTHS[raw[at]]
        if length > 0:
            at += length
        elif length == 0:
            at += 2 + raw[at + 1]
        elif length == -1:
            at += 5 + int.from_bytes(raw[at + 1 : at + 5], "big")
        elif length == -3:
            at, values = at + 1, values + 2  # the descriptor and the value
        else:
            raise MessageFormatError(f"byte {at} of the message is not an AMQP type: 0x{raw[at]:02x}")
        values -= 1
    return at


def read(raw: bytes | bytearray, at: int) -> tuple[Any, int]:
    """The value at ``at``, and where it ends.

    Raises:
        MessageFormatError: it is cut off, of no type, of half characters, or nested too deeply.
    """
    try:
        return _read(raw, at, 0)
    except (IndexError, struct.error) as error:
        raise MessageFormatError(f"the message is cut off within the value that begins at byte {at}") from error
    except UnicodeDecodeError as error:
        raise MessageFormatError(f"a string in the message is not {error.encoding}: {error.reason}") from error


def read_usual_map(raw: bytes | bytearray, at: int) -> dict[str, Any] | None:
    """As `read` for a short map whose keys, and most values, are short texts: in one pass; None for any other.

    Also where a value is binary, or something of it cannot be read: `read` then says what.
    """
    try:
        if raw[at] != 0xC1 or raw[at + 2] % 2:
            return None
        end, count, at = at + 2 + raw[at + 1], raw[at + 2], at + 3
        found: dict[str, Any] = {}
        for _ in range(0, count, 2):
            if raw[at] != 0xA1:
                return None
            start, at = at + 2, at + 2 + raw[at + 1]
            name = raw[start:at].decode()
            if raw[at] == 0xA1:
                start, at = at + 2, at + 2 + raw[at + 1]
                found[name] = raw[start:at].decode()
            else:
                found[name], at = _read(raw, at, 1)
                if type(found[name]) is bytes:
                    return None
    except (IndexError, struct.error, UnicodeDecodeError, MessageFormatError):
        return None
    return found if at == end <= len(raw) else None


def _text(data: bytes) -> str:
    """UTF-8; or what a client in Java wrote, which some brokers pass on as it is."""
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError:
        text = modified_utf_8(data)
        if text is None:
            raise
        return text


def _read(raw: bytes | bytearray, at: int, depth: int) -> tuple[Any, int]:
    code = raw[at]
    length = LENGTHS[code]
    if length > 0:
        return FIXED[code](raw, at + 1), at + length
    if length == -3:
        _check_depth(depth)
        return _read(raw, _read(raw, at + 1, depth + 1)[1], depth + 1)
    if length == -2:
        raise MessageFormatError(f"byte {at} of the message is not an AMQP type: 0x{code:02x}")
    if length == 0:
        start = at + 2
        end = start + raw[at + 1]
    else:
        start = at + 5
        end = start + int.from_bytes(raw[at + 1 : start], "big")
    if end > len(raw):
        raise IndexError
    if code == 0xA1:
        return _text(bytes(raw[start:end])), end
    if code == 0xB1:
        return _text(bytes(memoryview(raw)[start:end])), end
    if code in (0xA3, 0xB3):
        return str(memoryview(raw)[start:end], "ascii"), end
    if code in (0xA0, 0xB0):
        return bytes(memoryview(raw)[start:end]), end
    _check_depth(depth)
    return _read_compound(raw, start, end, code, depth), end


def _read_compound(raw: bytes | bytearray, at: int, end: int, code: int, depth: int) -> Any:
    start = at + (4 if LENGTHS[code] else 1)
    count = int.from_bytes(raw[at:start], "big")
    if code in (0xE0, 0xF0):
        return _read_array(raw, start, end, count, depth)
    if count > end - start:
        raise MessageFormatError(
            f"the list or map at byte {at} of the message has {count} items in {end - start} bytes"
        )
    items: list[Any] = []
    for _ in range(count):
        if raw[start] == 0xA1:  # a short text, which most are: no call
            at, start = start + 2, start + 2 + raw[start + 1]
            if start > len(raw):
                raise IndexError
            try:
                items.append(raw[at:start].decode())
            except UnicodeDecodeError:
                items.append(_text(bytes(raw[at:start])))
        else:
            item, start = _read(raw, start, depth + 1)
            items.append(item)
    _check_end(start, end)
    return _as_map(items) if code in (0xC1, 0xD1) else items


def _read_array(raw: bytes | bytearray, at: int, end: int, count: int, depth: int) -> list[Any]:
    """One constructor for all items: each is read as if it stood before it."""
    start = at
    while raw[at] == 0:  # a descriptor of the items: nothing that JMS has a word for
        _check_depth(depth)
        depth += 1
        at = skip(raw, at + 1)
    code = raw[at]
    at += 1
    width = LENGTHS[code]
    if at > end or width == -2 or count > (_MOST_EMPTY_ITEMS if width == 1 else end - at):
        raise MessageFormatError(f"the array at byte {start} of the message is none: {count} items of 0x{code:02x}")
    items = []
    if width > 0:
        for _ in range(count):
            items.append(FIXED[code](raw, at))
            at += width - 1
    else:
        constructor = bytes((code,))
        for _ in range(count):
            after = at + 1 + raw[at] if width == 0 else at + 4 + int.from_bytes(raw[at : at + 4], "big")
            items.append(_read(constructor + raw[at:after], 0, depth + 1)[0])
            at = after
    _check_end(at, end)
    return items


def _as_map(items: list[Any]) -> dict[Any, Any]:
    if len(items) % 2:
        raise MessageFormatError("a map in the message has a key without a value")
    try:
        return dict(zip(items[::2], items[1::2], strict=True))
    except TypeError as error:
        raise MessageFormatError("a map in the message has a list or map as a key") from error


def _check_depth(depth: int) -> None:
    if depth >= _MOST_NESTED:
        raise MessageFormatError(f"the message nests values more than {_MOST_NESTED} deep")


def _check_end(at: int, end: int) -> None:
    if at != end:
        raise MessageFormatError(f"a list, map or array in the message should end at byte {end}, but ends at {at}")
