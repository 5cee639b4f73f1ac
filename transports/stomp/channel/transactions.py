"""Transactions of one session at the broker, as bytes to write, and what they cover; nothing here waits."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Final

from redelivery.model.errors import IllegalStateError, JMSError
from redelivery.transports.seam import Pending
from redelivery.transports.stomp.connection.router import Router
from redelivery.transports.stomp.connection.subscriptions import StompDelivery, StompSubscription, acks

_process: Final = uuid.uuid4().hex[:12]
_numbers: Final = count(1)


def _new_name() -> str:
    """Never used twice, whichever program asks, a forked one included: HornetQ knows a name for the whole broker."""
    return f"redelivery-{_process}-{os.getpid()}-{next(_numbers)}"


class UnitOfWork:
    """A transaction that is begun when the first thing enters it.

    ``router``: of its wire, to see what is refused; ``verb``: what the application calls its end.
    """

    def __init__(self, router: Router | None = None, verb: str = "commit") -> None:
        self._router = router
        self.verb = verb
        self._errors = self._unasked = 0  # the router's counts at BEGIN
        self.name = _new_name()
        self.begun = False
        self.enlisted: set[StompDelivery] = set()  # acknowledged in it, and ours again at its ABORT
        self.sends: list[Pending] = []

    def begin(self) -> bytes:
        """BEGIN, or nothing where it has begun; it counts as written."""
        written = self.beginning()
        self.begun = True
        return written

    def beginning(self) -> bytes:
        """The same, which counts as written when who writes it says so, by `begun`."""
        if self.begun:
            return b""
        if self._router is not None:
            self._errors, self._unasked = self._router.errors, self._router.unasked
        return b"BEGIN\ntransaction:%b\n\n\0" % self.name.encode()

    def end_of_frame(self) -> bytes:
        """The end of a frame that belongs to it and has no body."""
        return b"\ntransaction:%b\n\n\0" % self.name.encode()

    def enlist(self, deliveries: Sequence[StompDelivery]) -> bytes:
        """BEGIN if need be, and the ACKs of those that are not enlisted yet; it counts as written."""
        missing, written = self.enlisting(deliveries)  # may raise: before anything counts as begun
        self.enlisted |= missing
        self.begun = True
        return written

    def enlisting(self, deliveries: Sequence[StompDelivery]) -> tuple[set[StompDelivery], bytes]:
        """The same, and which those are; it counts as written when who writes it says so, by `begun` and `enlisted`."""
        missing = [each for each in deliveries if each not in self.enlisted] if self.enlisted else deliveries
        written = acks(missing, self.end_of_frame())
        return set(missing), self.beginning() + written

    def commit(self, receipt: bytes) -> bytes:
        """COMMIT, to be answered."""
        return b"COMMIT\nreceipt:%b" % receipt + self.end_of_frame()

    def close(self) -> str | None:
        """Forget it, whatever becomes of it: the name if it had begun."""
        if not self.begun:
            return None
        name = self.name
        self.forget()
        return name

    def forget(self) -> None:
        """The next one begins; also where an interrupt may have left the last one half noted."""
        self.name = _new_name()
        self.begun, self.enlisted, self.sends = False, set(), []

    @property
    def last_error(self) -> JMSError | None:
        """The newest ERROR since BEGIN, whatever it answers."""
        router = self._router
        return None if router is None or router.errors == self._errors else router.last_error

    @property
    def refused_ack(self) -> JMSError | None:
        """The newest ERROR since BEGIN that answers nobody: about an ACK, where the session has its wire alone."""
        router = self._router
        return None if router is None or router.unasked == self._unasked else router.last_unasked

    def needs_abort(self, deliveries: Iterable[StompDelivery]) -> bool:
        """Check whether an ABORT is needed before these can be settled in another way.

        Raises:
            IllegalStateError: it is, and would lose sends.
        """
        if self.enlisted.isdisjoint(deliveries):
            return False
        if self.sends:
            raise IllegalStateError("a message that is acknowledged in the open transaction must wait for its end")
        return True


class Parking:
    """Transactions that hold ACKs until ABORT, so that the broker goes on beyond messages that wait for long.

    A few that wait are left in the window, since parking costs frames: half of what a subscription may hold loose.
    """

    def __init__(self) -> None:
        self._loose: dict[StompSubscription, dict[StompDelivery, None]] = {}
        self._lots: dict[StompDelivery, UnitOfWork] = {}

    def park(self, deliveries: Sequence[StompDelivery]) -> bytes:
        """BEGIN and the ACKs of all that wait loose, where they are too many; otherwise nothing."""
        for each in deliveries:
            self._loose.setdefault(each.subscription, {})[each] = None
        written = b""
        for subscription in {each.subscription for each in deliveries}:
            if len(self._loose[subscription]) > subscription.most_loose:
                written += self._enlist(list(self._loose.pop(subscription)))
        return written

    def unpark(self, abort: Callable[[str], bytes], deliveries: Iterable[StompDelivery]) -> bytes:
        """The ABORTs that make them ours again; whatever shared a transaction with one of them is parked anew."""
        lots = set()
        for each in deliveries:
            lot = self._lots.pop(each, None)
            if lot is None:
                self._loose.get(each.subscription, {}).pop(each, None)
            else:
                lots.add(lot)
        written = b"".join([abort(lot.name) for lot in lots])
        stay = [each for each, lot in self._lots.items() if lot in lots]
        return written + self._enlist(stay) if stay else written

    def around(self, abort: Callable[[str], bytes]) -> tuple[bytes, bytes]:
        """The frames that end the parking before a COMMIT, and those that begin it again afterwards."""
        if not self._lots:
            return b"", b""
        before = b"".join([abort(lot.name) for lot in set(self._lots.values())])
        return before, self._enlist(list(self._lots))

    def parked(self) -> list[StompDelivery]:
        """All that wait, also those that are loose."""
        return [*self._lots, *(each for loose in self._loose.values() for each in loose)]

    @property
    def parks(self) -> bool:
        """Check whether any that waits is in a transaction."""
        return bool(self._lots)

    @property
    def busy(self) -> bool:
        """Check whether any waits."""
        return bool(self._lots) or (bool(self._loose) and any(self._loose.values()))

    def _enlist(self, deliveries: Sequence[StompDelivery]) -> bytes:
        lot = UnitOfWork()
        written = lot.enlist(deliveries)
        self._lots.update(dict.fromkeys(deliveries, lot))
        return written
