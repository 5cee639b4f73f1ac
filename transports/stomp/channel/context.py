"""The state that the parts of a channel share: how to write, to ask for an answer, and to wait for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from redelivery.model.destinations import Destination, Queue
from redelivery.model.errors import InvalidDestinationError, JMSError
from redelivery.transports.dialects.dialect import StompDialect
from redelivery.transports.finding import Meaning
from redelivery.transports.seam import Flow, Pending, SessionEvents
from redelivery.transports.stomp.addresses import AddressFinder
from redelivery.transports.stomp.channel.transactions import UnitOfWork
from redelivery.transports.stomp.codec.control import ControlFrames
from redelivery.transports.stomp.codec.names import QueueRoute, to_wire
from redelivery.transports.stomp.codec.sends import SendEncoder
from redelivery.transports.stomp.connection.redelivered_ids import ReleasedIds
from redelivery.transports.stomp.connection.router import Router
from redelivery.transports.stomp.finder import QueueFinder
from redelivery.transports.wire.outbox import Outbox


class ChannelOwner(Protocol):
    """The owner of the channel: its place on a wire."""

    def on_error(self, error: JMSError) -> None:
        """Something failed that no call waits for."""

    def read_on_behalf(self) -> None:
        """An answer is awaited by nobody who reads."""

    def leave(self, context: StompChannelContext, *, clean: bool) -> Flow[None]:
        """The channel ends; ``clean``: nothing that it asked for was refused or unanswered."""


@dataclass(frozen=True, slots=True)
class StompChannelContext:
    """One session's side of a wire; ``token`` names the connection, however many wires it has."""

    dialect: StompDialect
    version: str
    router: Router
    outbox: Outbox
    events: SessionEvents
    control: ControlFrames
    encoder: SendEncoder
    token: str
    client_id: str | None
    finder: QueueFinder | AddressFinder | None
    released: ReleasedIds
    closes_at_maps: Callable[[], Flow[bool]]  # see `redelivery.transports.stomp.beside`
    meaning: Meaning = field(default_factory=Meaning)

    def route(self, destination: Destination) -> QueueRoute | None:
        """The way to a queue whose name alone would be wrong."""
        routes = self.finder.routes if isinstance(self.finder, AddressFinder) else {}
        return routes.get(destination.name) if isinstance(destination, Queue) else None

    def name(self, destination: Destination) -> str:
        """A destination as a SUBSCRIBE has it. Raises UnsupportedError; InvalidDestinationError: it is no queue."""
        route = self.route(destination)
        if route is not None:
            if route.source is None:
                raise InvalidDestinationError(route.refusal)
            return route.source
        others = () if self.finder is None else self.finder.others
        return to_wire(self.meaning.of(destination), self.dialect, others, consumed=True)

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

    def drained(self) -> Flow[None]:
        """Wait until all that is written has left. Raises RequestTimeoutError, ConnectionLostError."""
        if not self.outbox.congested:
            return
        pending = Pending(self.events.waiter)
        self.outbox.when_drained(pending)
        yield pending
        if pending.error is not None:
            raise pending.error

    def abort(self, work: UnitOfWork) -> None:
        """ABORT, where it had begun."""
        name = work.close()
        if name is not None:
            self.outbox.write(self.control.abort(name))
