"""The listener container of threads."""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import Any, Final, Protocol, Self, Unpack

from redelivery.client.arguments import seconds
from redelivery.client.containers.base import POLL, BaseContainer, Connected
from redelivery.client.containers.breaker import Turn
from redelivery.client.containers.calls import convert
from redelivery.client.containers.lanes import MAKERS, Lane
from redelivery.client.containers.outcomes import Fate, Verdict
from redelivery.client.containers.running import run_all
from redelivery.client.containers.settings import (
    CONTAINER_DEFAULTS,
    CONTAINER_SYNONYMS,
    ContainerKeywords,
    Settings,
    check_settings,
)
from redelivery.client.observing.log_lines import WORKERS
from redelivery.client.observing.traced import TracedWork
from redelivery.client.sync.session import Session
from redelivery.model.destinations import Destination
from redelivery.model.errors import InDoubtError, JMSError, TransactionRolledBackError
from redelivery.model.messages import Message
from redelivery.model.modes import AckMode
from redelivery.model.parts.callables import check_runs, not_run, unrun
from redelivery.model.suggestions import suggesting
from redelivery.transports.wire.clock import monotonic, session_time
from redelivery.transports.wire.threads.guard import uninterruptible

log = logging.getLogger(WORKERS)
PAUSE: Final = 1.0  # seconds after a session failed before there is another one


class Sessions(Connected, Protocol):
    """What a container needs of a connection."""

    def session(self, ack_mode: AckMode) -> Session:
        """A new session."""


