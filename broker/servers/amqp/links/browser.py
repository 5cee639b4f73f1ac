"""Browsers: links that show what a queue holds, and take nothing."""

from __future__ import annotations

from itertools import count
from typing import Any

from cproton_ffi import lib

from redelivery.broker.engine.state import check_browsable
from redelivery.broker.servers.amqp.codec.messages import write_message
from redelivery.broker.servers.amqp.codec.terminus import SourceRequest
from redelivery.broker.servers.amqp.links.link import LinkSession
from redelivery.broker.servers.amqp.links.outgoing import OutgoingLink
from redelivery.broker.store.browsing import BrowsedQueue


class BrowserLink(OutgoingLink):
    """Shows what the queue holds when the link is attached, in order; those that other consumers hold are shown too."""

    def __init__(self, session: LinkSession, number: int, handle: Any) -> None:
        super().__init__(session, number, handle)
        self._browsed: BrowsedQueue | None = None
        self._has_read = False  # a page in this round: other clients come first now
        self._numbers = count(1)

    def begin(self, request: SourceRequest) -> None:
        """See `OutgoingLink.begin`."""
        queue, selector = check_browsable(request.destination), request.selector
        self._browsed = self.session.core.call(lambda engine, _now: engine.browsed(queue.name, selector))

    def grant(self, credit: int, drain: bool) -> None:
        """See `OutgoingLink.grant`: nothing comes later."""

    def flush(self) -> bool:
        """See `BrokerLink.flush`; where nothing was found yet it goes on in the next round."""
        self._has_read = False
        unsent = super().flush()
        if not self.ended and not self.drained():
            self.session.mark_ready(self)
        return unsent

    def drained(self) -> bool:
        """See `OutgoingLink.drained`: not while there is more to be read."""
        browsed = self._browsed
        return browsed is None or bool(browsed.found) or not browsed.more

    @property
    def waits(self) -> bool:
        """See `OutgoingLink.waits`; a page is read for it at most once in a round."""
        browsed = self._browsed
        if browsed is None:
            return False
        if browsed.more and not browsed.found and not self._has_read:
            self._has_read = True
            self.session.core.call(lambda _engine, _now: browsed.read())
        return bool(browsed.found)

    def send_next(self, now: int) -> None:
        """See `OutgoingLink.send_next`; what has expired meanwhile is not shown."""
        assert self._browsed is not None, "something waits"
        entry = self._browsed.take()
        if not entry.message.expired(now):
            count, origin = entry.redeliveries + 1, self.session.core.rules.origin
            parts = write_message(entry.message, count, first=not entry.acquired, now=now, origin=origin)
            self.transfer(next(self._numbers), parts)

    def on_delivery(self, handle: Any) -> None:
        """An outcome, which changes nothing."""
        if lib.pn_delivery_settled(handle) and not self.ended:
            lib.pn_delivery_settle(handle)

    def release(self) -> None:
        """See `BrokerLink.release`."""
        self._browsed = None
