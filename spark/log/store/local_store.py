"""The store in a folder: a local disk, or a file system that driver and executors mount at the same path."""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pyarrow as pa

import redelivery
from redelivery.spark.log.store.interface import DELETED, Data, SegmentStore, StoreError, Tombstone, opened
from redelivery.transports.wire.clock import epoch_ms

_TEMPORARY: Final = ".tmp-"
_NO_LINKS: Final = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)


class LocalStore(SegmentStore):
    """Files become visible whole: written under a temporary name, fsynced, then linked.

    ``location``: a path, or a URL ``file:/path``, ``file:///path``; ``~`` and relative paths are resolved here, once.
    Raises ConfigError: the URL names another host.
    """

    def __init__(self, location: str) -> None:
        self.location = os.path.abspath(os.path.expanduser(_path_of(location)))

    def make_folders(self, names: Iterable[str]) -> None:
        """See `SegmentStore`."""
        for each in names:
            with self._naming(each):
                _make_folder(self._path(each))

    def put_if_absent(self, name: str, data: Data) -> bool:
        """See `SegmentStore`: os.link is the one step that creates, and it never replaces."""
        path = self._path(name)
        with self._naming(name), self._written(path, data) as temporary:
            try:
                os.link(temporary, path)
            except FileExistsError:
                if not path.samefile(temporary):  # NFS: the answer to our own link was lost, and it was asked again
                    return False
            except OSError as error:
                if error.errno in _NO_LINKS:
                    raise StoreError(
                        f"{path}: this file system has no hard links ({error.strerror}), which segments need: "
                        "move walLocation to another one"
                    ) from error
                raise
            _sync_folder(path.parent)
            return True

    def get(self, name: str) -> bytes | None:
        """See `SegmentStore`."""
        with self._naming(name):
            try:
                return self._path(name).read_bytes()
            except FileNotFoundError:
                return None

    def open_arrow(self, name: str) -> Any:
        """See `SegmentStore`. The file is mapped, so it can be read on after it was deleted."""
        path = self._path(name)
        with self._naming(name):
            try:
                if not path.stat().st_size:
                    raise Tombstone(f"{path} is a tombstone: its batch was committed without it")
                content = pa.memory_map(str(path), "r")
            except FileNotFoundError:
                return None
        return opened(content, str(path))

    def exists(self, name: str) -> bool:
        """See `SegmentStore`."""
        with self._naming(name):
            return self._path(name).exists()

    def list(self, folder: str) -> list[str]:
        """See `SegmentStore`."""
        with self._naming(folder):
            try:
                return sorted(name for name in os.listdir(self._path(folder)) if not name.startswith(_TEMPORARY))
            except FileNotFoundError:
                return []

    def files(self, folders: Iterable[str]) -> dict[str, dict[str, int]]:
        """See `SegmentStore`."""
        return {folder: self._sizes(folder) for folder in folders}

    def _sizes(self, folder: str) -> dict[str, int]:
        with self._naming(folder), suppress(FileNotFoundError), os.scandir(self._path(folder)) as entries:
            return {entry.name: _size(entry) for entry in entries if not entry.name.startswith(_TEMPORARY)}
        return {}

    def delete(self, name: str) -> None:
        """See `SegmentStore`."""
        with self._naming(name):
            self._path(name).unlink(missing_ok=True)

    def clean(self, older_than: float) -> None:
        """See `SegmentStore`."""
        with self._naming(""):
            for path in Path(self.location).rglob(_TEMPORARY + "*"):
                with suppress(FileNotFoundError):  # its writer is alive and was quicker
                    if path.stat().st_mtime < epoch_ms() / 1000 - older_than:
                        path.unlink()

    def _path(self, name: str) -> Path:
        return Path(self.location, name)

    @contextmanager
    def _written(self, path: Path, data: Data) -> Iterator[Path]:
        """A durable temporary beside `path`, gone afterwards."""
        temporary = path.with_name(_TEMPORARY + uuid.uuid4().hex)
        try:
            try:
                made = temporary.open("xb", buffering=0)
            except FileNotFoundError as error:
                raise StoreError(f"{path.parent} is not there any more: {DELETED}") from error
            with made as file:
                rest = memoryview(data).cast("B")
                while rest:
                    rest = rest[file.write(rest) :]  # one write may take less than it was given
                os.fsync(file.fileno())
            yield temporary
        finally:
            temporary.unlink(missing_ok=True)

    @contextmanager
    def _naming(self, name: str) -> Iterator[None]:
        """Whatever the operating system says becomes a StoreError that names the file."""
        try:
            yield
        except OSError as error:
            raise StoreError(f"{self._path(name)}: {error.strerror or error}") from error


def _size(entry: os.DirEntry[str]) -> int:
    if entry.name.endswith(".ok"):  # nobody asks
        return -1
    try:
        return entry.stat().st_size
    except FileNotFoundError:  # deleted meanwhile
        return -1


def _path_of(location: str) -> str:
    if not location.startswith(("file:", "local:")):
        return location
    url = urlsplit(location)
    if url.netloc not in ("", "localhost"):
        raise redelivery.ConfigError(
            f"walLocation {location!r} names the host {url.netloc!r}, but a file: URL is a path on each host: "
            f"write file:///{url.netloc}{url.path} if that is the path"
        )
    return url2pathname(url.path)


def _make_folder(folder: Path) -> None:
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    try:
        folder.mkdir(exist_ok=True)
    except FileExistsError as error:  # not as a folder
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder)) from error
    _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    """Without it a file can be gone after a power failure although its content was synced."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
