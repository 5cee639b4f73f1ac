"""Producers: what the provider sets at a send, and when a send counts as done."""

from __future__ import annotations

from typing import Unpack

from redelivery.client.aio.core import SessionCore
from redelivery.client.aio.made import Closing
from redelivery.client.operations.send import await_room, send, send_confirmed, send_when_connected

# threads: from redelivery.client.sync.futures import SendsAsync
from redelivery.client.shells.producer import BaseProducer  # asyncio
from redelivery.model.content.headers import SYNONYMS, SendKeywords
from redelivery.model.destinations import Destination
from redelivery.model.messages import Message
from redelivery.model.suggestions import suggesting
from redelivery.transports.finding import found
from redelivery.transports.seam import Pending


# threads: class Producer(SendsAsync, Closing):
class Producer(BaseProducer, Closing):  # asyncio
    """Sends messages, within its session. Made by `Session.producer`.

    A persistent send outside a transaction returns when the broker has confirmed it; a non-persistent one when it is
    written; one in a transaction is confirmed by commit.
    """

    _core: SessionCore

    @suggesting(SYNONYMS)
    async def send(
        self, body_or_message: object, destination: Destination | str | None = None, **options: Unpack[SendKeywords]
    ) -> Message:
        """Send a body or a Message; what is not given is as the producer was made.

        Args:
            body_or_message: ``str``, ``bytes``, ``dict``, ``list``, None, or a Message (a received one is copied).
            destination: where to, if the producer has none of its own.
            options: properties, persistent, priority, ttl, …: see `redelivery.model.content.headers.SendKeywords`.

        Returns:
            The message with its headers as sent; ``message_id`` is None where the broker does not say it.

        Raises:
            MessageFormatError: the message type or the protocol cannot carry a value.
            InvalidDestinationError: no destination, or one that cannot be sent to.
            InDoubtError: the broker's answer did not come.
            ResourceAllocationError: it has no room; or it gave no credit (AMQP), and nothing was sent.
            JMSError: the broker refused it, as the class says.
            CancelledError: before the broker has confirmed: its ``__cause__`` is the InDoubtError, which is logged.
        """
        return await self._core.inside("send", lambda: self._send_now(body_or_message, destination, options))

    async def close(self) -> None:
        """No more sends. What a transaction holds is still committed with it."""
        self._closed = True

    async def _send_now(
        self, body_or_message: object, destination: Destination | str | None, options: SendKeywords
    ) -> Message:
        core = self._core
        message = self._prepare(body_or_message, destination, options)
        if core.tracer is None:
            await self._send_out(message)
        else:
            with core.tracer.sending(message):
                await self._send_out(message)
        return message

    async def _send_out(self, message: Message) -> None:
        if self._transacted or not message.fields["persistent"]:
            await self._send(message, None)
        else:
            await self._core.do(send_confirmed(self._core, message))

    async def _send(self, message: Message, pending: Pending | None) -> Pending | None:
        """Returns what the answer is for: see `send_when_connected`."""
        core = self._core
        if self._comes_back:
            batched = pending is not None
            flow = send_when_connected(core, message, pending, transacted=self._transacted, batched=batched)
            pending = await core.do(flow)
        else:
            if (finder := core.epoch.channel.finder) is not None and finder.must_find(message.destination):
                await core.do(found(finder, message.destination))
            send(core, message, pending, transacted=self._transacted)
        if core.epoch.lost is None and core.epoch.channel.congested:
            await core.do(await_room(core, message if pending is None and not self._transacted else None))
        return pending
