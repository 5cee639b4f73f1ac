"""Plans how many workers a container has, counts what they do, and knows how it is: nothing here waits."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from redelivery.client.containers.breaker import Breaker, Failing, Permit
from redelivery.client.containers.outcomes import Fate, Verdict
from redelivery.client.containers.settings import Settings
from redelivery.client.observing.log_lines import WORKERS, Lines, message_facts
from redelivery.model.messages import Message
from redelivery.policies.activemq.causes import describe_cause

log = logging.getLogger(WORKERS)
AT_ONCE: Final = 0.25  # seconds: a message that comes so soon may have waited for a worker
IDLE: Final = 10.0  # seconds without a message after which a worker that is not needed ends
_MOST_PARKED: Final = 200  # messages that a worker keeps aside
_REMEMBERED: Final = 10_000  # messages whose first attempt is known


@dataclass(frozen=True, slots=True)
class Counters:
    """The counts of what a container has done since it was made.

    Attributes:
        received: messages given to the handler, redeliveries too.
        succeeded: consumed, as the handler has returned.
        failed: it raised, or the commit was refused; redelivered, or dead-lettered where the policy's limit is reached.
            In an outage (``outage_on``) it is not counted as a redelivery.
        given_up: dead-lettered at once: `DeadLetter`, a fatal exception, the deadline.
        dropped: `Drop`.
        redelivered: of those that failed, which were not dead-lettered, and are counted.
        dead_lettered: of those that failed or were given up.
        replied: replies sent, of those that succeeded.
        in_flight: in the handler now.
        workers: sessions that consume.
    """

    received: int = 0
    succeeded: int = 0
    failed: int = 0
    given_up: int = 0
    dropped: int = 0
    redelivered: int = 0
    dead_lettered: int = 0
    replied: int = 0
    in_flight: int = 0
    workers: int = 0


@dataclass(slots=True, eq=False)
class InProgress:
    """A message that a handler has now.

    Attributes:
        message_id: of the broker or the sender; None: it has none.
        worker: the name of the thread or task that runs the handler.
        since: when the handler was called, in monotonic seconds (`time.monotonic`).
        attempt: which one with this message it is, from 1.
        reported: whether a warning has been logged that it takes long.
    """

    message_id: str | None
    worker: str
    since: float
    attempt: int
    stack: Callable[[], str] = field(repr=False)
    facts: dict[str, object] = field(repr=False)
    reported: bool = False


@dataclass(frozen=True, slots=True)
class Outage:
    """The failure for which a container consumes little; see ``outage_on``.

    Attributes:
        since: when it was noticed, in UTC.
        cause: what the last handler raised then.
        failures: how many different messages had failed by such an exception, one after the other.
        interval: seconds between two messages that are tried, until one is handled.
    """

    since: datetime
    cause: BaseException
    failures: int
    interval: float

    def __str__(self) -> str:
        why = f"{self.failures} messages in a row failed, the last by {describe_cause(self.cause)}"
        waits = f"one is tried every {self.interval:g} s, until one succeeds"
        return f"in an outage since {self.since:%Y-%m-%d %H:%M:%S} UTC: {why}; {waits}"


def key_of(message: Message) -> Hashable:
    """The same for each delivery of a message; without an id, as long as this session has it."""
    return message.message_id or id(message.source)


class Plan:
    """Of one container; any of its workers may ask it. Times are monotonic seconds."""

    def __init__(self, settings: Settings) -> None:
        self.counters = Counters()
        self.last_error: BaseException | None = None
        self.lines = Lines()
        self._settings = settings
        self._breaker = Breaker(settings.outage_after, settings.probe_interval)
        self.outage: Outage | None = None
        self._lock = threading.Lock()
        self._in_progress: dict[InProgress, None] = {}
        self._firsts: OrderedDict[str, float] = OrderedDict()  # message id -> its first attempt here

    def joins(self, workers: int) -> None:
        """There are so many more workers."""
        with self._lock:
            self._add(workers=workers)

    def leaves(self) -> None:
        """There is one less."""
        with self._lock:
            self._add(workers=-1)
            found = self.counters
        if not found.workers:
            self.lines.end()
            done = f"{found.succeeded} succeeded, {found.redelivered} redelivered, {found.dead_lettered} dead-lettered"
            dropped = f", {found.dropped} dropped" if found.dropped else ""
            log.info("%s: stopped: %s%s", self._settings.name, done, dropped)

    def may_leave(self, idle: float) -> bool:
        """Let a worker leave that had nothing to do for ``idle`` seconds, where it is not needed; True: it has left."""
        with self._lock:
            if idle < IDLE or self.counters.workers <= self._settings.minimum:
                return False
            self._add(workers=-1)
            return True

    def permit(self, now: float, worker: Hashable = None) -> Permit:
        """See `Breaker.permit`."""
        with self._lock:
            return self._breaker.permit(now, worker, others=self.counters.workers > 1)

    def recalled(self, parked: int, recalls: int) -> bool:
        """Check whether a worker is to take up again what it has set aside, which is so much: see `Breaker.recalls`."""
        return (parked >= _MOST_PARKED and self.all_tried(full=True)) or (
            parked > 0 and recalls != self._breaker.recalls
        )

    def all_tried(self, *, full: bool = False) -> bool:
        """See `Breaker.all_tried`."""
        with self._lock:
            return self._breaker.all_tried(full=full)

    def outdated(self, permit: Permit) -> bool:
        """Check whether an outage began after a worker got its permit: its message is put back, unless it succeeds."""
        return self._breaker.outdated(permit)

    def nothing_came(self, permit: Permit) -> None:
        """A worker that was permitted to take a message got none."""
        with self._lock:
            self._breaker.undecided(permit)

    def takes(self, message: Message, now: float, waited: float) -> bool:
        """A worker has got a message after so many seconds.

        True: that was soon, and all the others are busy, so there is to be another worker, which has joined.
        """
        with self._lock:
            self._add(received=1, in_flight=1)
            if self._settings.deadline is not None and message.message_id is not None:
                self._firsts.setdefault(message.message_id, now)
                if len(self._firsts) > _REMEMBERED:
                    self._firsts.popitem(last=False)
            found = self.counters
            busy = found.in_flight >= found.workers and waited < AT_ONCE and self.outage is None
            if not busy or found.workers >= self._settings.maximum:
                return False
            self._add(workers=1)
            return True

    @property
    def in_progress(self) -> tuple[InProgress, ...]:
        """The messages that handlers have now, the longest first."""
        return tuple(self._in_progress)

    def begins(self, message: Message, now: float, worker: str, stack: Callable[[], str]) -> InProgress:
        """A handler is called. ``stack``: where it is, for the log."""
        facts = message_facts(message, "the handler takes long")
        found = InProgress(message.message_id, worker, now, message.delivery_count, stack, facts)
        self._in_progress[found] = None
        return found

    def returned(self, work: InProgress) -> None:
        """Note that the handler has returned, or raised."""
        self._in_progress.pop(work, None)

    def warn_of_slow(self, now: float, limit: float) -> float:
        """Log each handler that has run for longer than ``limit`` seconds, once. Returns when to ask again."""
        wait = limit / 4
        for each in self.in_progress:
            if each.reported:
                continue
            took = now - each.since
            if took < limit:
                wait = min(wait, limit - took)
                continue
            each.reported = True
            log.warning(
                "%s: the handler has had %s for %.3g s, in %s:\n%s",
                self._settings.name,
                each.message_id,
                took,
                each.worker,
                each.stack(),
                extra=each.facts,
            )
        return wait

    def overdue(self, message: Message, now: float) -> str | None:
        """Why it is not redelivered any more, where its time for all attempts has passed."""
        deadline, first = self._settings.deadline, self._firsts.get(message.message_id or "")
        if deadline is None or first is None or now - first < deadline:
            return None
        return f"the deadline of {deadline:g} s for all attempts has passed"

    def failing(self, message: Message, permit: Permit, cause: BaseException, now: float, *, dies: bool) -> int | None:
        """A handler has failed as in an outage; ``dies``: to count that would dead-letter the message.

        Returns None where it is counted. Otherwise the message is set aside, and this is `BaseLane.recalls`.
        """
        with self._lock:
            found = self._breaker.failed(permit, key_of(message), now, dies=dies)
            if found is Failing.OPENS:
                settings = self._settings
                self.outage = Outage(datetime.now(UTC), cause, settings.outage_after or 1, settings.probe_interval)
            recalls, outage = self._breaker.recalls, self.outage
        if found is Failing.OPENS:
            log.warning("%s: %s", self._settings.name, outage)
        return None if found is Failing.COUNTED else recalls

    def ends(self, message: Message, permit: Permit, verdict: Verdict, *, replied: bool, dead: bool = False) -> None:
        """A worker has done with a message; ``dead``: it was dead-lettered."""
        again = verdict.fate is Fate.FAILED and not verdict.parked and not dead
        with self._lock:
            if not verdict.commits:
                self.last_error = verdict.cause
            self._add(in_flight=-1, replied=int(replied), redelivered=int(again), dead_lettered=int(dead))
            self._add(**{verdict.fate.value: 1})
            if verdict.fate is not Fate.FAILED:
                self._firsts.pop(message.message_id or "", None)
            if verdict.fate is not Fate.SUCCEEDED:
                outage = None if verdict.outage else key_of(message)
                self._breaker.undecided(permit, outage)  # it says nothing of an outage
            elif self._breaker.succeeded(permit, key_of(message)):
                log.info("%s: a message was handled, so it is over: %s", self._settings.name, self.outage)
                self.outage = None

    def abandons(self, permit: Permit) -> None:
        """A worker has put its message back: its handler was interrupted."""
        with self._lock:
            self._add(in_flight=-1)
            self._breaker.undecided(permit)

    def trouble(self, error: BaseException, *, expected: bool = False) -> None:
        """A worker's session has failed; ``expected``: as the connection is being closed."""
        self.last_error = error
        name = self._settings.name
        warning = logging.DEBUG if expected else logging.WARNING
        level = self.lines.level(warning, f"{name}: workers' sessions failed")
        log.log(level, "%s: a worker's session failed: %s", name, error)

    def say_undone(self, error: BaseException) -> None:
        """A commit was refused, or is in doubt."""
        name = self._settings.name
        log.log(self.lines.level(logging.WARNING, f"{name}: commits failed"), "%s: %s", name, error)

    def _add(self, **more: int) -> None:
        self.counters = replace(
            self.counters, **{name: getattr(self.counters, name) + number for name, number in more.items()}
        )
