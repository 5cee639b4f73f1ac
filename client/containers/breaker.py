"""The outage breaker: when everything fails, messages are not to be burnt on it.

CLOSED ──n failures in a row──▶ OPEN ──the interval is over──▶ PROBING ──success──▶ CLOSED
                                 ▲─────────────failure────────────┘
"""

from __future__ import annotations

from typing import Final

GO: Final = 0.0
"""What `Breaker.permit` says: take a message."""


class Breaker:
    """Of one container; seconds are monotonic. None of ``failures``: it never opens.

    ``probing``: one message is being tried, whose failure counts nowhere.
    """

    def __init__(self, failures: int | None, interval: float) -> None:
        self._failures = failures
        self._interval = interval
        self._in_a_row = 0
        self._next_probe: float | None = None
        self.probing = False

    @property
    def open(self) -> bool:
        """Whether messages are left alone, but for a probe."""
        return self._next_probe is not None

    def permit(self, now: float) -> float:
        """Seconds to wait before one asks again; `GO`: take a message, which is the probe where it is open."""
        if self._next_probe is None:
            return GO
        if self.probing:
            return self._interval
        if now < self._next_probe:
            return self._next_probe - now
        self.probing = True
        return GO

    def nothing_came(self) -> None:
        """The one who may probe got no message."""
        self.probing = False

    def succeeded(self) -> bool:
        """A message was handled. True: it closes."""
        was_open, self._next_probe = self.open, None
        self._in_a_row, self.probing = 0, False
        return was_open

    def failed(self, now: float) -> bool:
        """One failed. True: it opens now."""
        was_open = self.open
        self._in_a_row += 1
        self.probing = False
        if was_open or (self._failures is not None and self._in_a_row >= self._failures):
            self._next_probe = now + self._interval
        return self.open and not was_open
