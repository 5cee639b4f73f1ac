"""What the parts of a channel share: how to write, to ask for an answer, and to wait for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from redelivery.transports.amqp.connection import AmqpConnection
from redelivery.transports.amqp.endpoints import AmqpSession
from redelivery.transports.base import Flow, Pending, SessionEvents
from redelivery.transports.dialects.dialect import AmqpDialect


class Conversation:
    """One session's side of a connection."""

    def __init__(self, connection: AmqpConnection, events: SessionEvents, dialect: AmqpDialect) -> None:
        self.connection = connection
        self.events = events
        self.dialect = dialect
        self.sessions: list[AmqpSession] = []
        self._shared: AmqpSession | None = None  # of all links that need none of their own

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the connection, then write what came of it. Raises ConnectionLostError."""
        connection = self.connection
        with connection.lock:
            connection.check()
            yield
            connection.flush()
        if connection.blocked:
            connection.press_on()
        if connection.tidings:
            connection.tell()

    def session(self, *, consumers: bool = False) -> AmqpSession:
        """Where a new link goes; inside `writing`. The peer's agreement need not be waited for."""
        dialect, shared = self.dialect, self._shared
        alone = dialect.session_per_link or (consumers and dialect.session_end_counts)
        if not alone and shared is not None and shared.ended is None:
            return shared
        self.sessions = [each for each in self.sessions if each.ended is None]
        session = AmqpSession(self.connection)
        session.open(None)
        self.sessions.append(session)
        if not alone:
            self._shared = session
        return session

    def ask(self) -> Pending:
        """A pending that the session's thread waits for."""
        return Pending(self.events.waiter)

    def answer(self, pending: Pending) -> Flow[None]:
        """Wait for the answer.

        Raises:
            RequestTimeoutError, ConnectionLostError: it did not come.
            JMSError: the broker refuses; the class says why.
        """
        if not pending.done:
            yield pending
        if pending.error is not None:
            raise pending.error
