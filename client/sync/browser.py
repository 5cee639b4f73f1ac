"""Browsers: a look at what a queue holds, which takes nothing."""

from __future__ import annotations

from collections.abc import Iterator

from redelivery.client.connection.threads import closes_elsewhere
from redelivery.client.operations.browse import begin, leave, open_channel, poll_once
from redelivery.client.operations.reattach import await_loss
from redelivery.client.shells.browser import BaseBrowser
from redelivery.client.sync.core import Closing, SessionCore
from redelivery.model.errors import ConnectionLostError
from redelivery.model.messages import Message
from redelivery.transports.seam import Link


class QueueBrowser(BaseBrowser, Closing):
    """The messages of one queue, in the order in which a consumer would get them. Made by `Session.browser`.

    Each iteration begins anew and ends where the broker says that the queue does; what is sent, taken or expires
    meanwhile may be seen or not, and so may what consumers hold unacknowledged. Acknowledging such a message has no
    effect. The connection need not be started, and the session's transaction goes on as if nobody had looked.

    One iteration at a time, and one thread within the session, as with a consumer.

    Raises, from the iteration:
        InvalidDestinationError, InvalidSelectorError, SecurityError: the broker refuses.
        IllegalStateError: the browser or its session is closed, another iteration has begun meanwhile, or another
            thread is inside the session.
        ConnectionLostError: the connection was lost.
    """

    _core: SessionCore

    def __iter__(self) -> Iterator[Message]:
        """Iterate over what the queue holds, from its head; the broker is asked from the first message on."""
        link = self._begin()
        while (message := self._next(link)) is not None:
            yield message

    def acknowledge(self, message: Message) -> None:
        """Nothing: to look is not to receive. For the messages; see `redelivery.model.messages.Receipt`."""

    def close(self) -> None:
        """Look no more; an iteration that is under way raises IllegalStateError.

        In a signal handler that has interrupted a call of its session another thread closes: see `Connection.close`.
        """
        core = self._core
        if self._closed or closes_elsewhere((core,), self.close, core.options.close_timeout):
            return
        self._closed = True
        if self._nothing_there:
            return
        core.inside_patiently("close", lambda: core.do(leave(core, self._state)))

    def _begin(self) -> Link:
        return self._core.inside("browse", self._attach)

    def _next(self, link: Link) -> Message | None:
        return self._core.inside("browse", lambda: self._poll_once(link))

    def _attach(self) -> Link:
        core, state = self._core, self._state
        self.check_open("browse")
        while True:
            try:
                core.do(open_channel(core, state))
                return core.do(begin(state))
            except ConnectionLostError:  # nothing was shown yet
                if not core.comes_back:
                    raise
            core.do(await_loss(core))

    def _poll_once(self, link: Link) -> Message | None:
        self._check_iteration(link)
        delivery = self._core.do(poll_once(self._state, link))
        return None if delivery is None else Message.received(delivery, 0, self)
