"""Segments: what was put in comes out, with what is said about it; what is no segment is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa

from redelivery import Message
from redelivery.spark.columns import Columns
from redelivery.spark.rows import arrow_schema
from redelivery.spark.segments import (
    SegmentError,
    encode,
    segment_attempt,
    segment_batches,
    segment_ids,
    segment_rows,
)
from redelivery.spark.store import StoreError


def columns(ids: list[str | None]) -> Columns:
    found = Columns()
    for each in ids:
        message = Message(b"x" * 1000)
        message.stamp(message_id=each)
        found.add(message)
    return found


def written(compression: str = "zstd", ids: tuple[str | None, ...] = ("ID:1", None, "ID:3")) -> Any:
    rows = columns(list(ids))
    return encode(rows.batches(rows=2), rows.schema, compression, rows=len(ids), attempt="b7c1")


@pytest.mark.parametrize("compression", ["zstd", "lz4", "none"])
def test_there_and_back(compression: str) -> None:
    reader = pa.ipc.open_file(written(compression))
    assert (segment_rows(reader), segment_attempt(reader)) == (3, "b7c1")
    assert segment_ids(reader) == ["ID:1", "ID:3"]
    batches = list(segment_batches(reader))
    assert [batch.num_rows for batch in batches] == [2, 1]
    assert batches == columns(["ID:1", None, "ID:3"]).batches(rows=2)
    for batch in batches:
        assert batch.schema.equals(arrow_schema(), check_metadata=True)


def test_it_is_compressed() -> None:
    rows = columns([f"ID:{number}" for number in range(100)])
    sizes = [
        encode(rows.batches(), rows.schema, compression, rows=100, attempt="a").size
        for compression in ("none", "lz4", "zstd")
    ]
    assert sizes[0] > 100_000 > 10 * max(sizes[1:])


def test_a_segment_without_rows() -> None:
    reader = pa.ipc.open_file(encode([], arrow_schema(), "zstd", rows=0, attempt="a"))
    assert (segment_rows(reader), segment_ids(reader), list(segment_batches(reader))) == (0, [], [])


def test_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "0001.arrow"
    path.write_bytes(written().to_pybytes())
    with pa.memory_map(str(path)) as source:
        assert segment_ids(pa.ipc.open_file(source)) == ["ID:1", "ID:3"]


def test_another_arrow_file_is_refused() -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, arrow_schema()):
        pass
    reader = pa.ipc.open_file(sink.getvalue())
    for ask in (segment_rows, segment_attempt, segment_ids, lambda each: list(segment_batches(each))):
        with pytest.raises(SegmentError, match="is no segment"):
            ask(reader)


def test_a_newer_version_is_refused() -> None:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, arrow_schema().with_metadata({"v": "2", "rows": "0", "attempt": "a"})):
        pass
    with pytest.raises(StoreError, match="version 2"):
        segment_rows(pa.ipc.open_file(sink.getvalue()))


def test_damage_is_an_error_of_ours() -> None:
    data = bytearray(written("zstd").to_pybytes())
    middle = len(data) // 3
    data[middle : middle + 64] = b"\xff" * 64
    reader = pa.ipc.open_file(pa.py_buffer(bytes(data)))
    with pytest.raises(SegmentError, match="cannot be read"):
        list(segment_batches(reader))
