"""The engine made safe for threads: one lock, a clock, and an alarm for what becomes due."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import count
from typing import Protocol, TypeVar

from redelivery.broker.alarm import Alarm
from redelivery.broker.engine.config import BrokerConfig
from redelivery.broker.engine.engine import Engine
from redelivery.broker.faults import Faults
from redelivery.broker.observed import ObservedBroker
from redelivery.model.errors import IllegalStateError, InvalidClientIDError
from redelivery.transports.wire.clock import epoch_ms, monotonic

T = TypeVar("T")


class BrokerClosedError(IllegalStateError):
    """The broker has ended."""


class Connection(Protocol):
    """One client of the broker, by any protocol."""

    def broker_closed(self, reason: str) -> None:
        """The broker has ended; nothing of this connection is known there any more."""


class Core:
    """What the servers and ``vm://`` share. They use `call`; it calls nothing back while it holds the lock."""

    def __init__(self, name: str, config: BrokerConfig, observer: ObservedBroker | None = None) -> None:
        self.name = name
        self.config = config
        self._observer = observer
        self.faults = Faults()
        self.started_at = epoch_ms()
        self._engine = Engine(config, observer)
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._watchers = 0  # who waits for it
        self._alarm = Alarm(f"redelivery-broker-{name}-timer", self._tick)
        self._closed: str | None = None
        self._connections: dict[Connection, str | None] = {}  # with their client ids
        self._numbers = count(1)

    def call(self, function: Callable[[Engine, int], T]) -> T:
        """Run ``function(engine, now)`` alone, then wake the consumers that were given something.

        Raises:
            BrokerClosedError: the broker is closed.
        """
        touched = []
        try:
            with self._lock:
                if self._closed is not None:
                    raise self._closed_error(self._closed)
                try:
                    return function(self._engine, epoch_ms())
                finally:
                    if self._watchers:
                        self._changed.notify_all()
                    touched = self._engine.take_touched()
                    self._alarm.set(self._engine.next_deadline())
        finally:
            for subscription in touched:
                subscription.outbox.wake()
            if self._observer is not None:
                self._observer.flush()

    def wait_until(self, holds: Callable[[Engine], bool], timeout: float) -> bool:
        """Wait up to ``timeout`` seconds until ``holds``, which is asked after every change; whether it does.

        Raises:
            BrokerClosedError: the broker is closed.
        """
        deadline = monotonic() + timeout
        with self._lock:
            self._watchers += 1
            try:
                while self._closed is None and not holds(self._engine):
                    if (left := deadline - monotonic()) <= 0:
                        return False
                    self._changed.wait(left)
                if self._closed is not None:
                    raise self._closed_error(self._closed)
                return True
            finally:
                self._watchers -= 1

    def new_id(self) -> str:
        """A message id that no other broker or run has used."""
        return f"ID:{self.name}-{self.started_at}-1:{next(self._numbers)}"

    def connect(self, connection: Connection, client_id: str | None) -> None:
        """Make a connection known.

        Raises:
            BrokerClosedError: the broker is closed.
            InvalidClientIDError: another connection holds the client id.
        """
        with self._lock:
            if self._closed is not None:
                raise self._closed_error(self._closed)
            if client_id is not None and client_id in self._connections.values():
                raise InvalidClientIDError(f"client id {client_id!r} is already connected to broker {self.name!r}")
            self._connections[connection] = client_id

    def disconnect(self, connection: Connection) -> None:
        """Forget a connection; it ends its subscriptions and transactions itself. Idempotent."""
        with self._lock:
            self._connections.pop(connection, None)

    @property
    def connections(self) -> int:
        """How many connections there are."""
        return len(self._connections)

    def close(self, reason: str, timeout: float) -> None:
        """End: every call raises from now on, and every connection is told. Idempotent."""
        with self._lock:
            if self._closed is not None:
                return
            self._closed = reason
            self._changed.notify_all()
            connections = list(self._connections)
            self._connections.clear()
        self._alarm.close(timeout)
        for connection in connections:
            connection.broker_closed(reason)

    def _tick(self) -> None:
        try:
            self.call(lambda engine, now: engine.tick(now))
        except BrokerClosedError:
            return  # meanwhile

    def _closed_error(self, reason: str) -> BrokerClosedError:
        return BrokerClosedError(f"the embedded broker {self.name!r} is closed: {reason}")
