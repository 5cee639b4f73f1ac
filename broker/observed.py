"""Makes events of what the engine notifies, for the application's observer: `redelivery.model.events`."""

from __future__ import annotations

import threading
from collections import deque
from typing import TypeAlias

from redelivery.broker.engine.entries import Entry
from redelivery.broker.engine.subscriptions import Dispatch
from redelivery.broker.views import StoredSource
from redelivery.model.destinations import Destination
from redelivery.model.events import (
    Acknowledged,
    Committed,
    DeadLettered,
    Discarded,
    Dispatched,
    Enqueued,
    Event,
    Expired,
    GuardedObserver,
    Observer,
    Released,
)

_Plain: TypeAlias = Enqueued | Dispatched | Acknowledged | Released | Expired
_BROKER = 0  # what stands for a session in a broker's events


class ObservedBroker:
    """Collects events under the broker's lock; `flush`, without it, gives them to the observer in their order.

    Raises:
        ConfigError: the observer is not a callable, or is a coroutine function.
    """

    def __init__(self, observer: Observer) -> None:
        self._observer = GuardedObserver(observer)
        self._events: deque[Event] = deque()
        self._turn = threading.Lock()  # one thread gives, the others leave theirs to it

    def flush(self) -> None:
        """Give what has been collected; where another call of it does so already, that one goes on with these."""
        while self._events and self._turn.acquire(blocking=False):
            try:
                while self._events:
                    self._observer.notify(self._events.popleft())
            finally:
                self._turn.release()

    def enqueued(self, entry: Entry) -> None:
        """As `redelivery.broker.engine.observer` says, here and below."""
        self._add(Enqueued, entry, entry.redeliveries)

    def dispatched(self, dispatch: Dispatch) -> None:
        """A consumer was given it."""
        self._add(Dispatched, dispatch.entry, dispatch.count)

    def acknowledged(self, dispatch: Dispatch) -> None:
        """The message is consumed."""
        self._add(Acknowledged, dispatch.entry, dispatch.count)

    def released(self, dispatch: Dispatch) -> None:
        """The message waits again."""
        self._add(Released, dispatch.entry, dispatch.count)

    def expired(self, entry: Entry) -> None:
        """The message's time is over."""
        self._add(Expired, entry, entry.redeliveries)

    def dead_lettered(self, entry: Entry, reason: str, where: Destination) -> None:
        """The message is a dead letter now."""
        count = entry.redeliveries
        self._events.append(DeadLettered(_BROKER, StoredSource(entry.message, count), count, None, reason, where))

    def discarded(self, entry: Entry, reason: str) -> None:
        """The message was discarded."""
        count = entry.redeliveries
        self._events.append(Discarded(_BROKER, StoredSource(entry.message, count), count, None, reason))

    def committed(self, sent: int, received: int) -> None:
        """A transaction is over."""
        self._events.append(Committed(_BROKER, sent, received))

    def _add(self, make: type[_Plain], entry: Entry, count: int) -> None:
        self._events.append(make(_BROKER, StoredSource(entry.message, count), count))
