"""Browsers: a look at what a queue holds, which takes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import cast

from redelivery.client.aio.core import SessionCore
from redelivery.client.aio.made import Closing
from redelivery.client.aio.message import Message
from redelivery.client.operations.browse import BrowseState, begin, leave, open_channel, poll_once
from redelivery.model import messages
from redelivery.model.destinations import Queue
from redelivery.model.errors import IllegalStateError
from redelivery.model.messages import Receipt
from redelivery.transports.seam import Link


class QueueBrowser(Closing):
    """The messages of one queue: ``async for message in browser``; see `redelivery.QueueBrowser`.

    Made by `Session.browser`. One iteration at a time, and one task within the session, as with a consumer.
    """

    def __init__(self, core: SessionCore, state: BrowseState) -> None:
        self._core = core
        self._state = state
        self._closed = False

    @property
    def queue(self) -> Queue:
        """Where it looks."""
        return self._state.queue

    @property
    def selector(self) -> str | None:
        """The selector, if there is one."""
        return self._state.selector

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    def __aiter__(self) -> AsyncIterator[Message]:
        """What the queue holds, from its head; the broker is asked from the first message on."""
        return _Iteration(self)

    async def acknowledge(self, message: messages.Message) -> None:
        """Nothing: to look is not to receive. For the messages."""

    async def close(self) -> None:
        """Look no more; an iteration that is under way raises IllegalStateError."""
        if self._closed:
            return
        self._closed = True
        core = self._core
        if self._state.channel is None or core.life.ended or core.lost is not None:
            return  # there is nothing at the broker, or not any more
        await core.to_the_end(core.inside_patiently("close", lambda: core.do(leave(core, self._state))))

    def check_open(self, action: str) -> None:
        """Raise where it is closed."""
        if self._closed:
            raise IllegalStateError(f"{action}: the browser of {self.queue} was closed by close()")

    def __repr__(self) -> str:
        return f"<QueueBrowser {self.queue}{' closed' if self._closed else ''}>"

    async def begin(self) -> Link:
        """For an iteration: ask the broker."""
        return await self._core.inside("browse", self._attach)

    async def next_of(self, link: Link) -> Message | None:
        """For an iteration: its next message."""
        return await self._core.inside("browse", lambda: self._poll_once(link))

    async def _attach(self) -> Link:
        core, state = self._core, self._state
        self.check_open("browse")
        await core.do(open_channel(core, state))
        return await core.do(begin(state))

    async def _poll_once(self, link: Link) -> Message | None:
        self.check_open("browse")
        if link is not self._state.link:
            raise IllegalStateError(f"browse: another iteration over {self.queue} has begun, which ended this one")
        delivery = await self._core.do(poll_once(self._state, link))
        return None if delivery is None else cast(Message, Message.received(delivery, 0, cast(Receipt, self)))


class _Iteration(AsyncIterator[Message]):
    """One look."""

    def __init__(self, browser: QueueBrowser) -> None:
        self._browser = browser
        self._link: Link | None = None

    async def __anext__(self) -> Message:
        if self._link is None:
            self._link = await self._browser.begin()
        message = await self._browser.next_of(self._link)
        if message is None:
            raise StopAsyncIteration
        return message
