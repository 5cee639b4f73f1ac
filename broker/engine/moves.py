"""Moves messages: in, to a consumer, back, and away. Each function is one step of `Engine` on its state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import cast

from redelivery.broker.engine.entries import Entry, put_back
from redelivery.broker.engine.queues import QueueState
from redelivery.broker.engine.rules.rules import Failure, Manner, ReturnDecision
from redelivery.broker.engine.state import EngineState
from redelivery.broker.engine.stored import StoredMessage
from redelivery.broker.engine.subscriptions import Dispatch, Subscription
from redelivery.broker.store import browsing, paging
from redelivery.model.destinations import Topic
from redelivery.policies.activemq.causes import expired_cause

DISCARDED = "java.lang.Throwable: TopicSubDiscard. ID:"  # what ActiveMQ writes on what it evicts; then the consumer


def accept(state: EngineState, message: StoredMessage, now: int, *, is_letter: bool = False) -> None:
    """Put a message on its queue, or those of its topic's subscriptions, or keep it until its delivery time.

    What no subscription wants is a dead letter where the broker's rules say so, unless it is one already.
    """
    if not state.exists(message.destination):
        return  # it was removed meanwhile, and with it every possible consumer
    message = state.rules.arriving(message, now, is_letter=is_letter)
    if message.delivery_time > now:
        paging.delay(state, message)
    elif isinstance(message.destination, Topic):
        placed = state.rules.places(message, state.queues.__contains__)
        subscriptions = [
            queue
            for queue in state.bound.values()
            if queue.binding is not None and queue.removed is None and queue.binding.wants(message)
        ]
        for queue in (*map(state.queue, placed), *subscriptions):
            _enqueue(state, queue, message)
        for queue in subscriptions:
            if queue.slow is not None:
                dispatch_ready(state, now)
                evict(state, queue, now)
        if not (placed or subscriptions) and not is_letter and state.rules.keeps_unrouted(message.destination):
            dead_letter(state, Entry(message, state.next_number(), None), "no subscription wants it", now)
    else:
        to = message.destination.name
        for name in (to,) if is_letter else state.rules.places(message, state.queues.__contains__):
            _enqueue(state, state.queue(name), message)


def refill(state: EngineState, subscription: Subscription, now: int) -> None:
    """Use the room that a subscription may have: first for what waits for this one only."""
    while subscription.room and (
        paging.bring(state, subscription, now) or browsing.show_more(state, subscription, now)
    ):
        entry = next(iter(subscription.waiting.values()))
        if entry.message.expired(now):
            expire(state, entry, now)
        else:
            give(state, subscription, entry)
    dispatch_ready(state, now)
    while subscription.ready and subscription.candidates:  # a queue comes back behind the others where it has more
        queue = next(iter(subscription.candidates))
        del subscription.candidates[queue]
        if queue.holds_some:
            state.ready[cast(QueueState, queue)] = None
            dispatch_ready(state, now)


def wake(state: EngineState, name: str) -> None:
    """Look what of a queue can be dispatched, if it still exists."""
    queue = state.queues.get(name)
    if queue is not None and (queue.pending or queue.paged_out):
        state.ready[queue] = None


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
        if queue.removed is None and paging.turn(state, queue, now):
            state.ready[queue] = None
        queue.offer()


def go_on(state: EngineState, now: int) -> None:
    """Read on for those for whom an earlier call has not read enough; those who wait for the end of that are woken."""
    starved, searched = state.starved, state.searched
    state.starved, state.searched = {}, {}
    state.ready.update(searched)
    for subscription in starved:
        if not subscription.closed:
            refill(state, subscription, now)
    dispatch_ready(state, now)
    for queue in searched.keys() - state.searched.keys():
        state.touched.update(dict.fromkeys(queue.consumers))


def searches(state: EngineState, subscription: Subscription) -> bool:
    """Check whether `go_on` has something to read for the subscription."""
    return subscription in state.starved or (
        bool(state.searched) and any(state.queues[name] in state.searched for name in subscription.queues)
    )


def give(state: EngineState, subscription: Subscription, entry: Entry) -> None:
    """Put a waiting message in flight to a consumer that has room."""
    dispatch = subscription.give(entry)
    if state.journal is not None and entry.stored and state.rules.counts_first:
        state.journal.counted(entry, entry.redeliveries + 1)
    if state.journal is None:
        subscription.outbox.append(dispatch)
        state.touched[subscription] = None
    else:
        subscription.undelivered += 1
        state.given.append((state.journal.sequence, dispatch))
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
    if entry.queue is not None:
        state.ready[state.queues[entry.queue]] = None  # more may have to come into memory
    state.forget(entry)
    if not entry.browsed:
        dead_letter(state, entry, expired_cause(entry.message.expiration), now, expired=True)


def dead_letter(state: EngineState, entry: Entry, cause: str | None, now: int, *, expired: bool = False) -> None:
    """Send a message that was removed to its dead-letter queue, where its queue and the strategy want it."""
    letters: Sequence[StoredMessage] = ()
    if entry.makes_dead_letter or (expired and state.rules.expired_of_volatile):
        queue = state.bound.get(entry.queue) if entry.queue is not None else None
        subscriber = queue.binding.subscriber if queue is not None and queue.binding is not None else None
        letters = state.rules.letters(Failure(entry, cause, now, expired, state.queues.__contains__, subscriber))
    elif not expired:
        state.rules.lost.note(entry.message, "what fails in a subscription that is not durable is no dead letter", now)
    if state.observer is not None:
        if expired:
            state.observer.expired(entry)
        if letters:
            state.observer.dead_lettered(entry, cause or "", letters[0].destination)
        else:
            state.observer.discarded(entry, cause or "")
    for letter in letters:
        accept(state, letter, now, is_letter=True)


def evict(state: EngineState, queue: QueueState, now: int) -> None:
    """Discard what waits beyond the limit of a topic's subscriber: dead letters, but for a limit of 0.

    One message that has expired goes first, as with ActiveMQ's TopicSubscription.
    """
    assert queue.slow is not None, "it has a limit"
    limit, eviction = queue.slow
    if len(queue.pending) > limit and limit:
        late = next((entry for entry in queue.pending.values() if entry.message.expired(now)), None)
        if late is not None:
            expire(state, late, now)
    while len(queue.pending) > limit:
        waiting = list(queue.pending.values())
        places = [-1]  # what has no room at all
        if limit:
            messages = [entry.message for entry in waiting]
            priorities, stamps = [each.priority for each in messages], [each.timestamp for each in messages]
            places = eviction.chosen([each.properties for each in messages], priorities, stamps)
        for entry in [waiting[place] for place in places]:
            entry.leave()
            state.forget(entry)
            why = f"a subscriber is slow, for which at most {limit} may wait"
            state.rules.lost.note(entry.message, f"{why}: it is a dead letter" if limit else why, now)
            if limit:
                entry.makes_dead_letter = True
                dead_letter(state, entry, f"{DISCARDED}{queue.name}", now)
            elif state.observer is not None:
                state.observer.discarded(entry, why)


def drop(state: EngineState, entry: Entry, reason: str) -> None:
    """Remove a waiting message that nobody can have any more."""
    state.forget(entry)
    if state.observer is not None and not entry.browsed:
        state.observer.discarded(entry, reason)


def release(
    state: EngineState,
    dispatches: Sequence[Dispatch],
    now: int,
    manner: Manner | None = None,
    unsent: Sequence[Entry] = (),
) -> None:
    """Do with dispatches that come back what the broker's rules say; merely reserved entries wait again.

    Where their queue was removed they are dropped. No ``manner``: what was seen has failed, the rest was not used.
    """
    homes: dict[str, list[Entry]] = {}
    for dispatch in dispatches:
        entry = dispatch.entry
        if entry.browsed:
            dispatch.subscription.take_back(dispatch)
            if dispatch.subscription.closed:
                _return(state, entry, homes)
            else:
                put_back(dispatch.subscription.waiting, (entry,))
            continue
        how = manner or (Manner.FAILED if dispatch.seen else Manner.RELEASED)
        fate = state.rules.returned(entry, how, seen=dispatch.seen)
        if fate.failed or fate.consumed:
            give_up(state, dispatch, fate, None, now)
            continue
        dispatch.subscription.take_back(dispatch)
        queue = None if entry.queue is None else state.queues[entry.queue]
        if fate.elsewhere and queue is not None and not dispatch.subscription.closed:
            queue.refuse(entry, dispatch.subscription)
        parked = queue.parked if fate.delay and queue is not None and queue.removed is None else None
        until = 0 if parked is None else now + fate.delay
        count(state, entry, counted=fate.counted, until=until)
        if state.observer is not None:
            state.observer.released(dispatch)
        if parked is not None:
            entry.wait_in(parked)
            state.deadlines.wait(entry, until)
            state.deadlines.watch(entry)
        else:
            _return(state, entry, homes)
    for entry in unsent:
        entry.leave()
        _return(state, entry, homes)
    for name, entries in homes.items():
        _restore(state, state.queues[name], entries, now)
    refill_all(state, dispatches, now)  # what waits for one of them alone: it has room now


def poison(state: EngineState, dispatch: Dispatch, cause: str | None, now: int, manner: Manner) -> None:
    """Dead-letter a message that was in flight, if the broker's rules do not redeliver it."""
    entry, expired = dispatch.entry, manner is Manner.EXPIRED
    if entry.browsed:
        settle(state, dispatch)
        return
    seen = dispatch.seen
    fate = ReturnDecision(seen, failed=True) if expired else state.rules.returned(entry, manner, seen=seen)
    if fate.failed or fate.consumed:
        give_up(state, dispatch, fate, cause, now, expired=expired)
    else:
        release(state, (dispatch,), now, manner)


