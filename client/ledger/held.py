"""Which deliveries are where, and which one is handed out next."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from redelivery.client.ledger.entries import (
    DELAYED,
    GONE,
    HELD,
    READY,
    RETURNED,
    TAKEN,
    Detach,
    Park,
    Release,
    Station,
    Unpark,
)
from redelivery.client.ledger.expire import Sorting
from redelivery.model.modes import AckMode
from redelivery.transports.delivery import Delivery

NEVER = float("inf")


class Holding(Sorting):
    """Arrivals, dispatch and the consumers' coming and going."""

    def attach(self, station: Station) -> None:
        """A consumer begins."""
        self.stations.append(station)

    def arrived(self, deliveries: Sequence[Delivery]) -> None:
        """They came from the broker, in its order."""
        for delivery in deliveries:
            delivery.link.consumer.ready.append(delivery)

    def dispatch(self, station: Station, now: float) -> Delivery | None:
        """The next delivery for the application, which holds it from now on; None where there is none yet."""
        delivery = self.take(station, now)
        if delivery is not None:
            delivery.state = HELD
            self.held[delivery] = None
            station.held += 1
        return delivery

    def take(self, station: Station, now: float) -> Delivery | None:
        """The same, but settled at once: a receive in AUTO or DUPS_OK mode, which the caller acknowledges."""
        if station.not_before:
            if now < station.not_before:
                return None
            station.not_before = 0.0
        if station.closing:
            return None
        ready = station.ready
        while ready:
            delivery = ready.popleft()
            # the three cheap tests of what `_refused` looks into, on the path of every message
            if (delivery.state or station.check_limit or delivery.expires_at()) and self._refused(delivery, station):
                continue
            delivery.state = TAKEN
            return delivery
        return None

    def put_back(self, delivery: Delivery) -> None:
        """As if it had not been handed out or taken: at the head again, uncounted (JMS receiveBody; an interrupt)."""
        station: Station = delivery.link.consumer
        if delivery.state is HELD:
            self._drop_from_hand(delivery, READY)
        elif delivery.state is not TAKEN or self.lost or station not in self.stations:
            return  # the broker's again
        delivery.state = READY
        station.ready.appendleft(delivery)
        self._settle_close(station)

    def tick(self, now: float) -> None:
        """The waits that are over by ``now`` end; a non-blocking one's batch is ready, at the tail."""
        for each in self.stations:
            if each.not_before and each.not_before <= now:
                each.not_before = 0.0
        while self.delayed and self.delayed[0][0] <= now:
            _, _, station, batch = heappop(self.delayed)
            self.delayed_count -= len(batch)
            for delivery in batch:
                delivery.state = READY
            station.ready.extend(batch)
            self.orders.append(Unpark(batch))

    def next_deadline(self, station: Station | None = None) -> float:
        """When something becomes ready by itself, for one consumer or for any; infinity where nothing does."""
        deadline = self.delayed[0][0] if self.delayed else NEVER
        for each in self.stations if station is None else (station,):
            if each.not_before and each.not_before < deadline and each.ready:
                deadline = each.not_before
        return deadline

    def close_station(self, station: Station) -> None:
        """The application closed a consumer.

        Its detach waits until everything that it delivered is settled: an earlier one loses the acknowledgements on
        some brokers, and JMS lets them be acknowledged afterwards (features R10). INDIVIDUAL, which is ActiveMQ's own
        mode, gives unacknowledged ones back at once, as ActiveMQ does.
        """
        if self.mode == AckMode.INDIVIDUAL:
            for delivery in [each for each in self.held if each.link is station.link]:
                self._drop_from_hand(delivery, RETURNED)
        station.closing = True
        self._settle_close(station)

    def reopen(self, station: Station) -> None:
        """A new consumer of the same destination takes over what a deferred close still has."""
        station.closing = False

    def transport_lost(self) -> None:
        """The connection is gone: everything is the broker's again, and no order can be carried out."""
        self.lost = True
        for station in self.stations:
            for delivery in station.ready:
                delivery.state = GONE
            station.ready.clear()
            station.held = 0
            station.not_before = 0.0
        for delivery in self.held:
            delivery.state = GONE
        for entry in self.delayed:
            for delivery in entry[3]:
                delivery.state = GONE
        self.held.clear()
        self.condemned.clear()
        self.delayed.clear()
        self.delayed_count = 0
        self.orders.clear()

    def _delay(self, station: Station, batch: tuple[Delivery, ...], release: float) -> None:
        for delivery in batch:
            delivery.state = DELAYED
        self._sequence += 1
        heappush(self.delayed, (release, self._sequence, station, batch))
        self.delayed_count += len(batch)
        self.orders.append(Park(batch))

    def _settle_close(self, station: Station) -> None:
        """Finish a deferred close as soon as the consumer holds nothing."""
        if not station.closing or station.held:
            return
        for entry in [each for each in self.delayed if each[2] is station]:
            self.delayed.remove(entry)
            self.delayed_count -= len(entry[3])
            for delivery in entry[3]:
                delivery.state = GONE
            self.orders.append(Unpark(entry[3]))
        self.delayed.sort()
        unseen = tuple(each for each in station.ready if not each.state and not each.redeliveries)
        for delivery in station.ready:
            self.condemned.pop(delivery, None)
            delivery.state = GONE
        station.ready.clear()
        if unseen:
            self.orders.append(Release(unseen))
        self.stations.remove(station)
        self.orders.append(Detach(station.link))
