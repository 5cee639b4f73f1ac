"""Producers: what the provider sets at a send, and when a send counts as done."""

from __future__ import annotations

from typing import Unpack

from redelivery.client.aio.core import SessionCore
from redelivery.client.aio.made import Closing
from redelivery.client.operations.send import await_room, send, send_confirmed, send_when_connected
from redelivery.client.shells.producer import BaseProducer
from redelivery.model.content.headers import SYNONYMS, SendKeywords
from redelivery.model.destinations import Destination
from redelivery.model.messages import Message
from redelivery.model.suggestions import suggesting
from redelivery.transports.finding import found


class Producer(BaseProducer, Closing):
    """Sends messages, within its session. Made by `Session.producer`.

    A persistent send outside a transaction returns when the broker has confirmed it; a non-persistent one when it is
    written; one in a transaction is confirmed by commit.
    """

    _core: SessionCore

    @suggesting(SYNONYMS)
    async def send(
        self, body_or_message: object, destination: Destination | str | None = None, **options: Unpack[SendKeywords]
    ) -> Message:
        """Send a body or a Message; see `redelivery.Producer.send`.

        One that is cancelled before the broker has confirmed is in doubt: the InDoubtError is the ``__cause__`` of the
        CancelledError, and is logged.

        Raises:
            MessageFormatError: the message type or the protocol cannot carry a value.
            InvalidDestinationError: no destination, or one that cannot be sent to.
            InDoubtError: the broker's answer did not come.
            ResourceAllocationError: it has no room; or it gave no credit (AMQP), and nothing was sent.
            JMSError: the broker refused it, as the class says.
        """
        core = self._core
        await core.enter("send")
        try:
            message = self._prepare(body_or_message, destination, options)
            if core.tracer is None:
                await self._send_out(message)
            else:
                with core.tracer.sending(message):
                    await self._send_out(message)
            return message
        finally:
            core.turn.release()

    async def close(self) -> None:
        """No more sends. What a transaction holds is still committed with it."""
        self._closed = True

    async def _send_out(self, message: Message) -> None:
        core = self._core
        if self._transacted or not message.fields["persistent"]:
            if self._comes_back:
                await core.do(send_when_connected(core, message, None, transacted=self._transacted, batched=False))
            else:
                if (finder := core.epoch.channel.finder) is not None:
                    await core.do(found(finder, message.destination))
                send(core, message, None, transacted=self._transacted)
            if core.epoch.channel.congested:
                await core.do(await_room(core, None if self._transacted else message))
        else:
            await core.do(send_confirmed(core, message))
