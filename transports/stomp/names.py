"""Destinations as a broker's STOMP writes them, both ways."""

from __future__ import annotations

from typing import Final

from redelivery.model.destinations import Destination, Queue, Topic
from redelivery.model.errors import InvalidDestinationError, UnsupportedError
from redelivery.transports.dialects.dialect import StompDialect

_ANY_WORDS: Final = frozenset(("#", ">"))


def to_wire(destination: Destination, dialect: StompDialect) -> str:
    """The header's value."""
    name = destination.name
    if destination.is_pattern:
        name = ".".join(dialect.any_words if word in _ANY_WORDS else word for word in name.split("."))
    if isinstance(destination, Queue):
        return dialect.queue_prefix + name
    if isinstance(destination, Topic):
        return dialect.topic_prefix + name
    raise UnsupportedError(f"{destination}: only queues and topics can be named over STOMP")


def from_wire(value: str, dialect: StompDialect) -> Destination | None:
    """The destination of a header's value; None for what has no name here, such as another's temporary queue."""
    try:
        if value.startswith(dialect.queue_prefix):
            return Queue(value[len(dialect.queue_prefix) :])
        if value.startswith(dialect.topic_prefix):
            return Topic(value[len(dialect.topic_prefix) :])
    except InvalidDestinationError:
        return None
    return None
