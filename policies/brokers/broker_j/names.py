"""The names of what Broker-J's queues, and context variables, say about redelivery and dead letters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from redelivery.policies.checks import to_ms
from redelivery.policies.kinds import MILLISECONDS, TEXT, Names, one_of, whole

DLQ_SUFFIX: Final = "_DLQ"
DLQ_ENABLED: Final = "x-qpid-dlq-enabled"
ROUTE_TO_ALTERNATE: Final = "ROUTE_TO_ALTERNATE"
ALTERNATE: Final = "alternateBinding"
ALTERNATE_EXCHANGE: Final = "alternateExchange"

NAMES: Final[Names] = MappingProxyType(
    {
        "maximumDeliveryAttempts": ("maximum_delivery_attempts", whole(0)),
        ALTERNATE: ("alternate", TEXT),
        "expiryPolicy": ("expiry_policy", one_of("DELETE", ROUTE_TO_ALTERNATE)),
        "maximumMessageTtl": ("maximum_message_ttl", MILLISECONDS),
        "minimumMessageTtl": ("minimum_message_ttl", MILLISECONDS),
    }
)
"""Attribute of a queue -> the field of BrokerJLevel, and the kind of its value."""

OF_A_QUEUE: Final[Names] = MappingProxyType(
    {
        **NAMES,
        "x-qpid-maximum-delivery-count": NAMES["maximumDeliveryAttempts"],
        DLQ_ENABLED: ("alternate", TEXT),
        ALTERNATE_EXCHANGE: ("alternate", TEXT),
    }
)
"""The same with what older versions called it."""

CONTEXT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "queue.maximumDeliveryAttempts": "maximumDeliveryAttempts",
        "queue.defaultAlternateBinding": ALTERNATE,
        "queue.defaultExpiryPolicy": "expiryPolicy",
        "queue.maximumMessageTtl": "maximumMessageTtl",
        "queue.minimumMessageTtl": "minimumMessageTtl",
    }
)
"""Context variable -> the attribute of which it is the default."""

CONCERNS: Final = re.compile(r"redel|deliv|alternate|dead|dlq", re.IGNORECASE)
"""A name of this kind that is unknown must not be skipped in silence."""
OTHERS: Final = frozenset({"ensureNondestructiveConsumers", "defaultAlternateBinding"})


def written(level: object) -> dict[str, Any]:
    """Spell the fields that a BrokerJLevel sets, as attributes of a queue in JSON."""
    found: dict[str, Any] = {}
    for name, (field, _) in NAMES.items():
        value = getattr(level, field)
        if name == ALTERNATE and value == "":
            found[DLQ_ENABLED] = "false"
        elif value is not None:
            found[name] = {"destination": value} if name == ALTERNATE else value
    return {name: to_ms(value) if isinstance(value, float) else value for name, value in found.items()}
