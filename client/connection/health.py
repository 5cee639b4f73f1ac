"""The state of a connection and of all that consumes on it, as one value: what a probe or a page of status shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from redelivery.model.destinations import Destination
from redelivery.model.events import ConnectionLost


@dataclass(frozen=True, slots=True)
class ListenerHealth:
    """One listener, of `Consumer.listen`, or one listener container that was started.

    Attributes:
        destination: the queue or topic that it consumes.
        name: of the handler.
        subscription: the name of the subscription to the topic; None: it has none.
        reasons: why it is not healthy; none where it is.
    """

    destination: Destination
    name: str
    subscription: str | None
    reasons: tuple[str, ...]

    @property
    def healthy(self) -> bool:
        """True: it consumes."""
        return not self.reasons


@dataclass(frozen=True, slots=True)
class SubscriptionHealth:
    """A named subscription to a topic that this connection's consumers have.

    Attributes:
        name, topic, durable, shared: as it was asked for.
        consumers: how many of this connection's consume it.
        reasons: why none of them can; none where it is healthy.
    """

    name: str
    topic: Destination
    durable: bool
    shared: bool
    consumers: int
    reasons: tuple[str, ...]

    @property
    def healthy(self) -> bool:
        """True: it is consumed."""
        return not self.reasons


@dataclass(frozen=True, slots=True)
class Health:
    """The state of a connection at one moment.

    Attributes:
        connected: it is neither closed, nor lost, nor being connected again.
        last_loss: the last loss of a connection to a broker, with ``error`` and ``at``; None: there was none.
        listeners: the listeners and listener containers, each with what keeps it from consuming.
        subscriptions: the named subscriptions that are consumed.
        blocked_sends: how many messages the broker does not take now: they wait for its credit, or for room in the
            socket. A guess, and no reason by itself: a broker that is busy blocks now and then.
        reasons: why it is not healthy, those of its listeners and subscriptions too.
    """

    connected: bool
    last_loss: ConnectionLost | None
    listeners: tuple[ListenerHealth, ...]
    subscriptions: tuple[SubscriptionHealth, ...]
    blocked_sends: int
    reasons: tuple[str, ...]

    @property
    def healthy(self) -> bool:
        """True: it is connected, and everything that it was asked to consume is consumed."""
        return not self.reasons


class Consumes(Protocol):
    """A listener container, as its connection sees it."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is not healthy."""

    @property
    def _ended(self) -> bool:
        """True: it was stopped, and its handlers have returned."""

    @property
    def _about(self) -> tuple[Destination, str, str | None]:
        """The destination, the name of the handler, and that of the subscription."""
