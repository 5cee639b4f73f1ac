"""Sending from any task: a producer for each that sends at the moment, on a session of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Unpack

from redelivery.client.aio.made import Closing, Made
from redelivery.client.aio.producer import Producer
from redelivery.client.aio.session import Session
from redelivery.model.destinations import Destination
from redelivery.model.errors import IllegalStateError
from redelivery.model.messages import Message
from redelivery.model.sending import SYNONYMS, SendKeywords
from redelivery.model.suggestions import suggesting


class Publisher(Closing):
    """Sends from any number of tasks, also while listeners run. Made by `Connection.publisher`.

    There are never more of its sessions (AUTO: a send is not part of any transaction) than sends at the same time.
    What one task sends keeps its order, as it awaits each send.
    """

    def __init__(self, new_session: Callable[[], Made[Session]], check_open: Callable[[str], None], what: str) -> None:
        self._new_session = new_session
        self._check_connection = check_open
        self._what = what
        self._sessions: list[Session] = []
        self._free: list[Producer] = []
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    @suggesting(SYNONYMS)
    async def send(
        self,
        body_or_message: object,
        destination: Destination | str | None = None,
        **options: Unpack[SendKeywords],
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
        """Close its sessions; a send that is under way is waited for, within close_timeout. Twice is harmless."""
        self._closed = True
        sessions, self._sessions = self._sessions, []
        for session in sessions:
            await session.close()

    def check_open(self, action: str) -> None:
        """Raise where it is closed, or its connection closed or lost."""
        self._check_connection(action)
        if self._closed:
            raise IllegalStateError(f"{action}: the publisher was closed by close()")

    def __repr__(self) -> str:
        return f"<Publisher of {self._what}{' closed' if self._closed else f', {len(self._sessions)} sessions'}>"

    async def _new_producer(self) -> Producer:
        session = await self._new_session()
        if self._closed:
            await session.close()
            self.check_open("send")
        self._sessions.append(session)
        return await session.producer()
