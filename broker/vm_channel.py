"""One session's conversation with the embedded broker in this process. Flows return without waiting."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from functools import wraps
from itertools import count
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar

from redelivery.broker.core import BrokerClosedError, Core
from redelivery.broker.engine.engine import Engine
from redelivery.broker.engine.stored import END_OF_QUEUE, StoredMessage, detached
from redelivery.broker.engine.subscriptions import Dispatch, Subscription
from redelivery.broker.engine.transactions import Transaction
from redelivery.broker.views import header_of, properties_of
from redelivery.model.destinations import Destination
from redelivery.model.errors import (
    ConnectionLostError,
    IllegalStateError,
    InDoubtError,
    JMSError,
    TransactionRolledBackError,
)
from redelivery.model.messages import Message
from redelivery.model.values import Body, Value
from redelivery.policies.causes import expired_cause
from redelivery.transports.base import Channel, Delivery, Flow, Link, Pending, SessionEvents, Waiter

if TYPE_CHECKING:
    from redelivery.broker.vm import VmTransport

DEFAULT_PREFETCH: Final = 100
_P = ParamSpec("_P")
_T = TypeVar("_T")
_in_doubt = count(1)  # transactions have no name here until somebody must be told of one


def at_once(method: Callable[Concatenate[VmChannel, _P], _T]) -> Callable[Concatenate[VmChannel, _P], Flow[_T]]:
    """A flow that never waits."""

    @wraps(method)
    def flow(channel: VmChannel, /, *args: _P.args, **kwargs: _P.kwargs) -> Generator[Pending, None, _T]:
        return method(channel, *args, **kwargs)
        yield  # unreachable: it makes this a generator

    return flow


class VmDelivery(Delivery):
    """One dispatch of the embedded broker."""

    __slots__ = ("dispatch",)

    def __init__(self, link: Link, dispatch: Dispatch) -> None:
        super().__init__(link)
        self.dispatch = dispatch

    def wire_count(self) -> int:
        """Exact."""
        return self.dispatch.count

    def expires_at(self) -> int:
        """Epoch milliseconds, 0 for never."""
        return self.dispatch.message.expiration

    def body(self) -> Body:
        """The receiver's own copy."""
        return detached(self.dispatch.message.body)

    def properties(self) -> Mapping[str, Value]:
        """The properties, on a dead letter with its origin."""
        return properties_of(self.dispatch.message)

    def header(self, name: str) -> Any:
        """One header."""
        return header_of(self.dispatch.message, name)


class _LinkOutbox:
    """Puts what the broker dispatches to a link into the session's inbox."""

    __slots__ = ("_inbox", "_link", "_waiter")

    def __init__(self, link: Link, inbox: deque[Delivery], waiter: Waiter) -> None:
        self._link = link
        self._inbox = inbox
        self._waiter = waiter

    def append(self, dispatch: Dispatch, /) -> None:
        """One more for the inbox."""
        self._inbox.append(VmDelivery(self._link, dispatch))

    def wake(self) -> None:
        """Wake the session."""
        self._waiter.wake()


class _BrowserOutbox(_LinkOutbox):
    """The same for a browser, whose queue ends."""

    __slots__ = ("ended",)

    def __init__(self, link: Link, inbox: deque[Delivery], waiter: Waiter) -> None:
        super().__init__(link, inbox, waiter)
        self.ended = False

    def append(self, dispatch: Dispatch, /) -> None:
        """One more for the inbox, or the end."""
        if dispatch.message is END_OF_QUEUE:
            self.ended = True
        else:
            super().append(dispatch)


