"""Shows a browser a queue: first what is in memory, then what the journal alone has, a page at a time.

Between two pages other clients are served, and what a selector does not match stays in memory no longer than its page.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from redelivery.broker.engine.entries import Entry
from redelivery.broker.engine.state import EngineState
from redelivery.broker.engine.stored import END_OF_QUEUE
from redelivery.broker.engine.subscriptions import Subscription
from redelivery.broker.store import paging
from redelivery.model.selectors.selector import Selector

_PAGE = 200  # messages, at most


class BrowsedQueue:
    """The messages that a queue held at one moment and a selector matches, in order; only a call's thread may use it.

    ``found``: what was read and has still to be shown. ``more``: there may be more to `read`.
    """

    __slots__ = ("_after", "_in_memory", "_last", "_queue", "_selector", "_state", "found", "more")

    def __init__(self, state: EngineState, name: str, selector: Selector | None) -> None:
        self._state = state
        self._queue = name
        self._selector = selector
        self._last = state.last_number
        front, self._after, rest = paging.held(state, name)
        self.more = self._after is not None
        self._in_memory = deque(rest)
        self.found: deque[Entry] = deque()
        self._find(front)

    def take(self) -> Entry:
        """A copy of the next one, with the count that the broker's rules show a browser."""
        copy = self.found.popleft().copy()
        if self._state.rules.browses_last_count and copy.redeliveries:
            copy.redeliveries -= 1
        return copy

    def read(self) -> None:
        """The next page, which may have nothing that matches. Raises UnreadableStoreError."""
        assert self._after is not None, "there is more"
        journal = paging.journal_of(self._state)
        entries = journal.page(self._queue, self._after, min(_PAGE, journal.window))
        in_memory = self._in_memory
        for entry in entries:
            self._after = entry.order
            while in_memory and in_memory[0].order < entry.order:
                self._find((in_memory.popleft(),))
            if in_memory and in_memory[0].order == entry.order:
                self._find((in_memory.popleft(),))
            elif entry.order <= self._last:
                self._find((entry,))
        if not entries or self._after >= self._last:
            self.more = False
            self._find(in_memory)
            in_memory.clear()

    def _find(self, entries: Iterable[Entry]) -> None:
        selector = self._selector
        self.found.extend(each for each in entries if selector is None or selector.matches(each.value_of))


def show_more(state: EngineState, subscription: Subscription, now: int) -> bool:
    """Let a browser see the next message of its queue, or the end; whether there was either.

    Where this call has read its page already, that is left for `redelivery.broker.engine.moves.go_on`.
    """
    browsed = subscription.browsed
    if browsed is None:
        return False
    while browsed.more and not browsed.found:
        if subscription in state.starved or not state.take_page():
            state.starve(subscription, now)
            state.touched[subscription] = None  # who waits for an answer sees that it goes on
            return False
        browsed.read()
    if browsed.found:
        browsed.take().wait_in(subscription.waiting)
        return True
    subscription.browsed = None
    end = state.new_entry(END_OF_QUEUE, None)
    end.browsed = True
    end.wait_in(subscription.waiting)
    return True
