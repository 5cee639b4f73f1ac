"""Consumers: pull with `receive`, or push with `listen`."""

from __future__ import annotations

# threads: from collections.abc import Callable, Iterator
from collections.abc import Callable  # asyncio
from datetime import timedelta
from functools import partial
from typing import Any, Self

from redelivery.client.aio.core import SessionCore
from redelivery.client.aio.listeners import ListenerLoop, MessageListener, check_callback
from redelivery.client.aio.made import Closing, Message
from redelivery.client.arguments import seconds
from redelivery.client.ledger import ConsumerState, Received
from redelivery.client.operations.acknowledge import accept, dispatched
from redelivery.client.operations.receive import await_known, next_ready, receive, take
from redelivery.client.shells.consumer import BaseConsumer, check_batch, check_body, left_until
from redelivery.model.content.typed.converter import Converter
from redelivery.model.content.typed.variable import BodyT
from redelivery.model.errors import (
    ConnectionLostError,
    IllegalStateError,
    RequestTimeoutError,
)
from redelivery.model.messages import Receipt
from redelivery.policies.redelivery import RedeliveryPolicy
from redelivery.transports.seam import Flow, T
from redelivery.transports.wire.clock import session_time


class Consumer(BaseConsumer[BodyT], Closing):
    """Receives from one destination, within its session: ``async for message in consumer``. Made by `Session.consumer`.

    With ``body_type=T`` it is a ``Consumer[T]``, and receives ``Message[T]``.

    One task at a time: a call while another task is inside the session raises IllegalStateError. A call that is
    cancelled takes no message with it: the next call receives it.
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
        to: Converter | None = None,
    ) -> None:
        super().__init__(core, consumer, receipt, policy, to)
        self._loop = loop

    async def receive(self, timeout: float | timedelta | None = None) -> Message[BodyT] | None:
        """The next message.

        Args:
            timeout: seconds; None waits for ever, 0 takes only what is there (JMS's 0 is our None).

        Returns:
            None when the time is over, or when the consumer is closed meanwhile.

        Raises:
            IllegalStateError: closed before, a listener is set, or another task is inside the session.
            ConnectionLostError: the connection was lost.
            JMSError: the broker has ended the consumer (its queue was deleted, say), in the broker's words.
            MessageFormatError: the body cannot become the consumer's ``body_type``. The text names the message and the
                field, ``error.message`` is the message with its body as it came, and it is not acknowledged: AUTO and
                DUPS_OK redeliver it by the policy, as a listener's failure; in the other modes it counts as delivered.
        """
        if timeout is not None:
            timeout = seconds("timeout", timeout)
        if self._to is not None:
            until = None if timeout is None else session_time() + timeout
            typed: Message[BodyT] | None = await self._taking("receive", partial(self._typed, until), until, None)
            return typed
        deadline = None if timeout is None or not self._comes_back else session_time() + timeout
        core = self._core
        while True:
            number = core.epoch.number
            hand: list[Received] = []
            try:
                return await core.inside("receive", partial(self._next, timeout, hand), timeout)
            except BaseException as error:
                if hand:
                    core.release(hand)  # failed or cancelled: the application has not got it
                if not isinstance(error, ConnectionLostError) or not self._comes_back:
                    raise
            await core.inside("receive", partial(self._await_loss, number))
            timeout = left_until(deadline)

    async def _next(self, timeout: float | None, hand: list[Received]) -> Message[BodyT] | None:
        core, consumer = self._core, self._state
        if self._closed or core.listener is not None or not consumer.attached:
            await core.do(self._get_ready())
        delivery = next_ready(core, consumer, hand, self._hold)
        if delivery is None or core.ledger.orders:
            delivery = await core.do(receive(core, (consumer,), timeout, hand, delivery, hold=self._hold))
        if delivery is None:
            return None
        message = Message.received(delivery, delivery.redeliveries, self._receipt)
        if self._hold:
            dispatched(core, delivery)
        else:
            accept(core, (delivery,), batched=self._batched)
            if self._logs:
                self._say_acknowledged(delivery)
        if core.epoch.channel.congested:  # asyncio
            await core.relieve()  # asyncio
        return message

    async def receive_nowait(self) -> Message[BodyT] | None:
        """`receive` with a timeout of 0."""
        return await self.receive(0)

    async def receive_many(self, max_messages: int, timeout: float | timedelta) -> list[Message[BodyT]]:
        """Up to ``max_messages``: returns when it has them, or with what has come when ``timeout`` seconds are over.

        AUTO and DUPS_OK acknowledge them all when the list is handed over, and none before. It may be longer than the
        prefetch. Over STOMP but on ActiveMQ it ends at once where the prefetch is used up, with what has come: the
        broker would send no more.

        With a ``body_type`` it ends before a message whose body does not convert; where that is the first, the error is
        that of `receive`.
        """
        deadline = check_batch(max_messages, timeout)
        return await self._taking("receive_many", partial(self._collect, max_messages, deadline), deadline, [])

    async def receive_body(self, type: type, timeout: float | timedelta | None = None) -> Any:
        """The body of the next message as ``type``: ``str``, ``bytes``, ``dict`` or ``list``; None as `receive`.

        Raises:
            MessageFormatError: it is of another kind. In AUTO and DUPS_OK mode the message is redelivered as if this
                call had not been made, in the other modes it counts as delivered (JMS, receiveBody).
        """
        deadline = check_body(type, timeout)
        return await self._taking("receive_body", partial(self._convert, type, deadline), deadline, None)

    async def listen(self, callback: MessageListener[BodyT] | None) -> None:
        # threads: """Call ``callback(message)`` for each message, one at a time within the session; None ends it.
        # threads:
        # threads: It may use its own session (commit, rollback, recover, send). What happens to a message whose
        # threads: callback raises depends on the mode: AUTO, DUPS_OK and INDIVIDUAL redeliver it by the policy; CLIENT
        # threads: and TRANSACTED go on with the next, it stays unacknowledged (JMS 3.1, `MessageListener`). A wait for
        # threads: a redelivery goes on.
        # threads: """
        """Await ``callback(message)`` for each message, one at a time within the session; None ends it.

        The callback is an ``async def``, awaited by a task of the session. It may use its own session (commit,
        rollback, recover, send). What happens to a message whose callback raises depends on the mode: AUTO, DUPS_OK and
        INDIVIDUAL redeliver it by the policy; CLIENT and TRANSACTED go on with the next, it stays unacknowledged (JMS
        3.1, `MessageListener`). A wait for a redelivery goes on.
        """
        check_callback(callback)
        self.check_open("listen")
        typed = None if callback is None else self._typing(callback)
        await self._loop.set_listener(self._state, typed, self._receipt)

    async def close(self) -> None:
        """Stop receiving. Messages that it delivered can still be acknowledged or committed.

        So says JMS 3.1, `MessageConsumer.close`. A `receive` that waits in another task returns None.
        A close that is cancelled goes on.
        """
        core = self._core
        if self._closed or core.closes_elsewhere(self.close):
            return
        self._closed = True
        try:
            await core.to_the_end(partial(self._loop.close_consumer, self._state, in_callback=core.listens))
        # threads: except BaseException:
        except RequestTimeoutError:  # asyncio
            self._closed = False  # somebody stays in the session: it can be closed once more
            raise

    # threads: def __iter__(self) -> Iterator[Message[BodyT]]:
    def __aiter__(self) -> Self:  # asyncio
        """Messages until the consumer, its session or its connection is closed; a lost connection raises."""
        return self

    async def __anext__(self) -> Message[BodyT]:
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
        self, action: str, step: Callable[[list[Received]], Flow[T]], deadline: float | None, late: T
    ) -> T:
        """Take what ``step`` makes of deliveries, or nothing where it fails. ``late``: it comes in too late."""
        core = self._core
        hand: list[Received] = []

        async def inside() -> T:
            taken = await core.do(take(core, hand, step))
            await core.relieve()  # asyncio
            return taken

        try:
            return await core.inside(action, inside, left_until(deadline), late)
        except BaseException:
            if hand:
                core.release(hand)  # the application gets none of them
            raise

    async def _await_loss(self, number: int) -> None:
        await self._core.do(await_known(self._core, number))
