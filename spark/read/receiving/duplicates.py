"""Finds those of the messages that arrive which are in a segment already.

A message is dropped if one with its id and digest is in a segment whose session may not have committed; without an
id its digest alone has to agree, and without a time as well the broker must say that it was delivered before: nothing
else distinguishes a tick or a heartbeat from the one before it. Equal messages are counted: of three of which one is in
such a segment one is dropped, until that one is known to be gone from the broker. What a release before this one has
written down has no digest, and is known by its id.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final, Protocol

from redelivery.spark.rows.digests import Key
from redelivery.transports.wire.clock import monotonic

PATIENCE: Final = 1.0  # seconds; a session that lives has marked its segment by then
_LOOK: Final = 0.02


class SegmentsInDoubt(Protocol):
    """The segments whose messages may be redelivered."""

    def in_doubt(self) -> Mapping[str, Sequence[Key]]:
        """The keys of each, by its name. Ask after the messages that are looked up have arrived."""

    def confirmed(self, name: str) -> bool:
        """Check whether its session is known by now to have committed."""


class Duplicates:
    """The duplicates of one session, in one thread, among the ``known`` segments.

    ``stopped``: set when nobody wants the messages any more. ``patience``: seconds that a segment of somebody else is
    given until it is marked.
    """

    def __init__(self, known: SegmentsInDoubt, stopped: threading.Event, patience: float = PATIENCE) -> None:
        self._known = known
        self._stopped = stopped
        self._patience = patience
        self._waited: set[str] = set()  # for these segments
        self._dropped: Counter[Key] = Counter()  # in this transaction
        self._gone: Counter[Key] = Counter()  # dropped, and no longer at the broker

    def places(self, keys: Sequence[Key], new: Collection[int] = ()) -> list[int]:
        """The places of the keys that are to be dropped; none of those at the places ``new``."""
        segments = self._known.in_doubt()
        if not segments:
            return []
        places = self._matches(keys, segments, new)
        if places and self._settle(segments, {self._as_known(keys[place], segments) for place in places}):
            places = self._matches(keys, self._known.in_doubt(), new)
        self._dropped.update(keys[place] for place in places)
        return places

    def committed(self) -> None:
        """Count the messages dropped in this transaction, which will not be redelivered."""
        self._gone += self._dropped
        self._dropped.clear()

    def rolled_back(self) -> None:
        """Forget the messages dropped in this transaction, which will or may be redelivered."""
        self._dropped.clear()

    def _matches(self, keys: Sequence[Key], segments: Mapping[str, Sequence[Key]], new: Collection[int]) -> list[int]:
        left = Counter(key for each in segments.values() for key in each)
        self._gone &= left  # what no segment has any more is forgotten
        left -= self._gone
        left -= self._dropped
        places = []
        for place, key in enumerate(keys):
            if place in new:
                continue
            for known in (key, (key[0], None)):
                if left[known] > 0:
                    left[known] -= 1
                    places.append(place)
                    break
        return places

    @staticmethod
    def _as_known(key: Key, segments: Mapping[str, Sequence[Key]]) -> Key:
        return key if any(key in each for each in segments.values()) else (key[0], None)

    def _settle(self, segments: Mapping[str, Sequence[Key]], wanted: set[Key]) -> bool:
        """Wait until one of the segments that have a wanted key turns out to be committed; False where none does.

        Another task or lane publishes, commits and then marks. An equal message that arrives in between is a new one.
        """
        open_ = [name for name, keys in segments.items() if name not in self._waited and not wanted.isdisjoint(keys)]
        until = monotonic() + self._patience
        settled = False
        while open_:
            done = [name for name in open_ if self._known.confirmed(name)]
            settled = settled or bool(done)
            open_ = [name for name in open_ if name not in done]
            if not open_ or monotonic() >= until or self._stopped.wait(_LOOK):
                break
        self._waited.update(open_)
        return settled
