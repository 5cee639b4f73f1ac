"""Requests whose replies are waited for, of one connection, and what happens to replies that nobody waits for."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias, cast
from uuid import uuid4

from redelivery.model.content.headers import SendKeywords
from redelivery.model.errors import (
    ConfigError,
    ConnectionLostError,
    IllegalStateError,
    InDoubtError,
    JMSError,
    RequestTimeoutError,
)
from redelivery.model.messages import Message
from redelivery.transports.seam import Pending

log = logging.getLogger(__name__)
_Id: TypeAlias = str | bytes


class Replies:
    """The requests that wait for a reply; ``late``: how many replies came that no request waited for. Thread-safe."""

    def __init__(self) -> None:
        self.late = 0
        self._lock = threading.Lock()
        self._waiting: dict[_Id, Pending] = {}

    @contextmanager
    def expected(self, correlation_id: _Id, pending: Pending) -> Iterator[None]:
        """Complete ``pending`` with the reply that has this correlation id.

        Raises:
            IllegalStateError: another request with this id waits for its reply.
        """
        try:
            with self._lock:
                if correlation_id in self._waiting:
                    raise IllegalStateError(
                        f"request: another one with correlation_id={correlation_id!r} waits for its reply; "
                        "leave it out, and each request gets an id of its own"
                    )
                self._waiting[correlation_id] = pending
            yield
        finally:
            self._expect_no_more(correlation_id, pending)

    @property
    def none_awaited(self) -> bool:
        """True: no request waits."""
        return not self._waiting

    def arrived(self, message: Message) -> None:
        """A reply came."""
        with self._lock:
            pending = self._waiting.get(message.correlation_id) if message.correlation_id is not None else None
            if pending is None or pending.done:
                self.late += 1
            else:
                pending.complete(message)
                return
        log.debug(
            "dropped a reply that no request waits for, or waits for any more: %s, correlation_id=%r",
            message.message_id,
            message.correlation_id,
        )

    def lost(self, error: JMSError) -> None:
        """The connection is gone, and every temporary queue with it."""
        self._fail(_lost(error))

    def closed(self) -> None:
        """The application has closed the connection."""
        self._fail(IllegalStateError("the connection was closed by close() before the reply came"))

    def _expect_no_more(self, correlation_id: _Id, pending: Pending) -> None:
        with self._lock:
            if self._waiting.get(correlation_id) is pending:
                del self._waiting[correlation_id]

    def _fail(self, error: JMSError) -> None:
        with self._lock:
            for pending in self._waiting.values():
                if not pending.done:
                    pending.fail(error)


def _lost(error: JMSError) -> ConnectionLostError:
    return ConnectionLostError(
        f"the connection was lost before the reply came, which is lost with its temporary queue ({error}): the request "
        "may have been handled; ask again if it may be handled twice"
    )


PAUSE: Final = 0.005  # seconds after which a request looks again whether its queue was made anew


def check_sent(doubt: InDoubtError) -> None:
    """The broker has not confirmed a request, whose reply would say more. Raises ConnectionLostError: it is lost."""
    if isinstance(doubt.__cause__, ConnectionLostError):
        raise _lost(doubt.__cause__) from doubt


def request_options(options: SendKeywords, timeout: float) -> tuple[_Id, SendKeywords]:
    """The correlation id of a request, and the keywords of its send: it expires when nobody waits any more.

    Raises:
        ConfigError: it names a ``reply_to``.
    """
    if options.get("reply_to") is not None:
        raise ConfigError(
            "reply_to: a request is answered to a temporary queue of its connection; to be answered elsewhere, send"
            " it with a producer, and receive there"
        )
    correlation_id = options.get("correlation_id") or uuid4().hex
    expiring: SendKeywords = {"ttl": timeout} if timeout else {}
    return correlation_id, {**expiring, **options, "correlation_id": correlation_id}


def check_started(started: bool) -> None:
    """Raise IllegalStateError where the connection is stopped."""
    if not started:
        raise IllegalStateError("request: the connection is stopped, so no reply would be delivered: start() it first")


def reply_of(pending: Pending, destination: object, timeout: float) -> Message:
    """The reply that came.

    Raises:
        RequestTimeoutError: nothing has.
        ConnectionLostError, IllegalStateError: nothing will.
    """
    if pending.error is not None:
        raise pending.error
    if not pending.done:
        raise RequestTimeoutError(f"no reply came from {destination} within {timeout:g} s; a later one is dropped")
    return cast(Message, pending.value)
