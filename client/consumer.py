"""Consumers: pull with `receive`, or push with `listen`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from redelivery.client.closing import Closing
from redelivery.client.core import SessionCore
from redelivery.client.durations import optional_seconds, seconds
from redelivery.client.ledger import Station
from redelivery.client.listeners import ListenerLoop
from redelivery.model.destinations import Destination
from redelivery.model.errors import ConfigError, ConnectionLostError, IllegalStateError, JMSError, MessageFormatError
from redelivery.model.messages import Message, Receipt, convert_body
from redelivery.model.modes import AckMode
from redelivery.policies.redelivery import RedeliveryPolicy
from redelivery.transports.base import Delivery
from redelivery.transports.wire.clock import monotonic

MessageListener = Callable[[Message], object]


class Consumer(Closing):
    """Receives from one destination, within its session. Made by `Session.consumer`.

    One thread at a time: a call while another thread is inside the session raises IllegalStateError.
    """

    def __init__(
        self,
        core: SessionCore,
        station: Station,
        loop: ListenerLoop,
        receipt: Receipt,
        policy: RedeliveryPolicy,
        *,
        attached: bool,
    ) -> None:
        self._core = core
        self._station = station
        self._loop = loop
        self._receipt = receipt
        self._policy = policy
        self._attached = attached
        self._closed = False
        # AUTO and DUPS_OK acknowledge a received message before it is handed over; the other modes do not
        self._at_once = core.mode in (AckMode.AUTO, AckMode.DUPS_OK)
        self._hold = not self._at_once
        self._lazy = core.mode == AckMode.DUPS_OK

    @property
    def destination(self) -> Destination:
        """Where it receives from."""
        return self._station.link.destination

    @property
    def selector(self) -> str | None:
        """The selector, if there is one."""
        return self._station.link.selector

    @property
    def redelivery_policy(self) -> RedeliveryPolicy:
        """The policy of its destination; a wildcard consumer's messages follow the policy of their own queue."""
        return self._policy

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    def receive(self, timeout: float | timedelta | None = None) -> Message | None:
        """The next message.

        Args:
            timeout: seconds; None waits for ever, 0 takes only what is there (JMS's 0 is our None).

        Returns:
            None when the time is over, or when the consumer is closed meanwhile.

        Raises:
            IllegalStateError: closed before, a listener is set, or another thread is inside the session.
            ConnectionLostError: the connection was lost.
        """
        if timeout is not None:
            timeout = seconds("timeout", timeout)
        core = self._core
        core.enter("receive")
        try:
            if self._closed or core.listener_thread is not None or not self._attached:
                self._ready_to_receive()
            delivery = core.next(self._station, self._hold) or core.receive(self._station, timeout, hold=self._hold)
            if delivery is None:
                return None
            try:
                if self._hold:
                    core.channel.handed_out(delivery)
                else:
                    core.channel.accept((delivery,), lazy=self._lazy)
            except BaseException:
                core.ledger.put_back(delivery)  # interrupted: the application has not got it
                raise
            return Message.received(delivery, delivery.redeliveries, self._receipt)
        finally:
            core.use.release()

    def receive_nowait(self) -> Message | None:
        """`receive` with a timeout of 0."""
        return self.receive(0)

    def receive_many(self, max_messages: int, timeout: float | timedelta) -> list[Message]:
        """Up to ``max_messages``: returns when it has them, or with what has come when ``timeout`` seconds are over.

        AUTO acknowledges them all before the list is handed over.
        """
        if isinstance(max_messages, bool) or not isinstance(max_messages, int) or max_messages < 1:
            raise ConfigError(f"max_messages={max_messages!r} must be a whole number from 1")
        deadline = monotonic() + seconds("timeout", timeout)
        core = self._core
        core.enter("receive_many")
        try:
            self._ready_to_receive()
            return self._collect(max_messages, deadline)
        finally:
            core.use.release()

    def receive_body(self, type: type, timeout: float | timedelta | None = None) -> Any:
        """The body of the next message as ``str``, ``bytes``, ``dict`` or ``list``; None as `receive`.

        Raises:
            MessageFormatError: it is of another kind. In AUTO and DUPS_OK mode the message comes again as if this
                call had not been made, in the other modes it counts as delivered (JMS, receiveBody).
        """
        wait = optional_seconds("timeout", timeout)
        if type not in (str, bytes, dict, list):
            raise MessageFormatError(f"{type!r} is no kind of body; ask for str, bytes, dict or list")
        core = self._core
        core.enter("receive_body")
        try:
            self._ready_to_receive()
            delivery = core.receive(self._station, wait, hold=True)
            if delivery is None:
                return None
            try:
                body = convert_body(Message.received(delivery, delivery.redeliveries, None), type)
            except MessageFormatError:
                if self._at_once:
                    core.ledger.put_back(delivery)
                else:
                    self._hand_over(delivery)
                raise
            if self._at_once:
                core.ledger.consumed(delivery)
            self._hand_over(delivery)
            return body
        finally:
            core.use.release()

    def listen(self, callback: MessageListener | None) -> None:
        """Call ``callback(message)`` for each message, one at a time within the session; None ends it.

        The callback may use its own session (commit, rollback, recover, send). What becomes of a message whose
        callback raises depends on the mode: AUTO, DUPS_OK and INDIVIDUAL redeliver it by the policy; CLIENT and
        TRANSACTED go on with the next, it stays unacknowledged (features R8). A wait for a redelivery goes on.
        """
        if callback is not None and not callable(callback):
            raise ConfigError(f"listen({callback!r}): give a callable that takes a message, or None")
        if self._closed:
            raise self._closed_problem("listen")
        self._attach_if_late()
        self._loop.set_listener(self._station, callback, self._receipt)

    def close(self) -> None:
        """Stop receiving. Messages that it delivered can still be acknowledged or committed (features R10).

        A `receive` that waits in another thread returns None.
        """
        if self._closed:
            return
        self._closed = True
        self._loop.close_station(self._station, attached=self._attached)

    def __iter__(self) -> Iterator[Message]:
        """Messages until the consumer, its session or its connection is closed; a lost connection raises."""
        while not self._over:
            try:
                message = self.receive()
            except IllegalStateError:
                if self._over:  # closed between two messages
                    return
                raise
            if message is None:
                return
            yield message

    def __repr__(self) -> str:
        return f"<Consumer {self.destination}{' closed' if self._closed else ''}>"

    def _collect(self, max_messages: int, deadline: float) -> list[Message]:
        core = self._core
        held: list[Delivery] = []
        try:
            while len(held) < max_messages:
                delivery = core.receive(self._station, max(0.0, deadline - monotonic()), hold=True)
                if delivery is None:
                    break
                held.append(delivery)
                if not self._at_once:
                    core.channel.handed_out(delivery)
            if self._at_once and held:
                core.channel.accept(held, lazy=self._lazy)
        except BaseException:
            for delivery in reversed(held):  # the application gets none of them: interrupted, or the connection lost
                core.ledger.put_back(delivery)
            raise
        if self._at_once:
            for delivery in held:
                core.ledger.consumed(delivery)
        return [Message.received(delivery, delivery.redeliveries, self._receipt) for delivery in held]

    @property
    def _over(self) -> bool:
        return self._closed or (self._core.closing and self._core.lost is None)

    def _hand_over(self, delivery: Delivery) -> Message:
        core = self._core
        if self._at_once:
            core.channel.accept((delivery,), lazy=self._lazy)
        else:
            core.channel.handed_out(delivery)
        return Message.received(delivery, delivery.redeliveries, self._receipt)

    def _ready_to_receive(self) -> None:
        if self._closed:
            raise self._closed_problem("receive")
        if self._core.listener_thread is not None:
            raise IllegalStateError(
                "receive: a message listener is set in this session, so messages come to listeners only"
            )
        self._attach_if_late()

    def _attach_if_late(self) -> None:
        """A prefetch of 0 over a protocol that only pushes: subscribed when the application first asks."""
        if not self._attached:
            self._core.do(self._core.channel.attach(self._station.link))
            self._attached = True

    def _closed_problem(self, action: str) -> JMSError:
        if self._core.life.over:
            return self._core.life.problem(action)
        if self._core.lost is not None:
            return ConnectionLostError(f"{action}: the connection was lost")
        return IllegalStateError(f"{action}: the consumer of {self.destination} was closed by close()")
