"""A segment: an Arrow IPC file with the rows, beside each row its message's digest, and the facts about all of them.

The schema's metadata have version and attempt, the column ``_digest`` is no column of Spark's, each RecordBatch has its
checksum as metadata, and the last one has no rows but the number of rows and their bytes, which are known only when all
is written. Older versions are still read: 3 differs in the name of the mark beside it (`redelivery.spark.log.names`), 2
had no checksums, and 1 no digests either, and the number of rows in the schema's metadata.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from redelivery.spark.log.checksums import CHECKSUM, UNREADABLE, checksum
from redelivery.spark.log.names import Extent as Extent  # readers of a segment ask for both here
from redelivery.spark.log.store.interface import DamagedError, StoreError
from redelivery.spark.rows.digests import SIZE, Key

VERSION: Final = 4
_WITHOUT: Final = (b"1", b"2")  # versions without checksums
_ATTEMPT, _ROWS, _BYTES, _FORMAT = b"attempt", b"rows", b"bytes", b"v"
_DIGEST: Final = "_digest"
_DIGEST_TYPE: Final[Any] = pa.binary(SIZE)


class SegmentError(StoreError):
    """A file is a segment of a newer version."""


class SegmentWriter:
    """Encodes a segment into memory while its rows come in.

    ``compression``: ``zstd``, ``lz4`` or ``none``. ``attempt``: names who writes it: a uuid.
    """

    def __init__(self, schema: Any, compression: str, attempt: str) -> None:
        self._attempt = attempt.encode()
        self._schema = schema.append(pa.field(_DIGEST, _DIGEST_TYPE)).with_metadata(
            {_FORMAT: str(VERSION).encode(), _ATTEMPT: self._attempt}
        )
        options = pa.ipc.IpcWriteOptions(compression=None if compression == "none" else compression)
        self._sink = io.BytesIO()  # grows by an eighth and in place, where Arrow's own doubles into a copy
        self._writer = pa.ipc.new_file(self._sink, self._schema, options=options)
        self._batches = 0
        self.rows = 0
        self.size = 0
        self.keys: list[Key] = []
        """Of all rows, in order."""

    def add(self, batch: Any, keys: Sequence[Key], size: int) -> None:
        """Rows of the schema, the key of each, and their bytes as they count against the limits."""
        digests = pa.array([digest for _, digest in keys], type=_DIGEST_TYPE)
        self._write(pa.RecordBatch.from_arrays([*batch.columns, digests], schema=self._schema), {})
        self.keys += keys
        self.rows += batch.num_rows
        self.size += size

    def finish(self) -> bytes:
        """The segment's bytes; nothing can be added any more."""
        empty = pa.RecordBatch.from_arrays([pa.array([], field.type) for field in self._schema], schema=self._schema)
        facts = {_ROWS: str(self.rows).encode(), _BYTES: str(self.size).encode()}
        self._write(empty, facts, self._attempt, *facts.values())
        self._writer.close()
        return self._sink.getvalue()

    def _write(self, batch: Any, metadata: dict[bytes, bytes], *facts: bytes) -> None:
        metadata[CHECKSUM] = checksum(batch, self._batches, *facts)
        self._writer.write_batch(batch, custom_metadata=metadata)
        self._batches += 1


def segment_extent(reader: Any) -> Extent:
    """Rows and bytes. Raises StoreError: see `segment_attempt`."""
    found = _metadata(reader)
    if _ROWS in found:  # version 1, which does not record the bytes
        return Extent(int(found[_ROWS]), sum(batch.nbytes for batch in segment_batches(reader)))
    _, facts = _decoded(reader, reader.num_record_batches - 1)
    try:
        return Extent(int(facts[_ROWS]), int(facts[_BYTES]))
    except (KeyError, ValueError) as error:
        raise DamagedError("the end of a segment is missing") from error


def segment_rows(reader: Any) -> int:
    """The number of rows. Raises StoreError: see `segment_attempt`."""
    return segment_extent(reader).rows


def segment_attempt(reader: Any) -> str:
    """The uuid of who wrote it.

    Raises:
        DamagedError: it is not a segment.
        SegmentError: it was written by a newer version.
    """
    segment_extent(reader)  # checks it
    return _metadata(reader)[_ATTEMPT].decode()


def segment_keys(reader: Any) -> list[Key]:
    """The keys of the rows, in order, by which they are recognised; version 1: of those that have an id.

    A row that was received with ``dedupe=off`` has none: its id may be a business key, and to drop another message
    with it would lose that one. Raises StoreError: see `segment_attempt`.
    """
    digests = _has_digests(reader)
    found: list[Key] = []
    for number in range(reader.num_record_batches):
        batch, _ = _decoded(reader, number)
        ids = batch.column("message_id").to_pylist()
        if digests:
            keys = zip(ids, batch.column(_DIGEST).to_pylist(), strict=True)
            found += [key for key in keys if key[1] is not None]
        else:
            found += [(each, None) for each in ids if each is not None]
    return found


def segment_batches(reader: Any) -> Iterator[Any]:
    """The RecordBatches as Spark wants them: without what else the segment holds. Raises StoreError."""
    for number in range(reader.num_record_batches - _has_digests(reader)):
        batch, _ = _decoded(reader, number)
        names = [name for name in batch.schema.names if name != _DIGEST]
        yield batch.select(names).replace_schema_metadata(None)


def _has_digests(reader: Any) -> bool:
    return _metadata(reader)[_FORMAT] != b"1"


def _decoded(reader: Any, number: int) -> tuple[Any, dict[bytes, bytes]]:
    """Read a batch and its metadata. Raises DamagedError: it is not what was written, as far as that can be known."""
    of_all = _metadata(reader)
    try:
        batch, metadata = reader.get_batch_with_custom_metadata(number)
        facts = dict(metadata or {})
        end = (of_all[_ATTEMPT], facts[_ROWS], facts.get(_BYTES)) if _ROWS in facts else ()
        made = facts.get(CHECKSUM)
        as_written = of_all[_FORMAT] in _WITHOUT if made is None else made == checksum(batch, number, *end)
    except UNREADABLE as error:
        raise DamagedError(f"batch {number} of a segment cannot be read: {error}") from error
    if not as_written:
        raise DamagedError(f"batch {number} of a segment is not what was written: its checksum does not agree")
    return batch, facts


def _metadata(reader: Any) -> dict[bytes, bytes]:
    try:
        found: dict[bytes, bytes] = reader.schema.metadata or {}
    except UNREADABLE as error:
        raise DamagedError(f"the schema of a segment cannot be read: {error}") from error
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
