"""Lets the newest query have a walLocation: two that share one would delete each other's segments.

Each query takes the next number, create-if-absent, so all hosts agree on who came last; that one rules.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any, Final

import redelivery
from redelivery.spark.log import claims
from redelivery.spark.log.identity import SOURCE, check_source
from redelivery.spark.log.names import EPOCHS, leading_number, read_json, to_json
from redelivery.spark.log.store.interface import DELETED, SegmentStore, StoreError
from redelivery.transports.wire.clock import monotonic

PATIENCE: Final = 5.0  # seconds: what a query that was asked to end needs for it
_LOOK: Final = 0.1
_KEPT: Final = 8  # more than one, so that a listing taken during a deletion is never empty


class FencedError(redelivery.IllegalStateError):
    """A later query has taken the location, or the batch was committed: this one must stop. Nothing is lost by that."""


class Epochs:
    """The files ``epochs/<n>.json`` of one store."""

    def __init__(self, store: SegmentStore) -> None:
        self._store = store

    def take(self, owner: str, more: Mapping[str, Any] | None = None) -> int:
        """A number higher than all; ``owner`` is what the others' FencedError says: host, process, since when."""
        return self._taken(self._last(), owner, more)

    def _taken(self, last: int, owner: str, more: Mapping[str, Any] | None) -> int:
        epoch = last + 1
        while not self._store.put_if_absent(_name(epoch), to_json({"owner": owner, **(more or {})})):
            epoch += 1
        return epoch

    def take_turn(
        self, claim: claims.Claim, patience: float = PATIENCE, *, source: Mapping[str, Any] | None = None
    ) -> int:
        """As `take`, unless the one whose turn it is lives, and goes on to for ``patience`` seconds.

        ``source``: what the query reads, as `redelivery.spark.log.identity` compares it; None: nobody asks.

        Raises:
            IllegalStateError: it does; the text says who it is.
            ConfigError: the query before has read something else.
        """
        until, never = monotonic() + patience, threading.Event()
        while (living := self._living(last := self._last())) is not None:
            if monotonic() >= until:
                raise redelivery.IllegalStateError(
                    f"walLocation {self._store.location} is in use by another query that runs ({living}): give each "
                    "query a walLocation of its own, or stop the other one first"
                )
            never.wait(_LOOK)
        if source is not None:
            self._check_source(last, source)
        epoch = self._taken(last, claim.owner, claim.json() | ({} if source is None else {SOURCE: source}))
        claims.take(self._store.location, epoch)
        return epoch

    def leave(self, epoch: int) -> None:
        """The query of this epoch has ended."""
        claims.leave(self._store.location, epoch)
        self._store.put_if_absent(_left(epoch), b"")

    def _check_source(self, last: int, source: Mapping[str, Any]) -> None:
        found = (read_json(self._store, _name(last)) or {}) if last else {}
        if SOURCE in found:
            check_source(found[SOURCE], source, self._store.location)

    def _living(self, last: int) -> str | None:
        """The owner of the ``last`` epoch, if it is known to run."""
        found = read_json(self._store, _name(last)) if last else None
        if found is None or not claims.lives(self._store.location, last, found) or self._store.exists(_left(last)):
            return None
        return str(found.get("owner", "unknown"))

    def check(self, epoch: int) -> None:
        """Make sure that the location is this query's.

        Raises:
            FencedError: a later query has taken it.
            StoreError: the file of this epoch is gone.
        """
        # One who comes later takes the next number, and old ones are deleted in order: two questions are enough, in
        # this order, and listings are for the error.
        if not self._store.exists(_name(epoch + 1)) and self._store.exists(_name(epoch)):
            return
        last = self._last()
        if last < epoch:
            raise StoreError(f"{self._store.location}/{_name(epoch)} is gone: {DELETED}")
        if last > epoch:
            found = read_json(self._store, _name(last)) or {}
            raise FencedError(
                f"another query has taken over walLocation {self._store.location} ({found.get('owner', 'unknown')}), "
                "so this one must end. Give each query a walLocation of its own; if it is a restart of this query, "
                "make sure that the old one is stopped first"
            )

    def forget_old(self, files: Iterable[str]) -> None:
        """Delete all but the newest few. ``files``: that there are."""
        numbers = {name: leading_number(name) for name in files}
        last = max([0, *numbers.values()])
        for name in sorted(numbers):  # the oldest first: see `check`
            if 0 <= numbers[name] <= last - _KEPT:
                self._store.delete(f"{EPOCHS}/{name}")

    def _last(self) -> int:
        return max([0, *map(leading_number, self._store.list(EPOCHS))])


def _name(epoch: int) -> str:
    return f"{EPOCHS}/{epoch:08d}.json"


def _left(epoch: int) -> str:
    return f"{EPOCHS}/{epoch:08d}.left"
