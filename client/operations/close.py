"""The end of a session: its transaction, the answers that it still waits for, its channels."""

from __future__ import annotations

from contextlib import suppress

from redelivery.client.ledger import Poison
from redelivery.client.operations.orders import carry_out
from redelivery.client.session.state import NEVER, SessionState
from redelivery.model.modes import AckMode
from redelivery.transports.flows import Until
from redelivery.transports.seam import NO_ANSWER, Flow


def end_work(s: SessionState) -> Flow[None]:
    """Roll back, and wait for what is still unanswered; `close_channels` comes then, also after an interrupt."""
    yield from _close_ledger(s)
    yield from carry_out(s)
    for pending in list(s.unanswered):  # of asynchronous sends, as long as the driver waits
        pending.also = s.waiter  # before the driver looks whether it is done
        with suppress(*NO_ANSWER):
            yield Until(pending, NEVER)


def _close_ledger(s: SessionState) -> Flow[None]:
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


def close_channels(s: SessionState) -> Flow[None]:
    """Close its browsers' channels and its own."""
    for channel in (*s.browsing, s.epoch.channel):
        yield from channel.close()
