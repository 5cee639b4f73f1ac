"""Consumers: links that take messages of a queue or topic away, and what their client makes of each."""

from __future__ import annotations

from collections import deque
from typing import Any

from cproton_ffi import lib

from redelivery.broker.engine.engine import Engine
from redelivery.broker.engine.rules.rules import Manner
from redelivery.broker.engine.subscriptions import CreditSubscription, Dispatch, Ending
from redelivery.broker.servers.amqp.codec.messages import write_message
from redelivery.broker.servers.amqp.codec.outcomes import finish, read_outcome
from redelivery.broker.servers.amqp.codec.terminus import SourceRequest
from redelivery.broker.servers.amqp.commands import LinkCommand, Settle
from redelivery.broker.servers.amqp.links.link import LinkSession
from redelivery.broker.servers.amqp.links.outgoing import OutgoingLink
from redelivery.broker.servers.amqp.links.subscription import remove_subscription
from redelivery.broker.servers.amqp.transactions import Unsettled
from redelivery.model.errors import JMSError, MessageFormatError
from redelivery.transports.amqp.links.dispositions import ACCEPTED, enlist


class ConsumerLink(OutgoingLink):
    """A consumer, to which the engine dispatches as much as it has credit for."""

    def __init__(self, session: LinkSession, number: int, handle: Any) -> None:
        super().__init__(session, number, handle)
        self._subscription: CreditSubscription | None = None
        self._durable: tuple[str, str | None] | None = None  # the subscription that ends with a close, not a detach
        self._searches = False  # the peer drains, and the broker has not read all of a long queue for it
        self._ending: Ending | None = None  # it is slow
        self._unsent: deque[Dispatch] = deque()
        self._unsettled: dict[int, Unsettled] = {}  # by the numbers of their dispatches
        self._numbers: dict[Any, int] = {}  # these, by the C library's deliveries

    def begin(self, request: SourceRequest) -> None:
        """See `OutgoingLink.begin`."""
        named, owner = request.named, self.session.client_id if request.own else None
        subscription = CreditSubscription(
            request.destination,
            self,
            no_local=request.no_local,
            origin=self.session.origin,
            named=named,
            client_id=owner,
            exclusive=request.exclusive,
        )

        def subscribe(engine: Engine, now: int) -> None:
            engine.subscribe(subscription, selector=request.selector)
            engine.start(subscription, now)

        self.session.core.call(subscribe)
        self._subscription = subscription
        if named is not None and named.durable:
            self._durable = (named.name, owner)

    def append(self, dispatch: Dispatch, /) -> None:
        """See `redelivery.broker.engine.subscriptions.DispatchOutbox`."""
        self._unsent.append(dispatch)

    def wake(self) -> None:
        """See `redelivery.broker.engine.subscriptions.DispatchOutbox`."""
        self.session.mark_ready(self)

    def end_slow(self, ending: Ending) -> None:
        """See `redelivery.broker.engine.subscriptions.DispatchOutbox`."""
        self._ending = ending
        self.session.mark_ready(self)

    def flush(self) -> bool:
        """See `BrokerLink.flush`."""
        ending, self._ending = self._ending, None
        if ending is not None and ending.connection:
            self.session.cut()
        elif ending is not None:
            self.end(JMSError("Receiver forcably closed"))  # in ActiveMQ's words
        return super().flush()

    def grant(self, credit: int, drain: bool) -> None:
        """See `OutgoingLink.grant`."""
        subscription = self._subscription
        assert subscription is not None, "attached"

        def give(engine: Engine, now: int) -> None:
            engine.grant(subscription, max(0, credit - len(self._unsent) - subscription.undelivered), now)
            self._searches = drain and engine.searches(subscription)
            if drain and not self._searches:
                subscription.credit = 0

        self.session.core.call(give)

    def drained(self) -> bool:
        """See `OutgoingLink.drained`: not while the broker still looks for what a selector matches in a long queue."""
        subscription = self._subscription
        assert subscription is not None, "attached"

        def search(engine: Engine, _now: int) -> bool:
            if engine.searches(subscription) or subscription.undelivered:
                return True
            subscription.credit = 0
            return False

        self._searches = self._searches and self.session.core.call(search)
        return not self._searches

    @property
    def waits(self) -> bool:
        """See `OutgoingLink.waits`."""
        return bool(self._unsent)

    def send_next(self, now: int) -> None:
        """See `OutgoingLink.send_next`."""
        dispatch = self._unsent.popleft()
        if dispatch.subscription.closed:
            return
        entry = dispatch.entry
        first, origin = not entry.acquired, self.session.core.rules.origin
        parts = write_message(dispatch.message, dispatch.count, first=first, now=now, origin=origin)
        entry.acquired = dispatch.seen = True
        handle = self.transfer(dispatch.number, parts)
        if self.presettled:
            self.session.acknowledge(dispatch)
        else:
            self._unsettled[dispatch.number] = Unsettled(self, dispatch, handle)
            self._numbers[handle] = dispatch.number

    def on_delivery(self, handle: Any) -> None:
        """An outcome."""
        number = self._numbers.get(handle)
        if number is None or not lib.pn_delivery_updated(handle):
            return
        try:
            outcome = read_outcome(handle)
        except MessageFormatError as error:
            self.end(error)
            return
        if outcome is not None:
            self.session.add(Settle(self.number, number, outcome))

    def execute(self, command: LinkCommand) -> None:
        """See `BrokerLink.execute`."""
        if isinstance(command, Settle):
            self._apply(command)
        else:
            super().execute(command)

    def settle(self, unsettled: Unsettled, kind: int) -> None:
        """See `redelivery.broker.servers.amqp.transactions.Settler`."""
        if self._forget(unsettled) and not self.ended:
            finish(unsettled.handle, kind)

    def release(self) -> None:
        """See `BrokerLink.release`: what was sent counts as seen, as the broker cannot know better."""
        subscription = self._subscription
        if subscription is not None:
            manner = Manner.LOST if self.session.lost else Manner.CLOSED
            self.session.core.call(
                lambda engine, now: engine.unsubscribe(subscription, now, all_seen=False, manner=manner)
            )
        self._unsettled.clear()
        self._numbers.clear()
        self._unsent.clear()

    def on_closed(self) -> JMSError | None:
        """See `BrokerLink.on_closed`: with the link to it a durable subscription is removed."""
        return None if self._durable is None else remove_subscription(self.session.core, *self._durable)

    def _apply(self, command: Settle) -> None:
        unsettled = self._unsettled.get(command.delivery)
        if unsettled is None:  # settled before, or the link has ended
            return
        outcome, transactions = command.outcome, self.session.transactions
        if outcome.transaction is not None:
            transactions.retire(outcome.transaction, unsettled, outcome)
            if outcome.settled:
                self._forget(unsettled)
                lib.pn_delivery_settle(unsettled.handle)
            else:
                enlist(unsettled.handle, outcome.transaction, outcome.kind)
            return
        transactions.recall(unsettled)
        if outcome.kind == ACCEPTED:
            self.session.acknowledge(unsettled.dispatch)
        elif outcome.poisons:
            self.session.core.call(lambda engine, now: unsettled.apply(engine, outcome, now))
        else:
            unsettled.dispatch.seen = outcome.counts
            self.session.release(unsettled.dispatch, outcome.manner)
        self.settle(unsettled, outcome.kind)

    def _forget(self, unsettled: Unsettled) -> bool:
        """Forget a delivery; False where it was settled before."""
        self._numbers.pop(unsettled.handle, None)
        return self._unsettled.pop(unsettled.dispatch.number, None) is not None
