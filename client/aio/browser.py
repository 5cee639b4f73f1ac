"""Browsers: a look at what a queue holds, which takes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import cast

from redelivery.client.aio.core import SessionCore
from redelivery.client.aio.driver import check_loop
from redelivery.client.aio.made import Closing, Message
from redelivery.client.operations.browse import begin, leave, open_channel, poll_once
from redelivery.client.operations.reattach import await_loss
from redelivery.client.shells.browser import BaseBrowser
from redelivery.model import messages
from redelivery.model.errors import ConnectionLostError
from redelivery.model.messages import Receipt
from redelivery.transports.seam import Link


class QueueBrowser(BaseBrowser, Closing):
    """The messages of one queue: ``async for message in browser``; see `redelivery.QueueBrowser`.

    Made by `Session.browser`. One iteration at a time, and one task within the session, as with a consumer.
    """

    _core: SessionCore

    def __aiter__(self) -> AsyncIterator[Message]:
        """Iterate over what the queue holds, from its head; the broker is asked from the first message on."""
        return _Iteration(self)

    async def acknowledge(self, message: messages.Message) -> None:
        """Nothing: to look is not to receive. For the messages."""

    async def close(self) -> None:
        """Look no more; an iteration that is under way raises IllegalStateError."""
        if self._closed:
            return
        core = self._core
        check_loop(core.runtime, "close")
        self._closed = True
        if self._nothing_there:
            return
        await core.to_the_end(core.inside_patiently("close", lambda: core.do(leave(core, self._state))))

    async def _begin(self) -> Link:
        return await self._core.inside("browse", self._attach)

    async def _next(self, link: Link) -> Message | None:
        return await self._core.inside("browse", lambda: self._poll_once(link))

    async def _attach(self) -> Link:
        core, state = self._core, self._state
        self.check_open("browse")
        while True:
            try:
                await core.do(open_channel(core, state))
                return await core.do(begin(state))
            except ConnectionLostError:  # nothing was shown yet
                if not core.comes_back:
                    raise
            await core.do(await_loss(core))

    async def _poll_once(self, link: Link) -> Message | None:
        self._check_iteration(link)
        delivery = await self._core.do(poll_once(self._state, link))
        return None if delivery is None else cast(Message, Message.received(delivery, 0, cast(Receipt, self)))


class _Iteration(AsyncIterator[Message]):
    """One look."""

    def __init__(self, browser: QueueBrowser) -> None:
        self._browser = browser
        self._link: Link | None = None

    async def __anext__(self) -> Message:
        if self._link is None:
            self._link = await self._browser._begin()
        message = await self._browser._next(self._link)
        if message is None:
            raise StopAsyncIteration
        return message
