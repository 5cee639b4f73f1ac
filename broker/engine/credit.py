"""A consumer that says how many messages it takes: AMQP's link credit, instead of a window that acknowledging moves."""

from __future__ import annotations

from redelivery.broker.engine.subscriptions import Entry, Outbox, Subscription
from redelivery.model.destinations import Destination


class CreditSubscription(Subscription):
    """Each message takes one from the credit, whatever becomes of it; only the consumer gives more."""

    __slots__ = ("credit",)

    def __init__(self, destination: Destination, outbox: Outbox, *, no_local: bool = False, origin: str = "") -> None:
        super().__init__(destination, outbox, prefetch=0, no_local=no_local, origin=origin)
        self.credit = 0

    @property
    def room(self) -> bool:
        """Whether it takes another message."""
        return self.open and self.credit > 0

    def give(self, entry: Entry) -> None:
        """Put an entry in flight."""
        self.credit -= 1
        super().give(entry)
