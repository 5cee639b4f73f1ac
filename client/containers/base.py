"""A listener container, but for the waits: its threads or tasks take the steps of its generators (`workers`)."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final

from redelivery.client.containers.breaker import Permit
from redelivery.client.containers.lanes import Lane
from redelivery.client.containers.outcomes import Fate, Verdict, judge, say
from redelivery.client.containers.plan import Plan
from redelivery.client.containers.settings import Settings
from redelivery.client.containers.state import ContainerConnection, ContainerState
from redelivery.client.containers.workers import Steps, Tasks, Threads, Work
from redelivery.client.observing.log_lines import WORKERS
from redelivery.model.content.typed.converter import fill
from redelivery.model.errors import IllegalStateError, InDoubtError, JMSError, TransactionRolledBackError
from redelivery.model.messages import Message
from redelivery.transports.wire.clock import session_time
from redelivery.transports.wire.threads.guard import uninterruptible

log = logging.getLogger(WORKERS)
POLL: Final = 1.0  # seconds that a worker waits for a message before it looks at everything else
PAUSE: Final = 1.0  # seconds after a session failed before there is another one


class BaseContainer(ContainerState):
    """A container of threads or of tasks."""

    def __init__(
        self, connection: ContainerConnection, settings: Settings, workers: Threads | Tasks, opens: Callable[[], Any]
    ) -> None:
        self._connection = connection
        self._settings = settings
        self._workers = workers
        self._opens = opens  # a step that makes a lane
        self._plan = Plan(settings)
        self._lanes: set[Lane] = set()
        self._exit: BaseException | None = None  # what ended it: of the connection, or an exit of the handler's
        self._started = False

    def _check_ended(self) -> bool:
        """Check whether it has ended by itself. Raises what ended it."""
        if self._exit is not None:
            raise self._exit
        return self._started and self.counters.workers == 0

    def _check_start(self) -> bool:
        """Check whether it is to be started. Raises IllegalStateError: it was stopped."""
        if self._workers.stopping.is_set():
            raise IllegalStateError("start: the listener container was stopped; make another one")
        return not self._started

    @uninterruptible
    def _take_nothing_new(self) -> None:
        self._workers.stopping.set()

    @uninterruptible
    def _begin(self, lanes: Sequence[Lane]) -> None:
        """Have these workers, all of them, before one of them can find that there are too few."""
        self._started = True
        self._connection._core.containers[self] = None
        self._plan.joins(len(lanes))
        self._lanes.update(lanes)
        self._say_listening()
        for lane in lanes:
            self._employ(lane)
        limit = self._settings.warning_after
        if limit is not None:
            self._workers.watch(lambda: self._plan.warn_of_slow(session_time(), limit))

    def _employ(self, lane: Lane | None) -> None:
        """Begin with a worker that has joined; without a lane it opens its own."""
        if lane is not None:
            self._lanes.add(lane)
        self._workers.employ(self._work(lane))

    def _check_connection(self) -> bool:
        """False: no worker gets another session, since the connection is closed or lost for good."""
        try:
            self._connection.check_open("listener container")
        except JMSError as error:
            if not self._workers.stopping.is_set():
                self._session_failed(error)
                self._exit = self._exit or error
            return False
        return True

    def _session_failed(self, error: JMSError) -> None:
        """A worker's has. That is no news where this was stopped, or the application closes the connection."""
        if self._workers.stopping.is_set():
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

    def _work(self, lane: Lane | None) -> Work:
        """Consume until the container stops, or needs it no more. Without a lane it opens its own."""
        try:
            while lane := lane or (yield from self._open_again()):
                try:
                    goes_on = yield from self._consume(lane)
                finally:
                    yield from self._close(lane)
                if not goes_on:
                    return  # it has left
                lane = None
            self._plan.leaves()
        except BaseException as error:
            cancelled = isinstance(error, self._workers.cancelled)
            if not cancelled:  # sys.exit() in a handler: `run` raises it
                self._exit = self._exit or error
                log.critical("%s: it ends: %r", self._settings.name, error)
            self._plan.leaves()
            self._workers.stopping.set()
            if cancelled:
                raise

    def _open_again(self) -> Steps[Lane | None]:
        """Another session; None: it is over."""
        while not self._workers.stopping.is_set():
            if not self._check_connection():
                return None
            try:
                lane: Lane = yield self._opens
            except JMSError as error:
                yield from self._failed(error)
                continue
            self._lanes.add(lane)
            return lane
        return None

    def _close(self, lane: Lane) -> Work:
        self._lanes.discard(lane)
        try:
            yield lane.session.close
        except JMSError as error:
            self._session_failed(error)

    def _pause(self, seconds: float) -> Work:
        yield partial(self._workers.pause, seconds)

    def _failed(self, error: JMSError) -> Work:
        self._session_failed(error)
        yield from self._pause(PAUSE)

    def _consume(self, lane: Lane) -> Steps[bool]:
        """Until the session is to be another one (True), or the worker has left."""
        plan = self._plan
        served, idle_since = 0, session_time()
        while not self._workers.stopping.is_set():
            permit = plan.permit(session_time(), lane)
            if permit.wait:
                yield from self._pause(min(permit.wait, POLL))
                continue
            began = session_time()
            try:
                if plan.recalled(lane.parked, lane.recalls):
                    yield from lane.recall()
                # a probe does not wait for a message: another worker may have one
                message: Message | None = yield partial(lane.consumer.receive, timeout=0.0 if permit.probe else POLL)
            except JMSError as error:
                plan.nothing_came(permit)
                yield from self._failed(error)
                return True
            now = session_time()
            if message is None:
                pause = self._nothing_came(lane, permit, now - idle_since)
                if pause is None:
                    return False
                yield from self._pause(pause)
            elif plan.outdated(permit):  # it came when the others had found that everything fails
                yield from lane.put_back()
            else:
                if plan.takes(message, now, now - began):
                    self._employ(None)
                yield from self._handle(lane, message, permit)
                idle_since = session_time()
                served += 1
                # another session would forget what has failed
                if served >= (self._settings.max_messages or sys.maxsize) and not lane.unfinished:
                    return True
        return True

    def _nothing_came(self, lane: Lane, permit: Permit, idle: float) -> float | None:
        """The seconds to pause, as nothing came for ``idle`` seconds; None: the worker is not needed, and has left."""
        self._plan.nothing_came(permit)
        if lane.parked and not lane.waits and self._plan.all_tried():
            lane.recalls = -1  # they come next
            return 0.0
        if not lane.unfinished and self._plan.may_leave(idle):
            return None
        return min(self._settings.probe_interval, POLL) if permit.probe else 0.0

    def _handle(self, lane: Lane, message: Message, permit: Permit) -> Work:
        plan = self._plan
        with lane.work(message) as work:
            try:
                verdict = yield from self._call(lane, message)
                if work is not None:
                    work.ended(None if verdict.commits else verdict.cause)
            except BaseException:  # cancelled, an exit, or an interrupt
                plan.abandons(permit)
                yield from lane.put_back()
                raise
            replied = dead = False
            try:
                verdict = self._in_outage(lane, message, verdict, permit)
                if verdict.commits:
                    replied = yield from lane.reply(message, verdict.reply)
                    yield from lane.commit()
                elif verdict.parked:
                    yield from lane.park()
                else:
                    dead = yield from lane.roll_back(verdict)
            except (TransactionRolledBackError, InDoubtError) as error:
                plan.say_undone(error)
                verdict = Verdict(Fate.FAILED, error)
            except JMSError as error:
                verdict = Verdict(Fate.FAILED, error)
                with suppress(JMSError):  # the session has failed: the broker redelivers
                    yield from lane.roll_back(verdict)
            finally:
                plan.ends(message, permit, verdict, replied=replied and verdict.commits, dead=dead)

    def _call(self, lane: Lane, message: Message) -> Steps[Verdict]:
        """Have the handler called, and judge what comes of it."""
        settings, plan = self._settings, self._plan
        result, failure = None, None
        work = plan.begins(message, session_time(), *self._workers.current())
        try:
            if settings.convert is not None:
                fill(message, settings.convert)
            given = message if settings.gives_message else message.body
            arguments = settings.arguments(message, lane.session)
            result = yield partial(self._workers.call, settings.handler, given, arguments)
        except Exception as error:  # noqa: BLE001  # a guard of application code: its failure is the message's
            failure = error
        finally:
            plan.returned(work)
            lane.pace.handled(session_time() - work.since)
        verdict = judge(
            result,
            failure,
            fatal=settings.fatal,
            overdue=plan.overdue(message, session_time()),
            retry_on=settings.retry_on,
            outage_on=settings.outage_on,
        )
        if not verdict.outage:
            say(message, verdict, plan.lines)
        return verdict

    def _in_outage(self, lane: Lane, message: Message, verdict: Verdict, permit: Permit) -> Verdict:
        """The same verdict, but where an outage may be the reason of a failure: whether it counts."""
        if not verdict.outage or verdict.cause is None:
            return verdict
        dies = lane.dies() or verdict.ruling.give_up is not None
        recalls = self._plan.failing(message, permit, verdict.cause, session_time(), dies=dies)
        if recalls is not None:
            verdict = replace(verdict, parked=True)
            lane.keep(recalls)
        elif verdict.ruling.give_up is not None:
            verdict = replace(verdict, fate=Fate.GIVEN_UP)
        say(message, verdict, self._plan.lines)
        return verdict
