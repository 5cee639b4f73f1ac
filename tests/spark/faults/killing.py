"""The file system ``killing://``: a local folder whose users die, wait or fail at the operation that an order names.

Every step of the source's protocol is next to an operation of its store, so no product code needs to know of this.
fsspec finds it by an entry point, in every process whose PYTHONPATH has the folder that `Jobs` writes.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from fsspec.spec import AbstractFileSystem
from tests.spark.faults.orders import Orders


class KillingFileSystem(AbstractFileSystem):
    """``killing:///folder``; the storage option ``orders`` is the file of `Orders`."""

    protocol = "killing"
    redelivery_durable = True
    cachable = False

    def __init__(self, orders: str, **options: Any) -> None:
        super().__init__(**options)
        self._orders = Orders(Path(orders))

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        self._orders.obey("before", "write", _name(path))
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.{os.getpid()}.{time.monotonic_ns()}")
        temporary.write_bytes(value)
        try:
            if mode == "create":
                os.link(temporary, target)
            else:
                os.rename(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
        self._orders.obey("after", "write", _name(path))

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        self._orders.obey("before", "read", _name(path))
        content = Path(path).read_bytes()[start:end]
        self._orders.obey("after", "read", _name(path))
        return content

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        self._orders.obey("before", "read", _name(path))
        found = Path(path).stat()
        return {"name": path, "size": found.st_size, "type": "directory" if Path(path).is_dir() else "file"}

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        self._orders.obey("before", "list", Path(path).name)
        names = [f"{path}/{name}" for name in os.listdir(path) if not name.startswith(".")]
        found = []
        for name in names:
            with suppress(FileNotFoundError):
                kind, size = ("directory" if os.path.isdir(name) else "file"), os.path.getsize(name)
                found.append({"name": name, "size": size, "type": kind})
        self._orders.obey("after", "list", Path(path).name)
        return found if detail else names

    def rm_file(self, path: str) -> None:
        self._orders.obey("before", "delete", _name(path))
        Path(path).unlink()
        self._orders.obey("after", "delete", _name(path))


def _name(path: str) -> str:
    """Of a file under walLocation: its folder and its name, or its name."""
    folder, name = Path(path).parts[-2:]
    return name if name.startswith("_") else f"{folder}/{name}"
