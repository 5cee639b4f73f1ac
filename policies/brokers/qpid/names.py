"""The names in the files of Qpid's old Java broker of what concerns redelivery and dead letters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from redelivery.policies.files.places import Decisive, decisive
from redelivery.policies.kinds import FLAG, TEXT, Names, whole

LEVEL: Final[Names] = {
    "deadLetterQueues": ("dead_letter_queues", FLAG),
    "maximumDeliveryCount": ("maximum_delivery_count", whole(0)),
}
"""Of the broker, a virtual host or a queue: fields of QpidLevel."""

SUFFIXES: Final[Names] = {
    "deadLetterExchangeSuffix": ("exchange_suffix", TEXT),
    "deadLetterQueueSuffix": ("queue_suffix", TEXT),
}
"""Of the broker: fields of QpidRules."""

_LAST: Final = decisive(
    "of the messages with one key the queue keeps the last one only, of dead letters too", "(?!false$).*"
)
_CLOSED: Final = decisive(
    "a transaction that is open or idle for so long is closed, and what it had is redelivered", "(?!0$).*"
)
UNREAD: Final[Mapping[str, Decisive]] = {
    "lvq": _LAST,
    "lvqKey": _LAST,
    "openClose": _CLOSED,
    "idleClose": _CLOSED,
    "checkPeriod": decisive("nobody looks for expired messages", "0|-.*"),
    "expiredMessageCheckPeriod": decisive("nobody looks for expired messages", "0|-.*"),
}
"""Elements of any of these that decide, and are not modelled."""

CONCERNS: Final = re.compile(r"redel|deliv|dead_?l|dlq", re.IGNORECASE)
"""A name of this kind that is unknown must not be skipped in silence."""
