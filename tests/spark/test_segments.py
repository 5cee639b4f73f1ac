"""Segments: what was put in comes out, with what is said about it; what is not a segment is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa

from redelivery import Message
from redelivery.spark.log.segments import (
    Extent,
    SegmentError,
    SegmentWriter,
    segment_attempt,
    segment_batches,
    segment_extent,
    segment_keys,
    segment_rows,
)
from redelivery.spark.log.store.interface import DamagedError, opened
from redelivery.spark.rows.columns import Columns
from redelivery.spark.rows.schema import arrow_schema


def columns(ids: list[str | None]) -> Columns:
    found = Columns()
    for each in ids:
        message = Message(b"x" * 1000)
        message.stamp(message_id=each)
        found.add(message)
    return found


def encode(rows: Columns, compression: str = "zstd", attempt: str = "a") -> bytes:
    writer = SegmentWriter(rows.schema, compression, attempt)
    rows.write(writer)
    return writer.finish()


def ids_in(reader: Any) -> list[str | None]:
    return [message_id for message_id, _ in segment_keys(reader)]


def written(compression: str = "zstd", ids: tuple[str | None, ...] = ("ID:1", None, "ID:3")) -> bytes:
    writer = SegmentWriter(arrow_schema(), compression, "b7c1")
    for part in (ids[:2], ids[2:]):
        columns(list(part)).write(writer)
    return writer.finish()


@pytest.mark.parametrize("compression", ["zstd", "lz4", "none"])
def test_there_and_back(compression: str) -> None:
    reader = pa.ipc.open_file(written(compression))
    assert (segment_extent(reader), segment_attempt(reader)) == (Extent(3, 3 * 1200), "b7c1")
    assert segment_keys(reader) == columns(["ID:1", None, "ID:3"]).keys
    batches = list(segment_batches(reader))
    assert [batch.num_rows for batch in batches] == [2, 1]
    assert batches == columns(["ID:1", None, "ID:3"]).batches(rows=2)
    for batch in batches:
        assert batch.schema.equals(arrow_schema(), check_metadata=True)


def test_it_is_compressed() -> None:
    rows = columns([f"ID:{number}" for number in range(100)])
    sizes = [len(encode(rows, compression)) for compression in ("none", "lz4", "zstd")]
    assert sizes[0] > 100_000 > 10 * max(sizes[1:])


def old_segment(*ids: str | None) -> Any:
    """As the release before wrote it."""
    rows = columns(list(ids))
    sink = pa.BufferOutputStream()
    schema = rows.schema.with_metadata({"v": "1", "rows": str(len(ids)), "attempt": "old"})
    with pa.ipc.new_file(sink, schema) as writer:
        for batch in rows.batches(rows=2):
            writer.write_batch(batch)
    return sink.getvalue()


def test_one_of_the_release_before_is_read() -> None:
    reader = pa.ipc.open_file(old_segment("ID:1", None, "ID:3"))
    assert (segment_rows(reader), segment_attempt(reader)) == (3, "old")
    assert segment_extent(reader).size > 3000
    assert segment_keys(reader) == [("ID:1", None), ("ID:3", None)], "known by their ids alone"
    assert list(segment_batches(reader)) == columns(["ID:1", None, "ID:3"]).batches(rows=2)


def without_checksums(data: bytes) -> bytes:
    """As version 2 wrote it."""
    reader, sink = pa.ipc.open_file(data), pa.BufferOutputStream()
    with pa.ipc.new_file(sink, reader.schema.with_metadata({**reader.schema.metadata, b"v": b"2"})) as writer:
        for number in range(reader.num_record_batches):
            batch, facts = reader.get_batch_with_custom_metadata(number)
            writer.write_batch(batch, custom_metadata={k: v for k, v in dict(facts).items() if k != b"checksum"})
    return bytes(sink.getvalue().to_pybytes())


def test_one_without_checksums_is_read() -> None:
    new, old = (pa.ipc.open_file(each) for each in (written(), without_checksums(written())))
    assert (segment_extent(old), segment_attempt(old)) == (Extent(3, 3 * 1200), "b7c1")
    assert (segment_keys(old), list(segment_batches(old))) == (segment_keys(new), list(segment_batches(new)))


def test_a_checksum_that_is_gone_is_missed() -> None:
    data = without_checksums(written()).replace(b"\x01\x00\x00\x002\x00", b"\x01\x00\x00\x003\x00")
    with pytest.raises(DamagedError, match="its checksum does not agree"):
        segment_extent(pa.ipc.open_file(data))


def test_a_segment_without_rows() -> None:
    reader = pa.ipc.open_file(encode(columns([])))
    assert (segment_rows(reader), segment_keys(reader), list(segment_batches(reader))) == (0, [], [])


def test_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "0001.arrow"
    path.write_bytes(written())
    with pa.memory_map(str(path)) as source:
        assert ids_in(pa.ipc.open_file(source)) == ["ID:1", None, "ID:3"]


def test_another_arrow_file_is_refused() -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, arrow_schema()):
        pass
    reader = pa.ipc.open_file(sink.getvalue())
    for ask in (segment_rows, segment_attempt, segment_keys, lambda each: list(segment_batches(each))):
        with pytest.raises(DamagedError, match="is not a segment"):
            ask(reader)


def test_a_newer_version_is_refused() -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, arrow_schema().with_metadata({"v": "5", "attempt": "a"})):
        pass
    with pytest.raises(SegmentError, match=r"version 5, written by a newer release: install that release"):
        segment_rows(pa.ipc.open_file(sink.getvalue()))


def test_damage_is_an_error_of_ours() -> None:
    data = bytearray(written("zstd"))
    middle = len(data) // 3
    data[middle : middle + 64] = b"\xff" * 64
    reader = pa.ipc.open_file(pa.py_buffer(bytes(data)))
    with pytest.raises(DamagedError, match="cannot be read"):
        list(segment_batches(reader))


def various(properties_type: str, errors: bool) -> Columns:
    """Rows with all kinds of columns, with nulls and without."""
    found = Columns(properties_type, errors)
    for number in range(20):
        message = Message(
            None if number % 7 == 3 else f"body {number}",
            correlation_id=None if number % 2 else "c",
            properties={} if number % 5 == 4 else {"n": number, "ü": "x" * number, "f": 1.5, "b": number % 2 == 0},
        )
        message.stamp(message_id=None if number % 3 else f"ID:{number}", priority=number % 10)
        found.add_error(message, "why") if errors and number % 4 == 0 else found.add(message)
    return found


@pytest.mark.parametrize("compression", ["zstd", "lz4", "none"])
@pytest.mark.parametrize("form", [("string", False), ("variant", True)])
def test_a_bit_that_was_flipped_is_never_another_row(compression: str, form: tuple[str, bool]) -> None:
    rows = various(*form)
    writer = SegmentWriter(rows.schema, compression, "b7c1")
    for _ in range(2):
        rows.write(writer)
    data = writer.finish()

    def read(content: bytes) -> object:
        reader = opened(pa.BufferReader(content), "segment")
        batches = [batch.to_pydict() for batch in segment_batches(reader)]
        return segment_extent(reader), segment_attempt(reader), segment_keys(reader), batches

    right, damages = read(data), 0
    for place in range(0, len(data), max(1, len(data) // 400)):
        damaged = bytearray(data)
        damaged[place] ^= 1 << place % 8
        try:
            assert read(bytes(damaged)) == right, place
        except (DamagedError, SegmentError):
            damages += 1
    assert damages > 100


def test_batches_that_changed_places_are_damage() -> None:
    reader, sink = pa.ipc.open_file(written()), pa.BufferOutputStream()
    with pa.ipc.new_file(sink, reader.schema) as writer:
        for number in (1, 0, 2):
            batch, facts = reader.get_batch_with_custom_metadata(number)
            writer.write_batch(batch, custom_metadata=facts)
    with pytest.raises(DamagedError, match="batch 0 of a segment is not what was written"):
        list(segment_batches(pa.ipc.open_file(sink.getvalue())))
