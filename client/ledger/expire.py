"""Which messages are not handed out any more: the expired, and those over their limit."""

from __future__ import annotations

from redelivery.client.ledger.books import Books
from redelivery.client.ledger.entries import CONDEMNED, GONE, Poison, Station
from redelivery.policies.causes import dispatch_cause, expired_cause
from redelivery.transports.delivery import Delivery


class Sorting(Books):
    """The checks before a delivery is handed out."""

    def _refused(self, delivery: Delivery, station: Station) -> bool:
        """True, and a Poison order given, where the application must not see it (any more)."""
        poison = self._verdict(delivery, station)
        if poison is None:
            return False
        delivery.state = GONE
        self.orders.append(poison)
        return True

    def _verdict(self, delivery: Delivery, station: Station) -> Poison | None:
        if delivery.state is CONDEMNED:
            return self.condemned.pop(delivery)
        expires = delivery.expires_at()
        if expires and expires <= self._wall_ms():
            return Poison(delivery, expired_cause(expires), expired=True)
        if station.check_limit and delivery.redeliveries == 0:
            # ActiveMQ's pre-dispatch check: the broker's own count alone is over the limit. Its RedeliveryPlugin counts
            # on purpose, and says so by the property.
            policy, count = self._limit(delivery, station)
            if policy.exceeded(count) and "redeliveryDelay" not in delivery.properties():
                return Poison(delivery, dispatch_cause(count, station.name, policy, listener=station.listening))
        return None
