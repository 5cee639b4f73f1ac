"""The names of what Broker-J's queues, and context variables, say about redelivery and dead letters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from redelivery.policies.checks import to_ms
from redelivery.policies.files.places import Decisive, decisive
from redelivery.policies.kinds import MILLISECONDS, TEXT, Names, one_of, whole

DLQ_SUFFIX: Final = "_DLQ"
DLQ_ENABLED: Final = "x-qpid-dlq-enabled"
ROUTE_TO_ALTERNATE: Final = "ROUTE_TO_ALTERNATE"
ALTERNATE: Final = "alternateBinding"
ALTERNATE_EXCHANGE: Final = "alternateExchange"

NAMES: Final[Names] = {
    "maximumDeliveryAttempts": ("maximum_delivery_attempts", whole(0)),
    ALTERNATE: ("alternate", TEXT),
    "expiryPolicy": ("expiry_policy", one_of("DELETE", ROUTE_TO_ALTERNATE)),
    "maximumMessageTtl": ("maximum_message_ttl", MILLISECONDS),
    "minimumMessageTtl": ("minimum_message_ttl", MILLISECONDS),
}
"""Attribute of a queue -> the field of BrokerJLevel, and the kind of its value."""

OF_A_QUEUE: Final[Names] = {
    **NAMES,
    "x-qpid-maximum-delivery-count": NAMES["maximumDeliveryAttempts"],
    DLQ_ENABLED: ("alternate", TEXT),
    ALTERNATE_EXCHANGE: ("alternate", TEXT),
}
"""The same with what older versions called it."""

CONTEXT: Final[Mapping[str, str]] = {
    "queue.maximumDeliveryAttempts": "maximumDeliveryAttempts",
    "queue.defaultAlternateBinding": ALTERNATE,
    "queue.defaultExpiryPolicy": "expiryPolicy",
    "queue.maximumMessageTtl": "maximumMessageTtl",
    "queue.minimumMessageTtl": "minimumMessageTtl",
}
"""Context variable -> the attribute of which it is the default."""

CONCERNS: Final = re.compile(r"redel|deliv|alternate|dead|dlq", re.IGNORECASE)
"""A name of this kind that is unknown must not be skipped in silence."""
OTHERS: Final = frozenset({"ensureNondestructiveConsumers", "defaultAlternateBinding"})

_KEPT_LAST: Final = "of the messages with one key the queue keeps the last one only, of dead letters too"
_CLOSED: Final = "a transaction that is open or idle for so many ms is closed, and what it had is redelivered"

_CONVERSION: Final = decisive("what a consumer's protocol cannot hold is a dead letter, or rejected", "(?!close$).*")

OF_A_QUEUE_UNREAD: Final[Mapping[str, Decisive]] = {
    "overflowPolicy": decisive("a full queue removes its oldest messages, or takes no more", "ring|reject"),
    "qpid.policy_type": decisive("a full queue removes its oldest messages, or takes no more", "ring|reject"),
    "ensureNondestructiveConsumers": decisive(
        "a message is removed by its expiry only, and never by a consumer", "true"
    ),
    "qpid.ensure_nondestructive_consumers": decisive("a message is removed by its expiry only", "true"),
    "messageDurability": decisive("messages, dead letters too, are gone after a restart", "never"),
    "qpid.message_durability": decisive("messages, dead letters too, are gone after a restart", "never"),
    "lifetimePolicy": decisive("the queue is deleted with its messages", "(?!permanent$).*"),
    "qpid.lifetime_policy": decisive("the queue is deleted with its messages", "(?!permanent$).*"),
    "holdOnPublishEnabled": decisive("a message can say that it is not delivered before some time", "true"),
    "messageConversionExceptionHandlingPolicy": _CONVERSION,
    "type": decisive(_KEPT_LAST, "lvq"),
    "lvqKey": decisive(_KEPT_LAST, ".+"),
    "qpid.last_value_queue": decisive(_KEPT_LAST),
    "qpid.last_value_queue_key": decisive(_KEPT_LAST),
}
"""Attributes and arguments of a queue that decide, and are not modelled."""

OF_A_HOST_UNREAD: Final[Mapping[str, Decisive]] = {
    "storeTransactionIdleTimeoutClose": decisive(_CLOSED, "(?!0$).*"),
    "storeTransactionOpenTimeoutClose": decisive(_CLOSED, "(?!0$).*"),
    "virtualhost.storeTransactionIdleTimeoutClose": decisive(_CLOSED, "(?!0$).*"),
    "virtualhost.storeTransactionOpenTimeoutClose": decisive(_CLOSED, "(?!0$).*"),
    "qpid.virtualhost.storeTransactionIdleTimeoutClose": decisive(_CLOSED, "(?!0$).*"),
    "qpid.virtualhost.storeTransactionOpenTimeoutClose": decisive(_CLOSED, "(?!0$).*"),
    "housekeepingCheckPeriod": decisive("nobody looks for expired messages", "0|-.*"),
    "virtualhost.housekeepingCheckPeriod": decisive("nobody looks for expired messages", "0|-.*"),
    "qpid.virtualhost.housekeepingCheckPeriod": decisive("nobody looks for expired messages", "0|-.*"),
    "queue.defaultOverflowPolicy": OF_A_QUEUE_UNREAD["overflowPolicy"],
    "queue.defaultEnsureNonDestructiveConsumers": OF_A_QUEUE_UNREAD["ensureNondestructiveConsumers"],
    "queue.defaultMessageDurability": OF_A_QUEUE_UNREAD["messageDurability"],
    "queue.holdOnPublishEnabled": OF_A_QUEUE_UNREAD["holdOnPublishEnabled"],
    "qpid.queue.messageConversion.exceptionHandlingPolicy": _CONVERSION,
}
"""The same of a virtual host, its node and their context variables."""

OF_AN_EXCHANGE_UNREAD: Final[Mapping[str, Decisive]] = {
    "alternateBinding": decisive("what no queue of the exchange takes, a dead letter too, goes there"),
    "alternateExchange": decisive("what no queue of the exchange takes, a dead letter too, goes there"),
    "unroutableMessageBehaviour": decisive("what no queue of the exchange takes is refused", "reject"),
}


def written(level: object) -> dict[str, Any]:
    """Spell the fields that a BrokerJLevel sets, as attributes of a queue in JSON.

    An empty alternate binding is none, also where a context variable has one for all queues (seen on 9.2.1).
    """
    found: dict[str, Any] = {}
    for name, (field, _) in NAMES.items():
        value = getattr(level, field)
        if value is not None:
            found[name] = {"destination": value} if name == ALTERNATE and value else value
    return {name: to_ms(value) if isinstance(value, float) else value for name, value in found.items()}
