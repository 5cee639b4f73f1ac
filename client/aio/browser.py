"""Browsers: a look at what a queue holds, which takes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator

from redelivery.client.aio.core import SessionCore
from redelivery.client.aio.made import Closing, Message
from redelivery.client.operations.browse import leave
from redelivery.client.shells.browser import BaseBrowser
from redelivery.transports.seam import Link


class QueueBrowser(BaseBrowser, Closing):
    """The messages of one queue, in the order in which a consumer would get them. Made by `Session.browser`.

    ``async for message in browser``: each iteration begins anew and ends where the broker says that the queue does;
    what is sent, taken or expires meanwhile may be seen or not, and so may what consumers hold unacknowledged.
    Acknowledging such a message has no effect. The connection need not be started, and the session's transaction goes
    on as if nobody had looked.

    One iteration at a time, and one task within the session, as with a consumer.

    Raises, from the iteration:
        InvalidDestinationError, InvalidSelectorError, SecurityError: the broker refuses.
        IllegalStateError: the browser or its session is closed, another iteration has begun meanwhile, or another
            task is inside the session.
        ConnectionLostError: the connection was lost.
    """

    _core: SessionCore
    _message = Message

    def __aiter__(self) -> AsyncIterator[Message]:
        """Iterate over what the queue holds, from its head; the broker is asked from the first message on."""
        return _Iteration(self)

    async def acknowledge(self, message: Message) -> None:
        """Nothing: to look is not to receive. For the library; see `redelivery.model.messages.Receipt`."""

    async def close(self) -> None:
        """Look no more; an iteration that is under way raises IllegalStateError.

        A close that is cancelled goes on.
        """
        core = self._core
        if self._closed or core.closes_elsewhere(self.close):
            return
        self._closed = True
        if not self._nothing_there:
            await core.to_the_end(lambda: core.inside_patiently("close", lambda: core.do(leave(core, self._state))))


class _Iteration(AsyncIterator[Message]):
    """One look."""

    def __init__(self, browser: QueueBrowser) -> None:
        self._browser = browser
        self._link: Link | None = None

    async def __anext__(self) -> Message:
        browser = self._browser
        core = browser._core
        link = self._link
        if link is None:
            link = self._link = await core.inside("browse", lambda: core.do(browser._begin()))
        message: Message | None = await core.inside("browse", lambda: core.do(browser._poll_once(link)))
        if message is None:
            raise StopAsyncIteration
        return message
