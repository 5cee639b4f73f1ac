"""Browsers: a look at what a queue holds, which takes nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from redelivery.client.closing import Closing
from redelivery.client.core import SessionCore
from redelivery.client.listeners import ListenerLoop
from redelivery.model.destinations import Destination, Queue
from redelivery.model.errors import (
    IllegalStateError,
    InvalidDestinationError,
    JMSError,
    UnsupportedError,
)
from redelivery.model.messages import Message
from redelivery.model.modes import AckMode
from redelivery.transports.base import Channel, Delivery, Link, Peer, Waiter


class QueueBrowser(Closing):
    """The messages of one queue, in the order in which a consumer would get them. Made by `Session.browser`.

    Each iteration begins anew and ends where the broker says that the queue does; what is sent, taken or expires
    meanwhile may be seen or not, and so may what consumers hold unacknowledged. Acknowledging such a message has no
    effect. The connection need not be started, and the session's transaction goes on as if nobody had looked.

    One iteration at a time, and one thread within the session, as with a consumer.

    Raises, to whoever iterates:
        InvalidDestinationError, InvalidSelectorError, SecurityError: the broker refuses.
        IllegalStateError: the browser or its session is closed, another iteration has begun meanwhile, or another
            thread is inside the session.
        ConnectionLostError: the connection was lost.
    """

    def __init__(
        self, core: SessionCore, loop: ListenerLoop, queue: Queue, *, selector: str | None, window: int | None
    ) -> None:
        self._core = core
        self._loop = loop
        self._queue = queue
        self._selector = selector
        self._window = window
        self._arrivals = Arrivals(core.waiter)
        self._channel: Channel | None = None  # of its own: the session's inbox and transaction are not its affair
        self._link: Link | None = None  # of the iteration that is under way
        self._more = False
        self._closed = False

    @property
    def queue(self) -> Queue:
        """Where it looks."""
        return self._queue

    @property
    def selector(self) -> str | None:
        """The selector, if there is one."""
        return self._selector

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
        if self._channel is None or core.life.over or core.lost is not None:
            return  # there is nothing at the broker, or not any more
        with self._loop.inside("close"):
            if self._channel in core.browsing:
                core.browsing.remove(self._channel)
                core.do(self._channel.close())

    def __repr__(self) -> str:
        return f"<QueueBrowser {self._queue}{' closed' if self._closed else ''}>"

    def _begin(self) -> Link:
        core = self._core
        core.enter("browse")
        try:
            self._check_open()
            channel = self._channel
            if channel is None:
                channel = self._channel = core.transport.channel(AckMode.AUTO, self._arrivals)
                core.browsing.append(channel)
            self._end(channel)
            link = Link(self._queue, prefetch=self._window, selector=self._selector, browse=True)
            core.do(channel.attach(link))
            self._link, self._more = link, True
            return link
        finally:
            core.use.release()

    def _next(self, link: Link) -> Message | None:
        core, channel, inbox = self._core, self._channel, self._arrivals.inbox
        assert channel is not None, "begun"
        core.enter("browse")
        try:
            self._check_open()
            if link is not self._link:
                raise IllegalStateError(f"browse: another iteration over {self._queue} has begun, which ended this one")
            while not inbox and self._more:
                self._more = core.do(channel.look(link))
            if inbox:
                return Message.received(inbox.popleft(), 0, self)
            self._end(channel)
            return None
        finally:
            core.use.release()

    def _end(self, channel: Channel) -> None:
        """End the iteration that is under way, if one is."""
        link, self._link = self._link, None
        if link is not None:
            self._core.do(channel.detach(link))
        self._arrivals.inbox.clear()

    def _check_open(self) -> None:
        if self._closed:
            raise IllegalStateError(f"browse: the browser of {self._queue} was closed by close()")


class Arrivals:
    """What a browser's channel tells it: `redelivery.transports.base.SessionEvents`."""

    def __init__(self, waiter: Waiter) -> None:
        self.inbox: deque[Delivery] = deque()
        self.waiter = waiter  # the session's: its one thread is the one that looks

    def on_deliveries(self, deliveries: Sequence[Delivery]) -> None:
        """See SessionEvents."""
        self.inbox.extend(deliveries)
        self.waiter.wake()

    def on_link_closed(self, link: Link, error: JMSError) -> None:
        """See SessionEvents: `Channel.look` raises it."""


def check_browsable(peer: Peer, target: Destination, selector: str | None) -> Queue:
    """The queue.

    Raises:
        InvalidDestinationError: it is a topic.
        UnsupportedError: it is a pattern, or the broker cannot do it.
    """
    if not isinstance(target, Queue):
        raise InvalidDestinationError(f"{target}: a topic holds no messages; browse a queue")
    if target.is_pattern:
        raise UnsupportedError(f"{target} is a pattern: a browser looks at one queue; make a browser for each")
    if not peer.capabilities.browse:
        raise UnsupportedError(
            f"{peer.provider_name} over {peer.protocol} has no browsing, as far as is known: it would hand the "
            "messages out to be consumed; use its own tools to look, or a broker and protocol that browse"
        )
    if selector and not peer.capabilities.selectors:
        raise UnsupportedError(f"{peer.provider_name} over {peer.protocol} has no selectors")
    return target
