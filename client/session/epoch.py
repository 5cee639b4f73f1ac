"""A session's part in its connection to a broker: see `client.lifecycle` for the steps."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Protocol

from redelivery.client.ledger import Received
from redelivery.client.lifecycle import EPOCH, EpochStage
from redelivery.model.errors import JMSError
from redelivery.model.messages import Message
from redelivery.transports.seam import Channel, Pending, Transport


class Epoch:
    """From a session's channel on one connection to the loss of it, and what that leaves for the next.

    Attributes:
        stage: changes by the steps of the table alone.
        transport: the connection's; after a loss the old one, until the session has a channel on the next.
        channel: the session's, by which it acts at the broker; likewise. There is one from `channels.open_first` on.
        number: of the session's connections so far.
        lost: why it is over: while AWAY and RETURNING.
        leaving: why it will be over when the session is at rest, as the connection is moved: while LEAVING.
        successor: the transport of the next one, on which the session has no channel yet: while RETURNING.
        rollback_only: why the open transaction, which is older than the last loss, can only be rolled back.
        acked_after_loss: acknowledged when the connection was gone, and the session had not taken that in.
        from_lost_connection: in CLIENT mode, what the application held at the loss, and may acknowledge in vain.
        again: what is to be sent again on this connection, with whom its answer is for; None: it is the transaction's.
    """

    __slots__ = (
        *("acked_after_loss", "again", "channel", "from_lost_connection", "leaving", "lost", "number", "rollback_only"),
        *("stage", "successor", "transport"),
    )

    def __init__(self, transport: Transport) -> None:
        self.stage = EpochStage.ATTACHED
        self.transport = transport
        self.channel: Channel
        self.number = 1
        self.lost: JMSError | None = None
        self.leaving: JMSError | None = None
        self.successor: Transport | None = None
        self.rollback_only: JMSError | None = None
        self.from_lost_connection: list[Received] = []
        self.acked_after_loss: list[Received] = []
        self.again: deque[tuple[Message, Pending | None]] = deque()

    def leave(self, error: JMSError) -> None:
        """The connection is moved: lost as soon as the session is at rest."""
        self._step("leave")
        self.leaving = error

    def lose(self, error: JMSError) -> None:
        """The connection is lost; another one will come."""
        self._step("lose")
        self.lost, self.leaving, self.successor = error, None, None

    def come(self, transport: Transport) -> None:
        """There is another connection."""
        self._step("come")
        self.successor = transport

    def fail(self) -> None:
        """Note that it was lost again before the session had a channel on it; the news of that comes."""
        self._step("fail")
        self.successor = None

    def attach(self) -> None:
        """The session has a channel on it, and its consumers are attached."""
        self._step("attach")
        self.lost = self.successor = None
        self.number += 1

    def settle(self) -> None:
        """Nothing that is older than the loss is open any more."""
        self.rollback_only = None
        self.from_lost_connection.clear()

    def _step(self, event: str) -> None:
        target = EPOCH[self.stage].get(event)
        assert target is not None, f"a session that is {self.stage.value} cannot {event}"
        self.stage = target


class Wired(Protocol):
    """A session's epoch, or what stands for one: a driver reads its transport while a flow waits."""

    @property
    def transport(self) -> Transport:
        """The one that it has now."""


@dataclass(frozen=True, slots=True)
class Bare:
    """A transport alone, while it is opened or closed."""

    transport: Transport
