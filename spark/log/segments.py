"""A segment: an Arrow IPC file with the rows, beside each row its message's digest, and the facts about all of them.

Version 2: the schema's metadata have version and attempt, the column ``_digest`` is no column of Spark's, and the last
RecordBatch has no rows but the number of rows and their bytes as metadata, which are known only when all is written.
Version 1, which is still read, had no digests, and the number of rows in the schema's metadata.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from redelivery.spark.log.store.interface import DamagedError, StoreError
from redelivery.spark.rows.digests import SIZE, Key

__all__ = [
    "Extent",
    "SegmentError",
    "SegmentWriter",
    "segment_attempt",
    "segment_batches",
    "segment_extent",
    "segment_keys",
    "segment_rows",
]

VERSION: Final = 2
_ATTEMPT, _ROWS, _BYTES, _FORMAT = b"attempt", b"rows", b"bytes", b"v"
_DIGEST: Final = "_digest"
_DIGEST_TYPE: Final[Any] = pa.binary(SIZE)


class SegmentError(StoreError):
    """A file is a segment of a newer version."""


@dataclass(frozen=True, slots=True)
class Extent:
    """The size of a segment: rows, and their bytes before compression."""

    rows: int = 0
    size: int = 0


class SegmentWriter:
    """Encodes a segment into memory while its rows come in.

    Args:
        schema: of the rows, as Spark wants them.
        compression: ``zstd``, ``lz4`` or ``none``.
        attempt: names who writes it: a uuid.
    """

    def __init__(self, schema: Any, compression: str, attempt: str) -> None:
        self._schema = schema.append(pa.field(_DIGEST, _DIGEST_TYPE)).with_metadata(
            {_FORMAT: str(VERSION).encode(), _ATTEMPT: attempt.encode()}
        )
        options = pa.ipc.IpcWriteOptions(compression=None if compression == "none" else compression)
        self._sink = pa.BufferOutputStream()
        self._writer = pa.ipc.new_file(self._sink, self._schema, options=options)
        self.rows = 0
        self.size = 0
        self.keys: list[Key] = []
        """Of all rows, in order."""

    def add(self, batch: Any, keys: Sequence[Key], size: int) -> None:
        """Rows of the schema, the key of each, and their bytes as they count against the limits."""
        digests = pa.array([digest for _, digest in keys], type=_DIGEST_TYPE)
        self._writer.write_batch(pa.RecordBatch.from_arrays([*batch.columns, digests], schema=self._schema))
        self.keys += keys
        self.rows += batch.num_rows
        self.size += size

    def finish(self) -> Any:
        """The segment's bytes, as a ``pyarrow.Buffer``; nothing can be added any more."""
        empty = pa.RecordBatch.from_arrays([pa.array([], field.type) for field in self._schema], schema=self._schema)
        self._writer.write_batch(
            empty, custom_metadata={_ROWS: str(self.rows).encode(), _BYTES: str(self.size).encode()}
        )
        self._writer.close()
        return self._sink.getvalue()


def segment_extent(reader: Any) -> Extent:
    """Rows and bytes. Raises StoreError: see `segment_attempt`."""
    found = _metadata(reader)
    if _ROWS in found:  # version 1, which does not record the bytes
        return Extent(int(found[_ROWS]), sum(batch.nbytes for batch in segment_batches(reader)))
    _, facts = _decoded(reader, reader.num_record_batches - 1)
    return Extent(int(facts[_ROWS]), int(facts[_BYTES]))


def segment_rows(reader: Any) -> int:
    """The number of rows. Raises StoreError: see `segment_attempt`."""
    return segment_extent(reader).rows


def segment_attempt(reader: Any) -> str:
    """The uuid of who wrote it.

    Raises:
        DamagedError: it is not a segment.
        SegmentError: it was written by a newer version.
    """
    return _metadata(reader)[_ATTEMPT].decode()


def segment_keys(reader: Any) -> list[Key]:
    """The key of each row, in order; version 1: those that have an id. Raises StoreError: see `segment_attempt`."""
    digests = _DIGEST in reader.schema.names
    _metadata(reader)
    found: list[Key] = []
    for number in range(reader.num_record_batches):
        batch, _ = _decoded(reader, number)
        ids = batch.column("message_id").to_pylist()
        if digests:
            found += zip(ids, batch.column(_DIGEST).to_pylist(), strict=True)
        else:
            found += [(each, None) for each in ids if each is not None]
    return found


def segment_batches(reader: Any) -> Iterator[Any]:
    """The RecordBatches as Spark wants them: without what else the segment holds. Raises StoreError."""
    _metadata(reader)
    digests = _DIGEST in reader.schema.names
    for number in range(reader.num_record_batches - digests):
        batch, _ = _decoded(reader, number)
        names = [name for name in batch.schema.names if name != _DIGEST]
        yield batch.select(names).replace_schema_metadata(None)


def _decoded(reader: Any, number: int) -> tuple[Any, dict[bytes, bytes]]:
    try:
        batch, facts = reader.get_batch_with_custom_metadata(number)
    except (pa.ArrowException, OSError) as error:
        raise DamagedError(f"batch {number} of a segment cannot be read: {error}") from error
    return batch, dict(facts or {})


def _metadata(reader: Any) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = reader.schema.metadata or {}
    version = found.get(_FORMAT, b"")
    if version.isdigit() and int(version) > VERSION:
        raise SegmentError(
            f"a segment has version {version.decode()}, written by a newer release: install that release here"
        )
    if not {_ATTEMPT, _FORMAT} <= found.keys() or (version == b"1" and _ROWS not in found):
        raise DamagedError(
            "an Arrow file in walLocation is not a segment of this library: was the folder used for others?"
        )
    return found
