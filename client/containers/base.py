"""A listener container, but for its calls that wait."""

from __future__ import annotations

import logging
import sys
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final, Protocol

from redelivery.client.containers.breaker import Turn
from redelivery.client.containers.lanes import BaseLane
from redelivery.client.containers.outcomes import Fate, Verdict, judge, say
from redelivery.client.containers.plan import Counters, InProgress, Outage, Plan
from redelivery.client.containers.settings import Settings
from redelivery.client.observing.log_lines import WORKERS, shown_destination
from redelivery.model.destinations import Destination
from redelivery.model.errors import IllegalStateError, JMSError
from redelivery.model.messages import Message
from redelivery.policies.redelivery import NO_LIMIT
from redelivery.transports.wire.clock import session_time

log = logging.getLogger(WORKERS)
POLL: Final = 1.0  # seconds that a worker waits for a message before it looks at everything else


class Connected(Protocol):
    """What a container needs of a connection, beside its sessions."""

    @property
    def connected(self) -> bool:
        """Whether it is there."""

    def check_open(self, action: str) -> None:
        """Raise where it is closed or lost."""

    def stuck(self, destination: Destination) -> int:
        """How many messages of a consumer's destination cannot be dead-lettered now."""


class Stopping(Protocol):
    """An event of threads or of tasks."""

    def is_set(self) -> bool:
        """Whether the container takes nothing new."""


class BaseContainer:
    """Of threads and of tasks."""

    _stopping: Stopping
    _lanes: Collection[BaseLane]  # of the workers

    def __init__(self, connection: Connected, settings: Settings) -> None:
        self._connection = connection
        self._settings = settings
        self._plan = Plan(settings)
        self._started = False
        self._exit: BaseException | None = None  # what ended it: of the connection, or an exit of the handler's

    @property
    def counters(self) -> Counters:
        """What it has done until now."""
        return self._plan.counters

    @property
    def in_progress(self) -> tuple[InProgress, ...]:
        """What handlers have now, the longest first; see ``handler_warning_after``."""
        return self._plan.in_progress

    @property
    def attempts(self) -> int:
        """The most attempts that it has needed with a message which is in the handler now; 0: none is."""
        return self._plan.attempts

    @property
    def last_error(self) -> BaseException | None:
        """The last failure of the handler, of a commit or of a session; None: there was none."""
        return self._plan.last_error

    @property
    def healthy(self) -> bool:
        """Whether it consumes: started, connected, with at least one worker, and not in an outage: see `outage`.

        False too while the broker has ended its workers' consumers (its queue was deleted, say), and while a message of
        its destination cannot be dead-lettered, on this connection.
        """
        running = self._started and not self._stopping.is_set() and self.counters.workers > 0
        if not running or not self._connection.connected or self.outage is not None:
            return False
        if all(each.consumer.closed for each in tuple(self._lanes)):
            return False
        return not self._connection.stuck(self._settings.destination)

    @property
    def outage(self) -> Outage | None:
        """Since when it is in an outage, why, and what it waits for; None: it is in none, or knows of none.

        Only ``outage_on`` says what an outage looks like.
        """
        return self._plan.outage

    def check_ended(self) -> bool:
        """Whether it has ended by itself. Raises what ended it."""
        if self._exit is not None:
            raise self._exit
        return self._started and self.counters.workers == 0

    def __repr__(self) -> str:
        state = "stopped" if self._stopping.is_set() else "started" if self._started else "not started"
        return f"<ListenerContainer {self._settings.destination} {self._settings.name} {state}>"

    def _check_start(self) -> bool:
        """Whether it is to be started. Raises IllegalStateError: it was stopped."""
        if self._stopping.is_set():
            raise IllegalStateError("start: the listener container was stopped; make another one")
        return not self._started

    def _begins(self, lanes: Sequence[BaseLane]) -> None:
        """It has these workers, all of them, before one of them can find that there are too few."""
        self._started = True
        self._plan.joins(len(lanes))
        settings, policy = self._settings, lanes[0].consumer.redelivery_policy
        few, most, limit = settings.minimum, settings.maximum, policy.maximum_redeliveries
        log.info(
            "%s: listening on %s, %s, %s",
            settings.name,
            shown_destination(settings.destination),
            f"{few}\u2013{most} workers" if few < most else "1 worker" if most == 1 else f"{most} workers",
            "no limit" if limit == NO_LIMIT else f"limit {limit}",
        )

    def _check_connection(self) -> bool:
        """False: no worker gets another session, since the connection is closed or lost for good."""
        try:
            self._connection.check_open("listener container")
        except JMSError as error:
            if not self._stopping.is_set():
                self._session_failed(error)
                self._exit = self._exit or error
            return False
        return True

    def _session_failed(self, error: JMSError) -> None:
        """A worker's has. That is no news where this was stopped, or the application closes the connection."""
        if self._stopping.is_set():
            return
        closed = isinstance(error, IllegalStateError)
        if not closed:
            try:
                self._connection.check_open("listener container")
            except IllegalStateError:
                closed = True
            except JMSError:
                pass
        self._plan.trouble(error, expected=closed)

    def _nothing_came(self, lane: BaseLane, turn: Turn, idle: float) -> float | None:
        """A worker got no message, for ``idle`` seconds: how long it pauses; None: it is not needed, and has left."""
        self._plan.nothing_came(turn)
        if lane.parked and not lane.waits and self._plan.all_tried():
            lane.recalls = -1  # they come next
            return 0.0
        if not lane.unfinished and self._plan.may_leave(idle):
            return None
        return min(self._settings.probe_interval, POLL) if turn.probe else 0.0

    def _is_renewed(self, lane: BaseLane, served: int) -> bool:
        """Whether a worker takes a new session after so many messages; not while that would forget what has failed."""
        return served >= (self._settings.max_messages or sys.maxsize) and not lane.unfinished

    def _judge(self, message: Message, result: object, failure: Exception | None) -> Verdict:
        """What follows where the handler has returned, or raised."""
        settings = self._settings
        overdue = self._plan.overdue(message, session_time())
        verdict = judge(
            result,
            failure,
            fatal=settings.fatal,
            overdue=overdue,
            retry_on=settings.retry_on,
            outage_on=settings.outage_on,
        )
        if not verdict.outage:
            say(message, verdict, self._plan.lines)
        return verdict

    def _in_outage(self, lane: BaseLane, message: Message, verdict: Verdict, turn: Turn) -> Verdict:
        """The same, where an outage may be the reason of a failure: whether it counts."""
        if not verdict.outage or verdict.cause is None:
            return verdict
        dies = lane.dies() or verdict.ruling.give_up is not None
        recalls = self._plan.failing(message, turn, verdict.cause, session_time(), dies=dies)
        if recalls is not None:
            verdict = replace(verdict, parked=True)
            lane.keep(recalls)
        elif verdict.ruling.give_up is not None:
            verdict = replace(verdict, fate=Fate.GIVEN_UP)
        say(message, verdict, self._plan.lines)
        return verdict
