"""Receives for a session of ``vm://``: the broker puts messages there."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Mapping

from redelivery.broker.engine.stored import END_OF_QUEUE, carried, detached
from redelivery.broker.engine.subscriptions import Dispatch, Ending
from redelivery.broker.views import header_of, properties_of
from redelivery.model.content.bodies import RawBody
from redelivery.model.errors import IllegalStateError
from redelivery.model.values import Body, Value
from redelivery.transports.seam import Delivery, Link, Pending, Waiter


class VmDelivery(Delivery):
    """One dispatch of the embedded broker."""

    __slots__ = ("dispatch",)

    def __init__(self, link: Link, dispatch: Dispatch) -> None:
        super().__init__(link)
        self.dispatch = dispatch

    def wire_count(self) -> int:
        """Exact."""
        return self.dispatch.count

    def expires_at(self) -> int:
        """Epoch milliseconds, 0 for never."""
        return self.dispatch.message.expiration

    def body(self) -> Body:
        """The receiver's own copy."""
        return detached(self.dispatch.message.body)

    def raw_body(self) -> RawBody:
        """See `redelivery.model.content.bodies.Carrying`."""
        return carried(self.dispatch.message.body)

    def readable(self) -> tuple[Mapping[str, Value], list[str]]:
        """See `redelivery.model.content.bodies.Carrying`."""
        return properties_of(self.dispatch.message), []

    def properties(self) -> Mapping[str, Value]:
        """The properties, on a dead letter with its origin."""
        return properties_of(self.dispatch.message)

    def header(self, name: str) -> object:
        """One header."""
        return header_of(self.dispatch.message, name)


class LinkOutbox:
    """Puts what the broker dispatches to a link into the session's inbox."""

    __slots__ = ("_end", "_inbox", "_link", "_waiter")

    def __init__(self, link: Link, inbox: deque[Delivery], waiter: Waiter, end: Callable[[Link, Ending], None]) -> None:
        self._end = end
        self._link = link
        self._inbox = inbox
        self._waiter = waiter

    def append(self, dispatch: Dispatch, /) -> None:
        """One more for the inbox."""
        self._inbox.append(VmDelivery(self._link, dispatch))

    def wake(self) -> None:
        """Wake the session."""
        self._waiter.wake()

    def end_slow(self, ending: Ending) -> None:
        """End the link, or the connection."""
        self._end(self._link, ending)


class BrowserOutbox(LinkOutbox):
    """The same for a browser, whose queue ends."""

    __slots__ = ("_gone", "asked", "ended", "shown")

    def __init__(self, link: Link, inbox: deque[Delivery], waiter: Waiter, end: Callable[[Link, Ending], None]) -> None:
        super().__init__(link, inbox, waiter, end)
        self.ended = False
        self._gone: IllegalStateError | None = None
        self.asked: Pending | None = None  # whether there is more
        self.shown: deque[Dispatch] = deque()  # and not acknowledged; what was dispatched may come later

    def append(self, dispatch: Dispatch, /) -> None:
        """One more for the inbox, or the end."""
        self.shown.append(dispatch)
        if dispatch.message is END_OF_QUEUE:
            self.ended = True
        else:
            super().append(dispatch)

    def wake(self) -> None:
        """Wake the session, which may wait for an answer."""
        asked, self.asked = self.asked, None
        if asked is not None:
            asked.complete()
        super().wake()

    def ask(self) -> Generator[Pending, None, bool]:
        """Check for more, once the inbox has some of it. Raises IllegalStateError: the connection has ended."""
        self.asked = pending = Pending(self._waiter)  # first: what comes now is seen below, or completes it
        if self._gone is None and not self._inbox and not self.ended:
            yield pending
        if self._gone is not None:
            raise self._gone
        return not self.ended

    def give_up(self) -> None:
        """The connection has ended."""
        self._gone = IllegalStateError("the connection was closed while a browser waited for more")
        self.wake()
