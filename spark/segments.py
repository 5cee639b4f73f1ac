"""A segment: RecordBatches in an Arrow IPC file, whose schema's metadata say how many rows and by which attempt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pyarrow as pa

from redelivery.spark.store import StoreError

_VERSION: Final = b"1"
_ATTEMPT, _ROWS, _FORMAT = b"attempt", b"rows", b"v"


class SegmentError(StoreError):
    """A file is no segment, or one of a newer version."""


def encode(batches: Iterable[Any], schema: Any, compression: str, *, rows: int, attempt: str) -> Any:
    """A segment's bytes, as a ``pyarrow.Buffer``.

    Args:
        batches: RecordBatches of ``schema``.
        schema: of the batches.
        compression: ``zstd``, ``lz4`` or ``none``.
        rows: how many all batches have.
        attempt: names who writes it: a uuid.
    """
    metadata = {_ROWS: str(rows).encode(), _ATTEMPT: attempt.encode(), _FORMAT: _VERSION}
    options = pa.ipc.IpcWriteOptions(compression=None if compression == "none" else compression)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema.with_metadata(metadata), options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue()


def segment_rows(reader: Any) -> int:
    """How many rows. Raises SegmentError: see `segment_attempt`."""
    return int(_metadata(reader)[_ROWS])


def segment_attempt(reader: Any) -> str:
    """The uuid of who wrote it. Raises SegmentError: the file was not written by `encode`, or by a newer version."""
    return _metadata(reader)[_ATTEMPT].decode()


def segment_ids(reader: Any) -> list[str]:
    """The message ids of all rows that have one, in order. Raises SegmentError."""
    return [
        each for batch in segment_batches(reader) for each in batch.column("message_id").to_pylist() if each is not None
    ]


def segment_batches(reader: Any) -> Iterator[Any]:
    """The RecordBatches as Spark wants them: without the segment's metadata. Raises SegmentError."""
    _metadata(reader)
    for number in range(reader.num_record_batches):
        try:
            batch = reader.get_batch(number)
        except (pa.ArrowException, OSError) as error:
            raise SegmentError(f"batch {number} of a segment cannot be read: {error}") from error
        yield batch.replace_schema_metadata(None)


def _metadata(reader: Any) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = reader.schema.metadata or {}
    if not {_ROWS, _ATTEMPT, _FORMAT} <= found.keys():
        raise SegmentError(
            "an Arrow file in walLocation is no segment of this library: was the folder used for others?"
        )
    if found[_FORMAT] != _VERSION:
        raise SegmentError(
            f"a segment has version {found[_FORMAT].decode(errors='replace')}, written by a newer release: upgrade here"
        )
    return found
