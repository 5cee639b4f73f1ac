"""A management node that is asked by one message after the other: each is answered by one that comes back."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from typing import Any, Final

import proton

from redelivery.model.errors import ConfigError, ConnectionLostError, JMSError, ProtocolError
from redelivery.transports.amqp.channel.context import answer
from redelivery.transports.amqp.connection.protocol import AmqpProtocol
from redelivery.transports.amqp.links.management import ReplyLink
from redelivery.transports.amqp.links.senders import Sender
from redelivery.transports.amqp.links.sessions import AmqpSession
from redelivery.transports.amqp.links.terminus import link_name
from redelivery.transports.flows import NO_ANSWER, Flow, Pending, Waiter

_numbers: Final = count(1)


class Requests:
    """The requests of one call of the application's, in a session of its own, which a refusal may end.

    Args:
        protocol: of the connection.
        node: the address of the management.
        capability: of the dynamic node that answers come to, None where it needs none.
        waiter: of the flow's driver.
    """

    def __init__(self, protocol: AmqpProtocol, node: str, capability: str | None, waiter: Waiter) -> None:
        self._protocol = protocol
        self._node = node
        self._capability = capability
        self._waiter = waiter
        self._session: AmqpSession | None = None
        self._sender: Sender | None = None
        self._replies: DynamicReplies | None = None

    def ask(self, properties: Mapping[str, object], body: object) -> Flow[Any]:
        """The message that answers it.

        Raises:
            ConfigError: AMQP cannot carry a value.
            SecurityError, InvalidDestinationError, JMSError: the broker refuses the message itself.
            RequestTimeoutError, ConnectionLostError: it does not answer.
        """
        sender, replies = yield from self._links()
        number = str(next(_numbers))
        question = proton.Message(
            id=number, correlation_id=number, reply_to=replies.address, properties=dict(properties), body=body
        )
        try:
            data = bytes(question.encode())
        except (OverflowError, TypeError, ValueError, proton.ProtonException) as error:
            raise ConfigError(f"a value cannot be sent to the broker's management: {error}") from error
        sent, come = Pending(self._waiter), Pending(self._waiter)
        with self._protocol.writing():
            replies.expect(number, come)
            sender.send((data,), None, sent)
        try:
            yield from answer(sent)
        except NO_ANSWER:
            raise
        except JMSError as error:  # some say anything but that
            raise type(error)(f"{error} (may this user ask there?)") from error
        yield from answer(come)
        return come.value

    def _links(self) -> Flow[tuple[Sender, DynamicReplies]]:
        if self._sender is not None and self._replies is not None:
            return self._sender, self._replies
        opened, ready = Pending(self._waiter), Pending(self._waiter)
        with self._protocol.writing():
            session = self._session = AmqpSession(self._protocol.table)
            session.open(None)
            replies = DynamicReplies(session, self._capability)
            replies.open(ready)
            sender = Sender(session, "asking the broker's management")
            sender.handle.target.address = self._node
            sender.open(opened)
        yield from answer(ready)
        yield from answer(opened)
        if not replies.address:
            raise ProtocolError("the broker's management: the broker gave the link for its answers no name")
        self._sender, self._replies = sender, replies
        return sender, replies

    def close(self) -> None:
        """Nothing is asked any more; nobody waits for the end of the session."""
        if self._session is not None:
            with suppress(ConnectionLostError), self._protocol.writing():
                self._session.close(None)


class DynamicReplies(ReplyLink):
    """A link from a node that the broker makes for it."""

    __slots__ = ("_awaited", "_number", "address")

    def __init__(self, session: AmqpSession, capability: str | None) -> None:
        super().__init__(session, link_name("replies"))
        self.address: str | None = None
        self._awaited: Pending | None = None
        self._number = ""
        source = self.handle.source
        source.dynamic = True
        source.durability = proton.Terminus.NONDURABLE
        source.expiry_policy = proton.Terminus.EXPIRE_WITH_LINK
        if capability is not None:
            source.capabilities.put_object(proton.symbol(capability))

    def on_opened(self) -> None:
        """See `Endpoint.on_opened`: the broker has named it."""
        self.address = self.handle.remote_source.address
        super().on_opened()

    def expect(self, number: str, pending: Pending) -> None:
        """The pending's value is the answer to the request of that number."""
        if self.ended is not None:
            self.table.notifications.answer(pending, self.ended)
            return
        self._number, self._awaited = number, pending

    def on_answer(self, message: Any) -> None:
        """See `ReplyLink.on_answer`."""
        pending = self._awaited
        if pending is not None and str(message.correlation_id) == self._number:
            self._awaited = None
            self.table.notifications.answer(pending, None, message)

    def on_end(self, error: JMSError, ours: bool) -> None:
        """See `Endpoint.on_end`."""
        super().on_end(error, ours)
        pending, self._awaited = self._awaited, None
        if pending is not None:
            self.table.notifications.answer(pending, error)
