"""The identity of a log, which every offset names: the file ``_wal.json``; and the query that it belongs to.

Each start writes what it reads into its epoch's file, and the next one must read the same. A subscription is another
one, and the first is filled for ever, where anything that a broker knows it by has changed; some brokers drop what it
holds when the selector or the topic changes. Queues may come and go as long as one stays: nothing is lost by that.
Where none does, the folder is another query's, whose pending rows this one would take.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, Final

from redelivery.model.errors import ConfigError
from redelivery.policies.destinations.patterns import matches
from redelivery.spark.log.names import IDENTITY, read_json, to_json
from redelivery.spark.log.store.interface import SegmentStore, StoreError

_VERSION: Final = 2
SOURCE: Final = "source"
_NEW: Final = (
    "set it back; or let that query read what is pending with trigger(availableNow=True), and then begin with a new "
    "walLocation and a new checkpointLocation"
)
_STAYS: Final = "stays at the broker, and is filled, until it is removed there (session.unsubscribe)"


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


def check_source(before: Any, now: Mapping[str, Any], location: str) -> None:
    """Refuse, by ConfigError, a query that reads something else than the one before it; the text says what to do.

    ``before``: as its epoch's file has it: ``destinations``, and ``subscription`` with what it is known by. ``now``:
    the same of this one.
    """
    if not isinstance(before, Mapping):
        return
    old, new = before.get("subscription"), now.get("subscription")
    if old != new:
        said = _changes(old, new)
        stays = "" if old is None else f". The subscription {old.get('subscription')!r} {_STAYS}"
        raise ConfigError(f"walLocation {location} belongs to a query with {said}: {_NEW}{stays}")
    places, wanted = before.get("destinations", []), now["destinations"]
    if not any(matches(one, other) or matches(other, one) for one in places for other in wanted):
        raise ConfigError(
            f"walLocation {location} belongs to a query of {', '.join(places)}, and this one reads "
            f"{', '.join(wanted)}: give each query a walLocation of its own. If it is the same query, {_NEW}"
        )


def _changes(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> str:
    if old is None:
        return f"no subscription, and this one has {(new or {}).get('subscription')!r}"
    if new is None:
        return f"subscription={old.get('subscription')!r}, and this one has none"
    changed = [name for name in new if new[name] != old.get(name)]
    was, has = (", ".join(f"{name}={each.get(name)!r}" for name in changed) for each in (old, new))
    return f"{was}, and this one has {has}"
