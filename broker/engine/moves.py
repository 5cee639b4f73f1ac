"""How messages move: in, to a consumer, back, and away. Each function is one step of `Engine` on its state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from redelivery.broker.engine.entries import Entry, put_back
from redelivery.broker.engine.state import EngineState
from redelivery.broker.engine.stored import StoredMessage
from redelivery.broker.engine.subscriptions import Dispatch, Subscription
from redelivery.model.destinations import Topic
from redelivery.policies.causes import expired_cause
from redelivery.policies.destinations.map import matches


def accept(state: EngineState, message: StoredMessage, now: int) -> None:
    """Put a message on its queue or topic, or keep it until its delivery time."""
    if not state.exists(message.destination):
        return  # it was removed meanwhile, and with it every possible consumer
    if message.delivery_time > now:
        state.memory_used += message.size
        state.deadlines.delay(message)
    elif isinstance(message.destination, Topic):
        _publish(state, message, now)
    else:
        _enqueue(state, message)


def refill(state: EngineState, subscription: Subscription, now: int) -> None:
    """Use the room that a subscription may have: first for what waits for this one only."""
    while subscription.waiting and subscription.room:
        entry = next(iter(subscription.waiting.values()))
        if entry.message.expired(now):
            expire(state, entry, now)
        else:
            give(state, subscription, entry)
    if subscription.room:
        for name in subscription.queues:
            queue = state.queues[name]
            if queue.pending:
                state.ready[queue] = None
    dispatch_ready(state, now)


def refill_all(state: EngineState, dispatches: Iterable[Dispatch], now: int) -> None:
    """The same for each subscription of these dispatches, once."""
    for subscription in {dispatch.subscription: None for dispatch in dispatches}:
        refill(state, subscription, now)


def dispatch_ready(state: EngineState, now: int) -> None:
    """Dispatch what waits in the ready queues to consumers with room."""
    while state.ready:
        queue = next(iter(state.ready))
        del state.ready[queue]
        queue.dispatch(now, partial(give, state), lambda entry: expire(state, entry, now))


def give(state: EngineState, subscription: Subscription, entry: Entry) -> None:
    """Put a waiting message in flight to a consumer that has room."""
    dispatch = subscription.give(entry)
    state.touched[subscription] = None
    if state.observer is not None and not entry.browsed:
        state.observer.dispatched(dispatch)


def acknowledge(state: EngineState, dispatch: Dispatch) -> None:
    """Remove a message that was in flight and is consumed."""
    settle(state, dispatch)
    if state.observer is not None and not dispatch.entry.browsed:
        state.observer.acknowledged(dispatch)


def settle(state: EngineState, dispatch: Dispatch) -> None:
    """Remove a message that was in flight."""
    dispatch.subscription.take_back(dispatch)
    state.forget(dispatch.entry)


def expire(state: EngineState, entry: Entry, now: int) -> None:
    """Remove a waiting message whose time has passed."""
    entry.leave()
    state.forget(entry)
    if not entry.browsed:
        dead_letter(state, entry, expired_cause(entry.message.expiration), now, expired=True)


def dead_letter(state: EngineState, entry: Entry, cause: str | None, now: int, *, expired: bool = False) -> None:
    """Send a message that was removed to its dead-letter queue, where the strategy wants it.

    One of a topic has none, as there is no durable subscription.
    """
    letter = None
    if entry.queue is not None:
        letter = state.dead_letters.letter(entry.message, cause, now, expired=expired)
    if state.observer is not None:
        if expired:
            state.observer.expired(entry)
        if letter is not None:
            state.observer.dead_lettered(entry, cause or "", letter.destination)
        else:
            state.observer.discarded(entry, cause or "")
    if letter is not None:
        accept(state, letter, now)


def drop(state: EngineState, entry: Entry, reason: str) -> None:
    """Remove a waiting message that nobody can have any more."""
    state.forget(entry)
    if state.observer is not None and not entry.browsed:
        state.observer.discarded(entry, reason)


def release(state: EngineState, dispatches: Sequence[Dispatch], now: int, unsent: Sequence[Entry] = ()) -> None:
    """Let dispatched and merely reserved entries wait again; a topic's are forgotten with their subscription."""
    homes: dict[str, list[Entry]] = {}
    for dispatch in dispatches:
        dispatch.subscription.take_back(dispatch)
        dispatch.entry.redeliveries += dispatch.seen
        if state.observer is not None and not dispatch.entry.browsed:
            state.observer.released(dispatch)
        if dispatch.entry.queue is None and not dispatch.subscription.closed:
            put_back(dispatch.subscription.waiting, (dispatch.entry,))
        else:
            _return(state, dispatch.entry, homes)
    for entry in unsent:
        entry.leave()
        _return(state, entry, homes)
    for name, entries in homes.items():
        queue = state.queues[name]
        owners = queue.restore(entries)
        state.ready[queue] = None
        for owner in owners:
            refill(state, owner, now)
    refill_all(state, dispatches, now)  # what waits for one of them alone: it has room now


def _publish(state: EngineState, message: StoredMessage, now: int) -> None:
    for subscription in state.subscriptions:
        if not isinstance(subscription.destination, Topic) or not matches(
            subscription.destination.name, message.destination.name
        ):
            continue
        if subscription.no_local and subscription.origin == message.origin:
            continue
        entry = state.new_entry(message, None)
        entry.wait_in(subscription.waiting)
        if state.observer is not None:
            state.observer.enqueued(entry)
        state.deadlines.watch(entry)
        refill(state, subscription, now)


def _enqueue(state: EngineState, message: StoredMessage) -> None:
    queue = state.queue(message.destination.name)
    entry = state.new_entry(message, message.destination.name)
    queue.add(entry)
    if state.observer is not None:
        state.observer.enqueued(entry)
    state.deadlines.watch(entry)
    state.ready[queue] = None


def _return(state: EngineState, entry: Entry, homes: dict[str, list[Entry]]) -> None:
    if entry.queue is None:
        drop(state, entry, "its subscriber has gone")
    elif state.queues[entry.queue].removed:
        drop(state, entry, "its temporary queue was removed")
    else:
        homes.setdefault(entry.queue, []).append(entry)
        state.deadlines.watch(entry)
