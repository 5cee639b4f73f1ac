"""What of a long queue is in memory: its first messages. The journal alone has those behind, until it is their turn.

Of a delayed message that is kept only its time is in memory.

Pure: the journal reads. What is in flight is in memory, so a queue in memory is always the front of the whole queue.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from redelivery.broker.engine.entries import Entry
from redelivery.broker.engine.queues import SUBSCRIPTION, QueueState
from redelivery.broker.engine.state import TEMPORARY, EngineState
from redelivery.broker.engine.stored import StoredMessage
from redelivery.broker.store.journal import Contents, Journal

_SHOWN = 200  # messages that a browser is read at once
_DUE = 1000  # delayed messages that are due at once


def keep(state: EngineState, queue: QueueState, entry: Entry) -> bool:
    """Notify the journal of a new message that is to be kept; whether it stays there alone for now.

    One that is not persistent goes there only because those before it are there; it ends with the broker all the same.
    """
    journal = state.journal
    if journal is None or not queue.makes_dead_letters or queue.name.startswith(TEMPORARY):
        return False
    full = bool(queue.behind) or len(queue.pending) >= journal.window or state.memory_used > journal.memory
    if not full and not entry.message.persistent:
        return False
    entry.stored = True
    journal.put(entry)
    if entry.redeliveries:
        journal.counted(entry, entry.redeliveries)
    if full:
        queue.behind += 1
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
            yield _journal(state).undelayed(number)
        else:
            state.memory_used -= message.size
            yield message


def page_in(state: EngineState, queue: QueueState, now: int) -> None:
    """Bring the next messages of a queue into memory; those that waited for their redelivery go on waiting."""
    journal = _journal(state)
    entries = journal.page(queue.name, queue.front, journal.window)
    assert entries, f"{queue.name}: {queue.behind} messages are in the journal"
    for entry in entries:
        entry.makes_dead_letter = queue.makes_dead_letters
        if entry.until > now:
            queue.park(entry)
            state.deadlines.wait(entry, entry.until)
        else:
            queue.add(entry)
        state.memory_used += entry.message.size
        state.deadlines.watch(entry)
    queue.behind -= len(entries)


def behind(state: EngineState, queue: QueueState) -> Iterator[Entry]:
    """What the journal alone holds of a queue now, read as it is asked for; for a browser."""
    after, last = queue.front, state.last_number
    left = queue.behind
    while left > 0:
        entries = _journal(state).page(queue.name, after, min(left, _SHOWN))
        left -= len(entries)
        for entry in entries:
            if entry.order > last:
                return
            yield entry
        if not entries:
            return
        after = entries[-1].order


def restore(state: EngineState, contents: Contents, now: int) -> None:
    """Begin with what the journal kept. Queues are read when they are used, or something in them may expire."""
    state.continue_after(contents.last)
    for name, binding in contents.bindings.items():
        state.continue_after(int(name.removeprefix(SUBSCRIPTION)))
        state.bind(binding, name)
    for name, count in contents.queues.items():
        if name.startswith(SUBSCRIPTION) and name not in state.bound:
            _journal(state).cleared(name, 0)  # it was removed, and a transaction had messages of it
            continue
        queue = state.queue(name)
        queue.behind, queue.front = count, 0
        if name in contents.expiring:
            page_in(state, queue, now)
    for number, until in contents.delayed:
        state.deadlines.delay(number, until, None)


def clear(state: EngineState, queue: QueueState) -> None:
    """Remove what the journal alone holds of a queue."""
    if queue.behind:
        _journal(state).cleared(queue.name, queue.front)
        queue.behind = 0


def _journal(state: EngineState) -> Journal:
    assert state.journal is not None, "only a journal keeps what is not in memory"
    return state.journal
