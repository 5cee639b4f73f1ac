"""Messages that their broker is about to give up, because they went back too often: said before it happens, and once.

A queue that counts what goes back to it deletes a message, or dead-letters it, at a limit that the application may not
know, and for sessions that only ended: nothing has failed. So what comes within `NEAR` of it is a warning. One process
says it once of a message, over all its connections, since each of those may be one that ends.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable
from typing import Final

from redelivery.client.observing.log_lines import MESSAGES, Lines, facts, name_of, shown_destination
from redelivery.client.observing.observed import Observed
from redelivery.model.events import NearReturnLimit
from redelivery.transports.delivery import Delivery, Link, ReturnLimit

log = logging.getLogger(MESSAGES)
NEAR: Final = 3  # returns
_MOST: Final = 10_000  # messages that are remembered; then the oldest is forgotten


class Said:
    """Of which messages it was said, and how often they had come back when they were seen last. Thread-safe."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._known: OrderedDict[Hashable, int] = OrderedDict()

    def first(self, key: Hashable, returned: int) -> bool:
        """Check that it was not said of this one before; a replayed dead letter, with fewer returns, is another."""
        with self._lock:
            before = self._known.pop(key, None)
            self._known[key] = returned
            if len(self._known) > self._most:
                self._known.popitem(last=False)
            return before is None or returned < before


SAID: Final = Said()


class NearLimits:
    """Of one session, by its number."""

    def __init__(self, session: int, lines: Lines, observed: Observed | None, said: Said = SAID) -> None:
        self._session = session
        self._lines = lines
        self._observed = observed
        self._said = said

    def attached(self, link: Link) -> None:
        """A queue that gives up what goes back once leaves no time for a warning: it is said of the queue."""
        limit = link.limit
        if limit is not None and not limit.most and self._said.first(link.destination, 0):
            log.warning(
                "%s: a message that goes back to this queue once is given up (delivery-limit 0): %s%s",
                shown_destination(link.destination),
                limit.then,
                _doubt(limit),
            )

    def arrived(self, deliveries: Iterable[Delivery]) -> None:
        """Take note of arrivals, seen by the application or not."""
        for each in deliveries:
            limit = each.link.limit
            if limit is None:
                continue
            returned = each.returned()
            if returned and returned >= limit.most - NEAR and self._said.first(_key(each), returned):
                self._say(each, limit, returned)

    def _say(self, delivery: Delivery, limit: ReturnLimit, returned: int) -> None:
        place = shown_destination(delivery.link.destination)
        log.log(
            self._lines.level(logging.WARNING, f"messages of {place} near their delivery-limit"),
            "%s: it went back to its queue %d times; when it has %d times (delivery-limit %d) %s%s",
            name_of(delivery),
            returned,
            limit.most + 1,
            limit.most,
            limit.then,
            _doubt(limit),
            extra=facts(delivery, returned + 1, "delivery-limit"),
        )
        if self._observed is not None:
            self._observed.notify(NearReturnLimit(self._session, delivery, returned + 1, limit.most, limit.then))


def _key(delivery: Delivery) -> Hashable:
    """The same whatever address the broker is reached at."""
    return delivery.link.destination, delivery.identity() or delivery.fingerprint()


def _doubt(limit: ReturnLimit) -> str:
    return f" ({limit.unsure})" if limit.unsure else ""
