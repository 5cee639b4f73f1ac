"""The answers to asynchronous sends, which nobody waits for but the session's close."""

from __future__ import annotations

from collections import deque
from contextlib import suppress

from redelivery.model.errors import ConnectionLostError, JMSError, RequestTimeoutError
from redelivery.transports.seam import Pending
from redelivery.transports.wire.answers import finish


class Unanswered(deque[Pending]):
    """In the order of the sends; one that has been answered may stay until those before it are."""

    __slots__ = ()

    def watch(self, pending: Pending) -> None:
        """The session's close waits for it."""
        self._forget_answered()
        self.append(pending)

    def unwatch(self, pending: Pending) -> None:
        """An interrupt came before its caller had the future: no close waits for an answer that may never come."""
        with suppress(ValueError):
            self.remove(pending)

    def more_than(self, count: int) -> bool:
        """Check whether more answers are to come than so many; one that has come counts until those before it have."""
        self._forget_answered()
        return len(self) > count

    @property
    def all_done(self) -> bool:
        """Check that no answer is awaited; a guess from other threads."""
        return all(each.done for each in list(self))

    def lose(self, error: JMSError) -> None:
        """There will be no other connection: answers end that a loss has not ended (see `reattach`)."""
        for each in list(self):
            finish(each, ConnectionLostError(str(error)))

    def end(self, why: str) -> None:
        """No answer will be seen any more: the futures fail, and say so."""
        for each in list(self):
            if not each.done:
                finish(each, RequestTimeoutError(why))
        self.clear()

    def _forget_answered(self) -> None:
        while self and self[0].done:
            self.popleft()
