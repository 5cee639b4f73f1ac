"""A consumer, but for its calls that wait."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any, Generic, TypeVar, cast

from redelivery.client.arguments import optional_seconds, seconds
from redelivery.client.ledger import ConsumerState, Received
from redelivery.client.observing.log_lines import MESSAGES, name_of
from redelivery.client.operations.acknowledge import accept, dispatched
from redelivery.client.operations.attach import attach_late
from redelivery.client.operations.orders import carry_out, fail
from redelivery.client.operations.receive import collect, next_ready, receive
from redelivery.client.session.state import SessionState
from redelivery.model.callables import name_of as callback_name
from redelivery.model.content.typed.converter import Converter, convert_body, fill, refused
from redelivery.model.content.typed.variable import BodyT
from redelivery.model.destinations import Destination
from redelivery.model.errors import ConfigError, ConnectionLostError, IllegalStateError, MessageFormatError
from redelivery.model.messages import Message, Receipt
from redelivery.model.modes import AckMode
from redelivery.policies.redelivery import RedeliveryPolicy
from redelivery.transports.seam import Flow
from redelivery.transports.wire.clock import session_time

log = logging.getLogger(MESSAGES)


_F = TypeVar("_F", bound=Callable[..., Any])


class BaseConsumer(Generic[BodyT]):
    """Of both shells."""

    _core: SessionState
    _message: type[Message] = Message  # the class of what the application gets

    def __init__(
        self,
        core: SessionState,
        consumer: ConsumerState,
        receipt: Receipt,
        policy: RedeliveryPolicy,
        to: Converter | None,
    ) -> None:
        self._core = core
        self._state = consumer
        self._receipt = receipt
        self._policy = policy
        self._to = to  # what makes the body a T
        self._closed = False
        # AUTO and DUPS_OK acknowledge a received message before it is handed over; the other modes do not
        self._at_once = core.mode in (AckMode.AUTO, AckMode.DUPS_OK)
        self._hold = not self._at_once
        self._batched = core.mode == AckMode.DUPS_OK
        self._comes_back = core.options.reconnect is not None
        self._logs = log.isEnabledFor(logging.DEBUG)  # asked once: it is the path of every message

    @property
    def destination(self) -> Destination:
        """The destination that it receives from."""
        return self._state.link.destination

    @property
    def selector(self) -> str | None:
        """The selector, if there is one."""
        return self._state.link.spec.selector

    @property
    def redelivery_policy(self) -> RedeliveryPolicy:
        """The policy of its destination; a wildcard consumer's messages follow the policy of their own queue."""
        return self._policy

    @property
    def closed(self) -> bool:
        """True: it was closed, or the broker has ended it."""
        return self._closed or self._state.error is not None

    def check_open(self, action: str) -> None:
        """Raise where it is closed; the text names ``action``.

        Raises:
            IllegalStateError: it was closed, or its session or connection.
            ConnectionLostError: the connection was lost.
        """
        if not self._closed:
            return
        if self._core.life.ended:
            raise self._core.life.problem(action)
        if self._core.lost is not None:
            raise ConnectionLostError(f"{action}: the connection was lost: {self._core.lost}")
        raise IllegalStateError(f"{action}: the consumer of {self.destination} was closed by close()")

    def __repr__(self) -> str:
        return f"<Consumer {self.destination}{' closed' if self._closed else ''}>"

    @property
    def _ended(self) -> bool:
        """True: iterating ends without an error."""
        return self._closed or (self._core.life.ended and self._core.lost is None)

    def _get_ready(self) -> Flow[None]:
        """Attach it, where it is not yet; raises where no message comes to `receive`."""
        self.check_open("receive")
        if self._core.listener is not None:
            raise IllegalStateError(
                "receive: a message listener is set in this session, so messages come to listeners only"
            )
        yield from attach_late(self._core, self._state)

    def _say_acknowledged(self, delivery: Received) -> None:
        log.debug("%s: acknowledged", name_of(delivery))

    def _collect(self, most: int, deadline: float, hand: list[Received]) -> Flow[list[Any]]:
        """The messages of `receive_many`, which are the application's at its end.

        Of a consumer with a ``body_type``: those before the first whose body does not convert, which the next call
        finds; where that is the first, an error as of `_typed`.
        """
        yield from self._get_ready()
        core, made, refusals = self._core, dict[Received, Message](), list[MessageFormatError]()

        def fits(delivery: Received) -> bool:
            made[delivery] = message = self._message.received(delivery, delivery.redeliveries, self._receipt)
            try:
                if self._to is not None:
                    fill(message, self._to)
            except MessageFormatError as error:
                refusals.append(error)
            return not refusals

        yield from collect(core, (self._state,), most, deadline, hand, hold=self._hold, fits=fits)
        if refusals and hand:
            if len(hand) == 1:
                delivery = hand.pop()
                yield from self._refuse(delivery, refusals[0])
                raise refused(made[delivery], refusals[0])
            core.ledger.put_back(hand.pop())
        if hand and self._at_once:
            accept(core, hand, batched=self._batched)
        return [made[each] for each in hand]

    def _typed(self, deadline: float | None, hand: list[Received]) -> Flow[Any]:
        """The next message, its body a T; see `receive` there. Raises MessageFormatError: the body does not convert."""
        delivery = yield from self._awaited(deadline, hand)
        if delivery is None:
            return None
        message = self._message.received(delivery, delivery.redeliveries, self._receipt)
        try:
            fill(message, cast(Converter, self._to))
        except MessageFormatError as error:
            hand.clear()
            yield from self._refuse(delivery, error)
            raise refused(message, error) from error.__cause__
        self._hand_over(delivery)
        return message

    def _convert(self, type: type, deadline: float | None, hand: list[Received]) -> Flow[Any]:
        """The body of what is received, by JMS's rules of receiveBody; see there."""
        delivery = yield from self._awaited(deadline, hand)
        if delivery is None:
            return None
        try:
            body = convert_body(Message.received(delivery, delivery.redeliveries, None), type)
        except MessageFormatError:
            if self._hold:
                hand.clear()  # it counts as delivered
                dispatched(self._core, delivery)
            raise
        self._hand_over(delivery)
        return body

    def _awaited(self, deadline: float | None, hand: list[Received]) -> Flow[Received | None]:
        yield from self._get_ready()
        core, consumer = self._core, self._state
        delivery = next_ready(core, consumer, hand, hold=True)
        if delivery is None or core.ledger.orders:
            delivery = yield from receive(core, (consumer,), left_until(deadline), hand, delivery, hold=True)
        return delivery

    def _hand_over(self, delivery: Received) -> None:
        if self._hold:
            dispatched(self._core, delivery)
        else:
            accept(self._core, (delivery,), batched=self._batched)

    def _refuse(self, delivery: Received, error: MessageFormatError) -> Flow[None]:
        """Count it as a delivery that failed: AUTO and DUPS_OK redeliver it by its policy."""
        core = self._core
        dispatched(core, delivery)
        if self._at_once:
            fail(core, lambda now: core.ledger.listener_failed(self._state, now, error))
            yield from carry_out(core)
        else:
            core.ledger.callback_failed(delivery, error)  # the cause of a rollback that names none

    def _typing(self, callback: _F) -> _F:
        """The same callback, which is given messages whose body is a T. One whose body does not convert fails so."""
        to = self._to
        if to is None:
            return callback

        @wraps(callback)
        def typed(message: Message) -> Any:
            fill(message, to)
            return callback(message)

        typed.__qualname__ = callback_name(callback)
        return cast(_F, typed)


def check_batch(max_messages: object, timeout: float | timedelta) -> float:
    """Until when `receive_many` collects (`session_time`). Raises ConfigError: an argument does not fit."""
    if isinstance(max_messages, bool) or not isinstance(max_messages, int) or max_messages < 1:
        raise ConfigError(f"max_messages={max_messages!r} must be an integer >= 1")
    return session_time() + seconds("timeout", timeout)


def check_body(type: object, timeout: float | timedelta | None) -> float | None:
    """Until when `receive_body` waits. Raises ConfigError, MessageFormatError: an argument does not fit."""
    wait = optional_seconds("timeout", timeout)
    if type not in (str, bytes, dict, list):
        raise MessageFormatError(f"{type!r} is not a kind of body; ask for str, bytes, dict or list")
    return None if wait is None else session_time() + wait


def left_until(deadline: float | None) -> float | None:
    """Seconds until then, not negative; None: for ever."""
    return None if deadline is None else max(0.0, deadline - session_time())
