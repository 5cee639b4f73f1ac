"""A session's part in its connection to a broker, and what it is notified of beside deliveries.

What other threads notify it of stands in its inbox between the deliveries, in the order in which it happened; the
holder of the session acts on it, when it is taken in.

The session's waiter is no part of an epoch: its holder waits there, and is woken, whichever connection there is.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeAlias

from redelivery.client.ledger import ConsumerState, Received
from redelivery.model.errors import JMSError
from redelivery.model.messages import Message
from redelivery.transports.seam import Channel, Pending, Transport


class Epoch:
    """From a session's channel on one connection to the loss of it, and what that leaves for the next.

    Attributes:
        transport: the connection's; after a loss the old one, until the session has a channel on the next.
        channel: the session's, by which it acts at the broker; likewise. There is one from `channels.open_first` on.
        number: of the session's connections so far.
        lost: why it is over; None while the session has a channel.
        leaving: why it will be over when the session is at rest: the connection is moved; None for no such reason.
        successor: the transport of the next one, once that is there; the session has no channel on it yet.
        doomed: why the open transaction, which is older than the last loss, can only be rolled back.
        late: acknowledged one by one when the connection was gone, and the session had not taken that in.
        stale: in CLIENT mode, what the application held at the loss, and may acknowledge in vain.
        again: what is to be sent again on this connection, with whom its answer is for; None: it is the transaction's.
    """

    __slots__ = ("again", "channel", "doomed", "late", "leaving", "lost", "number", "stale", "successor", "transport")

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.channel: Channel
        self.number = 1
        self.lost: JMSError | None = None
        self.leaving: JMSError | None = None
        self.successor: Transport | None = None
        self.doomed: JMSError | None = None
        self.stale: list[Received] = []
        self.late: list[Received] = []
        self.again: deque[tuple[Message, Pending | None]] = deque()

    def end(self, error: JMSError, held: tuple[Received, ...], *, doomed: bool, stale: bool) -> None:
        """The connection is lost. ``held``: by the application; ``doomed``: its transaction; ``stale``: keep `held`."""
        self.lost, self.leaving, self.successor = error, None, None
        if doomed:
            self.doomed = self.doomed or error
        if stale:
            self.stale += held

    def begin(self) -> None:
        """The session has a channel on the next connection."""
        self.lost = self.successor = None
        self.number += 1

    def settle(self) -> None:
        """Nothing that is older than the loss is open any more."""
        self.doomed = None
        self.stale.clear()


# `SessionState.take_in` compares them, in one step: an `__eq__` in Python would let an interrupt lose one.


@dataclass(frozen=True, slots=True, eq=False)
class LinkEnded:
    """The broker has ended a consumer."""

    consumer: ConsumerState
    error: JMSError


@dataclass(frozen=True, slots=True, eq=False)
class Lost:
    """The connection is gone; nothing is the session's any more."""

    error: JMSError
    at: datetime


@dataclass(frozen=True, slots=True, eq=False)
class Interrupted:
    """The connection is gone, and another one will come; what was delivered is the broker's again.

    ``planned``: it will be gone when the session is at rest.
    """

    error: JMSError
    planned: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Restored:
    """There is another connection."""

    transport: Transport


@dataclass(frozen=True, slots=True, eq=False)
class CloseAsked:
    """The application closes a consumer."""

    consumer: ConsumerState


@dataclass(frozen=True, slots=True, eq=False)
class Returned:
    """A call that had taken these deliveries failed, or was interrupted: nobody has got them."""

    deliveries: tuple[Received, ...]


News: TypeAlias = LinkEnded | Lost | Interrupted | Restored | CloseAsked | Returned


class Report(Protocol):
    """How the connection is notified of an error that no call waits for."""

    def __call__(self, error: JMSError, *, deadly: bool = False, logged: bool = False) -> None:
        """``deadly``: a listener is called no more because of it. ``logged``: the log has a line about it already."""


def ended(consumer: ConsumerState, action: str) -> JMSError:
    """The error for a call that needs a consumer that the broker has ended, in the broker's words."""
    error = consumer.error
    assert error is not None, "it has ended"
    problem = type(error)(f"{action}: the broker has ended the consumer of {consumer.link.destination}: {error}")
    problem.__cause__ = error
    return problem
