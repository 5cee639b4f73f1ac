"""A message at a place. An `Entry` is either in one backlog or in flight to one subscription, never both."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from redelivery.broker.engine.stored import StoredMessage
from redelivery.model.values import Value

Backlog: TypeAlias = "OrderedDict[int, Entry]"


@dataclass(slots=True, eq=False, repr=False)
class Entry:
    """One message that waits or is in flight; ``order`` is its place among all, ``redeliveries`` its counter.

    ``queue`` is the name of its queue, None for a browser's copy. ``acquired``: for the servers, whether some client
    was sent it, counted or not. ``browsed``: it is a browser's copy, of which no observer hears. ``makes_dead_letter``:
    its queue wants that. ``stored``: a journal was notified of it, and must be of its end. ``until``: as it comes from
    a journal, it waits until then for its redelivery (epoch milliseconds).
    """

    message: StoredMessage
    order: int
    queue: str | None
    redeliveries: int = 0
    acquired: bool = False
    browsed: bool = False
    makes_dead_letter: bool = True
    stored: bool = False
    until: int = 0
    backlog: Backlog | None = None  # where it waits; None while it is in flight

    def value_of(self, name: str) -> Value:
        """The value of a name in a selector: see `StoredMessage.value_of`."""
        return self.redeliveries + 1 if name == "JMSXDeliveryCount" else self.message.value_of(name)

    def copy(self) -> Entry:
        """For a browser: of no queue, and without a charge on the broker's memory."""
        copy = Entry(replace(self.message, size=0), self.order, None)
        copy.redeliveries = self.redeliveries
        copy.acquired = self.acquired
        copy.browsed = True
        return copy

    def wait_in(self, backlog: Backlog) -> None:
        """Append to a backlog."""
        self.backlog = backlog
        backlog[self.order] = self

    def leave(self) -> None:
        """Leave the backlog."""
        if self.backlog is not None:
            del self.backlog[self.order]
            self.backlog = None


def put_back(backlog: Backlog, entries: Iterable[Entry]) -> None:
    """Return entries to a backlog, at the places where they stood: in the order in which all of them once arrived."""
    returned = sorted(entries, key=order_of)
    if not returned:
        return
    last = returned[-1].order
    while backlog and next(iter(backlog)) < last:
        returned.append(backlog.popitem(last=False)[1])
    returned.sort(key=order_of, reverse=True)
    for entry in returned:
        entry.wait_in(backlog)
        backlog.move_to_end(entry.order, last=False)


def order_of(entry: Entry) -> int:
    """The entry's place among all."""
    return entry.order
