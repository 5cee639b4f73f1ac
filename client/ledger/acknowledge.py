"""Which deliveries an acknowledgement, a commit or a close covers."""

from __future__ import annotations

from redelivery.client.ledger.entries import GONE, HELD
from redelivery.client.ledger.held import Holding
from redelivery.transports.delivery import Delivery


class Acknowledging(Holding):
    """What the application is done with.

    | mode | covered |
    |---|---|
    | AUTO, DUPS_OK | each delivery, when the application has it (features R3, R4) |
    | CLIENT | everything held by the session, of all its consumers (features R5) |
    | INDIVIDUAL | the one delivery |
    | TRANSACTED | everything held, at commit |
    """

    def consumed(self, delivery: Delivery) -> bool:
        """AUTO and DUPS_OK: its listener has returned. True: acknowledge it; False after a recover in the listener."""
        if delivery.state is not HELD:
            return False
        self._drop_from_hand(delivery, GONE)
        self._settle_close(delivery.link.consumer)
        return True

    def acknowledge(self, delivery: Delivery, redeliveries: int) -> bool:
        """INDIVIDUAL: done with this one. True: acknowledge it; False where it is not held any more, or again.

        ``redeliveries`` is the count of the message object: a stale one, from before a recover, acknowledges nothing.
        """
        if delivery not in self.held or delivery.redeliveries != redeliveries:
            return False
        self._drop_from_hand(delivery, GONE)
        return True

    def covered(self) -> tuple[Delivery, ...]:
        """What a commit, or an acknowledge in CLIENT mode, covers now."""
        return tuple(self.held)

    def settled(self, deliveries: tuple[Delivery, ...]) -> None:
        """The commit has happened, or nobody will ever know: they are not ours any more."""
        if len(deliveries) == len(self.held):  # the usual case: a commit covers everything
            for delivery in deliveries:
                delivery.state = GONE
            self.held.clear()
            for station in self.stations:
                station.held = 0
        else:
            for delivery in deliveries:
                self._drop_from_hand(delivery, GONE)
        for station in [each for each in self.stations if each.closing]:
            self._settle_close(station)
