"""Checks a `walLocation`: only a file system that is known to keep what it was given can hold segments.

A scheme that is not in the tables is refused: a folder in one process's memory, or a path with a scheme that Python
takes for a name, would lose messages that the broker has forgotten. A file system of fsspec that somebody else wrote
declares itself by a class attribute ``redelivery_durable = True``.
"""

from __future__ import annotations

import re
from typing import Any, Final

from redelivery.model.errors import ConfigError

LOCAL: Final = ("file", "local")
PACKAGES: Final = {  # who brings the file system of a scheme
    "s3": "s3fs",
    "s3a": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "abfss": "adlfs",
    "abfs": "adlfs",
    "az": "adlfs",
}
_STORES: Final = "s3://, s3a:// (pip install s3fs), gs:// (pip install gcsfs), abfss:// (pip install adlfs)"
_KNOWN: Final = f"known to be durable are {_STORES}, file:/// and a path such as /mnt/wal that all hosts share"
_HDFS: Final = (
    "HDFS cannot hold the segments: neither pyarrow nor fsspec can create a file there only if it is absent (both "
    f"replace what they open, and pyarrow's move deletes a file in its way); use {_STORES}, or a folder that all hosts "
    "mount at the same path"
)
_INSTEAD: Final = {
    "hdfs": _HDFS,
    "viewfs": _HDFS,
    "webhdfs": _HDFS,
    "swebhdfs": _HDFS,
    "memory": "it lives in the memory of one process and is gone with it; " + _KNOWN,
    "s3n": "write s3://",
    "wasb": "write abfss://container@account.dfs.core.windows.net/folder",
    "wasbs": "write abfss://container@account.dfs.core.windows.net/folder",
    "adl": "write abfss://container@account.dfs.core.windows.net/folder",
}
_SCHEME: Final = re.compile(r"([a-z][a-z0-9+.-]*):", re.IGNORECASE | re.ASCII)


def check_location(location: str) -> str:
    """The location as it is used from here on: its scheme in lower case.

    Raises:
        ConfigError: it is a relative path, or its scheme is not known to be durable; the text says what to write.
    """
    found = _SCHEME.match(location)
    if found is None:
        if not location.startswith("/"):
            raise ConfigError(
                f"walLocation={location!r}: use an absolute path or a URL such as 's3://bucket/folder': driver and "
                "executors have working directories of their own"
            )
        return location
    scheme, rest = found[1].lower(), location[found.end() :]
    if scheme == "dbfs":
        raise ConfigError(
            f"walLocation={location!r}: dbfs: is a name that only Spark knows; Python sees the same folder as "
            f"{'/dbfs/' + rest.lstrip('/')!r}: write that, or better the s3://, abfss:// or gs:// URL behind it"
        )
    if scheme in LOCAL:
        if not rest.startswith("/"):
            raise ConfigError(f"walLocation={location!r}: write file:///{rest}, with the whole path")
    elif scheme not in PACKAGES and not _declared(scheme):
        raise ConfigError(
            f"walLocation={location!r}: {_INSTEAD.get(scheme, f'{scheme}: is not known to be durable; {_KNOWN}')}"
        )
    elif not rest.startswith("//") or not rest.strip("/"):
        raise ConfigError(f"walLocation={location!r}: write {scheme}://{rest.strip('/') or 'bucket/folder'}")
    return f"{scheme}:{rest}"


def _declared(scheme: str) -> bool:
    try:
        from fsspec import get_filesystem_class

        found: Any = get_filesystem_class(scheme)
    except (ImportError, ValueError):  # not installed, not known
        return False
    return getattr(found, "redelivery_durable", False) is True
