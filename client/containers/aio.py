"""The listener container of tasks: `sync`, awaited."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from inspect import isawaitable
from time import monotonic
from types import TracebackType
from typing import Any, Protocol, Self, Unpack

from redelivery.client.aio.made import Made
from redelivery.client.aio.session import Session
from redelivery.client.arguments import seconds
from redelivery.client.containers.calls import convert
from redelivery.client.containers.lanes import AIO_MAKERS, AioLane
from redelivery.client.containers.outcomes import Fate, Verdict, judge, say
from redelivery.client.containers.plan import Counters, Plan
from redelivery.client.containers.running import run_all_awaited
from redelivery.client.containers.settings import (
    CONTAINER_DEFAULTS,
    CONTAINER_SYNONYMS,
    ContainerKeywords,
    Settings,
    check_settings,
)
from redelivery.client.containers.sync import PAUSE, POLL
from redelivery.model.destinations import Destination
from redelivery.model.errors import IllegalStateError, InDoubtError, JMSError, TransactionRolledBackError
from redelivery.model.messages import Message as AnyMessage
from redelivery.model.modes import AckMode
from redelivery.model.suggestions import suggesting

log = logging.getLogger(__name__)


class Sessions(Protocol):
    """What a container needs of a connection."""

    @property
    def connected(self) -> bool:
        """Whether it is there."""

    def session(self, ack_mode: AckMode) -> Made[Session]:
        """A new session."""

    def check_open(self, action: str) -> None:
        """Raise where it is closed or lost."""


class ListenerContainer:
    """Tasks that await a handler with each message of a destination. Made by `Connection.listener_container`.

    The same as `redelivery`'s. In an ``async with`` block it is started, and drained within 30 s at the end.
    """

    def __init__(self, connection: Sessions, settings: Settings) -> None:
        self._connection = connection
        self._settings = settings
        self._plan = Plan(settings)
        self._tasks: set[asyncio.Task[None]] = set()
        self._lanes: set[AioLane] = set()
        self._stopping = asyncio.Event()
        self._started = False
        self._exit: BaseException | None = None

    @property
    def counters(self) -> Counters:
        """What it has done until now."""
        return self._plan.counters

    @property
    def last_error(self) -> BaseException | None:
        """The last failure of the handler, of a commit or of a session; None: there was none."""
        return self._plan.last_error

    @property
    def healthy(self) -> bool:
        """Whether it consumes: started, connected, with at least one worker, and its outage breaker is closed."""
        running = self._started and not self._stopping.is_set() and self.counters.workers > 0
        return running and self._connection.connected and not self._plan.outage

    async def start(self) -> None:
        """Consume; see `redelivery`'s. Twice is harmless."""
        if self._stopping.is_set():
            raise IllegalStateError("start: the listener container was stopped; make another one")
        if self._started:
            return
        lanes: list[AioLane] = []
        try:
            for _ in range(self._settings.minimum):
                lanes.append(await self._open())
        except BaseException:
            for lane in lanes:
                await lane.session.close()
            raise
        self._started = True
        for lane in lanes:
            self._plan.joins()
            self._employ(lane)

    async def drain(self, timeout: float | timedelta = 30.0) -> bool:
        """Take nothing new, and finish what is in hand. What was prefetched is the broker's again.

        Returns:
            Whether all handlers have returned within ``timeout`` seconds.
        """
        patience = seconds("timeout", timeout)
        self._stopping.set()
        for lane in list(self._lanes):
            with suppress(JMSError):  # it is closed already, or its session has failed
                await lane.consumer.close()  # a worker that waits for a message waits no more
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        if tasks:
            await asyncio.wait(tasks, timeout=patience)
        return all(task.done() for task in tasks)

    async def stop(self) -> None:
        """Take nothing new, and cancel the handlers that run: their messages are redelivered, uncounted."""
        await self.drain(0.0)
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=POLL)

    async def run(self, *, drain_timeout: float | timedelta = 30.0) -> None:
        """Consume until SIGTERM or SIGINT, then drain; a second signal cancels the handlers.

        Raises:
            SystemExit: a handler did not return within ``drain_timeout`` seconds (exit code 1), or a second signal came
                (128 and its number).
            ConnectionLostError: the connection was lost, and does not come back.
            JMSError: as `start`.
        """
        await run_all_awaited((self,), drain_timeout=drain_timeout)

    def check_ended(self) -> bool:
        """Whether it has ended by itself. Raises what ended it."""
        if self._exit is not None:
            raise self._exit
        return self._started and self.counters.workers == 0

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.drain()

    def __repr__(self) -> str:
        state = "stopped" if self._stopping.is_set() else "started" if self._started else "not started"
        return f"<ListenerContainer {self._settings.destination} {self._settings.name} {state}>"

    async def _open(self) -> AioLane:
        session = await self._connection.session(self._settings.mode)
        try:
            return AioLane(session, await session.consumer(self._settings.destination, **self._settings.consumer))
        except BaseException:
            await session.close()
            raise

    def _employ(self, lane: AioLane | None) -> None:
        """A worker that has joined; without a lane it opens its own."""
        task = asyncio.get_running_loop().create_task(
            self._work(lane), name=f"redelivery-container-{self._settings.name}"
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if lane is not None:
            self._lanes.add(lane)

    async def _work(self, lane: AioLane | None) -> None:
        try:
            while True:
                lane = lane or await self._open_again()
                if lane is None:
                    self._plan.leaves()
                    return
                try:
                    goes_on = await self._consume(lane)
                finally:
                    await self._close(lane)
                lane = None
                if not goes_on:
                    return  # it has left
        except BaseException as error:
            if not isinstance(error, asyncio.CancelledError):
                self._exit = self._exit or error
                log.critical("%s: it ends: %r", self._settings.name, error)
            self._plan.leaves()
            self._stopping.set()
            if isinstance(error, asyncio.CancelledError):
                raise

    async def _open_again(self) -> AioLane | None:
        """Another session; None: it is over."""
        while not self._stopping.is_set():
            try:
                self._connection.check_open("listener container")
            except JMSError as error:
                self._plan.trouble(error)
                self._exit = self._exit or error
                return None
            try:
                lane = await self._open()
            except JMSError as error:
                self._plan.trouble(error)
                await self._pause(PAUSE)
                continue
            self._lanes.add(lane)
            return lane
        return None

    async def _close(self, lane: AioLane) -> None:
        self._lanes.discard(lane)
        try:
            await lane.session.close()
        except JMSError as error:
            if not self._stopping.is_set():
                self._plan.trouble(error)

    async def _pause(self, wait: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await self._stopping.wait()

    async def _consume(self, lane: AioLane) -> bool:
        """Until the session is to be another one (True), or the worker has left."""
        served, idle_since = 0, monotonic()
        while not self._stopping.is_set():
            pause = self._plan.permit(monotonic())
            if pause:
                await self._pause(min(pause, POLL))
                continue
            probe, began = self._plan.outage, monotonic()
            try:
                message = await lane.consumer.receive(timeout=POLL)
            except JMSError as error:
                self._plan.nothing_came()
                if not self._stopping.is_set():
                    self._plan.trouble(error)
                    await self._pause(PAUSE)
                return True
            now = monotonic()
            if message is None:
                self._plan.nothing_came()
                if self._plan.may_leave(now - idle_since):
                    return False
                continue
            if self._plan.takes(message, now, now - began):
                self._employ(None)
            await self._handle(lane, message, probe=probe)
            idle_since = monotonic()
            served += 1
            if served == self._settings.max_messages:
                return True
        return True

    async def _handle(self, lane: AioLane, message: AnyMessage, *, probe: bool) -> None:
        try:
            verdict = await self._call(lane, message)
        except BaseException:  # cancelled, or an exit
            self._plan.abandons()
            await lane.put_back()
            raise
        replied = False
        try:
            if verdict.commits:
                replied = await lane.reply(message, verdict.reply)
                await lane.commit()
            elif probe and verdict.fate is Fate.FAILED:
                await lane.put_back()
            else:
                await lane.roll_back(verdict)
        except (TransactionRolledBackError, InDoubtError) as error:
            log.warning("%s: %s", self._settings.name, error)
            verdict = Verdict(Fate.FAILED, error)
        except JMSError as error:
            verdict = Verdict(Fate.FAILED, error)
            with suppress(JMSError):  # the session has failed: the broker redelivers
                await lane.roll_back(verdict)
        finally:
            self._plan.ends(message, verdict, monotonic(), replied=replied and verdict.commits)

    async def _call(self, lane: AioLane, message: AnyMessage) -> Verdict:
        settings = self._settings
        result, failure = None, None
        try:
            given = message if settings.convert is None else convert(settings.convert, message)
            result = settings.handler(given, **settings.arguments(message, lane.session))
            if not isawaitable(result):
                raise TypeError(f"{settings.name} returned a {type(result).__name__}, which cannot be awaited")
            result = await result
        except Exception as error:  # noqa: BLE001  # a guard of application code: its failure is the message's
            failure = error
        verdict = judge(result, failure, fatal=settings.fatal, overdue=self._plan.overdue(message, monotonic()))
        say(settings.name, message, verdict)
        return verdict


class MakesContainers(Sessions):
    """What a connection has of them."""

    @suggesting(CONTAINER_SYNONYMS, CONTAINER_DEFAULTS)
    def listener_container(
        self,
        destination: Destination | str,
        handler: Callable[..., Any],
        **options: Unpack[ContainerKeywords],
    ) -> ListenerContainer:
        """Tasks that await ``handler(message)`` with each message, for years; to be started, or run.

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
        return ListenerContainer(self, check_settings(destination, handler, AIO_MAKERS, **options))
