"""Consumers: links that take messages of a queue or topic away, and what their client makes of each."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any

from cproton_ffi import lib

from redelivery.broker.amqp_commands import Command
from redelivery.broker.amqp_messages import write_message
from redelivery.broker.amqp_outgoing import OutgoingLink
from redelivery.broker.amqp_places import Wanted
from redelivery.broker.amqp_states import ACCEPTED, MODIFIED, REJECTED, Outcome, finish, read_outcome
from redelivery.broker.engine.credit import CreditSubscription
from redelivery.broker.engine.engine import Engine
from redelivery.broker.engine.subscriptions import Dispatch
from redelivery.model.errors import MessageFormatError
from redelivery.transports.amqp.dispositions import enlist

if TYPE_CHECKING:
    from redelivery.broker.amqp_conversation import AmqpConversation
    from redelivery.broker.amqp_units import Unit


class Held:
    """A delivery that the client has not settled, or that its transaction has.

    ``unit`` is the transaction that it has an outcome in, ``settled`` whether that one was settled.
    """

    __slots__ = ("dispatch", "handle", "link", "settled", "unit")

    def __init__(self, link: ConsumerLink, dispatch: Dispatch, handle: Any) -> None:
        self.link = link
        self.dispatch = dispatch
        self.handle = handle
        self.unit: Unit | None = None
        self.settled = False

    def apply(self, engine: Engine, outcome: Outcome, now: int) -> None:
        """What an outcome other than accepted means."""
        dispatch = self.dispatch
        if outcome.kind == REJECTED:
            engine.poison(dispatch, outcome.cause, now)
        elif outcome.kind == MODIFIED and outcome.undeliverable:  # ActiveMQ's way
            engine.poison(dispatch, outcome.cause or "the consumer said: undeliverable here", now)
        else:
            dispatch.seen = outcome.counts
            engine.release([dispatch], now)


class ConsumerLink(OutgoingLink):
    """A consumer, which the engine gives as much as it has credit for."""

    def __init__(self, conversation: AmqpConversation, handle: Any) -> None:
        super().__init__(conversation, handle)
        self._subscription: CreditSubscription | None = None
        self._ready: deque[Dispatch] = deque()
        self._held: dict[Any, Held] = {}

    def begin(self, met: Wanted) -> None:
        """See `OutgoingLink.begin`."""
        subscription = CreditSubscription(
            met.destination, self, no_local=met.no_local, origin=self.conversation.session
        )

        def subscribe(engine: Engine, now: int) -> None:
            engine.subscribe(subscription)
            engine.start(subscription, now)

        self.conversation.core.call(subscribe)
        self._subscription = subscription

    def append(self, dispatch: Dispatch, /) -> None:
        """See `redelivery.broker.engine.subscriptions.Outbox`."""
        self._ready.append(dispatch)

    def wake(self) -> None:
        """See `redelivery.broker.engine.subscriptions.Outbox`."""
        self.conversation.stir(self)

    def grant(self, credit: int, drain: bool) -> None:
        """See `OutgoingLink.grant`."""
        subscription = self._subscription
        assert subscription is not None, "attached"

        def give(engine: Engine, now: int) -> None:
            engine.grant(subscription, max(0, credit - len(self._ready)), now)
            if drain:
                subscription.credit = 0

        self.conversation.core.call(give)

    @property
    def waits(self) -> bool:
        """See `OutgoingLink.waits`."""
        return bool(self._ready)

    def send_next(self, now: int) -> None:
        """See `OutgoingLink.send_next`."""
        dispatch = self._ready.popleft()
        if dispatch.subscription.closed:
            return
        entry = dispatch.entry
        parts = write_message(dispatch.message, dispatch.count, first=not entry.acquired, now=now)
        entry.acquired = dispatch.seen = True
        handle = self.transfer(dispatch.number, parts)
        if self.presettled:
            self.conversation.acknowledged.append(dispatch)
        else:
            self._held[handle] = Held(self, dispatch, handle)

    def on_delivery(self, handle: Any) -> None:
        """An outcome."""
        held = self._held.get(handle)
        if held is None or not lib.pn_delivery_updated(handle):
            return
        try:
            outcome = read_outcome(handle)
        except MessageFormatError as error:
            self.end(error)
            return
        if outcome is None:
            return
        poisons = outcome.poisons
        self.conversation.commands.append(
            Command(
                "ACK" if outcome.kind == ACCEPTED else "NACK" if poisons else None,
                partial(self._take, held, outcome),
                self.end,
                gathers=outcome.transaction is None and not poisons,
            )
        )

    def settle(self, held: Held, kind: int) -> None:
        """The delivery is over: say so, unless the client was first."""
        if self._held.pop(held.handle, None) is not None and not self.ended:
            finish(held.handle, kind)

    def release(self) -> None:
        """See `DoorLink.release`: what was sent counts as seen, as nobody can know better."""
        subscription = self._subscription
        if subscription is not None:
            self.conversation.core.call(lambda engine, now: engine.unsubscribe(subscription, now, all_seen=False))
        self._held.clear()
        self._ready.clear()

    def _take(self, held: Held, outcome: Outcome) -> None:
        if self.ended or held.handle not in self._held:
            return
        units = self.conversation.units
        if outcome.transaction is not None:
            units.retire(outcome.transaction, held, outcome)
            if outcome.settled:
                del self._held[held.handle]
                lib.pn_delivery_settle(held.handle)
            else:
                enlist(held.handle, outcome.transaction, outcome.kind)
            return
        units.recall(held)
        if outcome.kind == ACCEPTED:
            self.conversation.acknowledged.append(held.dispatch)
        elif outcome.poisons:
            self.conversation.core.call(lambda engine, now: held.apply(engine, outcome, now))
        else:
            held.dispatch.seen = outcome.counts
            self.conversation.returned.append(held.dispatch)
        self.settle(held, outcome.kind)
