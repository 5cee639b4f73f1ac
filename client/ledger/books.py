"""The state that all parts of the ledger share, and the two questions that they share too: which count, which delay."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from redelivery.client.ledger.entries import Order, Poison, State, Station
from redelivery.model.modes import AckMode
from redelivery.policies.redelivery import RedeliveryPolicy
from redelivery.transports.delivery import Delivery


class Books:
    """What is where.

    ``wall_ms`` tells the time of day in epoch milliseconds and is asked only about messages that can expire; all
    other times are the caller's monotonic seconds. ``max_delayed`` bounds the deliveries that wait at the same time
    for a non-blocking redelivery; beyond it a batch waits blocking.
    """

    def __init__(
        self,
        mode: AckMode,
        *,
        wall_ms: Callable[[], int],
        rng: Random | None = None,
        non_blocking: bool = False,
        max_delayed: int = 1000,
    ) -> None:
        self.mode = mode
        self.orders: list[Order] = []
        self.stations: list[Station] = []
        self.held: dict[Delivery, None] = {}  # in the order in which the application got them
        self.delayed: list[tuple[float, int, Station, tuple[Delivery, ...]]] = []  # a heap
        self.delayed_count = 0
        self.condemned: dict[Delivery, Poison] = {}  # could not be dead-lettered yet; the verdict stands
        self.lost = False  # with the connection: nothing is ours any more
        self.non_blocking = non_blocking
        self.max_delayed = max_delayed
        self.rng = rng
        self._wall_ms = wall_ms
        self._sequence = 0

    def take_orders(self) -> list[Order]:
        """The orders given since the last call."""
        orders, self.orders = self.orders, []
        return orders

    def _limit(self, delivery: Delivery, station: Station) -> tuple[RedeliveryPolicy, int]:
        """The policy of a delivery, and how often it was redelivered as far as we and the broker know."""
        return station.policy(delivery), delivery.wire_count() - 1 + delivery.redeliveries

    def _drop_from_hand(self, delivery: Delivery, state: State) -> None:
        del self.held[delivery]
        station: Station = delivery.link.consumer
        station.held -= 1
        delivery.state = state
