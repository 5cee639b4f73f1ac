"""Producers: what the provider sets at a send, and when a send counts as done."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from datetime import timedelta
from typing import Final

from redelivery.client.closing import Closing
from redelivery.client.core import SessionCore
from redelivery.client.durations import seconds
from redelivery.client.futures import SendFuture, in_doubt_send
from redelivery.model.destinations import Destination
from redelivery.model.destinations import destination as parse_destination
from redelivery.model.errors import (
    ConfigError,
    ConnectionLostError,
    IllegalStateError,
    InvalidDestinationError,
    RequestTimeoutError,
)
from redelivery.model.messages import Message
from redelivery.model.modes import AckMode
from redelivery.transports.base import Pending
from redelivery.transports.wire.clock import epoch_ms


class _Unset:
    """Stands for "as the producer was made" where None has a meaning of its own."""

    def __repr__(self) -> str:
        return "…"


UNSET: Final = _Unset()


class Producer(Closing):
    """Sends messages, within its session. Made by `Session.producer`.

    A persistent send outside a transaction returns when the broker has confirmed it; a non-persistent one when it is
    written; one in a transaction is confirmed by commit.
    """

    def __init__(
        self,
        core: SessionCore,
        destination: Destination | None,
        *,
        persistent: bool,
        priority: int,
        ttl: float | timedelta | None,
        delivery_delay: float | timedelta | None,
    ) -> None:
        self._core = core
        self._destination = _sendable(destination) if destination is not None else None
        self._persistent = _boolean("persistent", persistent)
        self._priority = _priority(priority)
        self._ttl_ms = _milliseconds("ttl", ttl)
        self._delay_ms = _milliseconds("delivery_delay", delivery_delay)
        self._closed = False

    @property
    def destination(self) -> Destination | None:
        """Where it sends to; None where each send names its own."""
        return self._destination

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    def send(
        self,
        body_or_message: object,
        destination: Destination | str | None = None,
        *,
        properties: Mapping[str, object] | None = None,
        persistent: bool | None = None,
        priority: int | None = None,
        ttl: float | timedelta | _Unset | None = UNSET,
        delivery_delay: float | timedelta | _Unset | None = UNSET,
        correlation_id: str | bytes | None = None,
        reply_to: Destination | str | None = None,
        type: str | None = None,
        group_id: str | None = None,
    ) -> Message:
        """Send a body or a Message; what is not given is as the producer was made.

        Args:
            body_or_message: ``str``, ``bytes``, ``dict``, ``list``, None, or a Message (a received one is copied).
            destination: where to, if the producer has none of its own.
            properties: added to those of the message.
            persistent: whether the broker keeps it through a restart.
            priority: 0 to 9.
            ttl: seconds until it expires; None or 0: never.
            delivery_delay: seconds before it may be delivered.
            correlation_id: links a reply to its request.
            reply_to: where a reply is expected.
            type: JMSType.
            group_id: JMSXGroupID.

        Returns:
            The message with its headers as sent; ``message_id`` is None where the broker does not tell it.

        Raises:
            MessageFormatError: the message type or the protocol cannot carry a value.
            InvalidDestinationError: no destination, or one that cannot be sent to.
            InDoubtError: the broker's answer did not come.
            JMSError: the broker refused it, as the class says.
        """
        core = self._core
        core.enter("send")
        try:
            message = self._prepare(
                body_or_message, destination, properties, persistent, priority, ttl, delivery_delay,
                correlation_id, reply_to, type, group_id,
            )  # fmt: skip
            transacted = core.mode == AckMode.TRANSACTED
            if transacted:
                core.channel.send(message, transacted=True, pending=None)
                core.sent.append(message)
            elif message.persistent:
                self._send_confirmed(message)
            else:
                core.channel.send(message, transacted=False, pending=None)
            return message
        finally:
            core.use.release()

    def send_async(
        self,
        body_or_message: object,
        destination: Destination | str | None = None,
        *,
        properties: Mapping[str, object] | None = None,
        persistent: bool | None = None,
        priority: int | None = None,
        ttl: float | timedelta | _Unset | None = UNSET,
        delivery_delay: float | timedelta | _Unset | None = UNSET,
        correlation_id: str | bytes | None = None,
        reply_to: Destination | str | None = None,
        type: str | None = None,
        group_id: str | None = None,
    ) -> Future[Message]:
        """`send` without waiting: the future is done when the broker has confirmed or refused.

        Bad arguments raise here; whatever the broker says is in the future.
        """
        core = self._core
        core.enter("send_async")
        try:
            message = self._prepare(
                body_or_message, destination, properties, persistent, priority, ttl, delivery_delay,
                correlation_id, reply_to, type, group_id,
            )  # fmt: skip
            transacted = core.mode == AckMode.TRANSACTED
            future = SendFuture(message, core.transport)
            core.channel.send(message, transacted=transacted, pending=future.pending)
            if transacted:
                core.sent.append(message)
            return future
        finally:
            core.use.release()

    def close(self) -> None:
        """No more sends. What a transaction holds is still committed with it."""
        self._closed = True

    def __repr__(self) -> str:
        return f"<Producer {self._destination or 'without a destination'}{' closed' if self._closed else ''}>"

    def _send_confirmed(self, message: Message) -> None:
        core = self._core
        pending = Pending(core.waiter)
        core.channel.send(message, transacted=False, pending=pending)
        error = core.answer(pending) or pending.error
        if error is None:
            if pending.value is not None:
                message.stamp(message_id=pending.value)
        elif isinstance(error, (ConnectionLostError, RequestTimeoutError)):
            raise in_doubt_send(message, error)
        else:
            raise error

    def _prepare(
        self,
        body: object,
        destination: Destination | str | None,
        properties: Mapping[str, object] | None,
        persistent: bool | None,
        priority: int | None,
        ttl: float | timedelta | _Unset | None,
        delay: float | timedelta | _Unset | None,
        correlation_id: str | bytes | None,
        reply_to: Destination | str | None,
        type: str | None,
        group_id: str | None,
    ) -> Message:
        if self._closed:
            raise IllegalStateError("send: the producer was closed by close()")
        message = body if isinstance(body, Message) else Message(body)
        if message.source is not None:
            message = message.copy()  # a received one is read-only
        if properties:
            message.properties = {**message.properties, **properties} if message.properties else properties
        if correlation_id is not None:
            message.correlation_id = correlation_id
        if reply_to is not None:
            message.reply_to = parse_destination(reply_to)
        if type is not None:
            message.type = type
        if group_id is not None:
            message.group_id = group_id
        ttl_ms = self._ttl_ms if isinstance(ttl, _Unset) else _milliseconds("ttl", ttl)
        delay_ms = self._delay_ms if isinstance(delay, _Unset) else _milliseconds("delivery_delay", delay)
        now = epoch_ms()
        message.stamp(
            destination=self._destination if destination is None and self._destination else self._target(destination),
            persistent=self._persistent if persistent is None else _boolean("persistent", persistent),
            priority=self._priority if priority is None else _priority(priority),
            timestamp=now,
            expiration=now + delay_ms + ttl_ms if ttl_ms else None,
            delivery_time=now + delay_ms if delay_ms else None,
            message_id=None,
        )
        return message

    def _target(self, given: Destination | str | None) -> Destination:
        if given is None:
            if self._destination is None:
                raise InvalidDestinationError("this producer has no destination of its own: name one in send()")
            return self._destination
        target = _sendable(parse_destination(given))
        if self._destination is not None and target != self._destination:
            raise IllegalStateError(f"this producer sends to {self._destination} only; make one without a destination")
        return target


def _sendable(target: Destination) -> Destination:
    if target.is_pattern:
        raise InvalidDestinationError(f"{target} is a pattern: it can be consumed from, not sent to")
    return target


def _boolean(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(f"{name}={value!r} is neither True nor False")
    return value


def _priority(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 9:
        raise ConfigError(f"priority={value!r} must be a whole number from 0 to 9")
    return value


def _milliseconds(name: str, value: float | timedelta | None) -> int:
    return 0 if value is None else round(seconds(name, value) * 1000)
