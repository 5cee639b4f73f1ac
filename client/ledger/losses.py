"""What a lost connection means for the ledger, where another connection will come."""

from __future__ import annotations

from redelivery.client.ledger.ledger import Ledger
from redelivery.client.ledger.state import ACCEPTED, STALE, Received


def interrupted(ledger: Ledger) -> tuple[Received, ...]:
    """Everything is the broker's again, and no order can be carried out; the consumers go on, by links to be attached.
    What was acknowledged, and an interrupt kept from the application, stays: the broker may have it no more.

    Returns what the application holds: it can be acknowledged no more, and is redelivered.
    """
    stale = ledger.covered()
    kept = [each for consumer in ledger.consumers for each in consumer.ready if each.state is ACCEPTED]
    ledger.transport_lost()
    ledger.lost = False
    for delivery in stale:
        delivery.state = STALE
    for consumer in [each for each in ledger.consumers if each.closing]:
        consumer.step("settle")
        ledger.consumers.remove(consumer)
    for consumer in ledger.consumers:
        consumer.renew()
    for delivery in reversed(kept):
        delivery.state = ACCEPTED
        ledger.put_back(delivery)
    return stale