class ListenerContainer(BaseContainer):
    """Workers that call a handler with each message of a destination. Made by `Connection.listener_container`.

    In a ``with`` block it is started, and drained within 30 s at the end.
    """

    def __init__(self, connection: Sessions, settings: Settings) -> None:
        check_runs(settings.handler, f"listener_container({settings.name})")
        super().__init__(connection, settings)
        self._connection: Sessions = connection
        self._lock = threading.Lock()  # guards the two below
        self._threads: set[threading.Thread] = set()
        self._lanes: set[Lane] = set()
        self._stopping: threading.Event = threading.Event()
        self._ended = threading.Event()  # the last worker has

    def start(self) -> None:
        """Consume. Twice is harmless.

        Raises:
            IllegalStateError: it was stopped, or the connection is closed.
            JMSError: the broker refuses a session or a consumer, as for `Connection.session` and `Session.consumer`.
        """
        if not self._check_start():
            return
        lanes: list[Lane] = []
        try:
            for _ in range(self._settings.minimum):
                lanes.append(self._open())
            uninterruptible(lambda: self._begin(lanes))
        except BaseException:
            for lane in () if self._started else lanes:
                lane.session.close()
            raise

    def drain(self, timeout: float | timedelta = 30.0) -> bool:
        """Take nothing new, and finish what is in hand. What was prefetched is the broker's again.

        Returns:
            Whether all handlers have returned within ``timeout`` seconds.
        """
        until = monotonic() + seconds("timeout", timeout)
        self._stopping.set()
        with self._lock:
            lanes, threads = list(self._lanes), list(self._threads)
        for lane in lanes:
            with suppress(JMSError):  # it is closed already, or its session has failed
                lane.consumer.close()  # a worker that waits for a message waits no more
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, until - monotonic()))
        return not any(thread.is_alive() for thread in threads)

    def stop(self) -> None:
        """Take nothing new, and wait for nobody: a handler that runs goes on, and its message is settled as usual."""
        self.drain(0.0)

    def run(self, *, drain_timeout: float | timedelta = 30.0) -> None:
        """Consume until SIGTERM or SIGINT, then drain: the one line of a program that does nothing else.

        Raises:
            SystemExit: a handler did not return within ``drain_timeout`` seconds (exit code 1), a second signal came
                (128 and its number), or the handler called ``sys.exit()``.
            ConnectionLostError: the connection was lost, and does not come back.
            IllegalStateError: this is not the main thread.
            JMSError: as `start`.
        """
        run_all((self,), drain_timeout=drain_timeout)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.drain()

    def _open(self) -> Lane:
        session = self._connection.session(self._settings.mode)
        try:
            return Lane(session, self._settings.consume(session))
        except BaseException:
            session.close()
            raise

    def _begin(self, lanes: Sequence[Lane]) -> None:
        self._begins(lanes)
        for lane in lanes:
            self._employ(lane)
        if self._settings.warning_after is not None:
            name = f"redelivery-watch-{self._settings.name}"
            threading.Thread(target=self._watch, args=(self._settings.warning_after,), name=name, daemon=True).start()

    def _watch(self, limit: float) -> None:
        while not self._ended.wait(self._plan.warn_of_slow(session_time(), limit)):
            pass

    def _employ(self, lane: Lane | None) -> None:
        """A worker that has joined; without a lane it opens its own."""
        thread = threading.Thread(
            target=self._work, args=(lane,), name=f"redelivery-container-{self._settings.name}", daemon=True
        )
        with self._lock:  # so that who waits for the threads to end finds none that has not begun
            thread.start()
            self._threads.add(thread)
            if lane is not None:
                self._lanes.add(lane)

    def _work(self, lane: Lane | None) -> None:
        try:
            while True:
                lane = lane or self._open_again()
                if lane is None:
                    self._plan.leaves()
                    return
                try:
                    goes_on = self._consume(lane)
                finally:
                    self._close(lane)
                lane = None
                if not goes_on:
                    return  # it has left
        except BaseException as error:  # noqa: BLE001  # sys.exit() in a handler: `run` raises it
            self._exit = self._exit or error
            log.critical("%s: it ends: %r", self._settings.name, error)
            self._plan.leaves()
            self._stopping.set()
        finally:
            with self._lock:
                self._threads.discard(threading.current_thread())
                if not self._threads:
                    self._ended.set()

    def _open_again(self) -> Lane | None:
        """Another session; None: it is over."""
        while not self._stopping.is_set():
            if not self._check_connection():
                return None
            try:
                lane = self._open()
            except JMSError as error:
                self._session_failed(error)
                self._stopping.wait(PAUSE)
                continue
            with self._lock:
                self._lanes.add(lane)
            return lane
        return None

    def _close(self, lane: Lane) -> None:
        with self._lock:
            self._lanes.discard(lane)
        try:
            lane.session.close()
        except JMSError as error:
            self._session_failed(error)

    def _consume(self, lane: Lane) -> bool:
        """Until the session is to be another one (True), or the worker has left."""
        served, idle_since = 0, session_time()
        while not self._stopping.is_set():
            turn = self._plan.permit(session_time(), lane)
            if turn.wait:
                self._stopping.wait(min(turn.wait, POLL))
                continue
            began = session_time()
            try:
                message = self._receive(lane, turn)
            except JMSError as error:
                self._plan.nothing_came(turn)
                self._session_failed(error)
                self._stopping.wait(PAUSE)
                return True
            now = session_time()
            if message is None:
                pause = self._nothing_came(lane, turn, now - idle_since)
                if pause is None:
                    return False
                self._stopping.wait(pause)
                continue
            if self._plan.outdated(turn):  # it came when the others had found that everything fails
                lane.put_back()
                continue
            self._serve(lane, message, turn, now - began)
            idle_since = session_time()
            served += 1
            if self._is_renewed(lane, served):
                return True
        return True

    def _receive(self, lane: Lane, turn: Turn) -> Message | None:
        if self._plan.recalled(lane.parked, lane.recalls):
            lane.recall()
        # a probe does not wait for a message: another worker may have one
        return lane.consumer.receive(timeout=0.0 if turn.probe else POLL)

    def _serve(self, lane: Lane, message: Message, turn: Turn, waited: float) -> None:
        """Have the message handled, which came after so many seconds."""
        if self._plan.takes(message, session_time(), waited):
            self._employ(None)
        with lane.work(message) as work:
            self._handle(lane, message, work, turn)

    def _handle(self, lane: Lane, message: Message, work: TracedWork | None, turn: Turn) -> None:
        try:
            verdict = self._call(lane, message)
            if work is not None:
                work.ended(None if verdict.commits else verdict.cause)
        except BaseException:  # an exit, or an interrupt
            self._plan.abandons(turn)
            lane.put_back()
            raise
        replied = dead = False
        try:
            verdict = self._in_outage(lane, message, verdict, turn)
            if verdict.commits:
                replied = lane.reply(message, verdict.reply)
                lane.commit()
            elif verdict.parked:
                lane.park()
            else:
                dead = lane.roll_back(verdict)
        except (TransactionRolledBackError, InDoubtError) as error:
            self._plan.say_undone(error)
            verdict = Verdict(Fate.FAILED, error)
        except JMSError as error:
            verdict = Verdict(Fate.FAILED, error)
            with suppress(JMSError):  # the session has failed: the broker redelivers
                lane.roll_back(verdict)
        finally:
            self._plan.ends(message, turn, verdict, replied=replied and verdict.commits, dead=dead)

    def _call(self, lane: Lane, message: Message) -> Verdict:
        settings = self._settings
        result, failure = None, None
        thread = threading.current_thread()
        work = self._plan.begins(message, thread.name, session_time(), partial(_stack_of, thread.ident))
        try:
            given = message if settings.convert is None else convert(settings.convert, message)
            result = settings.handler(given, **settings.arguments(message, lane.session))
            kind = None if result is None else unrun(result)
            if kind is not None:
                raise TypeError(not_run(settings.handler, kind))
        except Exception as error:  # noqa: BLE001  # a guard of application code: its failure is the message's
            failure = error
        finally:
            self._plan.returned(work)
            lane.pace.handled(session_time() - work.since)
        return self._judge(message, result, failure)


def _stack_of(thread: int | None) -> str:
    frame = sys._current_frames().get(thread or 0)
    return "".join(traceback.format_stack(frame)) if frame is not None else "(it has ended)"


class MakesContainers(Sessions):
    """What a connection has of them."""

    @suggesting(CONTAINER_SYNONYMS, CONTAINER_DEFAULTS)
    def listener_container(
        self, destination: Destination | str, handler: Callable[..., Any], **options: Unpack[ContainerKeywords]
    ) -> ListenerContainer:
        """Workers that call ``handler(message)`` with each message, for years; to be started, or run.

        Args:
            destination: a queue or topic, as for `Session.consumer`.
            handler: takes the message, or what ``body_type`` makes of it, and the session too, if it has a second
                parameter. When it returns, the message is consumed; a body that it returns is sent as the reply to a
                message that asks for one. When it raises, the message is redelivered by its policy, with the exception
                as the cause. It may raise or return `Retry`, `DeadLetter` and `Drop`.
            options: concurrency, fatal, deadline, …: see `redelivery.client.containers.settings.ContainerKeywords`.

        Raises:
            ConfigError, InvalidDestinationError: an option does not fit; the text names it.
        """
        return ListenerContainer(self, check_settings(destination, handler, MAKERS, **options))
