"""What failed and is redelivered: the ledger decides, the log and the observer are notified."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from redelivery.client.ledger import Poison
from redelivery.client.observing.log_lines import say_redelivered, says_redelivered
from redelivery.client.state import SessionState
from redelivery.transports.seam import Delivery


def fail(s: SessionState, decide: Callable[[float], None]) -> None:
    """``decide(now)`` is what the ledger does with what the application holds."""
    ledger, now = s.ledger, s.now()
    failed = ledger.covered() if s.observed is not None or says_redelivered() else ()
    known = len(ledger.orders)
    decide(now)
    s.poisoned += sum(isinstance(order, Poison) for order in ledger.orders[known:])
    if not failed:
        return
    due_times: dict[Delivery, float] = {delivery: entry[0] for entry in ledger.delayed for delivery in entry[3]}
    for consumer in ledger.consumers:
        due_times.update(dict.fromkeys(consumer.ready, consumer.not_before))
    again = [(delivery, max(0.0, due_times[delivery] - now)) for delivery in failed if delivery in due_times]
    say_redelivered(again, s.lines)
    if s.observed is not None:
        at = s.wall()
        for delivery, wait in again:
            s.observed.rolled_back(s.number, delivery, at + timedelta(seconds=wait))
