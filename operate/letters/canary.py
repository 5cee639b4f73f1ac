"""Checks that letters that were replayed are handled: gone from where they were sent to, and not back among the dead.

A browser of some brokers does not show what a consumer holds, so that a message is gone while it is still tried. Only
when it has been gone for as long as its policy needs to give it up, and is not back, has it been handled.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from redelivery.client.entry.sync import Connection
from redelivery.model.destinations import Destination, Topic
from redelivery.model.errors import JMSError, UnsupportedError
from redelivery.operate.letters.routes import REPLAYED
from redelivery.operate.letters.selection import Selection
from redelivery.operate.management.browsing import forget, looked_into_by
from redelivery.operate.management.interface import Management
from redelivery.policies.brokers.rules import LISTED, listed_delays
from redelivery.policies.redelivery import NO_LIMIT, RedeliveryPolicy

_APART: Final = 2.0  # seconds between the first two looks by a management
_FURTHER: Final = 2.0  # times as many between the next two
UNKNOWN: Final = 60.0
"""Seconds that are waited where the letters do not say by which policy they failed."""
_MARGIN: Final = 5.0  # seconds for the handler itself, and for the dead letter to be written
_LONGEST: Final = 86_400.0  # seconds: a letter can say anything
_OFTEN: Final = 0.5  # seconds between two looks, at most


class Sightings:
    """The canaries of one run on one queue. ``clock``: for tests.

    ``others``: how many letters stand there, and stay: a depth of so many is no reason for a look.
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


class CanaryError(JMSError):
    """A canary is back, or nobody took it: nothing else is replayed."""


@dataclass(frozen=True, slots=True)
class Progress:
    """``waiting``: still where they were sent to; ``gone``: not there; ``left``: seconds until it is decided."""

    waiting: int
    gone: int
    left: float


def needed_by(policies: Iterable[RedeliveryPolicy | None]) -> float:
    """Seconds after which the last letter would be a dead letter again that names one of these; None: it names none.

    `UNKNOWN` at least, where one of them names none.
    """
    return min(max(map(_longest, policies), default=UNKNOWN), _LONGEST)


def check_watchable(connection: Connection, targets: Iterable[Destination]) -> None:
    """Raises UnsupportedError: nobody could see whether canaries that are sent there are handled."""
    try:
        looked_into_by(connection)
    except UnsupportedError as error:
        raise UnsupportedError(
            f"--canary: it could not be seen whether a canary is handled or back, and nothing was replayed: {error}"
        ) from error
    for each in targets:
        if isinstance(each, Topic):
            raise UnsupportedError(
                f"--canary: {each} cannot be looked at, so it could not be seen whether a canary is handled; choose "
                "letters of queues by --where, or name a queue by --to; nothing was replayed"
            )


class Watch:
    """Looks at the ``count`` canaries of one run until it is known what has become of them. ``clock``, ``sleep``: for
    tests.

    ``queue``: from which they were replayed, and where they are back; ``others``: how many letters are left there.
    ``wait``: seconds within which one after the other must be taken, and then seconds for which all must be gone.
    """

    def __init__(
        self,
        connection: Connection,
        queue: Destination,
        targets: Sequence[Destination],
        run: str,
        count: int,
        wait: float,
        *,
        others: int = 0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._connection = connection
        self._queue = queue
        self._targets = tuple(dict.fromkeys(targets))
        self._run = run
        self._count = count
        self._others = others
        self._places: dict[Destination, Sightings] = {}
        self._wait = wait
        self._clock = clock
        self._sleep = sleep

    def until_handled(self, notify: Callable[[Progress], None] = lambda _: None) -> None:
        """Return when each has been taken, and has been gone for long enough.

        Raises:
            CanaryError: one is back, or is still there after so long.
            JMSError: the broker does not let us look any more.
        """
        began = seen = taken = self._clock()
        surely, fewest = False, self._count
        while True:
            now = self._clock()
            back = self._here(self._queue, surely=surely)
            if back:
                raise CanaryError(
                    f"{back} of {self._count} came back within {now - began:.3g} s: nothing else was replayed"
                )
            waiting = {each: count for each in self._targets if (count := self._here(each, surely=surely))}
            if waiting:
                seen = self._clock()
                if (number := sum(waiting.values())) < fewest:  # many are taken one after the other
                    fewest, taken = number, now
                if now - taken >= self._wait:
                    raise CanaryError(self._nobody(waiting))
            left = self._wait - (self._clock() - seen)
            if not waiting and left <= 0:
                if surely:
                    return
                surely = True
                continue
            surely = False
            number = sum(waiting.values())
            notify(Progress(number, self._count - number, left))
            took = self._clock() - now
            self._sleep(max(0.01, min(left, max(_OFTEN, took))))

    def check(self) -> None:
        """Look once, where that costs nothing. Raises CanaryError: one is back."""
        if back := self._here(self._queue, surely=False):
            raise CanaryError(f"{back} came back: nothing else was replayed")

    def _here(self, queue: Destination, *, surely: bool) -> int:
        if queue not in self._places:
            others = self._others if queue == self._queue else 0
            self._places[queue] = Sightings(self._connection, queue, self._run, others, self._clock)
        return self._places[queue].count(surely=surely)

    def _nobody(self, waiting: dict[Destination, int]) -> str:
        places = ", ".join(f"{count} on {each}" for each, count in waiting.items())
        return (
            f"nobody took {sum(waiting.values())} of {self._count} within {self._wait:g} s ({places}): start the "
            "consumer, or give one that is busy more time by --canary-wait; nothing else was replayed"
        )


def _longest(policy: RedeliveryPolicy | None) -> float:
    return UNKNOWN if policy is None or policy.maximum_redeliveries == NO_LIMIT else _duration(policy) + _MARGIN


@lru_cache(maxsize=100)
def _duration(policy: RedeliveryPolicy) -> float:
    """From the first failure to the last, at most."""
    number = policy.maximum_redeliveries
    delays = [each.most for each in listed_delays(policy.delay, number + 1)]
    return sum(delays) + (number - LISTED) * delays[-1] if number > LISTED else sum(delays)
