"""Producers: what the provider sets at a send, and when a send counts as done."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Unpack

from redelivery.client.connection.repeats import Repeatable, identify
from redelivery.client.operations.prepare import SendOptions, prepare
from redelivery.client.operations.send import make_room, send, send_confirmed, send_when_connected
from redelivery.client.sync.closing import Closing
from redelivery.client.sync.core import SessionCore
from redelivery.client.sync.futures import SendFuture
from redelivery.model.destinations import Destination
from redelivery.model.errors import ConnectionLostError, IllegalStateError, JMSError
from redelivery.model.messages import Message
from redelivery.model.modes import AckMode
from redelivery.model.sending import SYNONYMS, SendKeywords
from redelivery.model.suggestions import suggesting
from redelivery.transports.seam import Pending
from redelivery.transports.wire.clock import epoch_ms


class Producer(Closing):
    """Sends messages, within its session. Made by `Session.producer`.

    A persistent send outside a transaction returns when the broker has confirmed it; a non-persistent one when it is
    written; one in a transaction is confirmed by commit.
    """

    def __init__(self, core: SessionCore, options: SendOptions) -> None:
        self._core = core
        self._options = options
        self._closed = False

    @property
    def destination(self) -> Destination | None:
        """Where it sends to; None where each send names its own."""
        return self._options.destination

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    @suggesting(SYNONYMS)
    def send(
        self,
        body_or_message: object,
        destination: Destination | str | None = None,
        **options: Unpack[SendKeywords],
    ) -> Message:
        """Send a body or a Message; what is not given is as the producer was made.

        Args:
            body_or_message: ``str``, ``bytes``, ``dict``, ``list``, None, or a Message (a received one is copied).
            destination: where to, if the producer has none of its own.
            options: properties, persistent, priority, ttl, …: see `redelivery.model.sending.SendKeywords`.

        Returns:
            The message with its headers as sent; ``message_id`` is None where the broker does not tell it.

        Raises:
            MessageFormatError: the message type or the protocol cannot carry a value.
            InvalidDestinationError: no destination, or one that cannot be sent to.
            InDoubtError: the broker's answer did not come.
            JMSError: the broker refused it, as the class says.
        """
        core = self._core
        turn: list[bool] = []
        try:
            core.enter("send", turn)
            message = self._prepare(body_or_message, destination, options)
            transacted = core.mode == AckMode.TRANSACTED
            if transacted or not message.persistent:
                self._send(message, None, transacted=transacted)
            else:
                core.do_open(send_confirmed(core, message))
            return message
        finally:
            if turn and turn[-1]:
                core.use.release()

    @suggesting(SYNONYMS)
    def send_async(
        self,
        body_or_message: object,
        destination: Destination | str | None = None,
        **options: Unpack[SendKeywords],
    ) -> Future[Message]:
        """`send` without waiting: the future is done when the broker has confirmed or refused.

        Bad arguments raise here; whatever the broker says is in the future.
        """
        core = self._core
        turn: list[bool] = []
        try:
            core.enter("send_async", turn)
            message = self._prepare(body_or_message, destination, options)
            pending = Repeatable(lambda: core.comes_back) if core.options.deduplicate_sends else Pending()
            future = SendFuture(message, pending, lambda: core.transport, core.waiter)
            core.watch(future.pending)
            try:
                self._send(message, future.pending, transacted=core.mode == AckMode.TRANSACTED)
            except JMSError as error:
                future.refuse(error)
                if not isinstance(error, ConnectionLostError) or not core.comes_back:
                    raise
            return future
        finally:
            if turn and turn[-1]:
                core.use.release()

    def close(self) -> None:
        """No more sends. What a transaction holds is still committed with it."""
        self._closed = True

    def check_open(self, action: str) -> None:
        """Raise where it is closed."""
        if self._closed:
            raise IllegalStateError(f"{action}: the producer was closed by close()")

    def __repr__(self) -> str:
        return f"<Producer {self.destination or 'without a destination'}{' closed' if self._closed else ''}>"

    def _send(self, message: Message, pending: Pending | None, *, transacted: bool) -> None:
        core = self._core
        if core.options.reconnect is None:
            send(core, message, pending, transacted=transacted)
        else:
            core.do(send_when_connected(core, message, pending, transacted=transacted))
        if core.channel.congested:
            core.do(make_room(core))

    def _prepare(self, body: object, destination: Destination | str | None, options: SendKeywords) -> Message:
        if self._closed:
            self.check_open("send")
        message = prepare(self._options, body, destination, options, epoch_ms())
        if self._core.options.deduplicate_sends:
            identify(message, self._core.transport.peer.capabilities)
        return message
