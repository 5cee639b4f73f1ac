"""The headers by which a dead letter says its origin, and those of the original that must not be repeated on it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from redelivery.model.content.dead_letters import (
    DELIVERY_COUNT,
    FAILED_AT,
    FAILURE_CAUSE,
    ORIGINAL_DELIVERY_MODE,
    ORIGINAL_DESTINATION,
    ORIGINAL_EXPIRATION,
    PASSPORT,
)
from redelivery.model.destinations import Destination
from redelivery.model.values import Value

RUN: Final = "redeliveryRun"
"""A property of a letter that a command has moved: the name of its run; or has put back: also its number there."""

# Brokers keep some headers of a frame as properties of the message, and obey them when they come in a SEND.
_BROKER_OWNED: Final = frozenset(
    (
        # of STOMP frames: a SEND in a transaction that was never begun vanishes on Artemis
        *("ack", "browser", "content-length", "destination", "id", "message-id", "original-destination", "receipt"),
        *("receipt-id", "redelivered", "selector", "subscription", "transaction"),
        # routing, conversion and scheduling: the copy goes where it must, as it is, now
        *("destination-type", "subscription-type", "transformation", "transformation-error", "scheduledJobId"),
        *("AMQ_SCHEDULED_CRON", "AMQ_SCHEDULED_DELAY", "AMQ_SCHEDULED_ID", "AMQ_SCHEDULED_PERIOD"),
        *("AMQ_SCHEDULED_REPEAT", "AMQ_SCHEDULED_TIME", "redeliveryDelay"),
        # set by the provider (JMS); JMSXDeliveryCount in a SEND would set Classic's counter
        *("JMSXConsumerTXID", "JMSXDeliveryCount", "JMSXProducerTXID", "JMSXRcvTimestamp", "JMSXState", "JMSXUserID"),
        *("amqp-message-id", "ingress-timestamp"),
        *("x-acquired-count", "x-delivery-count"),  # how often a quorum queue of RabbitMQ has delivered
        # of an earlier dead letter
        *(FAILURE_CAUSE, ORIGINAL_DESTINATION, ORIGINAL_EXPIRATION, ORIGINAL_DELIVERY_MODE, DELIVERY_COUNT),
        *(FAILED_AT, PASSPORT, RUN),
    )
)
# Artemis' and HornetQ's internals (duplicate id, last value, routing, origin), AMQP's delivery annotations, RabbitMQ's
# notes on what it has dead-lettered itself.
_BROKER_PREFIXES: Final = (
    *("_AMQ_", "__AMQ_", "_HQ_", "__HQ_", "JMS_AMQP_", "x-opt-"),
    *("x-first-death-", "x-last-death-"),
)


@lru_cache(maxsize=1000)
def is_broker_owned(name: str) -> bool:
    """Say whether a property of a received message belongs to a broker or to a frame, not to the application."""
    return name in _BROKER_OWNED or name.startswith(_BROKER_PREFIXES)


def application_properties(properties: Mapping[str, Value]) -> dict[str, Value]:
    """The properties that may be sent again, on a dead letter's copy or a replay: nothing that a broker would obey."""
    return {name: value for name, value in properties.items() if not is_broker_owned(name)}


def dead_letter_properties(
    cause: str,
    original: Destination,
    expiration_ms: int,
    delivery_count: int,
    *,
    failed_at_ms: int | None = None,
    persistent: bool = True,
) -> dict[str, Value]:
    """The properties that a copy carries beside the application's.

    ``expiration_ms``: the original's, epoch milliseconds, 0 for none. ``delivery_count``: that of its last delivery.
    ``failed_at_ms``: when the copy is made, epoch milliseconds.
    """
    properties: dict[str, Value] = {
        FAILURE_CAUSE: cause,
        ORIGINAL_DESTINATION: str(original),
        ORIGINAL_EXPIRATION: str(expiration_ms),
        DELIVERY_COUNT: delivery_count,
    }
    if failed_at_ms is not None:
        properties[FAILED_AT] = failed_at_ms
    if not persistent:
        properties[ORIGINAL_DELIVERY_MODE] = "NON_PERSISTENT"
    return properties


def copy_properties(properties: Mapping[str, Value], stamp: Mapping[str, Value]) -> dict[str, Value]:
    """All properties of a copy: the application's, then ``stamp`` (see `dead_letter_properties`), which wins."""
    return {**application_properties(properties), **stamp}
