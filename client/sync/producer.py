"""Producers: what the provider sets at a send, and when a send counts as done."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Unpack

from redelivery.client.operations.resend import Deferrable, Repeatable
from redelivery.client.operations.send import await_room, send, send_confirmed, send_when_connected
from redelivery.client.shells.producer import BaseProducer
from redelivery.client.sync.core import Closing, SessionCore
from redelivery.client.sync.futures import SendFuture
from redelivery.model.content.headers import SYNONYMS, SendKeywords
from redelivery.model.destinations import Destination
from redelivery.model.errors import ConnectionLostError, JMSError
from redelivery.model.messages import Message
from redelivery.model.suggestions import suggesting
from redelivery.transports.finding import found
from redelivery.transports.seam import Pending


class Producer(BaseProducer, Closing):
    """Sends messages, within its session. Made by `Session.producer`.

    A persistent send outside a transaction returns when the broker has confirmed it; a non-persistent one when it is
    written; one in a transaction is confirmed by commit.
    """

    _core: SessionCore

    @suggesting(SYNONYMS)
    def send(
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
        """
        return self._core.inside("send", lambda: self._send_now(body_or_message, destination, options))

    @suggesting(SYNONYMS)
    def send_async(
        self, body_or_message: object, destination: Destination | str | None = None, **options: Unpack[SendKeywords]
    ) -> Future[Message]:
        """`send` without waiting: the future is done when the broker has confirmed or refused.

        Where the connection is away and comes back, the message leaves with the next one, before what is sent later;
        the future fails with ConnectionLostError when the `timeout` of the ReconnectPolicy is over. While 1,000 of a
        session wait for that, this call waits as well, for as long.

        Bad arguments raise here; whatever the broker says is in the future.
        """
        return self._core.inside("send_async", lambda: self._send_async(body_or_message, destination, options))

    def close(self) -> None:
        """No more sends. What a transaction holds is still committed with it."""
        self._closed = True

    def _send_now(
        self, body_or_message: object, destination: Destination | str | None, options: SendKeywords
    ) -> Message:
        core = self._core
        message = self._prepare(body_or_message, destination, options)
        if core.tracer is None:
            self._send_out(message)
        else:
            with core.tracer.sending(message):
                self._send_out(message)
        return message

    def _send_async(
        self, body_or_message: object, destination: Destination | str | None, options: SendKeywords
    ) -> Future[Message]:
        core = self._core
        message = self._prepare(body_or_message, destination, options)
        pending = self._answer()
        future = SendFuture(message, pending, core)
        try:
            core.unanswered.watch(pending)
            if core.tracer is None:
                sent = self._send(message, pending)
            else:
                with core.tracer.sending(message):
                    sent = self._send(message, pending)
            future.pending = pending = sent or pending
        except JMSError as error:
            future.refuse(error)
            if not isinstance(error, ConnectionLostError) or not core.comes_back:
                raise
        except BaseException:  # an interrupt
            core.unanswered.unwatch(pending)
            raise
        if isinstance(pending, Deferrable) and pending.waits:
            core.expiry.add(pending, core.epoch.lost)
        return future

    def _send_out(self, message: Message) -> None:
        core = self._core
        if self._transacted or not message.fields["persistent"]:
            self._send(message, None)
        else:
            core.do(send_confirmed(core, message))

    def _send(self, message: Message, pending: Pending | None) -> Pending | None:
        """Returns what the answer is for: see `send_when_connected`."""
        core = self._core
        if self._comes_back:
            batched = pending is not None
            pending = core.do(send_when_connected(core, message, pending, transacted=self._transacted, batched=batched))
        else:
            if (finder := core.epoch.channel.finder) is not None:
                core.do(found(finder, message.destination))
            send(core, message, pending, transacted=self._transacted)
        if core.epoch.lost is None and core.epoch.channel.congested:
            core.do(await_room(core, message if pending is None and not self._transacted else None))
        return pending

    def _answer(self) -> Pending:
        """Of an asynchronous send."""
        core = self._core
        if not self._identifies and (self._transacted or not self._comes_back):
            return Pending()
        kind = Repeatable if self._identifies else Deferrable
        return kind(lambda: core.comes_back)
