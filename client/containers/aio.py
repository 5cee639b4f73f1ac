"""The listener container of tasks: `sync`, awaited."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import Any, Protocol, Self, Unpack, cast

from redelivery.client.aio.listeners import check_awaitable, returned_by
from redelivery.client.aio.made import Made
from redelivery.client.aio.session import Session
from redelivery.client.arguments import seconds
from redelivery.client.containers.base import POLL, BaseContainer, Connected
from redelivery.client.containers.breaker import Turn
from redelivery.client.containers.calls import convert
from redelivery.client.containers.lanes import AIO_MAKERS, AioLane, made
from redelivery.client.containers.outcomes import Fate, Verdict
from redelivery.client.containers.running import run_all_awaited
from redelivery.client.containers.settings import (
    CONTAINER_DEFAULTS,
    CONTAINER_SYNONYMS,
    ContainerKeywords,
    Settings,
    check_settings,
)
from redelivery.client.containers.sync import PAUSE
from redelivery.client.observing.log_lines import WORKERS
from redelivery.client.observing.traced import TracedWork
from redelivery.model.destinations import Destination
from redelivery.model.errors import InDoubtError, JMSError, TransactionRolledBackError
from redelivery.model.messages import Message as AnyMessage
from redelivery.model.modes import AckMode
from redelivery.model.suggestions import suggesting
from redelivery.transports.wire.clock import session_time

log = logging.getLogger(WORKERS)


class Sessions(Connected, Protocol):
    """What a container needs of a connection."""

    def session(self, ack_mode: AckMode) -> Made[Session]:
        """A new session."""


class ListenerContainer(BaseContainer):
    """Tasks that await a handler with each message of a destination. Made by `Connection.listener_container`.

    The same as `redelivery`'s. In an ``async with`` block it is started, and drained within 30 s at the end.
    """

    def __init__(self, connection: Sessions, settings: Settings) -> None:
        check_awaitable(settings.handler, "listener_container")
        super().__init__(connection, settings)
        self._connection: Sessions = connection
        self._tasks: set[asyncio.Task[None]] = set()
        self._lanes: set[AioLane] = set()
        self._stopping: asyncio.Event = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None  # for handlers that take long

    async def start(self) -> None:
        """Consume; see `redelivery`'s. Twice is harmless."""
        if not self._check_start():
            return
        lanes: list[AioLane] = []
        try:
            for _ in range(self._settings.minimum):
                lanes.append(await self._open())
        except BaseException:
            for lane in lanes:
                await lane.session.close()
            raise
        self._begins(lanes)
        for lane in lanes:
            self._employ(lane)
        if self._settings.warning_after is not None:
            self._watching = asyncio.create_task(self._watch(self._settings.warning_after))

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

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.drain()

    async def _open(self) -> AioLane:
        session = await self._connection.session(self._settings.mode)
        try:
            return AioLane(session, await self._settings.consume(session))
        except BaseException:
            await session.close()
            raise

    def _employ(self, lane: AioLane | None) -> None:
        """A worker that has joined; without a lane it opens its own."""
        task = asyncio.get_running_loop().create_task(
            self._work(lane), name=f"redelivery-container-{self._settings.name}"
        )
        self._tasks.add(task)
        task.add_done_callback(self._left)
        if lane is not None:
            self._lanes.add(lane)

    def _left(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not self._tasks and self._watching is not None:
            self._watching.cancel()

    async def _watch(self, limit: float) -> None:
        while True:
            await asyncio.sleep(self._plan.warn_of_slow(session_time(), limit))

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
            if not self._check_connection():
                return None
            try:
                lane = await self._open()
            except JMSError as error:
                self._session_failed(error)
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
            self._session_failed(error)

    async def _pause(self, wait: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await self._stopping.wait()

    async def _consume(self, lane: AioLane) -> bool:
        """Until the session is to be another one (True), or the worker has left."""
        served, idle_since = 0, session_time()
        while not self._stopping.is_set():
            turn = self._plan.permit(session_time(), lane)
            if turn.wait:
                await self._pause(min(turn.wait, POLL))
                continue
            began = session_time()
            try:
                message = await self._receive(lane, turn)
            except JMSError as error:
                self._plan.nothing_came(turn)
                self._session_failed(error)
                await self._pause(PAUSE)
                return True
            now = session_time()
            if message is None:
                pause = self._nothing_came(lane, turn, now - idle_since)
                if pause is None:
                    return False
                await self._pause(pause)
                continue
            if self._plan.outdated(turn):  # it came when the others had found that everything fails
                await lane.put_back()
                continue
            await self._serve(lane, message, turn, now - began)
            idle_since = session_time()
            served += 1
            if self._is_renewed(lane, served):
                return True
        return True

    async def _receive(self, lane: AioLane, turn: Turn) -> AnyMessage | None:
        if self._plan.recalled(lane.parked, lane.recalls):
            await lane.recall()
        # a probe does not wait for a message: another worker may have one
        return await lane.consumer.receive(timeout=0.0 if turn.probe else POLL)

    async def _serve(self, lane: AioLane, message: AnyMessage, turn: Turn, waited: float) -> None:
        """Have the message handled, which came after so many seconds."""
        if self._plan.takes(message, session_time(), waited):
            self._employ(None)
        with lane.work(message) as work:
            await self._handle(lane, message, work, turn)

    async def _handle(self, lane: AioLane, message: AnyMessage, work: TracedWork | None, turn: Turn) -> None:
        try:
            verdict = await self._call(lane, message)
            if work is not None:
                work.ended(None if verdict.commits else verdict.cause)
        except BaseException:  # cancelled, or an exit
            self._plan.abandons(turn)
            await lane.put_back()
            raise
        replied = dead = False
        try:
            verdict = self._in_outage(lane, message, verdict, turn)
            if verdict.commits:
                replied = await lane.reply(message, verdict.reply)
                await lane.commit()
            elif verdict.parked:
                await lane.park()
            else:
                dead = await lane.roll_back(verdict)
        except (TransactionRolledBackError, InDoubtError) as error:
            self._plan.say_undone(error)
            verdict = Verdict(Fate.FAILED, error)
        except JMSError as error:
            verdict = Verdict(Fate.FAILED, error)
            with suppress(JMSError):  # the session has failed: the broker redelivers
                await lane.roll_back(verdict)
        finally:
            self._plan.ends(message, turn, verdict, replied=replied and verdict.commits, dead=dead)

    async def _call(self, lane: AioLane, message: AnyMessage) -> Verdict:
        settings = self._settings
        result, failure = None, None
        task = cast("asyncio.Task[None]", asyncio.current_task())
        work = self._plan.begins(message, task.get_name(), session_time(), partial(_stack_of, task))
        try:
            given = message if settings.convert is None else convert(settings.convert, message)
            result = settings.handler(given, **await made(settings.arguments(message, lane.session)))
            result = await returned_by(settings.handler, result)
        except Exception as error:  # noqa: BLE001  # a guard of application code: its failure is the message's
            failure = error
        finally:
            self._plan.returned(work)
            lane.pace.handled(session_time() - work.since)
        return self._judge(message, result, failure)


def _stack_of(task: asyncio.Task[None]) -> str:
    """Of all coroutines that await one another; `Task.get_stack` has the first only."""
    lines: list[str] = []
    coroutine: Any = task.get_coro()
    while (frame := getattr(coroutine, "cr_frame", None)) is not None:
        lines += traceback.format_stack(frame, limit=1)
        coroutine = coroutine.cr_await
    return "".join(lines)


class MakesContainers(Sessions):
    """What a connection has of them."""

    @suggesting(CONTAINER_SYNONYMS, CONTAINER_DEFAULTS)
    def listener_container(
        self, destination: Destination | str, handler: Callable[..., Any], **options: Unpack[ContainerKeywords]
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
