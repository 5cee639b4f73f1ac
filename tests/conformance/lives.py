"""An observer for every connection of the suite: what it is given must be a life that a message can have."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Final

from redelivery import events
from redelivery.events import (
    Acknowledged,
    AcknowledgedTooLate,
    DeadLettered,
    Delivered,
    Discarded,
    Event,
    Expired,
    MessageEvent,
    NearReturnLimit,
    Released,
    RolledBack,
)

# Event -> what may have come before it in the same session; None: nothing.
_AFTER: Final[Mapping[type[MessageEvent], tuple[type[MessageEvent] | None, ...]]] = {
    Delivered: (None, RolledBack, Released),
    Acknowledged: (Delivered,),
    RolledBack: (Delivered,),
    AcknowledgedTooLate: (Released,),
    Released: (None, Delivered, Released, RolledBack),
    Expired: (None, Released, RolledBack),
    DeadLettered: (None, Delivered, RolledBack, Released, Expired),
    Discarded: (None, Delivered, RolledBack, Released, Expired),
}


class Lives:
    """Called with events of any session, from any thread; `check` fails where they were not such lives."""

    def __init__(self) -> None:
        self.problems: list[str] = []  # of which there should be none
        self.seen: list[Event] = []
        self._last: dict[tuple[int, int], MessageEvent] = {}
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        with self._lock:
            self.seen.append(event)
            if isinstance(event, MessageEvent) and not isinstance(event, NearReturnLimit):
                self._check(event)

    def check(self) -> None:
        assert not self.problems, self.problems

    def _check(self, event: MessageEvent) -> None:
        key = event.session, id(event.source)  # `seen` keeps it, so no other gets its id
        last = self._last.get(key)
        self._last[key] = event
        if (None if last is None else type(last)) not in _AFTER[type(event)]:
            self.problems.append(f"{event} after {last}")
        elif last is not None:
            more = int(isinstance(event, Delivered) and isinstance(last, RolledBack))
            more -= isinstance(event, (Expired, DeadLettered, Discarded)) and isinstance(last, Released)
            if event.delivery_count != last.delivery_count + more:
                self.problems.append(f"the count of {event} after {last}")
        if isinstance(event, RolledBack) and event.again_at.tzinfo is None:
            self.problems.append(f"{event}: no time zone")

    def of(self, *kinds: type[object]) -> list[Event]:
        """The events of these classes, or all that are about messages."""
        return [event for event in self.seen if isinstance(event, kinds or events.MessageEvent)]
