"""Finds out without receiving whether there is anything to receive: by browsing, where the broker can."""

from __future__ import annotations

import logging
import threading
from itertools import islice
from typing import Final

import redelivery
from redelivery.model.destinations import Destination
from redelivery.model.errors import RequestTimeoutError
from redelivery.spark.options.query import SourceOptions
from redelivery.spark.options.reconnect import LOST, check_reachable, connect, connected_to
from redelivery.spark.read.inspect.capable import check_connection
from redelivery.spark.read.inspect.depth import QueueDepth
from redelivery.spark.read.receiving.consumer_group import consumers_of
from redelivery.transports.wire.clock import monotonic

log = logging.getLogger(__name__)

_PAUSE: Final = 0.1  # seconds between two looks
_SHARE: Final = 4  # times as long as a look took


def _can_be_browsed(place: Destination) -> bool:
    return place.scheme == "queue" and not place.is_pattern


class Probe:
    """A connection that browses, made when it is first needed; it comes back when it is lost."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._connection: redelivery.Connection | None = None
        self._closed = threading.Event()
        self._connections = 0  # before this one
        self._subscribed = False
        self._depth = QueueDepth(options)

    def ready(self, seconds: float, *, quiet: bool, least: int = 1) -> bool:
        """Check whether a batch is worth planning, within ``seconds``: ``least`` messages are there.

        Where the broker cannot be asked: yes; after ``seconds`` if the batch before came to nothing (``quiet``); no if
        more than one is wanted.

        Raises:
            ConnectError: the broker was away for longer than `maxReconnectTime`.
            UnsupportedError: it cannot do what the query needs.
        """
        until, places = monotonic() + seconds, self._options.destinations
        while True:
            pause = _PAUSE
            try:
                connection = self._open()
                if not connection.connected:  # it is being made again; `maxReconnectTime` bounds that
                    connection.check_open("browse")
                elif not (connection.metadata.capabilities.browse and all(map(_can_be_browsed, places))):
                    if quiet or least > 1:
                        self._closed.wait(max(0.0, until - monotonic()))
                    return least == 1 and not self._closed.is_set()
                else:
                    looked = monotonic()
                    if self._holds(least):
                        return True
                    pause = max(_PAUSE, _SHARE * (monotonic() - looked))  # counting many is work for the broker
            except LOST as error:
                if self._connection is None:
                    raise
                check_reachable(self._connection, self._options, error)
                log.warning("the connection was lost: %s", error)
                if isinstance(error, RequestTimeoutError):
                    self._forget()
            if monotonic() + pause > until or self._closed.wait(pause):
                return False

    @property
    def broker(self) -> int:
        """The broker of a list that was asked last: its messages are what a batch is planned for."""
        return 0 if self._connection is None else connected_to(self._connection)

    def report(self) -> dict[str, int]:
        """The number of connections made so far, and `queueDepth` where it is known."""
        connection = self._connection
        now = 0 if connection is None else connection.epoch
        return {"connections": self._connections + now, **self._depth.report()}

    def close(self) -> None:
        """End every wait, and the connections."""
        self._closed.set()
        self._depth.close()
        self._forget()

    def _open(self) -> redelivery.Connection:
        if self._connection is None:
            self._connection = connect(
                self._options, stopped=self._closed, comes_back=True, client_id=self._options.client_id, prefetch=1
            )
            check_connection(self._connection, self._options)
        if self._options.subscription is not None and not self._subscribed:
            self._subscribe(self._connection)
        return self._connection

    def _subscribe(self, connection: redelivery.Connection) -> None:
        """Make the subscription: from now on it keeps what comes, whenever the first task begins."""
        with connection.session() as session:
            for each in consumers_of(session, self._options):
                each.close()
        self._subscribed = True

    def _holds(self, least: int) -> bool:
        """Check whether the queues hold so many messages."""
        assert self._connection is not None
        selector = self._options.selector
        with self._connection.session() as session:
            for each in self._options.destinations:
                with session.browser(each, selector=selector) as browser:
                    least -= sum(1 for _ in islice(browser, least))
                if least <= 0:
                    return True
        return False

    def _forget(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._connections += connection.epoch
            connection.close()
