"""Browsers: links that show what a queue holds, and take nothing."""

from __future__ import annotations

from collections import deque
from itertools import count
from typing import Any

from cproton_ffi import lib

from redelivery.broker.engine.entries import Entry
from redelivery.broker.servers.amqp.codec.messages import write_message
from redelivery.broker.servers.amqp.codec.terminus import SourceRequest
from redelivery.broker.servers.amqp.links.link import LinkSession
from redelivery.broker.servers.amqp.links.outgoing import OutgoingLink
from redelivery.model.errors import UnsupportedError


class BrowserLink(OutgoingLink):
    """What the queue holds when the link is attached, in order; those that other consumers hold are shown too."""

    def __init__(self, session: LinkSession, number: int, handle: Any) -> None:
        super().__init__(session, number, handle)
        self._entries: deque[Entry] = deque()
        self._numbers = count(1)

    def begin(self, request: SourceRequest) -> None:
        """See `OutgoingLink.begin`."""
        queue = request.destination
        if queue.is_pattern:
            raise UnsupportedError(f"{queue} is a pattern: the embedded broker browses one queue at a time")
        self._entries.extend(self.session.core.call(lambda engine, _now: engine.entries(queue.name)))

    def grant(self, credit: int, drain: bool) -> None:
        """See `OutgoingLink.grant`: nothing comes later."""

    @property
    def waits(self) -> bool:
        """See `OutgoingLink.waits`."""
        return bool(self._entries)

    def send_next(self, now: int) -> None:
        """See `OutgoingLink.send_next`; what has expired meanwhile is not shown."""
        entry = self._entries.popleft()
        if not entry.message.expired(now):
            parts = write_message(entry.message, entry.redeliveries + 1, first=not entry.acquired, now=now)
            self.transfer(next(self._numbers), parts)

    def on_delivery(self, handle: Any) -> None:
        """An outcome, which changes nothing."""
        if lib.pn_delivery_settled(handle) and not self.ended:
            lib.pn_delivery_settle(handle)

    def release(self) -> None:
        """See `BrokerLink.release`."""
        self._entries.clear()
