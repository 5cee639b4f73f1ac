"""What becomes of a delivery that failed: again when, or dead-lettered why (ActiveMQ's rollback, per message)."""

from __future__ import annotations

from collections.abc import Iterable

from redelivery.client.ledger.acknowledge import Acknowledging
from redelivery.client.ledger.entries import CONDEMNED, GONE, READY, Poison, Station
from redelivery.model.modes import AckMode
from redelivery.policies.causes import delivery_cause
from redelivery.transports.delivery import Delivery


class Redelivering(Acknowledging):
    """Rollback, recover and failing listeners: one rule for all three."""

    def rollback(self, now: float, cause: BaseException | None = None) -> None:
        """Everything held failed (rollback and recover). With nothing held nothing happens, not even a delay."""
        self._failed(tuple(self.held), now, cause)

    def listener_failed(self, station: Station, now: float, cause: BaseException) -> None:
        """A listener raised (AUTO, DUPS_OK, INDIVIDUAL): everything that its consumer holds failed."""
        self._failed(tuple(each for each in self.held if each.link is station.link), now, cause)

    def poison_failed(self, poison: Poison, now: float) -> None:
        """It could not be dead-lettered: it stays unacknowledged and unseen, and is tried again.

        That is after its policy's delay, but at least a second: the dead-letter queue may be full or forbidden.
        """
        delivery = poison.delivery
        station: Station = delivery.link.consumer
        if station not in self.stations or station.closing:
            return
        policy, count = self._limit(delivery, station)
        delivery.state = CONDEMNED
        self.condemned[delivery] = poison
        station.ready.appendleft(delivery)
        station.not_before = max(station.not_before, now + max(policy.delay(max(count, 1), self.rng), 1.0))

    def close(self, now: float) -> None:
        """The session closes: what a transacted session held counts as rolled back, and may be dead-lettered for it.

        In the other modes nothing is counted here: the broker does it (ActiveMQ, features R10).
        """
        for station in self.stations:
            station.closing = True
        if self.mode == AckMode.TRANSACTED:
            self._failed(tuple(self.held), now, None)

    def _failed(self, deliveries: Iterable[Delivery], now: float, cause: BaseException | None) -> None:
        batches: dict[Station, list[Delivery]] = {}
        for delivery in deliveries:
            batches.setdefault(delivery.link.consumer, []).append(delivery)
        for station, batch in batches.items():
            self._batch_failed(station, batch, now, cause)

    def _batch_failed(self, station: Station, batch: list[Delivery], now: float, cause: BaseException | None) -> None:
        again: list[Delivery] = []
        for delivery in batch:
            if cause is not None:
                delivery.cause = cause
            delivery.redeliveries += 1
            policy, count = self._limit(delivery, station)
            if policy.exceeded(count):
                self._drop_from_hand(delivery, GONE)
                self.orders.append(Poison(delivery, delivery_cause(count, policy, delivery.cause)))
            else:
                self._drop_from_hand(delivery, READY)
                again.append(delivery)
        if station.closing:
            for delivery in again:
                delivery.state = GONE
            self._settle_close(station)
        elif again:
            policy, count = self._limit(again[-1], station)
            self._wait(station, tuple(again), now, policy.delay(count, self.rng))

    def _wait(self, station: Station, batch: tuple[Delivery, ...], now: float, delay: float) -> None:
        if self.non_blocking and delay > 0 and self.delayed_count + len(batch) <= self.max_delayed:
            self._delay(station, batch, now + delay)
        elif self.non_blocking and delay <= 0:
            station.ready.extend(batch)
        else:
            station.ready.extendleft(reversed(batch))
            if delay > 0:
                station.not_before = max(station.not_before, now + delay)