def give_up(
    state: EngineState, dispatch: Dispatch, fate: ReturnDecision, cause: str | None, now: int, *, expired: bool = False
) -> None:
    """Remove a message that was in flight and is not delivered again."""
    if fate.consumed:
        acknowledge(state, dispatch)
        return
    settle(state, dispatch)
    dispatch.entry.redeliveries += fate.counted
    dead_letter(state, dispatch.entry, cause, now, expired=expired)


def redeliver(state: EngineState, now: int) -> None:
    """Let the entries be delivered again whose wait for that is over."""
    for entry in state.deadlines.redelivered(now):
        assert entry.queue is not None, "no browser's copy waits"
        entry.leave()
        _restore(state, state.queues[entry.queue], [entry], now)
        state.deadlines.watch(entry)


def count(state: EngineState, entry: Entry, *, counted: bool = True, until: int = 0) -> None:
    """Count a delivery that was not acknowledged; ``until``: it waits until then for the next one."""
    if counted:
        entry.redeliveries += 1
    if state.journal is not None and entry.stored and (counted or until or state.rules.counts_first):
        state.journal.counted(entry, entry.redeliveries, until)


def count_seen(state: EngineState) -> None:
    """The broker ends: what its consumers have seen and not acknowledged counts as delivered."""
    for queue in state.queues.values():
        for consumer in queue.consumers:
            for dispatch in consumer.in_flight.values():
                if dispatch.seen and not dispatch.entry.browsed:
                    count(state, dispatch.entry)


def _enqueue(state: EngineState, queue: QueueState, message: StoredMessage) -> None:
    entry = state.new_entry(message, queue.name)
    entry.makes_dead_letter = queue.makes_dead_letters or state.rules.letters_of_volatile
    entry.redeliveries = message.resends
    if state.slow.queues:
        state.slow.arrived(queue)
    queue.enqueued += 1
    if not paging.keep(state, queue, entry):
        queue.add(entry)
        state.deadlines.watch(entry)
    if state.observer is not None:
        state.observer.enqueued(entry)
    state.ready[queue] = None


def _restore(state: EngineState, queue: QueueState, entries: Sequence[Entry], now: int) -> None:
    owners = queue.restore(entries)
    state.ready[queue] = None
    for owner in owners:
        refill(state, owner, now)


def _return(state: EngineState, entry: Entry, homes: dict[str, list[Entry]]) -> None:
    queue = None if entry.queue is None else state.queues[entry.queue]
    if queue is None:
        drop(state, entry, "it was a browser's copy")
    elif queue.removed is not None:
        drop(state, entry, queue.removed)
    else:
        homes.setdefault(queue.name, []).append(entry)
        state.deadlines.watch(entry)
