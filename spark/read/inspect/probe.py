"""Whether there is anything to receive, asked without receiving: by browsing, where the broker can."""

from __future__ import annotations

import logging
import threading
from typing import Final

import redelivery
from redelivery.spark.options.query import SourceOptions
from redelivery.spark.options.reconnect import LOST, connect
from redelivery.spark.read.inspect.depth import QueueDepth
from redelivery.transports.wire.clock import monotonic

log = logging.getLogger(__name__)

_PAUSE: Final = 0.1  # seconds between two looks


class Probe:
    """A connection that browses, made when it is first needed and again when it is lost."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._connection: redelivery.Connection | None = None
        self._closed = threading.Event()
        self._connections = 0
        self._depth = QueueDepth(options)

    def ready(self, seconds: float, *, quiet: bool) -> bool:
        """Whether a batch is worth planning, known within ``seconds``.

        Where the broker cannot be asked: yes; after ``seconds`` if the batch before came to nothing (``quiet``).

        Raises:
            ConnectError: the broker was away for longer than `maxReconnectTime`.
        """
        until = monotonic() + seconds
        while True:
            try:
                if not self._open().metadata.capabilities.browse:
                    if quiet:
                        self._closed.wait(max(0.0, until - monotonic()))
                    return not self._closed.is_set()
                if self._something():
                    return True
            except LOST as error:
                if self._connection is None:
                    raise
                log.warning("the connection was lost: %s", error)
                self._forget()
            if monotonic() + _PAUSE > until or self._closed.wait(_PAUSE):
                return False

    def report(self) -> dict[str, int]:
        """How many connections it took so far, and `queueDepth` where it is known."""
        return {"connections": self._connections, **self._depth.report()}

    def close(self) -> None:
        """End every wait, and the connections."""
        self._closed.set()
        self._depth.close()
        self._forget()

    def _open(self) -> redelivery.Connection:
        if self._connection is None:
            self._connection = connect(self._options, stopped=self._closed)
            self._connections += 1
        return self._connection

    def _something(self) -> bool:
        assert self._connection is not None
        options = self._options
        with (
            self._connection.session() as session,
            session.browser(options.destination, selector=options.selector) as browser,
        ):
            return next(iter(browser), None) is not None

    def _forget(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
