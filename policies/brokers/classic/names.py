"""The names in ActiveMQ Classic's XML of what concerns redelivery and dead letters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from redelivery.policies.dead_letters import (
    DeadLetterStrategy,
    DiscardingDeadLetterStrategy,
    IndividualDeadLetterStrategy,
    SharedDeadLetterStrategy,
)
from redelivery.policies.kinds import FLAG, MILLISECONDS, TEXT, Kind, Names, whole

STRATEGY: Final[Names] = {
    "processExpired": ("process_expired", FLAG),
    "processNonPersistent": ("process_non_persistent", FLAG),
    "expiration": ("expiration", MILLISECONDS),
}
"""Of every dead-letter strategy."""

AUDIT: Final[Names] = {
    "enableAudit": ("enable_audit", FLAG),
    "maxProducersToAudit": ("max_producers_to_audit", whole(0)),
    "maxAuditDepth": ("max_audit_depth", whole(0)),
    "destinationPerDurableSubscriber": ("destination_per_durable_subscriber", FLAG),
}
"""What a strategy has that only a broker can do: fields of DeadLetterRules."""

INDIVIDUAL: Final[Names] = {
    "queuePrefix": ("queue_prefix", TEXT),
    "topicPrefix": ("topic_prefix", TEXT),
    "queueSuffix": ("queue_suffix", TEXT),
    "topicSuffix": ("topic_suffix", TEXT),
    "useQueueForQueueMessages": ("use_queue_for_queue_messages", FLAG),
    "useQueueForTopicMessages": ("use_queue_for_topic_messages", FLAG),
}

ENTRY: Final[Names] = {
    "persistJMSRedelivered": ("persist_jms_redelivered", FLAG),
    "sendDuplicateFromStoreToDLQ": ("send_duplicate_from_store_to_dlq", FLAG),
}

REDELIVERY: Final[Names] = {
    "fallbackToDeadLetter": ("fallback_to_dead_letter", FLAG),
    "sendToDlqIfMaxRetriesExceeded": ("send_to_dlq_if_max_retries_exceeded", FLAG),
}

DISCARDING: Final[Names] = {
    "dropAll": ("drop_all", FLAG),
    "dropTemporaryTopics": ("drop_temporary_topics", FLAG),
    "dropTemporaryQueues": ("drop_temporary_queues", FLAG),
    "dropOnly": ("drop_only", Kind(lambda _, text: tuple(text.split()), " ".join)),
    "reportInterval": ("report_interval", whole(0)),
}

STRATEGIES: Final[Mapping[str, type[DeadLetterStrategy]]] = {
    "sharedDeadLetterStrategy": SharedDeadLetterStrategy,
    "individualDeadLetterStrategy": IndividualDeadLetterStrategy,
    "discarding": DiscardingDeadLetterStrategy,
}
"""Element below ``deadLetterStrategy`` -> the strategy."""

PLACES: Final = ("queue", "topic", "tempQueue", "tempTopic")
"""The attributes that say which destinations an entry is for."""

CONCERNS: Final = re.compile(r"redel|dlq|dead_?l", re.IGNORECASE)
"""A name of this kind that is unknown must not be skipped in silence."""
