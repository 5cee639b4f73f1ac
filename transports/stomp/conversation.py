"""What the parts of a channel share: how to write, to ask for an answer, and to wait for it."""

from __future__ import annotations

from dataclasses import dataclass

from redelivery.transports.base import Flow, Pending, SessionEvents
from redelivery.transports.dialects.dialect import StompDialect
from redelivery.transports.stomp.control import ControlFrames
from redelivery.transports.stomp.router import Router
from redelivery.transports.stomp.sends import SendEncoder
from redelivery.transports.stomp.transactions import UnitOfWork
from redelivery.transports.wire.outbox import Outbox


@dataclass(frozen=True, slots=True)
class Conversation:
    """One session's side of a connection."""

    dialect: StompDialect
    version: str
    router: Router
    outbox: Outbox
    events: SessionEvents
    control: ControlFrames
    encoder: SendEncoder

    def ask(self) -> tuple[Pending, bytes]:
        """A pending and the receipt to ask for. Raises ConnectionLostError where there is no connection any more."""
        pending = Pending(self.events.waiter)
        return pending, self.router.expect(pending)

    def answer(self, pending: Pending, receipt: bytes) -> Flow[None]:
        """Wait for the answer.

        Raises:
            RequestTimeoutError, ConnectionLostError: it did not come.
            JMSError: the broker refuses; the class says why.
        """
        try:
            if not pending.done:
                yield pending
        finally:
            self.router.forget(receipt)
        if pending.error is not None:
            raise pending.error

    def abort(self, work: UnitOfWork) -> None:
        """ABORT, where it had begun."""
        name = work.close()
        if name is not None:
            self.outbox.write(self.control.abort(name))
