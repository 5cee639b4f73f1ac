"""The outage breaker: when what handlers need is away, messages are not to be burnt on it.

CLOSED ──n messages failed in a row──▶ OPEN ──the interval is over──▶ PROBING ──success──▶ CLOSED
                                        ▲─────────────failure────────────┘

An outage is not poison. Only failures that the application calls an outage's (``outage_on``) come here, and no message
is dead-lettered by one of these unless another has succeeded since it failed, or nothing else is there to be tried:

1. A message that fails again is no news: so many different ones must have failed, one after the other.
2. One that would be dead-lettered is set aside instead, uncounted, and the next ones are tried; so is the one that
   opens it, a probe that fails, and what other workers were handling when it opened.
3. Each probe is another message, and another worker's, in turn. What was set aside comes back when all have been tried.
4. When one succeeds, what was set aside has failed while others succeeded: it is no news of an outage any more. It
   comes back, and its next failure may dead-letter it, unless another message has failed meanwhile.
5. Where nothing else is there to be tried, and too few have failed for an outage, the same follows.

A worker takes each message with a permit. Only the permit that is the probe decides whether an outage is over: what
other workers were handling when it began says nothing about that.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum
from typing import Final

_REMEMBERED: Final = 10_000  # messages that have failed while others succeeded
_GRACE: Final = 1.0  # seconds at most that a worker leaves the next probe to the others


@dataclass(frozen=True, slots=True, eq=False)
class Permit:
    """The permission for a worker's next step.

    ``wait``: seconds before it asks again; 0: it may take a message. ``outages``: how many there had been when it was
    given. ``probe``: its message is the one that is tried meanwhile.
    """

    wait: float
    outages: int
    probe: bool = False


class Failing(Enum):
    """The meaning, for its message, of a failure that an outage may be the reason of."""

    COUNTED = "by its redelivery policy"
    PARKED = "uncounted, and others are tried first"
    OPENS = "the same, and the outage begins"


class Breaker:
    """Of one container; seconds are monotonic. None of ``failures``: it never opens.

    ``recalls``: how often what was set aside has been asked back.
    """

    def __init__(self, failures: int | None, interval: float) -> None:
        self._failures = failures
        self._interval = interval
        self.recalls = 0
        self._row: set[Hashable] = set()  # failed since the last success
        self._parked: set[Hashable] = set()
        # failed while others succeeded; whether the next failure may dead-letter it
        self._known: OrderedDict[Hashable, bool] = OrderedDict()
        self._next_probe: float | None = None
        self._go = Permit(0.0, 0)  # of every worker, while it is closed
        self._probe: Permit | None = None  # the one that was given, until it is known what came of it
        self._probed: set[Hashable] = set()  # workers that have had a probe since all others had one

    @property
    def open(self) -> bool:
        """True: messages are left alone, but for a probe."""
        return self._next_probe is not None

    def permit(self, now: float, worker: Hashable = None, *, others: bool = False) -> Permit:
        """A permit; where it is open, one at a time is the probe, and the others wait.

        ``others``: there are other workers, which probe before the same one does again, if they can.
        """
        if self._next_probe is None:
            return self._go
        if self._probe is not None:
            return Permit(self._interval, self._go.outages)
        again = worker in self._probed
        due = self._next_probe + (min(self._interval, _GRACE) if again and others else 0.0)
        if now < due:
            return Permit(due - now, self._go.outages)
        if again:
            self._probed.clear()
        self._probed.add(worker)
        self._probe = Permit(0.0, self._go.outages, probe=True)
        return self._probe

    def outdated(self, permit: Permit) -> bool:
        """Check whether an outage began after the permit was given: it decides nothing, its failure never counts."""
        return permit.outages != self._go.outages

    def undecided(self, permit: Permit, key: Hashable = None) -> None:
        """No message came, or what became of it says nothing of an outage: another one may be the probe."""
        self._row.discard(key)
        if permit is self._probe:
            self._probe = None

    def succeeded(self, permit: Permit, key: Hashable) -> bool:
        """A message was handled. True: it closes."""
        self._row.discard(key)
        self._parked.discard(key)
        self._known.pop(key, None)
        if self.outdated(permit):
            return False
        self._accuse()
        if not permit.probe:
            return False
        self._next_probe = self._probe = None
        self._probed.clear()
        return True

    def all_tried(self, *, full: bool) -> bool:
        """A worker that has set some aside has nothing else to try (or, ``full``, keeps no more). True: they come back.

        False: they wait for what happens to others that have failed and are still to be redelivered.
        """
        if not self.open:
            if not full and not self._row <= self._parked:
                return False
            self._accuse()
        return True

    def failed(self, permit: Permit, key: Hashable, now: float, *, dies: bool) -> Failing:
        """One failed; ``dies``: to count that would dead-letter it."""
        if self.outdated(permit):
            return self._park(key)
        if permit.probe:
            self._probe, self._next_probe = None, now + self._interval
            return self._park(key)
        if self._failures is None:
            return Failing.COUNTED
        if key not in self._known:
            self._row.add(key)
            if len(self._row) >= self._failures:
                self._go = Permit(0.0, self._go.outages + 1)
                self._next_probe = now + self._interval
                self._park(key)
                return Failing.OPENS
        if dies and (self._row or not self._known[key]):
            return self._park(key)
        if dies:
            del self._known[key]
        elif key in self._known:
            self._known[key] = False
        return Failing.COUNTED

    def _accuse(self) -> None:
        """Others have succeeded since these failed, or there are no others."""
        self._row.clear()
        if not self._parked:
            return
        self._known.update(dict.fromkeys(self._parked, True))
        self._parked.clear()
        self.recalls += 1
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)

    def _park(self, key: Hashable) -> Failing:
        self._parked.add(key)
        return Failing.PARKED
