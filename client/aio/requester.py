"""Requests, which wait for their replies."""

from __future__ import annotations

import asyncio  # asyncio

# threads: import threading
# threads: import time
from typing import Protocol

from redelivery.client.aio.consumer import Consumer
from redelivery.client.aio.publisher import Publisher
from redelivery.client.aio.session import Session
from redelivery.client.connection.replies import PAUSE, Replies, check_sent, reply_of, request_options
from redelivery.model.content.headers import SendKeywords
from redelivery.model.destinations import Destination
from redelivery.model.errors import InDoubtError, InvalidDestinationError
from redelivery.model.messages import Message
from redelivery.transports.seam import Pending
from redelivery.transports.wire.aio.runtime import LoopRuntime  # asyncio
from redelivery.transports.wire.clock import follow, session_time

# threads: from redelivery.transports.wire.threads.guard import holding, uninterruptible
# threads: from redelivery.transports.wire.threads.waiter import ThreadWaiter


class Requesting(Protocol):
    """The part of a connection's core that its requests need."""

    runtime: LoopRuntime  # asyncio

    async def session(self) -> Session:
        """A new session."""

    async def publisher(self) -> Publisher:
        """A new publisher."""

    def check_open(self, action: str) -> None:
        """Raise where it is closed or lost."""

    async def await_connection(self, action: str, until: float) -> None:
        """Wait while there is none, until ``until`` (see `session_time`)."""


class Requester:
    """The requests of one connection: a session that consumes replies from a temporary queue, made by the first one."""

    def __init__(self, replies: Replies) -> None:
        self._replies = replies
        self._lock = asyncio.Lock()  # guards the making of those below
        self._publisher: Publisher | None = None
        self._consumer: Consumer | None = None

    # threads: @uninterruptible
    async def request(
        self,
        core: Requesting,
        destination: Destination | str,
        body: object,
        timeout: float,
        options: SendKeywords,
    ) -> Message:
        """See `Connection.request`."""
        until = session_time() + timeout
        correlation_id, options = request_options(options, timeout)
        waiter = core.runtime.new_waiter()
        follow(waiter)
        pending = Pending(waiter)
        with self._replies.expected(correlation_id, pending):
            await core.await_connection("request", until)
            await self._send(core, destination, body, options, pending, until)
            while not pending.done and (left := until - session_time()) > 0:
                await waiter.wait(left)
        return reply_of(pending, destination, timeout)

    async def _send(
        self,
        core: Requesting,
        destination: Destination | str,
        body: object,
        options: SendKeywords,
        pending: Pending,
        until: float,
    ) -> None:
        while not pending.done:
            publisher, consumer = await self._opened(core)
            reply_to = consumer.destination
            try:
                keywords: SendKeywords = {**options, "reply_to": reply_to}
                await publisher.send(body, destination, **keywords)
            except InvalidDestinationError:
                # it went with a lost connection meanwhile, so nothing was sent
                if session_time() >= until:
                    raise
                if consumer.destination == reply_to and not consumer.closed:  # its session has not come back yet
                    if not consumer._core.temporaries.replaced(reply_to):
                        raise
                    await asyncio.sleep(PAUSE)
            except InDoubtError as error:
                check_sent(error)
                return
            else:
                return

    async def _opened(self, core: Requesting) -> tuple[Publisher, Consumer]:
        # threads: with holding(self._lock):
        async with self._lock:  # asyncio
            core.check_open("request")
            if self._publisher is None:
                self._publisher = await core.publisher()
            if self._consumer is None or self._consumer.closed:
                session = await core.session()
                try:
                    self._consumer = await session.consumer(await session.temporary_queue())
                    await self._consumer.listen(self._arrived)
                except BaseException:
                    self._consumer = None
                    await session.close()
                    raise
            return self._publisher, self._consumer

    async def _arrived(self, message: Message) -> None:
        self._replies.arrived(message)
