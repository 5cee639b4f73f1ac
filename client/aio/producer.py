"""Producers: what the provider sets at a send, and when a send counts as done."""

from __future__ import annotations

from typing import Unpack

from redelivery.client.aio.core import SessionCore
from redelivery.client.aio.made import Closing
from redelivery.client.connection.repeats import identify
from redelivery.client.operations.prepare import SendOptions, prepare
from redelivery.client.operations.send import send, send_confirmed, send_when_connected
from redelivery.model.destinations import Destination
from redelivery.model.errors import IllegalStateError
from redelivery.model.messages import Message
from redelivery.model.modes import AckMode
from redelivery.model.sending import SYNONYMS, SendKeywords
from redelivery.model.suggestions import suggesting
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
    async def send(
        self,
        body_or_message: object,
        destination: Destination | str | None = None,
        **options: Unpack[SendKeywords],
    ) -> Message:
        """Send a body or a Message; see `redelivery.Producer.send`.

        One that is cancelled before the broker has confirmed is in doubt: the InDoubtError is the ``__cause__`` of the
        CancelledError, and is logged.

        Raises:
            MessageFormatError: the message type or the protocol cannot carry a value.
            InvalidDestinationError: no destination, or one that cannot be sent to.
            InDoubtError: the broker's answer did not come.
            JMSError: the broker refused it, as the class says.
        """
        core = self._core
        await core.enter("send")
        try:
            self.check_open("send")
            message = prepare(self._options, body_or_message, destination, options, epoch_ms())
            if core.options.deduplicate_sends:
                identify(message, core.transport.peer.capabilities)
            transacted = core.mode == AckMode.TRANSACTED
            if transacted or not message.persistent:
                if core.options.reconnect is None:
                    send(core, message, None, transacted=transacted)
                else:
                    await core.do(send_when_connected(core, message, None, transacted=transacted))
                await core.relieve()
            else:
                await core.do(send_confirmed(core, message))
            return message
        finally:
            core.turn.release()

    async def close(self) -> None:
        """No more sends. What a transaction holds is still committed with it."""
        self._closed = True

    def check_open(self, action: str) -> None:
        """Raise where it is closed."""
        if self._closed:
            raise IllegalStateError(f"{action}: the producer was closed by close()")

    def __repr__(self) -> str:
        return f"<Producer {self.destination or 'without a destination'}{' closed' if self._closed else ''}>"
