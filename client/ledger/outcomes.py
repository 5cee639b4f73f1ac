"""What the application did with deliveries, where the ledger has nothing to decide: no order follows."""

from __future__ import annotations

from collections.abc import Iterable

from redelivery.client.ledger.ledger import Ledger
from redelivery.client.ledger.state import ACCEPTED, HELD, Received


def accepted(ledger: Ledger, deliveries: Iterable[Received]) -> None:
    """Their acknowledgement has left, or may have, outside any transaction: none of them gets a second one."""
    for each in deliveries:
        if each.state is HELD:
            ledger.consumed(each)
        each.state = ACCEPTED


def failed_with(delivery: Received, cause: BaseException) -> None:
    """Its listener raised, which acknowledges nothing: a rollback or recover of the application's follows, or none."""
    delivery.cause = cause
