"""Sending from any task, a producer for each on a session of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Unpack

from redelivery.client.aio.made import Closing
from redelivery.client.aio.producer import Producer
from redelivery.client.aio.session import Session
from redelivery.client.shells.producer import BasePublisher
from redelivery.model.content.headers import SYNONYMS, SendKeywords
from redelivery.model.destinations import Destination
from redelivery.model.messages import Message
from redelivery.model.suggestions import suggesting


class Publisher(BasePublisher, Closing):
    """Sends from any number of tasks, also while listeners run. Made by `Connection.publisher`.

    There are never more of its sessions (AUTO: a send is not part of any transaction) than sends at the same time.
    What one task sends keeps its order, as it awaits each send.
    """

    def __init__(
        self, new_session: Callable[[], Awaitable[Session]], check_open: Callable[[str], None], what: str
    ) -> None:
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

        ``body_or_message``, ``destination`` and the options are those of `Producer.send`.

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
