"""Tells whether a receiver has what was there when it began, or has a backlog before it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from redelivery.model.errors import MessageFormatError
from redelivery.model.messages import Message
from redelivery.model.values import to_epoch_ms
from redelivery.transports.wire.clock import epoch_ms

_CALLS: Final = 8
_FULL: Final = 0.625  # of these; with a backlog, a broker's window that is used up makes some short too
_AT_ONCE: Final = 0.002  # seconds; what comes later was waited for
_AHEAD_MS: Final = 1000  # a sender's clock that is further ahead says nothing


class KeepingUp:
    """A transaction and its queue so far: by when the messages were sent, else by how they come.

    A clock of a sender that is wrong makes transactions shorter or longer, within `receiveTimeout` and
    `maxReceiveTime`.
    """

    def __init__(self) -> None:
        self._began = 0
        self._sent: int | None = None
        self._full: deque[bool] = deque(maxlen=_CALLS)  # whether each call found as many messages as it had asked for

    def begin(self) -> None:
        """A transaction begins."""
        self._began, self._sent = epoch_ms(), None
        self._full.clear()

    def took(self, messages: Sequence[Message], most: int, seconds: float) -> None:
        """A call for at most so many messages has taken so long."""
        self._full.append(len(messages) == most and seconds < _AT_ONCE)
        if messages:
            try:
                self._sent = to_epoch_ms(messages[-1].timestamp) or None
            except MessageFormatError:
                self._sent = None

    def caught_up(self) -> bool:
        """Check whether the last message was sent since the transaction began: what was there then is taken."""
        return self._dated() is not None and self._age() <= 0

    def behind(self, target: float) -> bool:
        """Check whether there is a backlog: of messages sent more than ``target`` seconds before it began."""
        if self._dated() is None:
            return len(self._full) < _CALLS or sum(self._full) > _FULL * _CALLS
        return self._age() > target * 1000

    def _dated(self) -> int | None:
        ahead = self._sent is not None and self._sent > epoch_ms() + _AHEAD_MS
        return None if ahead else self._sent

    def _age(self) -> int:
        return self._began - (self._sent or 0)
