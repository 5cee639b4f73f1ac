"""Keeps the first messages of a long queue in memory. The journal alone has those behind, until it is their turn.

A consumer that wants few of them, or none as they belong to another one's group, has the others come as well, a page at
a time. What nobody takes then is left to the journal again, but for its place: it is read again when it is wanted.

Of a delayed message that is kept only its time is in memory. Pure: the journal reads. What is in flight is in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from redelivery.broker.engine.entries import Backlog, Entry, order_of, put_back
from redelivery.broker.engine.queues import SUBSCRIPTION, QueueState
from redelivery.broker.engine.state import TEMPORARY, EngineState
from redelivery.broker.engine.stored import StoredMessage
from redelivery.broker.engine.subscriptions import Subscription
from redelivery.broker.store.journal import Contents, Journal
from redelivery.broker.store.places import Places

_DUE = 1000  # delayed messages that are due at once
_FRONT = 8 << 20  # bytes of a queue that stay where memory is short


def keep(state: EngineState, queue: QueueState, entry: Entry) -> bool:
    """Notify the journal of a new message that is to be kept; whether it stays there alone for now.

    One that is not persistent goes there only because those before it are there; it ends with the broker all the same.
    """
    journal = state.journal
    if journal is None or not queue.makes_dead_letters or queue.name.startswith(TEMPORARY):
        return False
    full = bool(queue.on_disk) or len(queue.pending) >= journal.window or state.memory_used > journal.memory
    if not full and not entry.message.persistent:
        return False
    entry.stored = True
    journal.put(entry)
    if entry.redeliveries:
        journal.counted(entry, entry.redeliveries)
    if full:
        queue.on_disk += 1
        state.memory_used -= entry.message.size
    return full


def delay(state: EngineState, message: StoredMessage) -> None:
    """Keep a message until its delivery time."""
    number = state.next_number()
    if state.journal is not None and state.keeps(message.destination.name, message):
        state.journal.delayed(number, message)
        state.deadlines.delay(number, message.delivery_time, None)
    else:
        state.memory_used += message.size
        state.deadlines.delay(number, message.delivery_time, message)


def due(state: EngineState, now: int) -> Iterator[StoredMessage]:
    """The next of the delayed messages whose time has come; not all at once, for they come into memory."""
    for number, message in islice(state.deadlines.due(now), _DUE):
        if message is None:
            yield journal_of(state).undelayed(number)
        else:
            state.memory_used -= message.size
            yield message


def turn(state: EngineState, queue: QueueState, now: int) -> bool:
    """Bring what a queue lacks into memory, a page of it; whether there is something to dispatch now.

    Where this call has read its page already, that is left for `redelivery.broker.engine.moves.go_on`.
    """
    if state.journal is None:
        return False
    _leave(state, queue, state.journal)
    after = queue.lacks
    if after is None:
        return False
    if queue in state.searched or not state.take_page():
        state.searched[queue] = None
        state.searched_at = now
        return False
    page_in(state, queue, after, now)
    return True


def page_in(state: EngineState, queue: QueueState, after: int, now: int) -> None:
    """Bring the next messages behind a place into memory; those that waited for their redelivery go on waiting."""
    if after < queue.front:
        entries = _read(state, queue, queue.left, after)
        put_back(queue.pending, entries)
        queue.look_again()
    else:
        entries = journal_of(state).page(queue.name, queue.front, journal_of(state).window)
        assert entries, f"{queue.name}: {queue.on_disk} messages are in the journal"
        queue.on_disk -= len(entries)
        for entry in entries:
            if entry.until > now:
                queue.park(entry)
                state.deadlines.wait(entry, entry.until)
            else:
                queue.add(entry)
            _came(state, queue, entry)
    queue.tried = 0


def bring(state: EngineState, subscription: Subscription, now: int) -> bool:
    """Check whether something waits for this subscription only, and bring the first of it into memory."""
    waiting, later = subscription.waiting, subscription.later
    while later:
        place, name = min((places.first or 0, name) for name, places in later.items())
        if waiting and next(iter(waiting)) < place:
            break
        if subscription in state.starved or not state.take_page():
            state.starve(subscription, now)
            return False
        put_back(waiting, _read(state, state.queues[name], later[name], 0))
        subscription.tried = 0
        if not later[name]:
            del later[name]
    return bool(waiting)


def _read(state: EngineState, queue: QueueState, places: Places, after: int) -> Sequence[Entry]:
    """Bring messages into memory again: those of the next places, which they leave."""
    journal = journal_of(state)
    orders = places.some(after, journal.window)
    entries = journal.read(queue.name, orders)
    places.discard(orders[: len(entries)])
    queue.paged_out -= len(entries)
    for entry in entries:
        queue.entries[entry.order] = entry
        _came(state, queue, entry)
    return entries


def _came(state: EngineState, queue: QueueState, entry: Entry) -> None:
    entry.makes_dead_letter = queue.makes_dead_letters
    state.memory_used += entry.message.size
    state.deadlines.watch(entry)


def _leave(state: EngineState, queue: QueueState, journal: Journal) -> None:
    """Leave to the journal what waits behind the first messages and was not taken by any consumer that has room."""
    short = state.memory_used > journal.memory
    if len(queue.pending) > max(journal.window, queue.tried) or (short and not queue.tried):
        orders = _let_go(state, queue, queue.pending, journal.window // 2, short=short)
        queue.left.add(orders)
        queue.tried = len(queue.pending) + journal.window // 2
        if orders:
            queue.look_again()
    for owner in queue.loads:
        if len(owner.waiting) > max(journal.window, owner.tried) or (short and owner.waiting and not owner.tried):
            orders = _let_go(state, queue, owner.waiting, journal.window // 2, short=short)
            if orders:
                owner.later.setdefault(queue.name, Places()).add(orders)
            owner.tried = len(owner.waiting) + journal.window // 2


def _let_go(state: EngineState, queue: QueueState, backlog: Backlog, front: int, *, short: bool) -> list[int]:
    """Forget what waits there but for its front; the places. Not what only memory knows something of."""
    orders = []
    kept = size = 0
    for entry in list(backlog.values()):
        size += entry.message.size
        kept += 1
        if kept <= max(1, front) and (kept == 1 or not short or size <= _FRONT):
            continue
        if entry.queue != queue.name or not entry.stored or (entry.acquired and not entry.redeliveries):
            continue
        if any(cursor.holds(entry) for cursor in queue.cursors.values()):
            continue
        entry.leave()
        del queue.entries[entry.order]
        state.memory_used -= entry.message.size
        orders.append(entry.order)
    queue.paged_out += len(orders)
    return orders


def held(state: EngineState, name: str) -> tuple[list[Entry], int | None, list[Entry]]:
    """The messages of a queue that are in memory now, in order: its front, then those among what only the journal has.

    Between the two is the place behind which that is to be read; None: there is nothing to read.
    """
    queue = state.queues.get(name)
    if queue is None:
        return [], None, []
    entries = sorted(queue.entries.values(), key=order_of)
    if not (queue.on_disk or queue.paged_out):
        return entries, None, []
    places = [queue.left, *(places for owner in queue.consumers if (places := owner.later.get(queue.name)))]
    after = min((places.first - 1 for places in places if places.first is not None), default=queue.front)
    front = [entry for entry in entries if entry.order <= after]
    return front, after, entries[len(front) :]


def restore(state: EngineState, contents: Contents, now: int) -> None:
    """Begin with what the journal kept. Queues are read when they are used, or something in them may expire."""
    state.continue_after(contents.last)
    for name, binding in contents.bindings.items():
        state.continue_after(int(name.removeprefix(SUBSCRIPTION)))
        state.bind(binding, name)
    for name, count in contents.queues.items():
        if name.startswith(SUBSCRIPTION) and name not in state.bound:
            journal_of(state).cleared(name, 0)  # it was removed, and a transaction had messages of it
            continue
        queue = state.queue(name)
        queue.on_disk, queue.front, queue.enqueued = count, 0, count
        if name in contents.expiring:
            page_in(state, queue, 0, now)
    for number, until in contents.delayed:
        state.deadlines.delay(number, until, None)


def clear(state: EngineState, queue: QueueState) -> None:
    """Remove what the journal alone holds of a queue."""
    if queue.on_disk or queue.paged_out:
        journal_of(state).cleared(queue.name, 0 if queue.paged_out else queue.front)
        queue.on_disk = queue.paged_out = 0
        queue.left = Places()


def journal_of(state: EngineState) -> Journal:
    """The journal, where it is known that there is one."""
    assert state.journal is not None, "only a journal keeps what is not in memory"
    return state.journal
