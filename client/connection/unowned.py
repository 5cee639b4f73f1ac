"""What a transport may hold of a connection and its sessions: nothing that keeps them alive.

A transport lives as long as its sockets, which the housekeeping thread holds. A connection that the application has
dropped must be collected all the same, to say so and to close them; so whatever points upwards points weakly.
"""

from __future__ import annotations

import logging
import weakref
from collections import deque
from collections.abc import Sequence
from queue import SimpleQueue
from typing import Protocol

from redelivery.client.options import ExceptionListener
from redelivery.model.errors import JMSError
from redelivery.transports.seam import ConnectionEvents, Delivery, Link, SessionEvents, Waiter

log = logging.getLogger(__name__)


class UnownedConnection:
    """`ConnectionEvents` of a connection that may be gone."""

    def __init__(self, connection: ConnectionEvents) -> None:
        self._connection = weakref.ref(connection)

    def on_lost(self, error: JMSError) -> None:
        """See ConnectionEvents."""
        connection = self._connection()
        if connection is not None:
            connection.on_lost(error)

    def on_error(self, error: JMSError) -> None:
        """See ConnectionEvents."""
        connection = self._connection()
        if connection is not None:
            connection.on_error(error)


class UnownedSession:
    """`SessionEvents` of a session that may be gone: its inbox and waiter, which know nothing of it."""

    def __init__(self, session: SessionEvents) -> None:
        self.inbox: deque[Delivery] = session.inbox
        self.waiter: Waiter = session.waiter
        self._session = weakref.ref(session)

    def on_deliveries(self, deliveries: Sequence[Delivery]) -> None:
        """See SessionEvents."""
        self.inbox.extend(deliveries)
        self.waiter.wake()

    def on_link_closed(self, link: Link, error: JMSError) -> None:
        """See SessionEvents."""
        session = self._session()
        if session is not None:
            session.on_link_closed(link, error)


class Listened(Protocol):
    """Who has an exception listener."""

    @property
    def exception_listener(self) -> ExceptionListener | None:
        """It is called on a thread of its own."""


def notify_all(troubles: SimpleQueue[JMSError | None], listened: weakref.ref[Listened]) -> None:
    """The exception listener's thread: there from the first trouble to the connection's end."""
    while _notify(troubles.get(), listened):
        pass  # and nothing is held meanwhile: an error's traceback would keep the connection alive


def _notify(error: JMSError | None, listened: weakref.ref[Listened]) -> bool:
    """One trouble; False: that was all."""
    connection = listened()
    listener = None if connection is None else connection.exception_listener
    if error is not None and listener is not None:
        try:
            listener(error)
        except Exception:  # a guard of application code: its failure must not end the telling
            log.exception("the exception listener raised")
    return error is not None
