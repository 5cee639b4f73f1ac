"""Browsers: a look at what a queue holds, which takes nothing."""

from __future__ import annotations

from collections.abc import Iterator

from redelivery.client.operations.browse import BrowseState, begin, leave, open_channel, poll_once
from redelivery.client.sync.closing import Closing
from redelivery.client.sync.core import SessionCore
from redelivery.model.destinations import Queue
from redelivery.model.errors import IllegalStateError
from redelivery.model.messages import Message
from redelivery.transports.seam import Link


class QueueBrowser(Closing):
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

    def __iter__(self) -> Iterator[Message]:
        """What the queue holds, from its head; the broker is asked from the first message on."""
        link = self._begin()
        while (message := self._next(link)) is not None:
            yield message

    def acknowledge(self, message: Message) -> None:
        """Nothing: to look is not to receive. For the messages; see `redelivery.model.messages.Receipt`."""

    def close(self) -> None:
        """Look no more; an iteration that is under way raises IllegalStateError."""
        if self._closed:
            return
        self._closed = True
        core = self._core
        if self._state.channel is None or core.life.ended or core.lost is not None:
            return  # there is nothing at the broker, or not any more
        core.inside_patiently("close", lambda: core.do(leave(core, self._state)))

    def __repr__(self) -> str:
        return f"<QueueBrowser {self.queue}{' closed' if self._closed else ''}>"

    def _begin(self) -> Link:
        return self._core.inside("browse", self._attach)

    def _attach(self) -> Link:
        core, state = self._core, self._state
        self.check_open("browse")
        core.do_open(open_channel(core, state))
        return core.do(begin(state))

    def _next(self, link: Link) -> Message | None:
        return self._core.inside("browse", lambda: self._poll_once(link))

    def _poll_once(self, link: Link) -> Message | None:
        self.check_open("browse")
        if link is not self._state.link:
            raise IllegalStateError(f"browse: another iteration over {self.queue} has begun, which ended this one")
        delivery = self._core.do(poll_once(self._state, link))
        return None if delivery is None else Message.received(delivery, 0, self)

    def check_open(self, action: str) -> None:
        """Raise where it is closed."""
        if self._closed:
            raise IllegalStateError(f"{action}: the browser of {self.queue} was closed by close()")
