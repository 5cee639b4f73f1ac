"""A replay that begins with a few letters, and sends ten times as many each time that none of them is back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from redelivery.client.entry.sync import Connection
from redelivery.model.destinations import Destination
from redelivery.operate.letters.canary import CanaryError, Progress, Watch, needed_by
from redelivery.operate.letters.moving import MovePlan
from redelivery.operate.letters.replaying.planned import PlannedReplay, PlannedReplays, fingerprints_of
from redelivery.operate.letters.routes import REPLAYED
from redelivery.operate.letters.selection import Selection
from redelivery.operate.management.browsing import browsed, looked_into_by

WIDER: Final = 10  # times as many letters as in the stage before
_APART: Final = 1.0  # seconds between two looks while letters are sent

Move: TypeAlias = Callable[[MovePlan, Callable[[int], None]], int]
"""Moves a part of a plan, and calls the other after each batch with how many of it have left, which may raise
CanaryError. Returns how many have left."""
WatchingStage: TypeAlias = Callable[[int, float], AbstractContextManager[Callable[[Progress], None]]]
"""Shows that so many are watched, for so many seconds."""


def not_shown(_count: int, _wait: float) -> AbstractContextManager[Callable[[Progress], None]]:
    """Show nothing."""
    return nullcontext(lambda _: None)


@dataclass(frozen=True, slots=True)
class Canary:
    """The stages of a replay: ``first`` letters, then ten times as many, and so on; the last one is all the rest.

    ``wait``: seconds within which letters of a stage must be taken, one after the other, and then be gone; None: those
    that the policies need by which they failed.
    """

    first: int
    wait: float | None = None

    @classmethod
    def asked(cls, asked: Mapping[str, Any]) -> Canary | None:
        """Return the one of a receipt; None: it was a replay without one."""
        return None if asked.get("canary") is None else cls(asked["canary"], asked.get("canary_wait"))

    def end(self, sent: int) -> int:
        """Return how many are sent at the end of the stage to which the last of so many belongs."""
        end = size = self.first
        while end < sent:
            size *= WIDER
            end += size
        return end


class Widening:
    """A replay in stages, of which the next one begins when all letters until then have been handled.

    ``run``: its name, see `routes.REPLAYED`. ``move``: sends a part of them. ``watching``: shows that one waits.
    ``sent``: how many were before, where a run is gone on with; ``targets``: and where to.
    """

    def __init__(
        self,
        connection: Connection,
        queue: Destination,
        canary: Canary,
        run: str,
        move: Move,
        *,
        watching: WatchingStage = not_shown,
        sent: int = 0,
        targets: Iterable[Destination] = (),
    ) -> None:
        self._connection = connection
        self._queue = queue
        self._canary = canary
        self._run = run
        self._move = move
        self._watching = watching
        self._costs = looked_into_by(connection) is not None
        self._before = sum(1 for _ in browsed(connection, queue)) + sent if self._costs else 0
        self._targets = dict.fromkeys(targets)
        self._failed: set[str] = set()
        self._due = 0.0
        self.sent = sent
        self.left = 0

    def replay(self, planned: MovePlan, letters: PlannedReplays) -> None:
        """Send all of them, unless one is back, or nobody takes them.

        Raises:
            CanaryError: as `Watch.until_handled`; it says how many were sent, and how many are left.
            JMSError: the broker refused.
        """
        self.left = len(planned.ids)
        try:
            if self.sent and self.left and self.sent == self._canary.end(self.sent):
                self._watch(letters)
            while self.left:
                at = len(planned.ids) - self.left
                end = self._canary.end(self.sent + 1)
                part = slice(at, min(at + end - self.sent, len(planned.ids)))
                self._send(replace(planned, ids=planned.ids[part]), letters[part])
                if self.sent and (self.left or end == self._canary.first):
                    self._watch(letters[part])
        except CanaryError as error:
            raise CanaryError(f"{error}; {self.sent} sent, {self.left} remaining{self._first_back()}") from None

    def _send(self, part: MovePlan, letters: Iterable[PlannedReplay]) -> None:
        self._targets |= dict.fromkeys(each.target for each in letters)
        self._failed |= {name for each in letters for name in each.fingerprints}
        before, left = self.sent, self.left
        watch = self._watch_for(0.0) if before and not self._costs else None

        def moved(count: int) -> None:
            self.sent, self.left = before + count, left - count
            if watch is not None and time.monotonic() >= self._due:
                watch.check()
                self._due = time.monotonic() + _APART

        count = self._move(part, moved)
        self.sent, self.left = before + count, left - len(part.ids)

    def _watch(self, letters: Iterable[PlannedReplay]) -> None:
        wait = self._canary.wait
        seconds = needed_by(each.policy for each in letters) if wait is None else wait
        with self._watching(self.sent, seconds) as shown:
            self._watch_for(seconds).until_handled(shown)

    def _watch_for(self, seconds: float) -> Watch:
        others = max(0, self._before - self.sent)
        targets = tuple(self._targets)
        return Watch(self._connection, self._queue, targets, self._run, self.sent, seconds, others=others)

    def _first_back(self) -> str:
        """Return the failure of the first that is back, for people."""
        letter = next(Selection(self._queue, f"{REPLAYED} = '{self._run}'").browse(self._connection), None)
        said = None if letter is None else letter.dead_letter
        if letter is None or said is None:
            return ""
        same = not self._failed.isdisjoint(fingerprints_of(said))
        what = "as before" if same else "which is another failure than before"
        return f"; the first that is back: {said.exception or said.cause or 'no cause'}, {what}"
