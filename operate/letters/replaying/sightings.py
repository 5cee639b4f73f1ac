"""Counts the canaries on a queue: by a browser as often as one likes, by a management as seldom as will do.

A look by a management costs something, and takes from the queue's consumers for a moment what it shows. The depth of a
queue costs nothing, but lags by some seconds. So there is a look where the depth gives a reason for one, further apart
each time; and a last one, whatever the depth says, before canaries are called handled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from redelivery.client.entry.sync import Connection
from redelivery.model.destinations import Destination
from redelivery.operate.letters.routes import REPLAYED
from redelivery.operate.letters.selection import Selection
from redelivery.operate.management.browsing import forget, looked_into_by
from redelivery.operate.management.interface import Management

_APART: Final = 2.0  # seconds between the first two looks by a management
_FURTHER: Final = 2.0  # times as many between the next two


class Sightings:
    """The canaries of one run on one queue.

    Args:
        others: letters that stand there, and stay: a depth of so many is no reason for a look.
        clock: for tests.
    """

    def __init__(
        self, connection: Connection, queue: Destination, run: str, others: int, clock: Callable[[], float]
    ) -> None:
        self._connection = connection
        self._selection = Selection(queue, f"{REPLAYED} = '{run}'")
        self._management: Management | None = looked_into_by(connection)
        self._quiet = others
        self._clock = clock
        self._due = clock()
        self._apart = _APART
        self._seen = 0

    def count(self, *, surely: bool = False) -> int:
        """The number of canaries there; ``surely``: by a look, whatever it costs. Raises JMSError: nobody knows."""
        if self._management is None:
            return self._count()
        if not surely:
            found = self._management.queue(self._selection.queue.name)
            depth = 0 if found is None else found.ready or 0
            if depth <= self._quiet:
                self._seen = 0
                return 0
            if self._clock() < self._due:
                return self._seen
            self._due = self._clock() + self._apart
            self._apart *= _FURTHER
        return self._count()

    def _count(self) -> int:
        forget(self._connection, self._selection.queue)
        self._seen = sum(1 for _ in self._selection.browse(self._connection))
        return self._seen
