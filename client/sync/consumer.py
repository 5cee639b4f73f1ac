"""Consumers: pull with `receive`, or push with `listen`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any

from redelivery.client.arguments import seconds
from redelivery.client.connection.threads import closes_elsewhere
from redelivery.client.ledger import ConsumerState, Received
from redelivery.client.operations.acknowledge import accept, dispatched
from redelivery.client.operations.attach import attach_late
from redelivery.client.operations.reattach import await_loss
from redelivery.client.operations.receive import collecting, next_ready, restore_window, widen_window
from redelivery.client.shells.consumer import BaseConsumer, check_batch, check_body, left_until
from redelivery.client.sync.core import Closing, SessionCore
from redelivery.client.sync.listeners import ListenerLoop, check_callback
from redelivery.model.errors import ConnectionLostError, IllegalStateError
from redelivery.model.messages import Message, Receipt
from redelivery.policies.redelivery import RedeliveryPolicy
from redelivery.transports.seam import T
from redelivery.transports.wire.clock import session_time

MessageListener = Callable[[Message], None]


class Consumer(BaseConsumer, Closing):
    """Receives from one destination, within its session. Made by `Session.consumer`.

    One thread at a time: a call while another thread is inside the session raises IllegalStateError.
    """

    _core: SessionCore

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

    def receive(self, timeout: float | timedelta | None = None) -> Message | None:
        """The next message.

        Args:
            timeout: seconds; None waits for ever, 0 takes only what is there (JMS's 0 is our None).

        Returns:
            None when the time is over, or when the consumer is closed meanwhile.
            An interrupt (KeyboardInterrupt) takes no message with it: it is received by the next call.

        Raises:
            IllegalStateError: closed before, a listener is set, or another thread is inside the session.
            ConnectionLostError: the connection was lost.
            JMSError: the broker has ended the consumer (its queue was deleted, say), in the broker's words.
        """
        if timeout is not None:
            timeout = seconds("timeout", timeout)
        if not self._comes_back:
            return self._receive(timeout)
        deadline = None if timeout is None else session_time() + timeout
        while True:
            number = self._core.epoch.number
            try:
                return self._receive(timeout)
            except ConnectionLostError:
                self._core.inside("receive", partial(self._await_loss, number))
            timeout = left_until(deadline)

    def _receive(self, timeout: float | None) -> Message | None:
        hand: list[Received] = []
        try:
            return self._core.inside("receive", lambda: self._next(timeout, hand), timeout)
        except BaseException:
            if hand:
                self._core.release(hand)  # failed or interrupted: the application has not got it
            raise

    def _next(self, timeout: float | None, hand: list[Received]) -> Message | None:
        core, consumer = self._core, self._state
        if self._closed or core.listener is not None or not consumer.attached:
            self._ready_to_receive()
        delivery = next_ready(core, consumer, hand, self._hold)
        if delivery is None or core.ledger.orders:
            delivery = core.receive(consumer, timeout, hand, delivery, hold=self._hold)
        if delivery is None:
            return None
        message = Message.received(delivery, delivery.redeliveries, self._receipt)
        if self._hold:
            dispatched(core, delivery)
        else:
            accept(core, (delivery,), batched=self._batched)
            if self._logs:
                self._say_acknowledged(delivery)
        return message

    def receive_nowait(self) -> Message | None:
        """`receive` with a timeout of 0."""
        return self.receive(0)

    def receive_many(self, max_messages: int, timeout: float | timedelta) -> list[Message]:
        """Up to ``max_messages``: returns when it has them, or with what has come when ``timeout`` seconds are over.

        AUTO and DUPS_OK acknowledge them all when the list is handed over, and none before. It may be longer than the
        prefetch. Over STOMP but on ActiveMQ it ends at once where the prefetch is used up, with what has come: the
        broker would send no more.
        """
        deadline = check_batch(max_messages, timeout)
        return self._taking("receive_many", lambda hand: self._collect(max_messages, deadline, hand), deadline, [])

    def receive_body(self, type: type, timeout: float | timedelta | None = None) -> Any:
        """The body of the next message as ``str``, ``bytes``, ``dict`` or ``list``; None as `receive`.

        Raises:
            MessageFormatError: it is of another kind. In AUTO and DUPS_OK mode the message is redelivered as if this
                call had not been made, in the other modes it counts as delivered (JMS, receiveBody).
        """
        deadline = check_body(type, timeout)
        return self._taking("receive_body", lambda hand: self._convert(type, deadline, hand), deadline, None)

    def listen(self, callback: MessageListener | None) -> None:
        """Call ``callback(message)`` for each message, one at a time within the session; None ends it.

        The callback may use its own session (commit, rollback, recover, send). What becomes of a message whose
        callback raises depends on the mode: AUTO, DUPS_OK and INDIVIDUAL redeliver it by the policy; CLIENT and
        TRANSACTED go on with the next, it stays unacknowledged (JMS 3.1, `MessageListener`). A wait for a redelivery
        goes on.
        """
        check_callback(callback)
        self.check_open("listen")
        self._loop.set_listener(self._state, callback, self._receipt)

    def close(self) -> None:
        """Stop receiving. Messages that it delivered can still be acknowledged or committed.

        So says JMS 3.1, `MessageConsumer.close`. A `receive` that waits in another thread returns None; also one that
        is interrupted by a signal handler which closes: another thread does the rest then.
        """
        if self._closed:
            return
        if closes_elsewhere((self._core,), self.close, self._core.options.close_timeout):
            return
        self._closed = True
        try:
            self._loop.close_consumer(self._state)
        except BaseException:
            self._closed = False  # interrupted, or another thread stays in the session: it can be closed once more
            raise

    def __iter__(self) -> Iterator[Message]:
        """Messages until the consumer, its session or its connection is closed; a lost connection raises."""
        while not self._ended:
            try:
                message = self.receive()
            except IllegalStateError:
                if self._ended:  # closed between two messages
                    return
                raise
            if message is None:
                return
            yield message

    def _taking(self, action: str, step: Callable[[list[Received]], T], deadline: float | None, late: T) -> T:
        """``step``, whose hand is released where it fails; once more where the connection was lost and comes back.

        ``late``: it comes in too late.
        """
        core = self._core
        while True:
            number = core.epoch.number
            hand: list[Received] = []
            try:
                return core.inside(action, partial(self._take, step, hand), left_until(deadline), late)
            except ConnectionLostError:
                core.release(hand)
                if not core.comes_back:
                    raise
            except BaseException:
                if hand:
                    core.release(hand)  # the application gets none of them
                raise
            core.inside(action, partial(self._await_loss, number))

    def _take(self, step: Callable[[list[Received]], T], hand: list[Received]) -> T:
        with collecting(self._core, hand):
            return step(hand)

    def _await_loss(self, number: int) -> None:
        """Until it is known, by one who has met it, and began in the epoch of this number."""
        core = self._core
        try:
            core.do(await_loss(core, since=number))
        finally:
            core.hand = []

    def _collect(self, max_messages: int, deadline: float, hand: list[Received]) -> list[Message]:
        self._ready_to_receive()
        core = self._core
        parked_in_batch: list[Received] = []
        while len(hand) < max_messages:
            delivery = next_ready(core, self._state, hand, hold=True)
            if delivery is None or core.ledger.orders:
                if delivery is None and not widen_window(core, self._state, hand, parked_in_batch):
                    break
                delivery = core.receive(self._state, left_until(deadline), hand, delivery, hold=True)
            if delivery is None:
                break
            if self._hold:
                dispatched(core, delivery)
        restore_window(core, hand, parked_in_batch)
        return self._taken(hand)

    def _convert(self, type: type, deadline: float | None, hand: list[Received]) -> Any:
        self._ready_to_receive()
        core = self._core
        delivery = core.receive(self._state, left_until(deadline), hand, None, hold=True)
        return None if delivery is None else self._body(delivery, type, hand)

    def _ready_to_receive(self) -> None:
        if self._check_receiving():
            self._core.do(attach_late(self._core, self._state))
