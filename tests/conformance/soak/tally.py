"""What was sent and handled, in a few bytes for each number: nothing that grows with the messages."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Mapping
from time import monotonic
from typing import Any, Final

from redelivery.events import (
    Acknowledged,
    ConnectionLost,
    DeadLettered,
    Discarded,
    Event,
    InDoubt,
    Reconnected,
    Released,
    RolledBack,
)

MOST_MESSAGES: Final = 1 << 20
BEFORE: Final = 1.0  # seconds before a fault: what was written then may not have been read by the broker
# Why a message that was handled may be redelivered; a bit each.
DOUBT, LOST, UNDONE, UNCONFIRMED = 1, 2, 4, 8
CAUSES: Final[Mapping[str, int]] = {
    "in doubt": DOUBT,
    "uncommitted": LOST,
    "rolled back": UNDONE,
    "ack lost": UNCONFIRMED,
}


class Tally:
    """How often each number was seen."""

    def __init__(self) -> None:
        self._counts = bytearray(MOST_MESSAGES)
        self._lock = threading.Lock()
        self.different = 0

    def add(self, number: int) -> None:
        with self._lock:
            self.different += not self._counts[number]
            self._counts[number] = min(self._counts[number] + 1, 255)

    def without(self, other: Tally) -> list[int]:
        """What was seen here, and not there."""
        with self._lock, other._lock:
            both = enumerate(zip(self._counts, other._counts, strict=True))
            return [number for number, (mine, others) in both if mine and not others]

    def more_than_once(self) -> dict[int, int]:
        """Numbers, and how often each was seen."""
        with self._lock:
            return {number: count for number, count in enumerate(self._counts) if count > 1}


class Handled(Tally):
    """What was handled, and why again: an observer of the receiving connection.

    A handling ends with an event. One that is acknowledged is the last; after one that is in doubt, or was not
    committed, the message may be redelivered. ``confirmed``: the broker confirms acknowledgements. Elsewhere one that
    was written shortly before a connection was lost may be lost with it.
    """

    def __init__(self, *, confirmed: bool) -> None:
        super().__init__()
        self._confirmed = confirmed
        self._working: dict[int, tuple[Any, int]] = {}  # by the identity of the delivery, which is kept
        self._excuses = bytearray(MOST_MESSAGES)
        self._causes = bytearray(MOST_MESSAGES)
        self._final = bytearray(MOST_MESSAGES)
        self._acknowledged: deque[tuple[float, int]] = deque(maxlen=10_000)
        self._after_the_last: set[int] = set()
        self._fault = monotonic()
        self.events: Counter[type] = Counter()

    def handle(self, number: int, source: object) -> None:
        """The application has it."""
        self.add(number)
        with self._lock:
            self._working[id(source)] = source, number
            if self._final[number]:
                self._after_the_last.add(number)

    def fault(self) -> None:
        """One begins."""
        self._fault = monotonic()

    def __call__(self, event: Event) -> None:
        with self._lock:
            self.events[type(event)] += 1
            match event:
                case InDoubt():
                    for message in event.received:
                        self._ends(message.source, DOUBT)
                case Released():
                    self._ends(event.source, LOST)
                case RolledBack() | DeadLettered() | Discarded():
                    self._ends(event.source, UNDONE)
                case Acknowledged():
                    self._ends(event.source, 0)
                case ConnectionLost() | Reconnected() if not self._confirmed:
                    self._lose()

    def check(self) -> None:
        """See Lives."""

    def causes(self) -> dict[str, int]:
        """Of the messages that were handled more than once, how many for each cause; one may have two."""
        again = self.more_than_once()
        return {name: sum(bool(self._causes[number] & bit) for number in again) for name, bit in CAUSES.items()}

    def unexplained(self) -> list[int]:
        """Numbers that were handled again, and nothing says why."""
        again = self.more_than_once()
        return [
            number
            for number, count in again.items()
            if count > 1 + self._excuses[number]
            or (number in self._after_the_last and not self._causes[number] & UNCONFIRMED)
        ]

    def _ends(self, source: object, cause: int) -> None:
        _, number = self._working.pop(id(source), (None, None))
        if number is None:
            return  # it was prefetched only
        if cause:
            self._excuse(number, cause)
            return
        self._final[number] = 1
        if not self._confirmed:
            self._acknowledged.append((monotonic(), number))

    def _lose(self) -> None:
        while self._acknowledged:
            when, number = self._acknowledged.popleft()
            if when > self._fault - BEFORE:
                self._excuse(number, UNCONFIRMED)

    def _excuse(self, number: int, cause: int) -> None:
        self._excuses[number] = min(self._excuses[number] + 1, 255)
        self._causes[number] |= cause


def text_of(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "none"
