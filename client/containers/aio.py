"""The listener container of tasks."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from types import TracebackType
from typing import Any, Self, Unpack

from redelivery.client.arguments import seconds
from redelivery.client.containers.base import BaseContainer
from redelivery.client.containers.lanes import AIO_MAKERS, Lane
from redelivery.client.containers.running import run_all_awaited
from redelivery.client.containers.settings import (
    CONTAINER_DEFAULTS,
    CONTAINER_SYNONYMS,
    ContainerKeywords,
    Settings,
    check_settings,
)
from redelivery.client.containers.state import ContainerConnection
from redelivery.client.containers.workers import Tasks
from redelivery.model.destinations import Destination
from redelivery.model.errors import JMSError
from redelivery.model.suggestions import suggesting
from redelivery.transports.wire.clock import monotonic


class ListenerContainer(BaseContainer):
    """Workers that give each message of a destination to a handler. Made by `Connection.listener_container`.

    Its ``async with`` block starts it, and drains it within 30 s at the end.
    """

    _workers: Tasks

    def __init__(self, connection: ContainerConnection, settings: Settings) -> None:
        super().__init__(connection, settings, Tasks(settings), self._open)

    async def start(self) -> None:
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
                lanes.append(await self._open())
            self._begin(lanes)
        except BaseException:
            for lane in () if self._started else lanes:
                await lane.session.close()
            raise

    async def drain(self, timeout: float | timedelta = 30.0) -> bool:
        """Take nothing new, and finish the messages being handled. What was prefetched goes back to the broker.

        Returns:
            Whether all handlers have returned within ``timeout`` seconds.
        """
        until = monotonic() + seconds("timeout", timeout)
        self._take_nothing_new()
        for lane in list(self._lanes):
            with suppress(JMSError):  # it is closed already, or its session has failed
                await lane.consumer.close()  # a worker that waits for a message waits no more
        return await self._workers.ended(until)

    async def stop(self) -> None:
        """Take nothing new, and wait for nobody.

        Handlers go on, and their messages are settled as usual; asyncio ends them, and their messages are redelivered,
        uncounted.
        """
        await self.drain(0.0)
        await self._workers.cancel()

    async def run(self, *, drain_timeout: float | timedelta = 30.0) -> None:
        """Consume until SIGTERM or SIGINT, then drain; a second signal ends it at once.

        Raises:
            SystemExit: a handler did not return within ``drain_timeout`` seconds (exit code 1), a second signal came
                (128 and its number), or the handler called ``sys.exit()``.
            ConnectionLostError: the connection was lost, and does not come back.
            IllegalStateError: this is not the main thread.
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

    async def _open(self) -> Lane:
        session = await self._connection.session(self._settings.mode)
        try:
            return Lane(session, await self._settings.consume(session))
        except BaseException:
            await session.close()
            raise


class MakesContainers(ContainerConnection):
    """The part of a connection that makes listener containers."""

    @suggesting(CONTAINER_SYNONYMS, CONTAINER_DEFAULTS)
    def listener_container(
        self, destination: Destination | str, handler: Callable[..., Any], **options: Unpack[ContainerKeywords]
    ) -> ListenerContainer:
        """Workers that give each message to ``handler``, for years; to be started, or run.

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
