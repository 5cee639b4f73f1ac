"""Which messages are not handed out any more: the expired, and those over their limit."""

from __future__ import annotations

from redelivery.client.ledger.books import Books
from redelivery.client.ledger.entries import CONDEMNED, GONE, Poison, Station
from redelivery.policies.causes import delivery_cause, dispatch_cause, expired_cause
from redelivery.transports.base import Delivery


class Sorting(Books):
    """The checks before a delivery is handed out."""

    def _refused(self, delivery: Delivery, station: Station) -> bool:
        """True, and a Poison order given, where the application must not see it (any more)."""
        expires = delivery.expires_at()
        if expires and expires <= self._wall_ms():
            self._condemn(delivery, expired_cause(expires), expired=True)
            return True
        if delivery.state is CONDEMNED:
            policy, count = self._limit(delivery, station)
            self._condemn(delivery, delivery_cause(count, policy, delivery.cause))
            return True
        if station.check_limit and delivery.redeliveries == 0:
            # ActiveMQ's pre-dispatch check: the broker's own count alone is over the limit
            policy, count = self._limit(delivery, station)
            if policy.exceeded(count):
                self._condemn(delivery, dispatch_cause(count, station.name, policy))
                return True
        return False

    def _condemn(self, delivery: Delivery, cause: str, *, expired: bool = False) -> None:
        delivery.state = GONE
        self.orders.append(Poison(delivery, cause, expired))
