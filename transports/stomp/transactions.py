"""Transactions of one session at the broker, as bytes to write and books to keep; nothing here waits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Final

from redelivery.model.errors import IllegalStateError
from redelivery.transports.base import Pending
from redelivery.transports.stomp.messages import StompDelivery
from redelivery.transports.stomp.subscriptions import acks

_numbers: Final = count(1)  # names are never used twice in a process


def _new_name() -> str:
    return f"redelivery-{next(_numbers)}"


class UnitOfWork:
    """A transaction that is begun when the first thing enters it."""

    def __init__(self) -> None:
        self.name = _new_name()
        self.begun = False
        self.enlisted: set[StompDelivery] = set()  # acknowledged in it, and ours again at its ABORT
        self.sends: list[Pending] = []

    def begin(self) -> bytes:
        """BEGIN, or nothing where it has begun."""
        if self.begun:
            return b""
        self.begun = True
        return b"BEGIN\ntransaction:%b\n\n\0" % self.name.encode()

    def end_of_frame(self) -> bytes:
        """What ends a frame that belongs to it and has no body."""
        return b"\ntransaction:%b\n\n\0" % self.name.encode()

    def enlist(self, deliveries: Sequence[StompDelivery]) -> bytes:
        """BEGIN if need be, and the ACKs of those that are not enlisted yet."""
        enlisted = self.enlisted
        missing = [each for each in deliveries if each not in enlisted] if enlisted else deliveries
        written = acks(missing, self.end_of_frame())  # may raise: before anything counts as begun
        enlisted.update(missing)
        return self.begin() + written

    def commit(self, receipt: bytes) -> bytes:
        """COMMIT, to be answered."""
        return b"COMMIT\nreceipt:%b" % receipt + self.end_of_frame()

    def close(self) -> str | None:
        """Forget it, whatever becomes of it: the name if it had begun."""
        if not self.begun:
            return None
        name, self.name = self.name, _new_name()
        self.begun, self.enlisted, self.sends = False, set(), []
        return name

    def needs_abort(self, deliveries: Iterable[StompDelivery]) -> bool:
        """Whether an ABORT is needed before these can be settled in another way.

        Raises:
            IllegalStateError: it is, and would lose sends.
        """
        if self.enlisted.isdisjoint(deliveries):
            return False
        if self.sends:
            raise IllegalStateError("a message that is acknowledged in the open transaction must wait for its end")
        return True


class Parking:
    """Transactions that hold ACKs until ABORT, so that the broker goes on beyond messages that wait for long."""

    def __init__(self) -> None:
        self._lots: dict[StompDelivery, UnitOfWork] = {}

    def park(self, deliveries: Sequence[StompDelivery]) -> bytes:
        """BEGIN and their ACKs."""
        lot = UnitOfWork()
        written = lot.enlist(deliveries)
        self._lots.update(dict.fromkeys(deliveries, lot))
        return written

    def unpark(self, deliveries: Iterable[StompDelivery], abort: Callable[[str], bytes]) -> bytes:
        """The ABORTs that make them ours again; whatever shared a transaction with one of them is parked anew."""
        lots = {self._lots.pop(each) for each in deliveries if each in self._lots}
        stay = [each for each, lot in self._lots.items() if lot in lots]
        written = b"".join([abort(lot.name) for lot in lots])
        return written + self.park(stay) if stay else written

    def parked(self) -> list[StompDelivery]:
        """All of them."""
        return list(self._lots)
