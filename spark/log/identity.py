"""The identity of a log, which every offset names: the file ``_wal.json``."""

from __future__ import annotations

import uuid
from typing import Final

from redelivery.model.errors import ConfigError
from redelivery.spark.log.names import IDENTITY, read_json, to_json
from redelivery.spark.log.store.interface import SegmentStore, StoreError

__all__ = ["made_identity", "read_identity"]

_VERSION: Final = 2


def made_identity(store: SegmentStore) -> str:
    """The identity, a new one where there is none."""
    identity = read_identity(store)
    if identity is None:
        store.put_if_absent(IDENTITY, to_json({"v": _VERSION, "wal": uuid.uuid4().hex}))
        identity = read_identity(store)
        if identity is None:
            raise StoreError(f"{store.location}/{IDENTITY} was just written and is not there")
    return identity


def read_identity(store: SegmentStore) -> str | None:
    """The identity; None: there is no log. Raises ConfigError: a newer version wrote it."""
    found = read_json(store, IDENTITY)
    if found is None:
        return None
    version, identity = found.get("v"), found.get("wal")
    if not isinstance(version, int) or not isinstance(identity, str):
        raise StoreError(f"{store.location}/{IDENTITY} is damaged: {found!r}; restore walLocation from a copy")
    if version > _VERSION:
        raise ConfigError(
            f"walLocation {store.location} was written by a newer redelivery (version {version}, this one reads "
            f"{_VERSION}): install that version, or use a new walLocation and checkpointLocation"
        )
    return identity
