"""The checksum of a RecordBatch: of what its arrays hold, however that was compressed and aligned.

Arrow checks the shape of what it reads and not its content: of single bits flipped in a compressed segment a fifth gave
other rows without an error.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Final

import pyarrow as pa

CHECKSUM: Final = b"checksum"
UNREADABLE: Final = (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError, SystemError, LookupError)
"""Errors of pyarrow over bytes that are not what was written."""

_SIZE: Final = 8  # bytes
_BITS: Final = 8


def checksum(batch: Any, number: int, *facts: object) -> bytes:
    """16 hexadecimal digits: of the values, their nulls, names and types, the batch's ``number``, and ``facts``."""
    made = blake2b(repr((number, batch.num_rows, facts)).encode(), digest_size=_SIZE)
    for field, column in zip(batch.schema, batch.columns, strict=True):
        made.update(f"{field.name} {field.type}\n".encode())
        _add(made, column)
    return made.hexdigest().encode()


def _add(made: Any, array: Any) -> None:
    """Add an array that begins at its buffers' beginning, as those do that were just built, or just read."""
    length, kind = len(array), array.type
    made.update(b"%d %d\n" % (length, array.null_count))
    if not length:
        return  # such an array may have a buffer, or not
    validity, *buffers = array.buffers()
    if array.null_count:
        made.update(_bits(validity, length))
    if pa.types.is_struct(kind):
        for place in range(kind.num_fields):
            _add(made, array.field(place))
    elif pa.types.is_map(kind):
        made.update(_bytes(buffers[0], 4 * (length + 1)))
        _add(made, array.keys)
        _add(made, array.items)
    elif pa.types.is_string(kind) or pa.types.is_binary(kind):
        offsets = _bytes(buffers[0], 4 * (length + 1))
        made.update(offsets)
        made.update(_bytes(buffers[1], int.from_bytes(offsets[-4:], "little")))
    elif pa.types.is_boolean(kind):
        made.update(_bits(buffers[0], length))
    else:
        made.update(_bytes(buffers[0], length * kind.bit_width // _BITS))


def _bytes(buffer: Any, size: int) -> memoryview:
    return memoryview(b"" if buffer is None else buffer)[:size]


def _bits(buffer: Any, length: int) -> bytes:
    """The bits of so many values, and zeros behind them."""
    found = bytes(_bytes(buffer, -(-length // _BITS)))
    rest = length % _BITS
    return found if not rest else found[:-1] + bytes([found[-1] & ((1 << rest) - 1)])
