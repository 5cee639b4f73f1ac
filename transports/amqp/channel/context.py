"""The state that the parts of a channel share: how to write, to ask for an answer, and to wait for it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import partial

from redelivery.model.destinations import Destination, Queue, Topic
from redelivery.model.errors import JMSError
from redelivery.transports.amqp.codec.names import pattern
from redelivery.transports.amqp.connection.protocol import AmqpConnection
from redelivery.transports.amqp.links.endpoints import Found
from redelivery.transports.amqp.links.management import ManagementNode
from redelivery.transports.amqp.links.probing import Prober
from redelivery.transports.amqp.links.receivers import Receiver
from redelivery.transports.amqp.links.senders import Sender
from redelivery.transports.amqp.links.sessions import AmqpSession
from redelivery.transports.dialects.amqp import AmqpDialect
from redelivery.transports.finding import Meaning, exchange_of
from redelivery.transports.seam import Flow, Link, Pending, SessionEvents


class AmqpChannelContext:
    """One session's side of a connection."""

    def __init__(
        self,
        wire: AmqpConnection,
        events: SessionEvents,
        dialect: AmqpDialect,
        meaning: Meaning | None = None,
        routes: Mapping[str, Destination] | None = None,
    ) -> None:
        self.meaning = meaning or Meaning(dialect.spellings)
        self.routes = {} if routes is None else routes  # what is sent to instead of a queue, by its name
        self.protocol = wire.protocol
        self.events = events
        self.dialect = dialect
        self.sessions: list[AmqpSession] = []
        self._shared: AmqpSession | None = None  # of all links that need none of their own

    def writing(self) -> AbstractContextManager[None]:
        """See `AmqpProtocol.writing`."""
        return self.protocol.writing()

    def session(self, destination: Destination | None = None, *, consumers: bool = False) -> AmqpSession:
        """The session for a new link to the destination; inside `writing`. Need not wait for the peer's agreement."""
        dialect, shared = self.dialect, self._shared
        alone = dialect.session_per_link or (consumers and dialect.session_end_counts)
        if not alone and shared is not None and shared.ended is None:
            return shared
        self.sessions = [each for each in self.sessions if each.ended is None]
        session = self._kept(destination) or self._opened()
        self.sessions.append(session)
        if not alone:
            self._shared = session
        return session

    def let_go(self, session: AmqpSession) -> None:
        """Let go of the session of a link that is ended: another one may have it, or it ends. Inside `writing`."""
        if session in self.sessions:
            self.sessions.remove(session)
        if self.dialect.keeps_sessions:
            session.keep()
        elif self.dialect.session_per_link:
            session.close(None)

    def _kept(self, destination: Destination | None) -> AmqpSession | None:
        table = self.protocol.table
        table.idle = [each for each in table.idle if each.ended is None]
        for session in reversed(table.idle):
            full = table.sessions >= table.most_sessions  # then any of them
            if isinstance(session, AmqpSession) and (full or session.suits(destination)):
                table.idle.remove(session)
                return session
        return None

    def _opened(self) -> AmqpSession:
        session = AmqpSession(self.protocol.table)
        session.open(None)
        return session

    def made_for(self, link: Link) -> Flow[str | None]:
        """The address of the queue that a topic's consumer needs; None: the topic has one of its own."""
        nodes = self.protocol.nodes
        if not isinstance(nodes, ManagementNode) or not isinstance(link.destination, Topic):
            return None
        exchange = exchange_of(link.destination, self.dialect.spellings)
        if exchange is not None:
            return (yield from nodes.bind(exchange[1], self.protocol.writing, self.events.waiter, exchange[0]))
        topic = pattern(link.destination, self.dialect)
        return (yield from nodes.bind(topic, self.protocol.writing, self.events.waiter))

    def open(self, link: Sender | Receiver, destination: Destination, pending: Pending | None) -> None:
        """Open a link, when its queue was found where its address alone would not do; inside `writing`."""
        nodes = self.protocol.nodes
        queue = self.meaning.of(destination)
        if nodes is None or type(queue) is not Queue:
            link.open(pending)
            return
        if isinstance(nodes, Prober) and isinstance(link, Receiver) and not queue.declare:
            link.handle.source.address = nodes.existing(queue.name)
            link.open(pending)
            return
        # written in the broker's own way it may be sent to all the same where nothing says whether it is there
        make = queue.declare or (isinstance(nodes, Prober) and queue.name != destination.name)
        ensure = partial(nodes.ensure, queue.name, make=make)
        if isinstance(nodes, ManagementNode) and isinstance(link, Receiver):
            link.open_after(lambda found: ensure(heeding(nodes, link, found)), pending)
        else:
            link.open_after(ensure, pending)

    def ask(self) -> Pending:
        """A pending that the session's thread waits for."""
        return Pending(self.events.waiter)

    def ask_for_end(self) -> Pending:
        """A pending for the end of a session."""
        return End(self.events.waiter) if self.dialect.end_drops_answers else self.ask()

    def ask_for_detach(self) -> Pending:
        """A pending for the detach of a sending link, before the end of its session, which ends it all the same."""
        return End(self.events.waiter)

    def drained(self) -> Flow[None]:
        """Wait until all that is written has left. Raises RequestTimeoutError, ConnectionLostError."""
        pending = self.ask()
        self.protocol.when_drained(pending)
        yield from self.answer(pending)

    def answer(self, pending: Pending) -> Flow[None]:
        """See `answer`."""
        return answer(pending)


def heeding(nodes: ManagementNode, link: Receiver, found: Found) -> Found:
    """``found``, after the consumer has heeded what its queue is."""

    def heed(error: JMSError | None, address: str | None) -> None:
        link.heed(nodes.queues.get(link.link.destination.name, {}))
        found(error, address)

    return heed


def answer(pending: Pending) -> Flow[None]:
    """Wait for the answer.

    Raises:
        RequestTimeoutError, ConnectionLostError: it did not come.
        JMSError: the broker refuses; the class says why.
    """
    if not pending.done:
        yield pending
    if pending.error is not None:
        raise pending.error


class End(Pending):
    """The end of a session, whose answer RabbitMQ loses now and then: the session has ended there all the same.

    It stops the session's writer, which may not have written the answer yet (about 1 of 100 to 300 closes where 20
    sessions of a connection close at once; the detach before it is always answered).
    """

    __slots__ = ()
    patience = 1.0

    def ask_again(self) -> None:
        """Ask again after `patience` seconds: that was long enough, and it counts as ended."""
        self.complete()
