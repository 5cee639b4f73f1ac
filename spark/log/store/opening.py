"""Opens the store of a `walLocation`. It is imported when it is used: fsspec and its own packages are heavy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from redelivery.model.errors import ConfigError
from redelivery.spark.log.store.interface import SegmentStore
from redelivery.spark.log.store.locations import LOCAL, check_location


def open_store(location: str, storage_options: Mapping[str, Any] | None = None) -> SegmentStore:
    """The store of a path, a ``file:`` URL, or the URL of an object store (``s3://bucket/folder``).

    ``storage_options`` are fsspec's, for the file system of the URL. Raises ConfigError: the location cannot be used as
    it is written, or its file system is not installed.
    """
    if ":" in location.partition("/")[0]:
        location = check_location(location)
    if "://" in location and location.partition(":")[0] not in LOCAL:
        from redelivery.spark.log.store.fsspec_store import FsspecStore

        return FsspecStore(location, storage_options)
    if storage_options:
        raise ConfigError(
            f"storageOptions are for URLs such as s3://…, and walLocation {location!r} is a path: leave them out"
        )
    from redelivery.spark.log.store.local_store import LocalStore

    return LocalStore(location)
