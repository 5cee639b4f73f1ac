"""The names in the files of Qpid's old Java broker of what concerns redelivery and dead letters."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Final

from redelivery.policies.kinds import FLAG, TEXT, Names, whole

LEVEL: Final[Names] = MappingProxyType(
    {
        "deadLetterQueues": ("dead_letter_queues", FLAG),
        "maximumDeliveryCount": ("maximum_delivery_count", whole(0)),
    }
)
"""Of the broker, a virtual host or a queue: fields of QpidLevel."""

SUFFIXES: Final[Names] = MappingProxyType(
    {
        "deadLetterExchangeSuffix": ("exchange_suffix", TEXT),
        "deadLetterQueueSuffix": ("queue_suffix", TEXT),
    }
)
"""Of the broker: fields of QpidRules."""

CONCERNS: Final = re.compile(r"redel|deliv|dead_?l|dlq", re.IGNORECASE)
"""A name of this kind that is unknown must not be skipped in silence."""
