"""The engine made safe for threads: one lock, a clock, an alarm for what becomes due, and a store for what is to last.

With a store nothing is answered, and no consumer sees a message, before that is durable. The first of the callers that
wait writes what all of them have done, with one sync.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Protocol, TypeVar

from redelivery.broker.alarm import Alarm
from redelivery.broker.engine.config import BrokerConfig
from redelivery.broker.engine.engine import Engine
from redelivery.broker.engine.rules.rules import EngineRules
from redelivery.broker.faults import Faults
from redelivery.broker.observed import ObservedBroker
from redelivery.broker.store.journal import UnreadableStoreError
from redelivery.broker.store.sqlite import SqliteStore
from redelivery.model.errors import IllegalStateError, InvalidClientIDError, JMSError, ResourceAllocationError
from redelivery.transports.dialects.detect import obeying
from redelivery.transports.runtime import BROKER_OF_THE_PARENT, Owner
from redelivery.transports.wire.clock import epoch_ms, monotonic

T = TypeVar("T")
log = logging.getLogger(__name__)


class BrokerClosedError(IllegalStateError):
    """The broker has ended."""


class BrokerConnection(Protocol):
    """One client of the broker, by any protocol."""

    def broker_closed(self, reason: str) -> None:
        """The broker has ended; nothing of this connection is known there any more."""


class Core:
    """The state that servers and ``vm://`` share. They use `call`; it calls nothing back while it holds the lock."""

    def __init__(self, name: str, config: BrokerConfig, observer: ObservedBroker | None = None) -> None:
        self.name = name
        self.config = config
        self.dialect = obeying(None if config.rules is None else config.rules.dialect)
        self._observer = observer
        self.faults = Faults()
        self.started_at = epoch_ms()
        self._engine = Engine(config, observer)
        self._store: SqliteStore | None = None
        self._syncing = threading.Lock()  # held while the store is written
        self._gathering: set[int] = set()  # the threads that call `sync` themselves
        self._on_close: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._watchers = 0  # who waits for it
        self._alarm = Alarm(f"redelivery-broker-{name}-timer", self._ring)
        self._closed: str | None = None
        self._connections: dict[BrokerConnection, str | None] = {}  # with their client ids
        self._numbers = count(1)
        self.owners: weakref.WeakSet[Owner] = weakref.WeakSet()  # of what a child after fork() has copies of
        _cores.add(self)

    def keep_in(self, store: SqliteStore) -> None:
        """Begin with what a store holds, and keep everything in it; before anything else.

        Raises:
            ConfigError: its file is damaged.
        """
        contents = store.restore()
        store.is_full = lambda: self.faults.disk_full
        self._store = store
        self._engine = Engine(self.config, self._observer, store)
        self._engine.restore(contents, epoch_ms())
        self._alarm.set(self._engine.next_deadline())

    @property
    def rules(self) -> EngineRules:
        """The broker's rules."""
        return self._engine.rules

    def call(self, function: Callable[[Engine, int], T]) -> T:
        """Run ``function(engine, now)`` alone, then wake the consumers that were given something.

        What it did is durable when this returns, unless the thread is `gathering`. Raises BrokerClosedError: the broker
        is closed, or its store cannot be read or written.
        """
        touched, ended = [], []
        try:
            with self._lock:
                if self._closed is not None:
                    raise self._closed_error(self._closed)
                try:
                    self._engine.begin()
                    return function(self._engine, epoch_ms())
                finally:
                    if self._watchers:
                        self._changed.notify_all()
                    touched = self._engine.take_touched()
                    ended, self._engine.slow.ended = self._engine.slow.ended, []
                    self._alarm.set(self._engine.next_deadline())
        except UnreadableStoreError as error:  # what was answered is in the file, and nothing of this step
            raise self.end(error) from error
        finally:
            for subscription in touched:
                subscription.outbox.wake()
            for subscription, ending in ended:
                subscription.outbox.end_slow(ending)
            if self._observer is not None:
                self._observer.flush()
            if self._store is not None and threading.get_ident() not in self._gathering:
                self.sync()

    @contextmanager
    def gathering(self) -> Iterator[None]:
        """This thread calls `sync` after a round of calls, before anything of their results is shown."""
        me = threading.get_ident()
        self._gathering.add(me)
        try:
            yield
        finally:
            self._gathering.discard(me)

    def sync(self) -> None:
        """Wait until all that was done up to now is durable; then consumers see it.

        Raises:
            BrokerClosedError: the store cannot be written, or the broker was closed before.
        """
        store = self._store
        if store is None:
            return
        wanted = store.sequence
        if store.durable < wanted:
            try:
                self._write(store, wanted)
            except ResourceAllocationError as error:  # nothing is answered any more: what was, is in the file
                raise self.end(error) from error
        with self._lock:
            self._engine.deliver(store.durable)
            touched = self._engine.take_touched()
        for subscription in touched:
            subscription.outbox.wake()

    def when_closed(self, callback: Callable[[], None]) -> None:
        """Call this when the broker ends, by whatever cause."""
        self._on_close.append(callback)

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

    def tick(self) -> None:
        """Do what is due. Raises BrokerClosedError: the broker is closed."""
        self.call(lambda engine, now: engine.tick(now))

    def next_deadline(self) -> int | None:
        """The time when something becomes due, in milliseconds since 1970; None for never. Raises as `tick`."""
        return self.call(lambda engine, _now: engine.next_deadline())

    def new_id(self) -> str:
        """A message id that no other broker or run has used."""
        return f"ID:{self.name}-{self.started_at}-1:{next(self._numbers)}"

    def connect(self, connection: BrokerConnection, client_id: str | None) -> None:
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

    def disconnect(self, connection: BrokerConnection) -> None:
        """Forget a connection; it ends its subscriptions and transactions itself. Idempotent."""
        with self._lock:
            self._connections.pop(connection, None)

    @property
    def connections(self) -> int:
        """The number of connections."""
        return len(self._connections)

    def kill(self) -> None:
        """Write nothing more to the store: `close` comes next."""
        if self._store is not None:
            self._store.give_up()

    def end(self, error: JMSError) -> BrokerClosedError:
        """End because the store is of no use any more; returns the error for a call that is under way."""
        log.error("broker %s ends: %s", self.name, error)
        self.close(str(error), 0.0)
        return self._closed_error(str(error))

    def close(self, reason: str, timeout: float) -> None:
        """End: every call raises from now on, and every connection is notified. Idempotent."""
        with self._lock:
            if self._closed is not None:
                return
            self._closed = reason
            self._changed.notify_all()
            connections = list(self._connections)
            self._connections.clear()
            self._engine.count_seen()
        self._alarm.close(timeout)
        self._close_store()
        for callback in self._on_close:
            callback()
        for connection in connections:
            connection.broker_closed(reason)

    def orphan(self) -> None:
        """In a child after fork(): the parent's threads held the locks, its broker goes on, and none of it is here."""
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._syncing = threading.Lock()
        self._alarm.orphan()
        self._closed = self._closed or BROKER_OF_THE_PARENT
        store, self._store = self._store, None
        if store is not None:
            store.orphan(self._closed)
        self._connections.clear()
        for owner in list(self.owners):
            owner.orphan()

    def _write(self, store: SqliteStore, wanted: int) -> None:
        with self._syncing:
            if store.durable >= wanted:
                return  # another thread has written this as well
            with self._lock:
                if self._closed is not None:
                    raise self._closed_error(self._closed)
                batch = store.take()
            self.faults.before_sync()
            store.write(batch)

    def _close_store(self) -> None:
        if self._store is not None:
            with self._syncing:
                self._store.close()

    def _ring(self) -> None:
        try:
            self.tick()
        except BrokerClosedError:
            return  # meanwhile

    def _closed_error(self, reason: str) -> BrokerClosedError:
        return BrokerClosedError(f"the embedded broker {self.name!r} is closed: {reason}")


def _after_fork() -> None:
    for each in list(_cores):
        each.orphan()


_cores: weakref.WeakSet[Core] = weakref.WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
