"""The exception listener's thread: there from the first trouble to the end of the connection."""

from __future__ import annotations

import logging
import threading
import weakref
from queue import SimpleQueue
from typing import Protocol

from redelivery.client.options import ExceptionListener
from redelivery.model.errors import JMSError

log = logging.getLogger(__name__)


class Listened(Protocol):
    """Who has an exception listener."""

    @property
    def exception_listener(self) -> ExceptionListener | None:
        """It is called on a thread of its own."""


class Troubles:
    """What a connection's exception listener is to hear; it keeps no connection alive."""

    def __init__(self, listened: Listened) -> None:
        self._listened = weakref.ref(listened)
        self._errors: SimpleQueue[JMSError | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def put(self, error: JMSError) -> None:
        """Soon. By one thread at a time."""
        self._errors.put(error)
        if self._thread is None:
            self._thread = threading.Thread(
                target=_notify_all, args=(self._errors, self._listened), name="redelivery-exceptions", daemon=True
            )
            self._thread.start()

    def end(self) -> None:
        """There are no more; what was put before is told."""
        self._errors.put(None)


def _notify_all(errors: SimpleQueue[JMSError | None], listened: weakref.ref[Listened]) -> None:
    while _notify(errors.get(), listened):
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
