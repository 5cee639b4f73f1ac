"""Sets a message aside: it failed, perhaps not by its own fault, and others are tried before it is again."""

from __future__ import annotations

from heapq import heapify

from redelivery.client.ledger.ledger import NEVER, Ledger
from redelivery.client.ledger.orders import Unpark
from redelivery.client.ledger.redelivery import is_exceeded, limit
from redelivery.client.ledger.stages import OPEN
from redelivery.client.ledger.state import READY


def dies(ledger: Ledger) -> bool:
    """Check whether one more failure would dead-letter something that the application holds."""
    for delivery in ledger.held:
        policy, redelivered = limit(delivery, delivery.link.consumer)
        if is_exceeded(policy, redelivered + 1, delivery):
            return True
    return False


def park(ledger: Ledger) -> None:
    """Let what is held wait for `recall`, not counted and out of the window: the next ones come meanwhile."""
    for delivery in ledger.covered():
        consumer = delivery.link.consumer
        ledger.put_back(delivery)  # all that there is to do where its consumer is being closed
        if consumer.stage is OPEN and consumer.ready and consumer.ready[0] is delivery:
            consumer.ready.popleft()
            if not ledger.delay(consumer, (delivery,), NEVER):
                consumer.ready.appendleft(delivery)


def awaited(ledger: Ledger) -> bool:
    """Check whether anything waits for its redelivery, beside what is set aside or could not be dead-lettered."""
    if any(each.not_before and each.ready for each in ledger.consumers):
        return True
    return any(until != NEVER and batch[0] not in ledger.condemned for until, _, _, batch in ledger.delayed)


def recall(ledger: Ledger) -> None:
    """Make what was set aside ready again, at the head and in its order."""
    entries = sorted((each for each in ledger.delayed if each[0] == NEVER), key=lambda each: each[1], reverse=True)
    ledger.delayed = [each for each in ledger.delayed if each[0] != NEVER]
    heapify(ledger.delayed)
    for _, _, consumer, batch in entries:
        ledger.delayed_count -= len(batch)
        for delivery in batch:
            delivery.state = READY
        consumer.ready.extendleft(reversed(batch))
        ledger.orders.append(Unpark(batch))
