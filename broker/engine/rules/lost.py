"""A line of the log for messages that the broker loses, as the one whose file it obeys would lose them."""

from __future__ import annotations

import logging
from typing import Final

from redelivery.broker.engine.stored import StoredMessage

log = logging.getLogger(__name__)
QUIET: Final = 10_000  # milliseconds after a line in which others of its kind are only counted
_KINDS: Final = 1000  # of which the time is remembered


class LostMessages:
    """Warns of each message that is lost; of many of one destination for one reason, every ten seconds."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], int] = {}
        self._counted: dict[tuple[str, str], int] = {}

    def note(self, message: StoredMessage, reason: str, now: int) -> None:
        """Warn; ``reason``: why, without a number or a name that differs from message to message."""
        kind = (str(message.destination), reason)
        if now - self._last.get(kind, now - QUIET) < QUIET:
            self._counted[kind] = self._counted.get(kind, 0) + 1
            return
        others = self._counted.pop(kind, 0)
        if len(self._last) >= _KINDS:
            self._last.clear()
            self._counted.clear()
        self._last[kind] = now
        more = f" (and {others} more since the line before)" if others else ""
        log.warning("%s: message %s is lost: %s%s", message.destination, message.message_id, reason, more)
