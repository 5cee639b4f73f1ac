"""The store behind any URL of fsspec whose file system can create a file atomically, above all S3."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, Final

import pyarrow as pa

import redelivery
from redelivery.spark.log.store.interface import Data, SegmentStore, StoreError, Tombstone, opened
from redelivery.spark.log.store.locations import PACKAGES

__all__ = ["FsspecStore"]

_REFUSED: Final = 412
_CONFLICT: Final = 409  # S3's answer to a PUT while another request for the name is under way: ask again
_TRIES: Final = 5
_MODE_AMONG_KEYWORDS: Final = "adlfs."  # takes `mode` among its other keywords: a PUT with If-None-Match, as on S3


class FsspecStore(SegmentStore):
    """A folder of an object store; what creates is ``pipe_file(mode="create")``, on S3 a PUT with If-None-Match.

    ``options`` are the file system's (for s3fs ``key``, ``secret``, ``endpoint_url``, …); they are not logged.

    Raises:
        ConfigError: fsspec or the file system's package is missing, the options do not fit, or the file system
            looks and then writes instead of creating.
    """

    def __init__(self, url: str, options: Mapping[str, Any] | None = None) -> None:
        self.location = url.rstrip("/")
        self._fs, root = _file_system(self.location, dict(options or {}))
        self._root = root.rstrip("/")
        if not _creates(self._fs):
            raise redelivery.ConfigError(
                f"walLocation {url!r}: {type(self._fs).__name__} cannot create a file only if it is absent; "
                "use s3://, a newer version of its package, or a path that all hosts share"
            )

    def put_if_absent(self, name: str, data: Data) -> bool:
        """See `SegmentStore`."""
        for _ in range(_TRIES):
            with self._naming(name):
                try:
                    self._fs.pipe_file(self._path(name), bytes(data), mode="create")
                except FileExistsError:
                    return False
                except OSError as error:  # s3fs says FileExistsError only where the server names the condition
                    status = _http_status(error)
                    if status == _REFUSED:
                        return False
                    if status != _CONFLICT:
                        raise
                else:
                    return True
        raise StoreError(f"{self.location}/{name}: {_TRIES} times in conflict with another writer")

    def get(self, name: str) -> bytes | None:
        """See `SegmentStore`."""
        with self._naming(name):
            try:
                content: bytes = self._fs.cat_file(self._path(name))
            except FileNotFoundError:
                return None
            return content

    def open_arrow(self, name: str) -> Any:
        """See `SegmentStore`. The whole file is read into memory."""
        content = self.get(name)
        if content is None:
            return None
        if not content:
            raise Tombstone(f"{self.location}/{name} is a tombstone: its batch was committed without it")
        return opened(pa.BufferReader(content), f"{self.location}/{name}")

    def exists(self, name: str) -> bool:
        """See `SegmentStore`."""
        with self._naming(name):
            self._fs.invalidate_cache()
            return bool(self._fs.exists(self._path(name)))

    def list(self, folder: str) -> list[str]:
        """See `SegmentStore`."""
        with self._naming(folder):
            self._fs.invalidate_cache()
            try:
                entries = self._fs.ls(self._path(folder), detail=True)
            except FileNotFoundError:
                return []
        return sorted(each["name"].rpartition("/")[2] for each in entries if each["type"] == "file")

    def delete(self, name: str) -> None:
        """See `SegmentStore`."""
        with self._naming(name):
            try:
                self._fs.rm_file(self._path(name))
            except FileNotFoundError:
                return

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    @contextmanager
    def _naming(self, name: str) -> Iterator[None]:
        """A file system raises what its client library raises; fsspec has no root for those, so all are caught here."""
        try:
            yield
        except Exception as error:
            raise StoreError(f"{self.location}/{name}: {type(error).__name__}: {error}") from error


def _file_system(url: str, options: dict[str, Any]) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise redelivery.ConfigError(
            f"walLocation {url!r} needs fsspec; from the clone: pip install '.[spark]'"
        ) from error
    package = PACKAGES.get(url.partition(":")[0])
    if package is not None and find_spec(package) is None:
        raise redelivery.ConfigError(
            f"walLocation {url!r} needs {package} on the driver and on the executors: pip install {package}"
        )
    try:
        file_system, root = url_to_fs(url, use_listings_cache=False, **options)
    except (ImportError, TypeError, ValueError) as error:
        raise redelivery.ConfigError(f"walLocation {url!r} with these storageOptions: {error}") from error
    return file_system, root


def _creates(file_system: Any) -> bool:
    """fsspec's own pipe_file(mode="create") asks whether the file exists and then writes: two writers can both win."""
    from fsspec import AbstractFileSystem
    from fsspec.asyn import AsyncFileSystem

    kind = type(file_system)
    write = kind._pipe_file if issubclass(kind, AsyncFileSystem) else kind.pipe_file
    inherited = (AsyncFileSystem._pipe_file, AbstractFileSystem.pipe_file)
    named = "mode" in inspect.signature(write).parameters or kind.__module__.startswith(_MODE_AMONG_KEYWORDS)
    return write not in inherited and named


def _http_status(error: OSError) -> int | None:
    """The HTTP status of the server's answer that botocore gives its errors."""
    response = getattr(error.__cause__, "response", None) or {}
    status: int | None = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    return status
