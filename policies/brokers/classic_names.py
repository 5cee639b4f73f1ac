"""How ActiveMQ Classic spells what concerns redelivery and dead letters in its XML."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from redelivery.policies.checks import INT_MAX, LONG_MAX, read_flag, read_whole, to_ms
from redelivery.policies.dead_letters import (
    DeadLetterStrategy,
    DiscardingDeadLetterStrategy,
    IndividualDeadLetterStrategy,
    SharedDeadLetterStrategy,
)

Names: TypeAlias = Mapping[str, tuple[str, Callable[[str, str], Any]]]
"""Attribute -> the field here, and what reads its value."""


def _milliseconds(name: str, value: str) -> float | None:
    return read_whole(name, value, 0, LONG_MAX) / 1000 or None


def _number(name: str, value: str) -> int:
    return read_whole(name, value, 0, INT_MAX)


def _text(name: str, value: str) -> str:  # noqa: ARG001  # the others need the name for their errors
    return value


def _words(name: str, value: str) -> tuple[str, ...]:  # noqa: ARG001  # as above
    return tuple(value.split())


STRATEGY: Final[Names] = MappingProxyType(
    {
        "processExpired": ("process_expired", read_flag),
        "processNonPersistent": ("process_non_persistent", read_flag),
        "expiration": ("expiration", _milliseconds),
    }
)
"""Of every dead-letter strategy."""

AUDIT: Final[Names] = MappingProxyType(
    {
        "enableAudit": ("enable_audit", read_flag),
        "maxProducersToAudit": ("max_producers_to_audit", _number),
        "maxAuditDepth": ("max_audit_depth", _number),
        "destinationPerDurableSubscriber": ("destination_per_durable_subscriber", read_flag),
    }
)
"""What a strategy has that only a broker can do: fields of DeadLetterRules."""

INDIVIDUAL: Final[Names] = MappingProxyType(
    {
        "queuePrefix": ("queue_prefix", _text),
        "topicPrefix": ("topic_prefix", _text),
        "queueSuffix": ("queue_suffix", _text),
        "topicSuffix": ("topic_suffix", _text),
        "useQueueForQueueMessages": ("use_queue_for_queue_messages", read_flag),
        "useQueueForTopicMessages": ("use_queue_for_topic_messages", read_flag),
    }
)

ENTRY: Final[Names] = MappingProxyType(
    {
        "persistJMSRedelivered": ("persist_jms_redelivered", read_flag),
        "sendDuplicateFromStoreToDLQ": ("send_duplicate_from_store_to_dlq", read_flag),
    }
)

REDELIVERY: Final[Names] = MappingProxyType(
    {
        "fallbackToDeadLetter": ("fallback_to_dead_letter", read_flag),
        "sendToDlqIfMaxRetriesExceeded": ("send_to_dlq_if_max_retries_exceeded", read_flag),
    }
)

DISCARDING: Final[Names] = MappingProxyType(
    {
        "dropAll": ("drop_all", read_flag),
        "dropTemporaryTopics": ("drop_temporary_topics", read_flag),
        "dropTemporaryQueues": ("drop_temporary_queues", read_flag),
        "dropOnly": ("drop_only", _words),
        "reportInterval": ("report_interval", _number),
    }
)

STRATEGIES: Final[Mapping[str, type[DeadLetterStrategy]]] = MappingProxyType(
    {
        "sharedDeadLetterStrategy": SharedDeadLetterStrategy,
        "individualDeadLetterStrategy": IndividualDeadLetterStrategy,
        "discarding": DiscardingDeadLetterStrategy,
    }
)
"""Element below ``deadLetterStrategy`` -> the strategy."""

PLACES: Final = ("queue", "topic", "tempQueue", "tempTopic")
"""The attributes that say which destinations an entry is for."""

CONCERNS: Final = re.compile(r"redel|dlq|dead_?l", re.IGNORECASE)
"""A name of this kind that is unknown must not be skipped in silence."""


def spelled(value: object) -> str:
    """A value as XML writes it: durations in milliseconds, several words with spaces between them."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return str(to_ms(value))
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return "0" if value is None else str(value)
