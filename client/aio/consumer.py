"""Consumers: pull with `receive`, or push with `listen`."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any, Self, cast

from redelivery.client.aio.core import SessionCore
from redelivery.client.aio.listeners import ListenerLoop, MessageListener, check_callback
from redelivery.client.aio.made import Closing
from redelivery.client.aio.message import Message
from redelivery.client.arguments import optional_seconds, seconds
from redelivery.client.connection.reattach import await_loss
from redelivery.client.ledger import ConsumerState
from redelivery.client.log_lines import name_of
from redelivery.client.operations.acknowledge import accept, hand_out
from redelivery.client.operations.attach import attach_late
from redelivery.client.operations.receive import next_ready
from redelivery.model.destinations import Destination
from redelivery.model.errors import (
    ConfigError,
    ConnectionLostError,
    IllegalStateError,
    JMSError,
    MessageFormatError,
    RequestTimeoutError,
)
from redelivery.model.messages import Receipt, convert_body
from redelivery.model.modes import AckMode
from redelivery.policies.redelivery import RedeliveryPolicy
from redelivery.transports.seam import Delivery, T
from redelivery.transports.wire.clock import monotonic

log = logging.getLogger(__name__)


class Consumer(Closing):
    """Receives from one destination, within its session: ``async for message in consumer``. Made by `Session.consumer`.

    One task at a time: a call while another task is inside the session raises IllegalStateError. A call that is
    cancelled takes no message with it.
    """

    def __init__(
        self,
        core: SessionCore,
        consumer: ConsumerState,
        loop: ListenerLoop,
        receipt: Receipt,
        policy: RedeliveryPolicy,
    ) -> None:
        self._core = core
        self._state = consumer
        self._loop = loop
        self._receipt = receipt
        self._policy = policy
        self._closed = False
        # AUTO and DUPS_OK acknowledge a received message before it is handed over; the other modes do not
        self._at_once = core.mode in (AckMode.AUTO, AckMode.DUPS_OK)
        self._hold = not self._at_once
        self._batched = core.mode == AckMode.DUPS_OK
        self._comes_back = core.options.reconnect is not None
        self._tells = log.isEnabledFor(logging.DEBUG)  # asked once: it is the path of every message

    @property
    def destination(self) -> Destination:
        """Where it receives from."""
        return self._state.link.destination

    @property
    def selector(self) -> str | None:
        """The selector, if there is one."""
        return self._state.link.selector

    @property
    def redelivery_policy(self) -> RedeliveryPolicy:
        """The policy of its destination; a wildcard consumer's messages follow the policy of their own queue."""
        return self._policy

    @property
    def closed(self) -> bool:
        """Whether it was closed, or the broker has ended it."""
        return self._closed or self._state.error is not None

    async def receive(self, timeout: float | timedelta | None = None) -> Message | None:
        """The next message; see `redelivery.Consumer.receive`.

        Args:
            timeout: seconds; None waits for ever, 0 takes only what is there (JMS's 0 is our None).

        Returns:
            None when the time is over, or when the consumer is closed meanwhile.

        Raises:
            IllegalStateError: closed before, a listener is set, or another task is inside the session.
            ConnectionLostError: the connection was lost.
            JMSError: the broker has ended the consumer (its queue was deleted, say), in the broker's words.
        """
        if timeout is not None:
            timeout = seconds("timeout", timeout)
        if not self._comes_back:
            return await self._receive(timeout)
        deadline = None if timeout is None else monotonic() + timeout
        while True:
            try:
                return await self._receive(timeout)
            except ConnectionLostError:
                await self._core.inside("receive", lambda: self._core.do(await_loss(self._core)))
            timeout = None if deadline is None else max(0.0, deadline - monotonic())

    async def _receive(self, timeout: float | None) -> Message | None:
        core, consumer = self._core, self._state
        hand: list[Delivery] = []
        await core.enter("receive")
        try:
            if self._closed or core.listener is not None or not consumer.attached:
                await self._ready_to_receive()
            delivery = next_ready(core, consumer, hand, self._hold)
            if delivery is None or core.ledger.orders:
                delivery = await core.receive(consumer, timeout, hand, delivery, hold=self._hold)
            if delivery is None:
                return None
            message = Message.received(delivery, delivery.redeliveries, self._receipt)
            if self._hold:
                hand_out(core, delivery)
            else:
                accept(core, (delivery,), batched=self._batched)
                if self._tells:
                    log.debug("%s: acknowledged", name_of(delivery))
            if core.channel.congested:
                await self._relieve()
            return cast(Message, message)
        except BaseException:
            if hand:
                core.release(hand)  # failed or cancelled: the application has not got it
            raise
        finally:
            core.turn.release()

    async def receive_nowait(self) -> Message | None:
        """`receive` with a timeout of 0."""
        return await self.receive(0)

    async def receive_many(self, max_messages: int, timeout: float | timedelta) -> list[Message]:
        """Up to ``max_messages``: returns when it has them, or with what has come when ``timeout`` seconds are over.

        AUTO acknowledges them all before the list is handed over.
        """
        if isinstance(max_messages, bool) or not isinstance(max_messages, int) or max_messages < 1:
            raise ConfigError(f"max_messages={max_messages!r} must be a whole number from 1")
        deadline = monotonic() + seconds("timeout", timeout)
        return await self._taking("receive_many", lambda hand: self._collect(max_messages, deadline, hand))

    async def receive_body(self, type: type, timeout: float | timedelta | None = None) -> Any:
        """The body of the next message as ``str``, ``bytes``, ``dict`` or ``list``; None as `receive`.

        Raises:
            MessageFormatError: it is of another kind. In AUTO and DUPS_OK mode the message is redelivered as if this
                call had not been made, in the other modes it counts as delivered (JMS, receiveBody).
        """
        wait = optional_seconds("timeout", timeout)
        if type not in (str, bytes, dict, list):
            raise MessageFormatError(f"{type!r} is not a kind of body; ask for str, bytes, dict or list")
        deadline = None if wait is None else monotonic() + wait
        return await self._taking("receive_body", lambda hand: self._convert(type, deadline, hand))

    async def listen(self, callback: MessageListener | None) -> None:
        """Await ``callback(message)`` for each message, one at a time within the session; None ends it.

        The callback is an ``async def``, awaited by a task of the session. What it may do, and what becomes of a
        message whose callback raises, is as for `redelivery.Consumer.listen`.
        """
        check_callback(callback)
        if self._closed:
            raise self._closed_problem("listen")
        await self._loop.set_listener(self._state, callback, self._receipt)

    async def close(self) -> None:
        """Stop receiving. Messages that it delivered can still be acknowledged or committed (features R10).

        A `receive` that waits in another task returns None. A close that is cancelled goes on.
        """
        if self._closed:
            return
        self._closed = True
        try:
            closing = self._loop.close_consumer(self._state, in_callback=self._core.listens)
            await self._core.to_the_end(closing)
        except RequestTimeoutError:
            self._closed = False  # another task stays in the session: it can be closed once more
            raise

    def check_open(self, action: str) -> None:
        """Raise where it is closed."""
        if self._closed:
            raise self._closed_problem(action)

    def __aiter__(self) -> Self:
        """Messages until the consumer, its session or its connection is closed; a lost connection raises."""
        return self

    async def __anext__(self) -> Message:
        if self._ended:
            raise StopAsyncIteration
        try:
            message = await self.receive()
        except IllegalStateError:
            if self._ended:  # closed between two messages
                raise StopAsyncIteration from None
            raise
        if message is None:
            raise StopAsyncIteration
        return message

    def __repr__(self) -> str:
        return f"<Consumer {self.destination}{' closed' if self._closed else ''}>"

    async def _taking(self, action: str, take: Callable[[list[Delivery]], Awaitable[T]]) -> T:
        """Inside; when it fails the application gets nothing of what was taken.

        Once more where the connection was lost and comes back.
        """
        core = self._core
        while True:
            try:
                return await self._take(action, take)
            except ConnectionLostError:
                if not core.comes_back:
                    raise
            await core.inside(action, lambda: core.do(await_loss(core)))

    async def _take(self, action: str, take: Callable[[list[Delivery]], Awaitable[T]]) -> T:
        core = self._core
        hand: list[Delivery] = []
        await core.enter(action)
        try:
            await self._ready_to_receive()
            taken = await take(hand)
            await self._relieve()
            return taken
        except BaseException:
            if hand:
                core.release(hand)
            raise
        finally:
            core.turn.release()

    async def _relieve(self) -> None:
        """What is taken is the application's, whatever becomes of the connection: its next call meets the loss."""
        with suppress(ConnectionLostError):
            await self._core.relieve()

    async def _collect(self, max_messages: int, deadline: float, hand: list[Delivery]) -> list[Message]:
        core = self._core
        while len(hand) < max_messages:
            wait = max(0.0, deadline - monotonic())
            delivery = await core.receive(self._state, wait, hand, None, hold=True)
            if delivery is None:
                break
            if self._hold:
                hand_out(core, delivery)
        messages = [cast(Message, Message.received(each, each.redeliveries, self._receipt)) for each in hand]
        if hand and self._at_once:
            accept(core, hand, batched=self._batched)
        return messages

    async def _convert(self, type: type, deadline: float | None, hand: list[Delivery]) -> Any:
        core = self._core
        timeout = None if deadline is None else max(0.0, deadline - monotonic())
        delivery = await core.receive(self._state, timeout, hand, None, hold=True)
        if delivery is None:
            return None
        try:
            body = convert_body(Message.received(delivery, delivery.redeliveries, None), type)
        except MessageFormatError:
            if self._hold:
                hand.clear()  # it counts as delivered
                hand_out(core, delivery)
            raise
        if self._hold:
            hand_out(core, delivery)
        else:
            accept(core, (delivery,), batched=self._batched)
        return body

    @property
    def _ended(self) -> bool:
        return self._closed or (self._core.life.ended and self._core.lost is None)

    async def _ready_to_receive(self) -> None:
        if self._closed:
            raise self._closed_problem("receive")
        if self._core.listener is not None:
            raise IllegalStateError(
                "receive: a message listener is set in this session, so messages come to listeners only"
            )
        if not self._state.attached and self._core.away is None:
            await self._core.do(attach_late(self._core, self._state))

    def _closed_problem(self, action: str) -> JMSError:
        if self._core.life.ended:
            return self._core.life.problem(action)
        if self._core.lost is not None:
            return ConnectionLostError(f"{action}: the connection was lost: {self._core.lost}")
        return IllegalStateError(f"{action}: the consumer of {self.destination} was closed by close()")
