"""Segments of nothing but ids, a clock that is turned by hand, and stores that die or let others in between."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

from redelivery.spark.log.segments import SegmentWriter, segment_keys
from redelivery.spark.log.store.interface import DamagedError, Data, SegmentStore
from redelivery.spark.log.wal import Wal
from redelivery.spark.rows.digests import Key

SCHEMA = pa.schema([("message_id", pa.string())])


def keys(*ids: str) -> list[Key]:
    """Each id has its own digest."""
    return [(each, each.encode().ljust(16)) for each in ids]


def data(attempt: str, *ids: str) -> Any:
    writer = SegmentWriter(SCHEMA, "none", attempt)
    writer.add(pa.record_batch({"message_id": pa.array(ids, pa.string())}, SCHEMA), keys(*ids), 100 * len(ids))
    return writer.finish()


def committed_attempt(wal: Wal, seq: int, part: int) -> str | None:
    """The attempt whose segment the committed batch used; None: none, or the batch is not committed."""
    return (wal._committed.record(seq) or {}).get(str(part))


def ids_of(wal: Wal, seq: int, part: int = 0) -> list[str] | None:
    reader = wal.reader(seq, part)
    return None if reader is None else [str(message_id) for message_id, _ in segment_keys(reader)]


def in_doubt_ids(wal: Wal, seq: int = 0, parts: int = 0) -> set[str]:
    return {str(message_id) for each in wal.in_doubt(seq, parts).values() for message_id, _ in each.keys}


class Now:
    """Milliseconds since 1970."""

    def __init__(self) -> None:
        self.ms = 1_700_000_000_000

    def __call__(self) -> int:
        return self.ms

    def pass_seconds(self, seconds: float) -> None:
        self.ms += int(seconds * 1000)


class Died(BaseException):
    """The process is gone; nothing may catch it."""


class WatchedStore(SegmentStore):
    """Calls `before(operation, name)` before each operation that changes something, or each at all; it may raise."""

    def __init__(self, store: SegmentStore, before: Callable[[str, str], None], *, reads: bool = False) -> None:
        self.location = store.location
        self._store = store
        self._before = before
        self._before_reading: Callable[[str, str], None] = before if reads else lambda *_: None

    def make_folders(self, names: Iterable[str]) -> None:
        self._store.make_folders(names)

    def put_if_absent(self, name: str, data: Data) -> bool:
        self._before("put_if_absent", name)
        return self._store.put_if_absent(name, data)

    def get(self, name: str) -> bytes | None:
        self._before_reading("get", name)
        return self._store.get(name)

    def open_arrow(self, name: str) -> Any:
        self._before_reading("open_arrow", name)
        return self._store.open_arrow(name)

    def exists(self, name: str) -> bool:
        self._before_reading("exists", name)
        return self._store.exists(name)

    def starting(self, folder: str, prefix: str) -> builtins.list[str]:
        self._before_reading("list", folder)
        return self._store.starting(folder, prefix)

    def files(self, folders: Iterable[str]) -> dict[str, dict[str, int]]:
        self._before_reading("list", "")
        return self._store.files(folders)

    def delete(self, name: str) -> None:
        self._before("delete", name)
        self._store.delete(name)

    def list(self, folder: str) -> builtins.list[str]:
        self._before_reading("list", folder)
        return self._store.list(folder)


class MemoryStore(SegmentStore):
    """What LocalStore does, without a disk: for the tests that run protocols thousands of times."""

    location = "memory"

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}

    def put_if_absent(self, name: str, data: Data) -> bool:
        content = bytes(data)
        return self.contents.setdefault(name, content) is content

    def get(self, name: str) -> bytes | None:
        return self.contents.get(name)

    def open_arrow(self, name: str) -> Any:
        from redelivery.spark.log.store.interface import Tombstone

        content = self.contents.get(name)
        if content == b"":
            raise Tombstone(f"{self.location}/{name} is a tombstone")
        try:
            return None if content is None else pa.ipc.open_file(pa.BufferReader(content))
        except pa.ArrowInvalid as error:
            raise DamagedError(f"{self.location}/{name} is not an Arrow file: {error}") from error

    def exists(self, name: str) -> bool:
        return name in self.contents

    def delete(self, name: str) -> None:
        self.contents.pop(name, None)

    def list(self, folder: str) -> builtins.list[str]:
        return sorted(name.rpartition("/")[2] for name in self.contents if name.rpartition("/")[0] == folder)
