"""Consumers: pull with `receive`, or push with `listen`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any, Self, cast

from redelivery.client.aio.core import SessionCore
from redelivery.client.aio.driver import check_loop
from redelivery.client.aio.listeners import ListenerLoop, MessageListener, check_callback
from redelivery.client.aio.made import Closing, Message
from redelivery.client.arguments import seconds
from redelivery.client.ledger import ConsumerState, Received
from redelivery.client.operations.acknowledge import accept, dispatched
from redelivery.client.operations.attach import attach_late
from redelivery.client.operations.reattach import await_loss
from redelivery.client.operations.receive import collecting, next_ready, restore_window, widen_window
from redelivery.client.shells.consumer import BaseConsumer, check_batch, check_body, left_until
from redelivery.model.errors import (
    ConnectionLostError,
    IllegalStateError,
    RequestTimeoutError,
)
from redelivery.model.messages import Receipt
from redelivery.policies.redelivery import RedeliveryPolicy
from redelivery.transports.seam import T
from redelivery.transports.wire.clock import session_time


class Consumer(BaseConsumer, Closing):
    """Receives from one destination, within its session: ``async for message in consumer``. Made by `Session.consumer`.

    One task at a time: a call while another task is inside the session raises IllegalStateError. A call that is
    cancelled takes no message with it.
    """

    _core: SessionCore
    _message = Message

    def __init__(
        self,
        core: SessionCore,
        consumer: ConsumerState,
        loop: ListenerLoop,
        receipt: Receipt,
        policy: RedeliveryPolicy,
    ) -> None:
        super().__init__(core, consumer, receipt, policy)
        self._loop = loop

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
        deadline = None if timeout is None else session_time() + timeout
        while True:
            number = self._core.epoch.number
            try:
                return await self._receive(timeout)
            except ConnectionLostError:
                await self._core.inside("receive", partial(self._await_loss, number))
            timeout = left_until(deadline)

    async def _receive(self, timeout: float | None) -> Message | None:
        core, consumer = self._core, self._state
        hand: list[Received] = []
        if not await core.enter("receive", timeout):
            return None
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
                dispatched(core, delivery)
            else:
                accept(core, (delivery,), batched=self._batched)
                if self._logs:
                    self._say_acknowledged(delivery)
            if core.epoch.channel.congested:
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

        AUTO and DUPS_OK acknowledge them all when the list is handed over, and none before. It may be longer than the
        prefetch. Over STOMP but on ActiveMQ it ends at once where the prefetch is used up, with what has come: the
        broker would send no more.
        """
        deadline = check_batch(max_messages, timeout)
        return await self._taking(
            "receive_many", lambda hand: self._collect(max_messages, deadline, hand), deadline, []
        )

    async def receive_body(self, type: type, timeout: float | timedelta | None = None) -> Any:
        """The body of the next message as ``str``, ``bytes``, ``dict`` or ``list``; None as `receive`.

        Raises:
            MessageFormatError: it is of another kind. In AUTO and DUPS_OK mode the message is redelivered as if this
                call had not been made, in the other modes it counts as delivered (JMS, receiveBody).
        """
        deadline = check_body(type, timeout)
        return await self._taking("receive_body", lambda hand: self._convert(type, deadline, hand), deadline, None)

    async def listen(self, callback: MessageListener | None) -> None:
        """Await ``callback(message)`` for each message, one at a time within the session; None ends it.

        The callback is an ``async def``, awaited by a task of the session. What it may do, and what becomes of a
        message whose callback raises, is as for `redelivery.Consumer.listen`.
        """
        check_callback(callback)
        self.check_open("listen")
        await self._loop.set_listener(self._state, callback, self._receipt)

    async def close(self) -> None:
        """Stop receiving. Messages that it delivered can still be acknowledged or committed.

        So says JMS 3.1, `MessageConsumer.close`. A `receive` that waits in another task returns None. A close that is
        cancelled goes on.
        """
        if self._closed:
            return
        check_loop(self._core.runtime, "close")
        self._closed = True
        try:
            closing = self._loop.close_consumer(self._state, in_callback=self._core.listens)
            await self._core.to_the_end(closing)
        except RequestTimeoutError:
            self._closed = False  # another task stays in the session: it can be closed once more
            raise

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

    async def _taking(
        self, action: str, take: Callable[[list[Received]], Awaitable[T]], deadline: float | None, late: T
    ) -> T:
        """Inside; when it fails the application gets nothing of what was taken. ``late``: it comes in too late.

        Once more where the connection was lost and comes back.
        """
        core = self._core
        while True:
            number = core.epoch.number
            try:
                return await self._take(action, take, deadline, late)
            except ConnectionLostError:
                if not core.comes_back:
                    raise
            await core.inside(action, partial(self._await_loss, number))

    async def _take(
        self, action: str, take: Callable[[list[Received]], Awaitable[T]], deadline: float | None, late: T
    ) -> T:
        core = self._core
        hand: list[Received] = []
        if not await core.enter(action, left_until(deadline)):
            return late
        try:
            await self._ready_to_receive()
            with collecting(core, hand):
                taken = await take(hand)
            await self._relieve()
            return taken
        except BaseException:
            if hand:
                core.release(hand)
            raise
        finally:
            core.turn.release()

    async def _await_loss(self, number: int) -> None:
        """Until it is known, by one who has met it, and began in the epoch of this number."""
        core = self._core
        try:
            await core.do(await_loss(core, since=number))
        finally:
            core.hand = []

    async def _relieve(self) -> None:
        """Leave what is taken to the application, whatever becomes of the connection: its next call meets the loss."""
        with suppress(ConnectionLostError):
            await self._core.relieve()

    async def _collect(self, max_messages: int, deadline: float, hand: list[Received]) -> list[Message]:
        core = self._core
        parked_in_batch: list[Received] = []
        while len(hand) < max_messages:
            delivery = next_ready(core, self._state, hand, hold=True)
            if delivery is None or core.ledger.orders:
                if delivery is None and not widen_window(core, self._state, hand, parked_in_batch):
                    break
                delivery = await core.receive(self._state, left_until(deadline), hand, delivery, hold=True)
            if delivery is None:
                break
            if self._hold:
                dispatched(core, delivery)
        restore_window(core, hand, parked_in_batch)
        return cast(list[Message], self._taken(hand))

    async def _convert(self, type: type, deadline: float | None, hand: list[Received]) -> Any:
        core = self._core
        delivery = await core.receive(self._state, left_until(deadline), hand, None, hold=True)
        return None if delivery is None else self._body(delivery, type, hand)

    async def _ready_to_receive(self) -> None:
        if self._check_receiving():
            await self._core.do(attach_late(self._core, self._state))
