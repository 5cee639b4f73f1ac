"""Whose turn it is: two queries that share one walLocation would delete each other's segments.

Each query takes the next number, create-if-absent, so all hosts agree on who came last; that one rules.
"""

from __future__ import annotations

from typing import Final

import redelivery
from redelivery.spark.store import SegmentStore
from redelivery.spark.wal_names import EPOCHS, leading_number, read_json, to_json

__all__ = ["Epochs", "FencedError"]

_KEPT: Final = 8  # more than one, so that a listing taken during a deletion is never empty


class FencedError(redelivery.IllegalStateError):
    """Somebody else has taken over what this one was working on; it must stop, and nothing is lost by that."""


class Epochs:
    """The files ``epochs/<n>.json`` of one store."""

    def __init__(self, store: SegmentStore) -> None:
        self._store = store

    def take(self, owner: str) -> int:
        """A number higher than all; ``owner`` is what the others' FencedError says: host, process, since when."""
        epoch = self._last() + 1
        while not self._store.put_if_absent(_name(epoch), to_json({"owner": owner})):
            epoch += 1
        return epoch

    def check(self, epoch: int) -> None:
        """Raises FencedError if a later query has taken the location."""
        last = self._last()
        if last > epoch:
            found = read_json(self._store, _name(last)) or {}
            raise FencedError(
                f"another query has taken over walLocation {self._store.location} ({found.get('owner', 'unknown')}), "
                "so this one must end. Give each query a walLocation of its own; if it is a restart of this query, "
                "make sure that the old one is stopped first"
            )

    def forget_old(self) -> None:
        """Delete all but the newest few."""
        for name in self._store.list(EPOCHS)[:-_KEPT]:
            self._store.delete(f"{EPOCHS}/{name}")

    def _last(self) -> int:
        return max([0, *map(leading_number, self._store.list(EPOCHS))])


def _name(epoch: int) -> str:
    return f"{EPOCHS}/{epoch:08d}.json"
