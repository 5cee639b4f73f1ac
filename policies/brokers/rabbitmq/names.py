"""The names of policies' settings, and of queues' arguments, that concern dead letters and limits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from redelivery.policies.checks import to_ms
from redelivery.policies.files.places import Decisive, decisive
from redelivery.policies.kinds import MILLISECONDS, SIZE, TEXT, Names, one_of, whole

NAMES: Final[Names] = {
    "dead-letter-exchange": ("dead_letter_exchange", TEXT),
    "dead-letter-routing-key": ("dead_letter_routing_key", TEXT),
    "dead-letter-strategy": ("dead_letter_strategy", one_of("at-most-once", "at-least-once")),
    "delivery-limit": ("delivery_limit", whole(-1)),
    "message-ttl": ("message_ttl", MILLISECONDS),
    "expires": ("expires", MILLISECONDS),
    "max-length": ("max_length", SIZE),
    "max-length-bytes": ("max_length_bytes", SIZE),
    "overflow": ("overflow", one_of("drop-head", "reject-publish", "reject-publish-dlx")),
    "delayed-retry-type": ("delayed_retry_type", one_of("disabled", "all", "failed", "returned")),
    "delayed-retry-min": ("delayed_retry_min", MILLISECONDS),
    "delayed-retry-max": ("delayed_retry_max", MILLISECONDS),
    "alternate-exchange": ("alternate_exchange", TEXT),
}
"""Setting of a policy -> the field of `RabbitLevel`, and the kind of its value."""

ARGUMENT: Final = "x-"
ARGUMENTS: Final[Names] = {ARGUMENT + name: each for name, each in NAMES.items()}
"""The same as arguments of a queue."""

DEFINITIONS: Final = frozenset({"rabbit_version", "rabbitmq_version", "operator_policies", "vhosts", "policies"})
"""Names that no other document has; ``BOUND``: of what Broker-J's do not have."""
BOUND: Final = frozenset({"bindings", "exchanges"})
OF_BROKER_J: Final = frozenset({"virtualhostnodes", "virtualhosts", "modelVersion", "nodeAutoCreationPolicies"})
"""Names that only Broker-J's documents have."""

CONCERNS: Final = re.compile(r"deliver|dead-?l|retry|ttl|message-t|expire|max-?len|overflow|alternat", re.IGNORECASE)
"""A name of this kind that is unknown must not be skipped in silence."""

_HELD: Final = "a consumer that keeps a message for so many ms is closed, and the message is redelivered and counted"
_DUPLICATES: Final = "a message with the header of one that was there is dropped, a dead letter too"
_UNREAD: Final[Mapping[str, Decisive]] = {
    "consumer-timeout": decisive(_HELD),
    "consumer-disconnected-timeout": decisive("what a consumer on a lost node had is redelivered after so many ms"),
    "max-age": decisive("a stream removes messages by their age"),
    "message-deduplication": decisive(_DUPLICATES, "true"),
    "cache-ttl": decisive("duplicates are known for so many ms"),
}
UNREAD: Final[Mapping[str, Decisive]] = {**_UNREAD, **{ARGUMENT + name: each for name, each in _UNREAD.items()}}
"""Settings and arguments that decide, and are not modelled."""

EXCHANGES: Final = "the plug-in of the type {} routes what is sent there, a dead letter too: not known where to"


def written(level: object, prefix: str = "") -> dict[str, Any]:
    """Spell the fields that a RabbitLevel sets, as JSON."""
    given = {prefix + name: getattr(level, field) for name, (field, _) in NAMES.items()}
    return {
        name: to_ms(value) if isinstance(value, float) else value for name, value in given.items() if value is not None
    }


def plain_json(value: Any) -> Any:
    """Return a list or an object again, of what the reader has made a tuple."""
    if not isinstance(value, tuple):
        return value
    if value and all(isinstance(each, tuple) and len(each) == 2 and isinstance(each[0], str) for each in value):
        return {name: plain_json(each) for name, each in value}
    return [plain_json(each) for each in value]
