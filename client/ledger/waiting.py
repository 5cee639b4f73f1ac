"""Keeps what waits while others of its consumer go on: for a non-blocking redelivery, or to be dead-lettered later."""

from __future__ import annotations

from heapq import heappush

from redelivery.client.ledger.orders import Order, Park, Poison
from redelivery.client.ledger.state import DELAYED, GONE, ConsumerState, Received


class Waiting:
    """Batches of deliveries, by when their wait is over; at most ``max_delayed`` deliveries."""

    def __init__(self, max_delayed: int) -> None:
        self.orders: list[Order] = []
        self.delayed: list[tuple[float, int, ConsumerState, tuple[Received, ...]]] = []  # a heap
        self.delayed_count = self._sequence = 0
        self.condemned: dict[Received, Poison] = {}  # could not be dead-lettered yet; the verdict stands
        self.max_delayed = max_delayed

    def delay(self, consumer: ConsumerState, batch: tuple[Received, ...], until: float) -> bool:
        """Let them wait while the others of their consumer go on; False where too many wait already."""
        if self.delayed_count + len(batch) > self.max_delayed:
            return False
        for delivery in batch:
            delivery.state = DELAYED
        self._sequence += 1
        heappush(self.delayed, (until, self._sequence, consumer, batch))
        self.delayed_count += len(batch)
        self.orders.append(Park(batch))
        return True

    def forget_waiting(self, consumer: ConsumerState) -> list[tuple[Received, ...]]:
        """Take back batches that wait for a non-blocking redelivery: they go back to the broker."""
        batches = [entry[3] for entry in sorted(self.delayed) if entry[2] is consumer]
        self.delayed = sorted(entry for entry in self.delayed if entry[2] is not consumer)
        for batch in batches:
            self.delayed_count -= len(batch)
            for delivery in batch:
                delivery.state = GONE
                self.condemned.pop(delivery, None)
        return batches
