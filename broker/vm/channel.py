"""One session's calls to the embedded broker of this process. Flows return without waiting."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from functools import partial, wraps
from itertools import count
from typing import Concatenate, Final, ParamSpec, Protocol, TypeVar

from redelivery.broker.core import BrokerClosedError, Core
from redelivery.broker.engine.engine import Engine
from redelivery.broker.engine.rules.rules import Manner
from redelivery.broker.engine.stored import StoredMessage
from redelivery.broker.engine.subscriptions import CreditSubscription, Dispatch, Ending, Subscription
from redelivery.broker.engine.transactions import Transaction
from redelivery.broker.vm.delivery import BrowserOutbox, LinkOutbox, VmDelivery
from redelivery.model.destinations import Destination, Queue
from redelivery.model.errors import (
    ConnectionLostError,
    IllegalStateError,
    InDoubtError,
    JMSError,
    TransactionRolledBackError,
    UnsupportedError,
)
from redelivery.model.messages import Message
from redelivery.model.modes import AckMode
from redelivery.model.selectors.selector import Selector
from redelivery.transports.seam import Channel, Delivery, Flow, Link, Pending, SessionEvents

DEFAULT_PREFETCH: Final = 100
_P = ParamSpec("_P")
_T = TypeVar("_T")
_in_doubt = count(1)  # a transaction has no name here before an error must name one


def at_once(method: Callable[Concatenate[VmChannel, _P], _T]) -> Callable[Concatenate[VmChannel, _P], Flow[_T]]:
    """A flow that never waits."""

    @wraps(method)
    def flow(channel: VmChannel, /, *args: _P.args, **kwargs: _P.kwargs) -> Generator[Pending, None, _T]:
        return method(channel, *args, **kwargs)
        yield  # unreachable: it makes this a generator

    return flow


class BrokerCalls(Protocol):
    """The part of its connection that a channel needs."""

    @property
    def core(self) -> Core:
        """The broker behind. Raises what ended the connection."""

    def run(self, command: str, function: Callable[[Engine, int], _T]) -> _T:
        """Do something at the broker, under the faults planned for the command."""

    def call(self, function: Callable[[Engine, int], _T]) -> _T:
        """The same without faults."""

    def forget(self, channel: VmChannel) -> None:
        """A channel has ended."""

    def lose(self, reason: str) -> JMSError:
        """The connection breaks."""


class VmChannel(Channel):
    """See `redelivery.transports.seam.Channel`. Nothing waits: a flow is done when it is first driven."""

    def __init__(
        self, transport: BrokerCalls, mode: AckMode, events: SessionEvents, origin: str, client_id: str | None
    ) -> None:
        self.events = events
        self._verb = "acknowledge" if mode == AckMode.CLIENT else "commit"
        self._transport = transport
        self._origin = origin
        self._client_id = client_id
        self._subscriptions: dict[str, Subscription] = {}
        self._transaction = Transaction()
        self._links = 0

    @at_once
    def attach(self, link: Link) -> None:
        """Start consuming; a prefetch of 0 is 1."""
        _check_makes(link.destination)
        if link.prefetch is None:
            link.prefetch = 0 if link.spec.pulls else link.spec.ahead(DEFAULT_PREFETCH)
        self._links += 1
        link.id = str(self._links)
        outbox_of = BrowserOutbox if link.spec.browse else LinkOutbox
        outbox = outbox_of(link, self.events.inbox, self.events.waiter, self._end)
        kind = CreditSubscription if link.spec.pulls else partial(Subscription, prefetch=max(1, link.prefetch))
        subscription = kind(
            link.destination,
            outbox,
            no_local=link.spec.no_local,
            origin=self._origin,
            named=link.spec.subscription,
            client_id=self._client_id,
            exclusive=link.spec.exclusive,
        )
        selector = None if link.spec.selector is None else Selector(link.spec.selector)

        def start(engine: Engine, now: int) -> None:
            if link.spec.browse:
                engine.browse(subscription, selector=selector)
            else:
                engine.subscribe(subscription, selector=selector)
            self._subscriptions[link.id] = subscription
            engine.start(subscription, now)

        self._transport.run("SUBSCRIBE", start)

    def browse_more(self, link: Link) -> Flow[bool]:
        """Make room for more by what was shown; False where there is no more. Waits while a long queue is read."""
        outbox = self._subscriptions[link.id].outbox
        assert isinstance(outbox, BrowserOutbox), "the link browses"
        seen = [outbox.shown.popleft() for _ in range(len(outbox.shown))]
        if seen and not outbox.ended:
            self._transport.call(lambda engine, now: engine.acknowledge(seen, now))
        return (yield from outbox.ask())

    @at_once
    def detach(self, link: Link) -> None:
        """Stop consuming; what the application saw is redelivered counted, the rest uncounted. Idempotent."""
        subscription = self._subscriptions.pop(link.id, None)
        if subscription is not None:
            self._transport.run(
                "UNSUBSCRIBE", lambda engine, now: engine.unsubscribe(subscription, now, all_seen=False)
            )

    def pull(self, link: Link) -> None:
        """Let the link take one more than it has unseen."""
        subscription = self._subscriptions.get(link.id)
        if not isinstance(subscription, CreditSubscription):
            return
        if subscription.filling + subscription.credit <= link.ahead // 2:
            credit = 1 + link.ahead - subscription.filling
            self._transport.call(lambda engine, now: engine.grant(subscription, credit, now))

    def dispatched(self, delivery: Delivery) -> None:
        """The window moves on at once, so that a batch may be larger than the prefetch."""
        transport, dispatches = self._transport, (_dispatch(delivery),)
        transport.call(lambda engine, now: engine.mark_seen(dispatches, now))

    def accept(
        self,
        deliveries: Sequence[Delivery],
        *,
        batched: bool,  # noqa: ARG002 - nothing is gained by waiting
        done: list[None] | None = None,
    ) -> None:
        """Acknowledge."""
        dispatches = [_dispatch(delivery) for delivery in deliveries]
        self._transport.run("ACK", lambda engine, now: engine.acknowledge(dispatches, now))
        if done is not None:
            done.append(None)

    def release(self, deliveries: Sequence[Delivery]) -> None:
        """Release, uncounted. Their links are stopped, or the same messages would be dispatched to them again."""
        dispatches = [_dispatch(delivery) for delivery in deliveries]

        def release(engine: Engine, now: int) -> None:
            for dispatch in dispatches:
                engine.stop(dispatch.subscription)
            engine.release(dispatches, now)

        self._transport.call(release)

    @at_once
    def poison(self, delivery: Delivery, cause: str, copy: Message | None, *, expired: bool = False) -> None:
        """Dead-letter by the broker's strategy, or replace by ``copy``; outside the session's transaction."""
        dispatch = _dispatch(delivery)
        if copy is None:
            self._transport.run(
                "NACK",
                lambda engine, now: engine.poison(dispatch, cause, now, Manner.EXPIRED if expired else Manner.REJECTED),
            )
            return

        def replace(engine: Engine, now: int) -> None:
            transaction = Transaction()
            engine.enlist(transaction, (dispatch,), now)
            engine.enlist_send(transaction, self._stored(copy, now))
            engine.commit(transaction, now)

        self._transport.run("NACK", replace)

    def check(self, message: Message) -> None:
        """See `Channel`."""
        self._stored(message, 0)

    def send(
        self,
        message: Message,
        *,
        transacted: bool,
        pending: Pending | None,
        batched: bool = False,  # noqa: ARG002  # nothing is written
    ) -> None:
        """Send at once, or at the commit, and stamp the message; a refusal goes to ``pending``."""

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
            if pending is None or isinstance(error, UnsupportedError):
                raise
            pending.fail(error)
        else:
            if pending is not None:
                pending.complete(message.message_id)

    @at_once
    def commit(self, deliveries: Sequence[Delivery]) -> None:
        """All or nothing."""
        transaction, self._transaction = self._transaction, Transaction()
        dispatches = [_dispatch(delivery) for delivery in deliveries]

        def finish(engine: Engine, now: int) -> None:
            try:
                engine.enlist(transaction, dispatches, now)
            except IllegalStateError as error:
                engine.rollback(transaction, now)
                raise TransactionRolledBackError(f"the transaction was rolled back: {error}") from error
            engine.commit(transaction, now)

        try:
            self._transport.run("COMMIT", finish)
        except (TransactionRolledBackError, IllegalStateError, UnsupportedError):
            raise
        except ConnectionLostError as error:
            text = f"the answer to the {self._verb} was lost: {error}"
            raise InDoubtError(text, transaction_id=f"vm-{next(_in_doubt)}") from error
        except JMSError as error:
            raise TransactionRolledBackError(f"the broker refused the {self._verb}: {error}") from error

    @at_once
    def rollback(self) -> None:
        """Forget the sends; the deliveries stay with the session."""
        self._transaction = Transaction()
        self._transport.run("ABORT", lambda _engine, _now: None)

    def park(self, deliveries: Sequence[Delivery]) -> None:
        """Take deliveries out of the window: those of the application, and those that never will be its own."""
        for each in deliveries:
            self.dispatched(each)

    def unpark(self, deliveries: Sequence[Delivery]) -> None:
        """Nothing to do, as with `park`."""

    @at_once
    def close(self) -> None:
        """Leave; open sends are dropped, deliveries are released."""
        self._transport.forget(self)

    def leave(self, core: Core) -> None:
        """End every subscription. The broker may have ended before."""

        def end(engine: Engine, now: int) -> None:
            while self._subscriptions:
                engine.unsubscribe(self._subscriptions.popitem()[1], now, all_seen=False)

        self._transaction = Transaction()
        outboxes = [subscription.outbox for subscription in self._subscriptions.values()]
        with suppress(BrokerClosedError):
            core.call(end)
        for outbox in outboxes:
            if isinstance(outbox, BrowserOutbox):
                outbox.give_up()

    def _end(self, link: Link, ending: Ending) -> None:
        """The broker ends a consumer that is slow; from its thread."""
        if ending.connection:
            self._transport.lose(ending.reason)
            return
        subscription = self._subscriptions.pop(link.id, None)
        if subscription is not None:
            self._transport.call(
                lambda engine, now: engine.unsubscribe(subscription, now, all_seen=False, manner=Manner.LOST)
            )
            self.events.on_link_closed(link, JMSError(ending.reason))

    def _stored(self, message: Message, now: int) -> StoredMessage:
        _check_makes(message.destination)
        return StoredMessage.of(message, self._transport.core.new_id(), now=now, origin=self._origin)


def _check_makes(destination: Destination | None) -> None:
    """Raise UnsupportedError for a queue that is not to be made: this broker makes it."""
    if isinstance(destination, Queue) and not destination.declare:
        raise UnsupportedError(f"{destination}: declare=False: the embedded broker makes each queue that is used")


def _dispatch(delivery: Delivery) -> Dispatch:
    assert isinstance(delivery, VmDelivery), "made by this transport"
    return delivery.dispatch
