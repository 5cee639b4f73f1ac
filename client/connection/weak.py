"""The events of a transport, which hold nothing that keeps its connection alive; a session's are in its inbox.

A transport lives as long as its sockets, which the housekeeping thread holds. A connection that the application has
dropped must be collected all the same, to say so and to close them; so whatever points upwards points weakly.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import Protocol

from redelivery.model.errors import JMSError


class Adopter(Protocol):
    """A connection, which adopts one transport after the other."""

    def on_lost(self, error: JMSError, of: WeakConnectionEvents) -> None:
        """See `ConnectionEvents`; ``of`` which transport it was, by its events."""

    def on_error(self, error: JMSError) -> None:
        """See `ConnectionEvents`."""


class WeakConnectionEvents:
    """`ConnectionEvents` of one transport of a connection, which may be gone, or may have another transport by now."""

    def __init__(self, connection: weakref.ref[Adopter]) -> None:
        self._connection = connection
        self._lock = threading.Lock()  # between `adopt` and a loss
        self._adopted = False
        self.lost: JMSError | None = None  # before it was adopted

    @classmethod
    def maker(cls, connection: Adopter) -> Callable[[], WeakConnectionEvents]:
        """Makes one for each transport of the connection."""
        return partial(cls, weakref.ref(connection))

    def adopt(self) -> None:
        """The connection has this transport now; it is notified of a loss since it was opened."""
        with self._lock:
            self._adopted, lost = True, self.lost
        if lost is not None:
            self.on_lost(lost)

    def on_lost(self, error: JMSError) -> None:
        """See ConnectionEvents."""
        with self._lock:
            if not self._adopted:
                self.lost = error
                return
        connection = self._connection()
        if connection is not None:
            connection.on_lost(error, self)

    def on_error(self, error: JMSError) -> None:
        """See ConnectionEvents."""
        connection = self._connection()
        if connection is not None:
            connection.on_error(error)
