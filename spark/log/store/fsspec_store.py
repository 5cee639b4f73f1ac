"""The store behind any URL of fsspec whose file system can create a file atomically, above all S3."""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, Final

import pyarrow as pa
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

import redelivery
from redelivery.spark.log.store.interface import Data, SegmentStore, StoreError, Tombstone, opened
from redelivery.spark.log.store.locations import PACKAGES

_REFUSED: Final = 412
_CONFLICT: Final = 409  # S3's answer to a PUT while another request for the name is under way: ask again
_TRIES: Final = 5
_MODE_AMONG_KEYWORDS: Final = "adlfs."  # takes `mode` among its other keywords: a PUT with If-None-Match, as on S3


class FsspecStore(SegmentStore):
    """A folder of an object store; what creates is ``pipe_file(mode="create")``, on S3 a PUT with If-None-Match.

    ``options`` are the file system's (for s3fs ``key``, ``secret``, ``endpoint_url``, …); they are not logged. Raises
    ConfigError: fsspec or the file system's package is missing, the options do not fit, or the file system looks and
    then writes instead of creating.
    """

    def __init__(self, url: str, options: Mapping[str, Any] | None = None) -> None:
        self.location = url.rstrip("/")
        self._fs, root = _file_system(self.location, dict(options or {}))
        self._root = root.rstrip("/")
        # One request for a small file: without it s3fs asks for the size first, and lists if there is no such file.
        self._small = {"max_concurrency": 1} if hasattr(self._fs, "call_s3") else {}
        if not _creates(self._fs):
            raise redelivery.ConfigError(
                f"walLocation {url!r}: {type(self._fs).__name__} cannot create a file only if it is absent; "
                "use s3://, a newer version of its package, or a path that all hosts share"
            )

    def put_if_absent(self, name: str, data: Data) -> bool:
        """See `SegmentStore`."""
        with self._naming(name):
            done: bool | None = _WHILE_IN_CONFLICT(self._create, name, data)
        if done is None:
            raise StoreError(f"{self.location}/{name}: {_TRIES} times in conflict with another writer")
        return done

    def _create(self, name: str, data: Data) -> bool:
        """One attempt of `put_if_absent`. Raises what the file system raises."""
        try:
            self._fs.pipe_file(self._path(name), bytes(data), mode="create")
        except FileExistsError:
            return False
        except OSError as error:  # s3fs says FileExistsError only where the server names the condition
            if _http_status(error) == _REFUSED:
                return False
            raise
        return True

    def get(self, name: str) -> bytes | None:
        """See `SegmentStore`."""
        return self._content(name, self._small)

    def _content(self, name: str, how: Mapping[str, Any]) -> bytes | None:
        with self._naming(name):
            try:
                content: bytes = self._fs.cat_file(self._path(name), **how)
            except FileNotFoundError:
                return None
            return content

    def open_arrow(self, name: str) -> Any:
        """See `SegmentStore`. The whole file is read into memory."""
        content = self._content(name, {})
        if content is None:
            return None
        if not content:
            raise Tombstone(f"{self.location}/{name} is a tombstone: its batch was committed without it")
        return opened(pa.BufferReader(content), f"{self.location}/{name}")

    def exists(self, name: str) -> bool:
        """See `SegmentStore`. On S3 one HEAD: where there is no such name, s3fs would list what may be below it."""
        with self._naming(name):
            self._fs.invalidate_cache()
            if not hasattr(self._fs, "call_s3"):
                return bool(self._fs.exists(self._path(name)))
            bucket, key, _ = self._fs.split_path(self._path(name))
            try:
                self._fs.call_s3("head_object", Bucket=bucket, Key=key)
            except FileNotFoundError:
                return False
            return True

    def list(self, folder: str) -> builtins.list[str]:
        """See `SegmentStore`."""
        return self.starting(folder, "")

    def starting(self, folder: str, prefix: str) -> builtins.list[str]:
        """See `SegmentStore`: the names below one prefix, a request for each thousand."""
        wanted = f"{folder}/{prefix}"
        found = (name[len(folder) + 1 :] for name in self._found(folder, wanted) if name.startswith(wanted))
        return sorted(name for name in found if "/" not in name)

    def files(self, folders: Iterable[str]) -> dict[str, dict[str, int]]:
        """See `SegmentStore`: one listing of everything."""
        found: dict[str, dict[str, int]] = {folder: {} for folder in folders}
        for name, size in self._found("", "").items():
            folder, _, file = name.rpartition("/")
            if folder in found:
                found[folder][file] = size
        return found

    def _found(self, name: str, prefix: str) -> dict[str, int]:
        """The files of the store whose names begin with ``prefix``, where the file system can filter; or more."""
        with self._naming(name):
            self._fs.invalidate_cache()
            try:
                found = self._fs.find(self._root, detail=True, prefix=prefix)
            except FileNotFoundError:
                return {}
        skipped = len(self._root) + 1
        return {name[skipped:]: each["size"] for name, each in found.items() if each["type"] == "file"}

    def get_all(self, names: Iterable[str]) -> dict[str, bytes]:
        """See `SegmentStore`: asked for at the same time."""
        asked = [*names]
        paths = [self._path(name) for name in asked]
        contents = self._fs.cat_ranges(paths, None, None, on_error="return", **self._small)
        found = {}
        for name, content in zip(asked, contents, strict=True):
            with self._naming(name):
                if not isinstance(content, Exception):
                    found[name] = content
                elif not isinstance(content, FileNotFoundError):
                    raise content
        return found

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


def _in_conflict(error: BaseException) -> bool:
    return isinstance(error, OSError) and _http_status(error) == _CONFLICT


_WHILE_IN_CONFLICT: Final = Retrying(
    retry=retry_if_exception(_in_conflict),
    stop=stop_after_attempt(_TRIES),
    wait=wait_random_exponential(multiplier=0.01, max=0.5),
    retry_error_callback=lambda _: None,
)


def _http_status(error: OSError) -> int | None:
    """The HTTP status of the server's answer that botocore gives its errors."""
    response = getattr(error.__cause__, "response", None) or {}
    status: int | None = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    return status
