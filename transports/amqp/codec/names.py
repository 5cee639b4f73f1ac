"""Destinations as addresses of AMQP nodes, both ways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, unquote

from redelivery.model.destinations import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
from redelivery.model.errors import InvalidDestinationError, UnsupportedError
from redelivery.transports.dialects.amqp import AmqpDialect
from redelivery.transports.finding import exchange_of, refuse_to_leave

_ANY_WORDS: Final = frozenset(("#", ">"))
# What the annotations `x-opt-jms-dest` and `x-opt-jms-reply-to` mean (AMQP JMS mapping).
_KINDS: Final = (Queue, Topic, TemporaryQueue, TemporaryTopic)
# How some clients and brokers write the kind into the address.
_SCHEMES: Final[Mapping[str, type[Destination]]] = {
    "queue://": Queue,
    "topic://": Topic,
    "temp-queue://": TemporaryQueue,
    "temp-topic://": TemporaryTopic,
}


def to_address(destination: Destination, dialect: AmqpDialect) -> str:
    """The address of its node. Raises UnsupportedError for what is neither queue nor topic."""
    if isinstance(destination, (TemporaryQueue, TemporaryTopic)):
        return destination.name
    exchange = exchange_of(destination, dialect.spellings) if destination.name.startswith("/") else None
    if exchange is not None:
        parts = [each for each in exchange if each]
        return dialect.exchange_prefix + "/".join(_encoded(each, dialect) for each in parts)
    name = _encoded(pattern(destination, dialect), dialect)
    if isinstance(destination, Queue):
        if not destination.declare and dialect.makes_queues:
            raise refuse_to_leave(destination)
        return dialect.queue_prefix + name
    if isinstance(destination, Topic):
        return dialect.topic_prefix + name
    raise UnsupportedError(f"{destination}: only queues and topics can be named over AMQP")


def _encoded(name: str, dialect: AmqpDialect) -> str:
    return quote(name, safe="") if dialect.percent_encoded else name.replace("/", dialect.slash)


def pattern(destination: Destination, dialect: AmqpDialect) -> str:
    """The destination's name, with the broker's own wildcard for any further words."""
    name = destination.name
    if destination.is_pattern:
        name = ".".join(dialect.any_words if word in _ANY_WORDS else word for word in name.split("."))
    return name


def from_address(
    address: str, kind: int | None, dialect: AmqpDialect, like: Destination | None = None
) -> Destination | None:
    """The destination of an address; None where it does not name one.

    Args:
        address: of a message's ``to`` or ``reply-to``, or of a dynamic node.
        kind: what the JMS annotation says; None: the address says it, or else it is as ``like``, or a queue.
        dialect: for its prefixes.
        like: where the message came from.
    """
    found: type[Destination] | None = _KINDS[kind] if kind is not None and 0 <= kind < len(_KINDS) else None
    if found is None or found is Queue or found is Topic:
        found, address = _by_prefix(address, found, dialect)
    if found is None:
        found = type(like) if isinstance(like, (Queue, Topic)) else Queue
    try:
        return found(address)
    except InvalidDestinationError:
        return None


def kind_of(destination: Destination) -> int:
    """The destination's kind in the JMS annotations: 0 queue, 1 topic, 2 temporary queue, 3 temporary topic."""
    if isinstance(destination, Topic):
        return 3 if isinstance(destination, TemporaryTopic) else 1
    return 2 if isinstance(destination, TemporaryQueue) else 0


def capability(destination: Destination, dialect: AmqpDialect) -> str | None:
    """The capability that a terminus of this destination asks for; None where the address says it all."""
    return (
        dialect.queue_capability,
        dialect.topic_capability,
        dialect.temporary_queue_capability,
        dialect.temporary_topic_capability,
    )[kind_of(destination)]


def _by_prefix(
    address: str, kind: type[Destination] | None, dialect: AmqpDialect
) -> tuple[type[Destination] | None, str]:
    """The kind that the address begins with, and what follows; temporary names stay whole, for they are addresses."""
    prefixes: tuple[tuple[str, type[Destination]], ...] = (
        (dialect.queue_prefix, Queue),
        (dialect.existing_queue_prefix, Queue),
        (dialect.topic_prefix, Topic),
        *_SCHEMES.items(),
    )
    for prefix, meant in prefixes:
        if prefix and address.startswith(prefix) and (kind is None or issubclass(meant, kind)):
            temporary = issubclass(meant, (TemporaryQueue, TemporaryTopic))
            name = address if temporary else address[len(prefix) :]
            if not temporary:
                name = unquote(name) if dialect.percent_encoded else name.replace(dialect.slash, "/")
            return meant, name
    return kind, address
