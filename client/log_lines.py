"""What is logged of messages: one line each, with the ids that an operator looks for; never a body, never a secret.

Every line carries what it says as attributes of its record too (``extra``): ``message_id``, ``destination``,
``delivery_count`` and ``cause``, for a formatter that writes JSON.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from redelivery.client.ledger import Poison
from redelivery.model.destinations import Destination, Topic
from redelivery.model.errors import MessageFormatError
from redelivery.policies.causes import describe_cause
from redelivery.policies.redelivery import NO_LIMIT
from redelivery.transports.delivery import Delivery

log = logging.getLogger(__name__)
_NO_CAUSE: Final = "no cause given: rollback(cause=error)"
_MOST: Final = 20  # lines of one rollback
_LONGEST: Final = 200  # characters of an application's exception in a line
_UNSEEN: Final = ("Dispatch[", "listener dispatch[")  # how a cause begins of what was refused before it was shown


def says_redelivered() -> bool:
    """Whether anybody reads what `say_redelivered` logs."""
    return log.isEnabledFor(logging.INFO)


def say_redelivered(again: Sequence[tuple[Delivery, float]]) -> None:
    """Log at INFO which redelivery comes when: in so many seconds."""
    for delivery, wait in again[:_MOST]:
        policy = delivery.link.consumer.policy(delivery)
        number = count_of(delivery) - 1
        limit = "" if policy.maximum_redeliveries == NO_LIMIT else f" of {policy.maximum_redeliveries}"
        why = short_cause(delivery.cause)
        log.info(
            "%s: redelivery %d%s in %.3g s: %s",
            name_of(delivery),
            number,
            limit,
            wait,
            why,
            extra=facts(delivery, number, why),
        )
    if len(again) > _MOST:
        log.info("and %d more of the same rollback", len(again) - _MOST)


def dead_lettered(order: Poison, where: object) -> None:
    """Log at WARNING that a message becomes a dead letter: after how many deliveries, why, and where it goes."""
    count, why = reason(order)
    log.warning(
        "%s: dead-lettered %s (to %s)", name_of(order.delivery), why, where, extra=facts(order.delivery, count, why)
    )


def dropped(order: Poison, level: int, why_dropped: str) -> None:
    """Log that a message is dropped instead of being dead-lettered."""
    count, why = reason(order)
    log.log(
        level,
        "%s: dropped %s (%s)",
        name_of(order.delivery),
        why,
        why_dropped,
        extra=facts(order.delivery, count, why),
    )


def reason(order: Poison) -> tuple[int, str]:
    """The count of its last delivery, and ``after 4 deliveries (limit 3): ValueError: bad order``."""
    delivery = order.delivery
    if order.expired:
        return count_of(delivery), "as it has expired"
    count = count_of(delivery)
    limit = delivery.link.consumer.policy(delivery).maximum_redeliveries
    if order.cause.startswith(_UNSEEN):
        return count, f"unseen: the broker counts {count} deliveries (limit {limit})"
    count -= 1  # the one that will not be has been counted
    deliveries = "delivery" if count == 1 else "deliveries"
    return count, f"after {count} {deliveries} (limit {limit}): {short_cause(delivery.cause)}"


def short_cause(cause: BaseException | None) -> str:
    """``ValueError: bad order``, cut; what to do where the application gave none."""
    if cause is None:
        return _NO_CAUSE
    text = describe_cause(cause)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def name_of(delivery: Delivery) -> str:
    """``orders ID:…``, or ``topic://news ID:…``."""
    identifier = _read(delivery, "message_id")
    place = shown_destination(_read(delivery, "destination"))
    return f"{place} {identifier}" if identifier else place


def shown_destination(destination: object) -> str:
    """A queue by its name alone, anything else with its scheme."""
    if isinstance(destination, Destination) and not isinstance(destination, Topic):
        return destination.name
    return str(destination)


def facts(delivery: Delivery, count: int, cause: str) -> dict[str, object]:
    """The attributes of a record."""
    return {
        "message_id": _read(delivery, "message_id"),
        "destination": str(_read(delivery, "destination")),
        "delivery_count": count,
        "cause": cause,
    }


def count_of(delivery: Delivery) -> int:
    """JMSXDeliveryCount of the delivery that the application has, or would have next."""
    return delivery.wire_count() + delivery.redeliveries


def _read(delivery: Delivery, name: str) -> object:
    try:
        return delivery.header(name)
    except MessageFormatError:
        return None
