"""A session's doings as events for the observer that the application has given: `redelivery.model.events`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from redelivery.client.ledger import Poison
from redelivery.client.observing.log_lines import count_of
from redelivery.model.destinations import Destination
from redelivery.model.events import (
    Acknowledged,
    AcknowledgedTooLate,
    DeadLettered,
    Delivered,
    Discarded,
    Event,
    Expired,
    GuardedObserver,
    Observer,
    Released,
    RolledBack,
)
from redelivery.model.tracing import Tracing
from redelivery.transports.seam import Delivery
from redelivery.transports.wire.threads.guard import interruptible, later


class Observed(GuardedObserver):
    """The observer of a connection, and what its sessions notify it of.

    ``tracing``: the same, where it follows work too.
    """

    def __init__(self, observer: Observer) -> None:
        super().__init__(observer)
        self.tracing = observer if isinstance(observer, Tracing) else None

    @interruptible
    def notify(self, event: Event) -> None:
        """Give it one event; an interrupt ends it and nothing else."""
        try:
            super().notify(event)
        except BaseException as error:
            if not later(error):
                raise

    def delivered(self, session: int, deliveries: Iterable[Delivery]) -> None:
        """The application has them."""
        for each in deliveries:
            self.notify(Delivered(session, each, count_of(each)))

    def consumed(self, session: int, deliveries: Iterable[Delivery]) -> None:
        """Notify that they were delivered and acknowledged in one (AUTO, DUPS_OK)."""
        for each in deliveries:
            count = count_of(each)
            self.notify(Delivered(session, each, count))
            self.notify(Acknowledged(session, each, count))

    def acknowledged(self, session: int, deliveries: Iterable[Delivery]) -> None:
        """Notify that they are consumed."""
        for each in deliveries:
            self.notify(Acknowledged(session, each, count_of(each)))

    def too_late(self, session: int, deliveries: Iterable[Delivery]) -> None:
        """Notify that they were acknowledged when the connection that had brought them was gone."""
        for each in deliveries:
            self.notify(AcknowledgedTooLate(session, each, count_of(each)))

    def released(self, session: int, deliveries: Iterable[Delivery], *, counted: bool = False) -> None:
        """Notify that they are delivered again, as if they had not been; ``counted``: our own count was raised."""
        for each in deliveries:
            self.notify(Released(session, each, count_of(each) - counted))

    def rolled_back(self, session: int, delivery: Delivery, again_at: datetime) -> None:
        """Notify that it failed; its redelivery has been counted already."""
        self.notify(RolledBack(session, delivery, count_of(delivery) - 1, delivery.cause, again_at))

    def poisoned(self, session: int, order: Poison, where: Destination | None, *, dropped: bool) -> None:
        """Notify that it has been dead-lettered or dropped, with the place of its copy."""
        delivery = order.delivery
        count = count_of(delivery) - 1  # a failure has been counted, and what was not shown is not a delivery
        if order.expired:
            self.notify(Expired(session, delivery, count))
        if dropped:
            self.notify(Discarded(session, delivery, count, delivery.cause, order.cause))
        else:
            self.notify(DeadLettered(session, delivery, count, delivery.cause, order.cause, where))
