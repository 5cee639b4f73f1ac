"""Browsers: links that show what a queue holds, and take nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import count, islice
from typing import Any, Final

from cproton_ffi import lib

from redelivery.broker.engine.entries import Entry
from redelivery.broker.engine.state import check_browsable
from redelivery.broker.servers.amqp.codec.messages import write_message
from redelivery.broker.servers.amqp.codec.terminus import SourceRequest
from redelivery.broker.servers.amqp.links.link import LinkSession
from redelivery.broker.servers.amqp.links.outgoing import OutgoingLink

_READ: Final = 100  # messages at once


class BrowserLink(OutgoingLink):
    """What the queue holds when the link is attached, in order; those that other consumers hold are shown too."""

    def __init__(self, session: LinkSession, number: int, handle: Any) -> None:
        super().__init__(session, number, handle)
        self._entries: deque[Entry] = deque()
        self._more: Iterator[Entry] = iter(())  # what is to be read when those have been sent
        self._numbers = count(1)

    def begin(self, request: SourceRequest) -> None:
        """See `OutgoingLink.begin`."""
        queue = check_browsable(request.destination)
        selector = request.selector
        in_memory, self._more = self.session.core.call(lambda engine, _now: engine.browsed(queue.name, selector))
        self._entries.extend(in_memory)

    def grant(self, credit: int, drain: bool) -> None:
        """See `OutgoingLink.grant`: nothing comes later."""

    @property
    def waits(self) -> bool:
        """See `OutgoingLink.waits`."""
        if not self._entries:
            self._entries.extend(self.session.core.call(lambda _engine, _now: list(islice(self._more, _READ))))
        return bool(self._entries)

    def send_next(self, now: int) -> None:
        """See `OutgoingLink.send_next`; what has expired meanwhile is not shown."""
        entry = self._entries.popleft()
        if not entry.message.expired(now):
            count, origin = entry.redeliveries + 1, self.session.core.origin
            parts = write_message(entry.message, count, first=not entry.acquired, now=now, origin=origin)
            self.transfer(next(self._numbers), parts)

    def on_delivery(self, handle: Any) -> None:
        """An outcome, which changes nothing."""
        if lib.pn_delivery_settled(handle) and not self.ended:
            lib.pn_delivery_settle(handle)

    def release(self) -> None:
        """See `BrokerLink.release`."""
        self._entries.clear()
        self._more = iter(())
