"""The ledger's orders in the model's words."""

from __future__ import annotations

from tests.client.ledger.model import Effects

from redelivery.client.ledger import Detach, Order, Park, Poison, Release, Unpark


def effects_of(orders: list[Order]) -> Effects:
    effects = Effects()
    for order in orders:
        match order:
            case Poison(delivery, cause, expired):
                effects.poisoned.append((str(delivery), cause, expired))
            case Release(deliveries):
                effects.released += map(str, deliveries)
            case Park(deliveries):
                effects.parked += map(str, deliveries)
            case Unpark(deliveries):
                effects.unparked += map(str, deliveries)
            case Detach(link):
                effects.detached.append(link.consumer.name)
    return effects


def check_order_of(orders: list[Order]) -> None:
    """Or the dead-lettering would come too late: the broker has given the message to somebody else."""
    gone = set()
    for order in orders:
        if isinstance(order, Detach):
            gone.add(order.link)
        assert not (isinstance(order, Poison) and order.delivery.link in gone)
