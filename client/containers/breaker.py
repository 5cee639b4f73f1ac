"""The outage breaker: when everything fails, messages are not to be burnt on it.

CLOSED ──n failures in a row──▶ OPEN ──the interval is over──▶ PROBING ──success──▶ CLOSED
                                 ▲─────────────failure────────────┘

A worker takes each message by a turn. Only the turn that is the probe decides whether an outage is over: what other
workers had in hand when it began says nothing about that, and its failures are no failures of the messages'.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """What a worker may do next.

    Attributes:
        wait: seconds to wait before it asks again; 0: it may take a message.
        outages: how many there had been when it was given.
        probe: whether its message is the one that is tried meanwhile.
    """

    wait: float
    outages: int
    probe: bool = False


class Breaker:
    """Of one container; seconds are monotonic. None of ``failures``: it never opens."""

    def __init__(self, failures: int | None, interval: float) -> None:
        self._failures = failures
        self._interval = interval
        self._in_a_row = 0
        self._next_probe: float | None = None
        self._go = Turn(0.0, 0)  # of every worker, while it is closed
        self._probe: Turn | None = None  # the one that was given, until it is known what came of it

    @property
    def open(self) -> bool:
        """Whether messages are left alone, but for a probe."""
        return self._next_probe is not None

    def permit(self, now: float) -> Turn:
        """A turn; where it is open, one at a time is the probe, and the others wait."""
        if self._next_probe is None:
            return self._go
        if self._probe is not None:
            return Turn(self._interval, self._go.outages)
        if now < self._next_probe:
            return Turn(self._next_probe - now, self._go.outages)
        self._probe = Turn(0.0, self._go.outages, probe=True)
        return self._probe

    def outdated(self, turn: Turn) -> bool:
        """Whether an outage began after the turn was given: it decides nothing, and its failure counts nowhere."""
        return turn.outages != self._go.outages

    def undecided(self, turn: Turn) -> None:
        """No message came, or what became of it says nothing of an outage: another one may be the probe."""
        if turn is self._probe:
            self._probe = None

    def succeeded(self, turn: Turn) -> bool:
        """A message was handled. True: it closes."""
        if self.outdated(turn):
            return False
        self._in_a_row = 0
        if not turn.probe:
            return False
        self._next_probe = self._probe = None
        return True

    def failed(self, turn: Turn, now: float) -> bool:
        """One failed. True: it opens now."""
        if self.outdated(turn):
            return False
        self._in_a_row += 1
        if turn.probe:
            self._probe, self._next_probe = None, now + self._interval
            return False
        if self._failures is None or self._in_a_row < self._failures:
            return False
        self._go = Turn(0.0, self._go.outages + 1)
        self._next_probe = now + self._interval
        return True
