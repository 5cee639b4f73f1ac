"""The end of a session: its transaction, the answers that it still waits for, its channels."""

from __future__ import annotations

from contextlib import suppress

from redelivery.client.ledger import Poison
from redelivery.client.session.state import SessionState
from redelivery.model.modes import AckMode
from redelivery.transports.seam import NO_ANSWER, Flow


def close_ledger(s: SessionState) -> Flow[None]:
    """A transacted session counts what it held as rolled back; everything goes back to the broker."""
    s.take_in()
    held = s.ledger.covered()
    if s.mode == AckMode.TRANSACTED:
        yield from s.epoch.channel.rollback()
        s.sent.clear()
    s.ledger.close(s.now())
    if s.observed is not None:
        poisoned = [order.delivery for order in s.ledger.orders if isinstance(order, Poison)]
        again = [delivery for delivery in held if delivery not in poisoned]
        s.observed.released(s.number, again, counted=s.mode == AckMode.TRANSACTED)


def await_answers(s: SessionState) -> Flow[None]:
    """The answers to asynchronous sends, as long as the driver waits."""
    for pending in list(s.unanswered):
        pending.also = s.waiter  # before the driver looks whether it is done
        with suppress(*NO_ANSWER):
            yield pending


def close_channels(s: SessionState) -> Flow[None]:
    """Close its browsers' channels and its own."""
    for channel in (*s.browsing, s.epoch.channel):
        yield from channel.close()
