"""The interface of a store of segments: a folder of small write-once files that driver and executors share.

Everything rests on one operation, `SegmentStore.put_if_absent`: of all callers with one name, on any host, exactly one
gets True, and what it wrote is then durable and whole. A place that cannot promise that is refused
(`check_create_if_absent`) instead of losing messages later.
"""

from __future__ import annotations

import builtins
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

import pyarrow as pa

import redelivery
from redelivery.spark.log.checksums import UNREADABLE

Data: TypeAlias = bytes | bytearray | memoryview
"""What can be written; a pyarrow.Buffer too."""

DELETED: Final = (
    "walLocation was deleted or emptied while the query ran; restore it from a copy, or start the query with a new "
    "walLocation and a new checkpointLocation"
)
PROBES: Final = "probe"


class StoreError(redelivery.JMSError):
    """The store failed or holds what it should not; the text names the place, the cause is ``__cause__``."""


class DamagedError(StoreError):
    """A file is there and is not what was written: cut off, or overwritten."""


class Tombstone(StoreError):
    """An empty file stands where a segment was expected: the batch was committed without that segment."""


class SegmentStore(ABC):
    """A folder of files. Names are relative, with ``/`` between folder and file.

    Any method raises StoreError, naming the file, when the store fails. Stores can be pickled.
    """

    location: str
    """Absolute: the same str opens the same store on every host that shares it."""

    def make_folders(self, names: Iterable[str]) -> None:  # noqa: B027 - an object store has none
        """Make these folders where they are not there. Nothing else makes one: what was deleted stays deleted."""

    @abstractmethod
    def put_if_absent(self, name: str, data: Data) -> bool:
        """Write a file that must not be there yet, into a folder that is.

        True: it is there, whole and durable, and no other caller ever got True for this name.
        False: there is one already, which stays as it is.
        """

    @abstractmethod
    def get(self, name: str) -> bytes | None:
        """The content, None if there is no such file."""

    @abstractmethod
    def open_arrow(self, name: str) -> Any:
        """A pyarrow.ipc.RecordBatchFileReader of the file, None if there is no such file.

        Raises:
            Tombstone: the file is empty.
            DamagedError: the file is not an Arrow IPC file.
        """

    @abstractmethod
    def exists(self, name: str) -> bool:
        """Check whether there is such a file."""

    @abstractmethod
    def list(self, folder: str) -> list[str]:
        """The names of the files in a folder without the folder, sorted; [] if there is no such folder."""

    def starting(self, folder: str, prefix: str) -> builtins.list[str]:
        """Of `list`, the names that begin with ``prefix``."""
        return [name for name in self.list(folder) if name.startswith(prefix)]

    def files(self, folders: Iterable[str]) -> dict[str, dict[str, int]]:
        """The names of all files in these folders, by folder, with the bytes of each; -1 where they are not known."""
        return {folder: dict.fromkeys(self.list(folder), -1) for folder in folders}

    def get_all(self, names: Iterable[str]) -> dict[str, bytes]:
        """The contents of those of the files that there are, by name."""
        found = {name: self.get(name) for name in names}
        return {name: content for name, content in found.items() if content is not None}

    @abstractmethod
    def delete(self, name: str) -> None:
        """Remove the file; it is fine if there is none."""

    def clean(self, older_than: float) -> None:  # noqa: B027 - most stores leave no temporaries behind
        """Remove what died writers left behind, if it is older than so many seconds."""


def opened(content: Any, where: str) -> Any:
    """A pyarrow.ipc.RecordBatchFileReader of a file's content. Raises DamagedError: it is not an Arrow file."""
    try:
        return pa.ipc.open_file(content)
    except UNREADABLE as error:
        raise DamagedError(f"{where} is not an Arrow file: {error}") from error


def check_create_if_absent(store: SegmentStore) -> None:
    """Write one file twice: the second must be refused.

    Raises:
        StoreError: it was not, or the store cannot be written to.
    """
    name = f"{PROBES}/{uuid.uuid4().hex}"
    try:
        if not store.put_if_absent(name, b"first"):
            raise StoreError(f"{store.location}: a file that cannot have been there was refused ({name})")
        if store.put_if_absent(name, b"second") or store.get(name) != b"first":
            raise StoreError(
                f"{store.location} cannot hold the stream's segments: it let a second writer replace the file {name}. "
                "Two attempts of one task would overwrite each other's messages. Use a file system with "
                "create-if-absent (a local or shared file system, S3 with a recent s3fs)"
            )
    finally:
        store.delete(name)
