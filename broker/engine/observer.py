"""The engine notifies an observer of what happens, in the step in which it happens, under the broker's lock."""

from __future__ import annotations

from typing import Protocol

from redelivery.broker.engine.entries import Entry
from redelivery.broker.engine.subscriptions import Dispatch
from redelivery.model.destinations import Destination


class EngineObserver(Protocol):
    """Keeps what it is notified of; nothing may be called back. Browsers and their copies are not among it."""

    def enqueued(self, entry: Entry) -> None:
        """A new message waits in a queue, or for one subscriber of its topic."""

    def dispatched(self, dispatch: Dispatch) -> None:
        """A consumer was given it."""

    def acknowledged(self, dispatch: Dispatch) -> None:
        """The message is consumed and removed."""

    def released(self, dispatch: Dispatch) -> None:
        """The message waits again."""

    def expired(self, entry: Entry) -> None:
        """The message's time is over; it is dead-lettered or discarded next."""

    def dead_lettered(self, entry: Entry, reason: str, where: Destination) -> None:
        """The message is removed, and its dead letter is where ``where`` says."""

    def discarded(self, entry: Entry, reason: str) -> None:
        """The message is removed, without a dead letter."""

    def committed(self, sent: int, received: int) -> None:
        """A transaction with so many messages is committed."""
