"""An observer of the engine that knows of each message where it is, and that it could be there."""

from __future__ import annotations

from typing import Final

from redelivery.broker.engine.entries import Entry
from redelivery.broker.engine.subscriptions import Dispatch
from redelivery.model.destinations import Destination

DEAD: Final = "ActiveMQ.DLQ"


class Lives:
    """Notified by the engine; where each message is by that."""

    def __init__(self) -> None:
        self.waiting: set[Entry] = set()
        self.in_flight: set[Entry] = set()

    def enqueued(self, entry: Entry) -> None:
        assert entry not in self.waiting | self.in_flight
        self.waiting.add(entry)

    def dispatched(self, dispatch: Dispatch) -> None:
        self.waiting.remove(dispatch.entry)
        self.in_flight.add(dispatch.entry)

    def acknowledged(self, dispatch: Dispatch) -> None:
        self.in_flight.remove(dispatch.entry)

    def released(self, dispatch: Dispatch) -> None:
        self.in_flight.remove(dispatch.entry)
        self.waiting.add(dispatch.entry)

    def expired(self, entry: Entry) -> None:
        assert (entry in self.waiting) != (entry in self.in_flight)

    def dead_lettered(self, entry: Entry, reason: str, where: Destination) -> None:
        assert str(where) == f"queue://{DEAD}"
        assert reason
        self._gone(entry)

    def discarded(self, entry: Entry, reason: str) -> None:
        assert reason
        self._gone(entry)

    def committed(self, sent: int, received: int) -> None:
        """Of what is in it there was an event before."""

    def _gone(self, entry: Entry) -> None:
        assert (entry in self.waiting) != (entry in self.in_flight)
        self.waiting.discard(entry)
        self.in_flight.discard(entry)
