"""Names as a broker's STOMP writes them, both ways: destinations, and whose a header is."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from redelivery.model.destinations import (
    Destination,
    Queue,
    TemporaryQueue,
    TemporaryTopic,
    Topic,
    read_destination,
)
from redelivery.model.errors import InvalidDestinationError, UnsupportedError
from redelivery.transports.dialects.dialect import Headers, StompDialect, StompTemporaries
from redelivery.transports.finding import QUALIFIED, exchange_of, refuse_to_leave

_ANY_WORDS: Final = frozenset(("#", ">"))


@dataclass(frozen=True, slots=True)
class QueueRoute:
    """The way to a queue whose name alone would be wrong.

    ``to``, ``headers``: the destination of a SEND, and what says which kind of queues it means. ``source``: the
    destination of a SUBSCRIBE; None: no queue is meant alone, and ``refusal`` says why. ``consume``: what says there
    which kind it is, where that is not the usual one. ``selects``: the broker heeds the selector of a SUBSCRIBE there;
    None: it is not known whether it does.
    """

    to: str
    headers: Headers = ()
    source: str | None = None
    refusal: str = ""
    consume: Headers = ()
    selects: bool | None = True


def to_wire(
    destination: Destination, dialect: StompDialect, others: Collection[str] = (), *, consumed: bool = False
) -> str:
    """The header's value; ``others``: queues to be taken as they are. ``consumed``: of a SUBSCRIBE.

    Raises:
        UnsupportedError: it has no name over STOMP.
    """
    name = destination.name
    if isinstance(destination, (TemporaryQueue, TemporaryTopic)):
        return _temporary_to_wire(destination, dialect)
    if "," in name and dialect.capabilities.composite_destinations:
        parts = destination.parts
        if len(parts) > 1:
            return ",".join(to_wire(part, dialect) for part in parts)
    exchange = exchange_of(destination, dialect.spellings) if name.startswith("/") else None
    if exchange is not None:
        return dialect.exchange_prefix + "/".join(each.replace("/", "%2F") for each in exchange if each)
    name = _spelled(destination, dialect, consumed=consumed)
    if isinstance(destination, Queue):
        if not destination.declare and dialect.makes_queues and dialect.addresses is None:
            raise refuse_to_leave(destination)
        there = destination.name in others or not destination.declare
        return ((dialect.existing_queue_prefix if there else "") or dialect.queue_prefix) + name
    if isinstance(destination, Topic):
        return dialect.topic_prefix + name
    raise UnsupportedError(f"{destination}: only queues and topics can be named over STOMP")


def _spelled(destination: Destination, dialect: StompDialect, *, consumed: bool) -> str:
    name = destination.name
    if destination.is_pattern:
        return ".".join(dialect.any_words if word in _ANY_WORDS else word for word in name.split("."))
    if dialect.splits_qualified and QUALIFIED in name and isinstance(destination, Queue):
        return name.split(QUALIFIED, 1)[consumed]
    # all that it decodes; what it writes itself is encoded as a whole
    return name.replace("/", "%2F") if dialect.percent_encoded else name


def from_wire(value: str, dialect: StompDialect, kind: type[Destination] | None = None) -> Destination | None:
    """The destination of a header's value; None for what has no name here, such as another's temporary queue.

    Where a name does not distinguish a queue from a topic, it is of the ``kind`` given.
    """
    try:
        if dialect.temporaries is not None:
            found = _temporary_from_wire(value, dialect.temporaries)
            if found is not None:
                return found
        if dialect.queue_prefix == dialect.topic_prefix:
            return None if kind is None else kind(value.removeprefix(dialect.queue_prefix))
        known = ((dialect.queue_prefix, Queue), (dialect.topic_prefix, Topic), (dialect.existing_queue_prefix, Queue))
        for prefix, named in known if dialect.existing_queue_prefix else known[:2]:
            if value.startswith(prefix):
                name = value[len(prefix) :]
                return named(unquote(name) if dialect.percent_encoded else name)
    except InvalidDestinationError:
        return None
    return None


def _temporary_to_wire(destination: TemporaryQueue | TemporaryTopic, dialect: StompDialect) -> str:
    how = dialect.temporaries
    prefix = None if how is None else how.queue if isinstance(destination, TemporaryQueue) else how.topic
    if not prefix:
        raise UnsupportedError(f"{destination}: this broker has none over STOMP: {dialect.no_temporaries}")
    return prefix + destination.name.removeprefix(f"{destination.scheme}://")


def _temporary_from_wire(value: str, how: StompTemporaries) -> Destination | None:
    prefixes: list[tuple[str, type[Destination]]] = [(how.queue, TemporaryQueue), (how.topic, TemporaryTopic)]
    if how.named_by_session:  # the maker's own
        prefixes += [(how.made_queue, TemporaryQueue), (how.made_topic, TemporaryTopic)]
    for prefix, kind in prefixes:
        if prefix and value.startswith(prefix):
            return kind(f"{kind.scheme}://{value[len(prefix) :]}")
    return None


def reply_to_wire(destination: Destination, dialect: StompDialect) -> str:
    """The value of ``reply-to``."""
    return str(destination) if dialect.reply_to_is_uri else to_wire(destination, dialect)


def reply_to_from_wire(value: str, dialect: StompDialect) -> Destination | None:
    """The destination that ``reply-to`` says; None as in `from_wire`."""
    if not dialect.reply_to_is_uri:
        return from_wire(value, dialect)
    try:
        return read_destination(value.removeprefix("temp-"))  # such as temp-queue://name
    except InvalidDestinationError:
        return None


def is_origin(name: str, dialect: StompDialect) -> bool:
    """Check whether a header says where a dead letter of the broker's own came from."""
    return dialect.origin_prefix is not None and name.startswith(dialect.origin_prefix)


def is_owned(name: str, dialect: StompDialect) -> bool:
    """Check whether a header belongs to STOMP, JMS or the broker, not to the application."""
    return name in dialect.owned_headers or name.startswith(dialect.owned_prefixes)


def is_property(name: str, dialect: StompDialect) -> bool:
    """Check whether a header is a property that others see: the application's, or the origin of a dead letter."""
    return not is_owned(name, dialect) or is_origin(name, dialect)