class VmChannel(Channel):
    """See `redelivery.transports.base.Channel`. Nothing waits: a flow is done when it is first driven."""

    def __init__(self, transport: VmTransport, events: SessionEvents, origin: str) -> None:
        self.events = events
        self._transport = transport
        self._origin = origin
        self._subscriptions: dict[str, Subscription] = {}
        self._transaction = Transaction()
        self._links = 0

    @at_once
    def attach(self, link: Link) -> None:
        """Start consuming; a prefetch of 0 is 1."""
        if link.prefetch is None:
            link.prefetch = DEFAULT_PREFETCH
        self._links += 1
        link.id = str(self._links)
        outbox = (_BrowserOutbox if link.browse else _LinkOutbox)(link, self.events.inbox, self.events.waiter)
        subscription = Subscription(
            link.destination,
            outbox,
            prefetch=max(1, link.prefetch),
            no_local=link.no_local,
            origin=self._origin,
        )

        def start(engine: Engine, now: int) -> None:
            if link.browse:
                engine.browse(subscription, selector=link.selector)
            else:
                engine.subscribe(subscription, selector=link.selector)
            self._subscriptions[link.id] = subscription
            engine.start(subscription, now)

        self._transport.run("SUBSCRIBE", start)

    @at_once
    def look(self, link: Link) -> bool:
        """What was shown makes room for more."""
        subscription = self._subscriptions[link.id]
        outbox = subscription.outbox
        assert isinstance(outbox, _BrowserOutbox), "the link browses"
        if not outbox.ended:
            self._transport.call(lambda engine, now: engine.acknowledge(list(subscription.in_flight.values()), now))
        return not outbox.ended

    @at_once
    def detach(self, link: Link) -> None:
        """Stop consuming; what the application saw comes back counted, the rest uncounted. Harmless twice."""
        subscription = self._subscriptions.pop(link.id, None)
        if subscription is not None:
            self._transport.run(
                "UNSUBSCRIBE", lambda engine, now: engine.unsubscribe(subscription, now, all_seen=False)
            )

    @at_once
    def temporary(self, kind: type[Destination]) -> Destination:
        """Made at once."""
        return self._transport.temporary(kind)

    def handed_out(self, delivery: Delivery) -> None:
        """The window moves on at once, so that a batch may be larger than the prefetch."""
        self._transport.call(lambda engine, now: engine.hand_out((_dispatch(delivery),), now))

    def accept(self, deliveries: Sequence[Delivery], *, lazy: bool) -> None:  # noqa: ARG002 - nothing is gained by waiting
        """Acknowledge."""
        dispatches = [_dispatch(delivery) for delivery in deliveries]
        self._transport.run("ACK", lambda engine, now: engine.acknowledge(dispatches, now))

    def release(self, deliveries: Sequence[Delivery]) -> None:
        """Give back, uncounted. Their links are given no more, or the same messages would come straight back."""
        dispatches = [_dispatch(delivery) for delivery in deliveries]

        def give_back(engine: Engine, now: int) -> None:
            for dispatch in dispatches:
                engine.stop(dispatch.subscription)
            engine.release(dispatches, now)

        self._transport.call(give_back)

    @at_once
    def poison(self, delivery: Delivery, cause: str, copy: Message | None) -> None:
        """Dead-letter by the broker's strategy, or replace by ``copy``; outside the session's transaction."""
        dispatch = _dispatch(delivery)
        if copy is None:
            expired = cause == expired_cause(dispatch.message.expiration)
            self._transport.run("NACK", lambda engine, now: engine.poison(dispatch, cause, now, expired=expired))
            return

        def replace(engine: Engine, now: int) -> None:
            unit = Transaction()
            engine.enlist(unit, (dispatch,), now)
            engine.enlist_send(unit, self._stored(copy, now))
            engine.commit(unit, now)

        self._transport.run("NACK", replace)

    def send(self, message: Message, *, transacted: bool, pending: Pending | None) -> None:
        """Send at once, or at the commit; the message is told its id and timestamp. A refusal goes to ``pending``."""

        def put(engine: Engine, now: int) -> None:
            stored = self._stored(message, now)
            if transacted:
                engine.enlist_send(self._transaction, stored)
            else:
                engine.send(stored, now)
            message.stamp(message_id=stored.message_id, timestamp=stored.timestamp)

        try:
            self._transport.run("SEND", put)
        except JMSError as error:
            if pending is None:
                raise
            pending.fail(error)
        else:
            if pending is not None:
                pending.complete(message.message_id)

    @at_once
    def commit(self, deliveries: Sequence[Delivery]) -> None:
        """All or nothing."""
        unit, self._transaction = self._transaction, Transaction()
        dispatches = [_dispatch(delivery) for delivery in deliveries]

        def finish(engine: Engine, now: int) -> None:
            try:
                engine.enlist(unit, dispatches, now)
            except IllegalStateError as error:
                engine.rollback(unit, now)
                raise TransactionRolledBackError(f"the transaction was rolled back: {error}") from error
            engine.commit(unit, now)

        try:
            self._transport.run("COMMIT", finish)
        except (TransactionRolledBackError, IllegalStateError):
            raise
        except ConnectionLostError as error:
            text = f"the answer to the commit was lost: {error}"
            raise InDoubtError(text, transaction_id=f"vm-{next(_in_doubt)}") from error
        except JMSError as error:
            raise TransactionRolledBackError(f"the broker refused the commit: {error}") from error

    @at_once
    def rollback(self) -> None:
        """Forget the sends; the deliveries stay with the session."""
        self._transaction = Transaction()
        self._transport.run("ABORT", lambda _engine, _now: None)

    def park(self, deliveries: Sequence[Delivery]) -> None:
        """Nothing to do: what was handed out does not fill the window."""

    def unpark(self, deliveries: Sequence[Delivery]) -> None:
        """Nothing to do either."""

    @at_once
    def close(self) -> None:
        """Leave; open sends are forgotten, deliveries go back."""
        self._transport.forget(self)

    def leave(self, core: Core) -> None:
        """End every subscription. The broker may have ended before."""

        def end(engine: Engine, now: int) -> None:
            while self._subscriptions:
                engine.unsubscribe(self._subscriptions.popitem()[1], now, all_seen=False)

        self._transaction = Transaction()
        with suppress(BrokerClosedError):
            core.call(end)

    def _stored(self, message: Message, now: int) -> StoredMessage:
        return StoredMessage.of(message, self._transport.core.new_id(), now=now, origin=self._origin)


def _dispatch(delivery: Delivery) -> Dispatch:
    assert isinstance(delivery, VmDelivery), "made by this transport"
    return delivery.dispatch
