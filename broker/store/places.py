"""Places of messages that wait and that only the journal has: eight bytes each."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence


class Places:
    """Orders of messages, ascending."""

    __slots__ = ("_orders",)

    def __init__(self) -> None:
        self._orders = array("q")

    def __len__(self) -> int:
        return len(self._orders)

    @property
    def first(self) -> int | None:
        """The lowest."""
        return self._orders[0] if self._orders else None

    def after(self, order: int) -> int | None:
        """The next one behind that."""
        at = bisect_right(self._orders, order)
        return self._orders[at] if at < len(self._orders) else None

    def some(self, order: int, limit: int) -> Sequence[int]:
        """The next ones behind that, up to so many."""
        at = bisect_right(self._orders, order)
        return self._orders[at : at + limit]

    def add(self, orders: Sequence[int]) -> None:
        """Add those places, ascending."""
        if orders:
            first, last = bisect_left(self._orders, orders[0]), bisect_left(self._orders, orders[-1])
            self._orders[first:last] = array("q", sorted((*self._orders[first:last], *orders)))

    def discard(self, orders: Sequence[int]) -> None:
        """Discard those places, which stand next to each other here."""
        if orders:
            at = bisect_left(self._orders, orders[0])
            del self._orders[at : at + len(orders)]
