"""Sending from any task, a producer for each on a session of its own; and requests, which wait for their replies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol, Unpack

from redelivery.client.aio.consumer import Consumer
from redelivery.client.aio.made import Closing, Made
from redelivery.client.aio.producer import Producer
from redelivery.client.aio.session import Session
from redelivery.client.connection.replies import PAUSE, Replies, check_sent, reply_of, request_options
from redelivery.client.shells.publisher import BasePublisher
from redelivery.model.content.headers import SYNONYMS, SendKeywords
from redelivery.model.destinations import Destination
from redelivery.model.errors import InDoubtError, InvalidDestinationError
from redelivery.model.messages import Message
from redelivery.model.suggestions import suggesting
from redelivery.transports.seam import Pending
from redelivery.transports.wire.aio.runtime import LoopRuntime
from redelivery.transports.wire.clock import follow, session_time


class Publisher(BasePublisher, Closing):
    """Sends from any number of tasks, also while listeners run. Made by `Connection.publisher`.

    There are never more of its sessions (AUTO: a send is not part of any transaction) than sends at the same time.
    What one task sends keeps its order, as it awaits each send.
    """

    def __init__(self, new_session: Callable[[], Made[Session]], check_open: Callable[[str], None], what: str) -> None:
        super().__init__(check_open, what)
        self._new_session = new_session
        self._sessions: list[Session] = []
        self._free: list[Producer] = []
        self._closing: asyncio.Task[None] | None = None

    @suggesting(SYNONYMS)
    async def send(
        self, body_or_message: object, destination: Destination | str | None = None, **options: Unpack[SendKeywords]
    ) -> Message:
        """As `Producer.send`, from any task. A persistent message is the broker's when this returns.

        Raises:
            IllegalStateError: the publisher or the connection is closed.
            JMSError: as `Producer.send`.
        """
        self.check_open("send")
        producer = self._free.pop() if self._free else await self._new_producer()
        try:
            return await producer.send(body_or_message, destination, **options)
        finally:
            self._free.append(producer)

    async def close(self) -> None:
        """Close its sessions; a send that is under way is waited for, within close_timeout. Twice is harmless.

        A close that is cancelled goes on.
        """
        self._closed = True
        if self._sessions:
            self._closing = asyncio.get_running_loop().create_task(self._close_sessions(), name="redelivery-close")
            await asyncio.shield(self._closing)

    async def _close_sessions(self) -> None:
        while self._sessions:
            session = self._sessions[-1]
            await session.close()
            with suppress(ValueError):  # another close was here
                self._sessions.remove(session)

    def _sessions_now(self) -> int:
        return len(self._sessions)

    async def _new_producer(self) -> Producer:
        session = await self._new_session()
        if self._closed:
            await session.close()
            self.check_open("send")
        self._sessions.append(session)
        return await session.producer()


class RequestingCore(Protocol):
    """The part of a connection's core that its requests need."""

    runtime: LoopRuntime

    async def await_connection(self, action: str, until: float) -> None:
        """Wait while there is none, until ``until`` (see `session_time`)."""


class Requesting(Protocol):
    """The part of a connection that makes what its requests need."""

    def session(self) -> Made[Session]:
        """A new session."""

    def publisher(self) -> Made[Publisher]:
        """A new publisher."""

    def check_open(self, action: str) -> None:
        """Raise where it is closed or lost."""

    @property
    def _core(self) -> RequestingCore:
        """The connection's core."""


class Requester:
    """The requests of one connection: a session that consumes replies from a temporary queue, made by the first one."""

    def __init__(self, replies: Replies) -> None:
        self._replies = replies
        self._lock = asyncio.Lock()  # guards the making of those below
        self._publisher: Publisher | None = None
        self._consumer: Consumer | None = None

    async def request(
        self,
        connection: Requesting,
        destination: Destination | str,
        body: object,
        timeout: float,
        options: SendKeywords,
    ) -> Message:
        """See `Connection.request`."""
        until = session_time() + timeout
        correlation_id, options = request_options(options, timeout)
        waiter = connection._core.runtime.new_waiter()
        follow(waiter)
        pending = Pending(waiter)
        with self._replies.expected(correlation_id, pending):
            await connection._core.await_connection("request", until)
            await self._send(connection, destination, body, options, pending, until)
            while not pending.done and (left := until - session_time()) > 0:
                await waiter.wait(left)
        return reply_of(pending, destination, timeout)

    async def _send(
        self,
        connection: Requesting,
        destination: Destination | str,
        body: object,
        options: SendKeywords,
        pending: Pending,
        until: float,
    ) -> None:
        while not pending.done:
            publisher, consumer = await self._opened(connection)
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

    async def _opened(self, connection: Requesting) -> tuple[Publisher, Consumer]:
        async with self._lock:
            connection.check_open("request")
            if self._publisher is None:
                self._publisher = await connection.publisher()
            if self._consumer is None or self._consumer.closed:
                session = await connection.session()
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
