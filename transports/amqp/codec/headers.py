"""The headers of an AMQP message: of its section properties, its header and its annotations, read when asked for."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from redelivery.model.destinations import Destination
from redelivery.model.values import from_epoch_ms
from redelivery.transports.amqp.codec.ids import read_correlation_id, read_message_id, read_usual_id
from redelivery.transports.amqp.codec.names import from_address
from redelivery.transports.amqp.codec.sections import (
    CORRELATION_ID,
    CREATION_TIME,
    GROUP_ID,
    GROUP_SEQUENCE,
    IDS,
    MESSAGE_ID,
    NO_FIELDS,
    REPLY_TO,
    SUBJECT,
    TO,
    Found,
    Header,
    Known,
    field_place,
    field_values,
    read_annotations,
)
from redelivery.transports.amqp.codec.values import read
from redelivery.transports.dialects.amqp import AmqpDialect
from redelivery.transports.dialects.composites import consumed

_CLOSES_GROUP: Final = 0xFFFF_FFFF  # JMS's -1, as Qpid JMS writes it
# Words of the annotations that older clients write, and their bytes of today.
_OLD_KINDS: Final = {"queue": 0, "topic": 1, "queue,temporary": 2, "temporary,topic": 3}


class AmqpFormat:
    """The way in which the messages of one link are read; ``destination`` is where they are consumed from."""

    __slots__ = ("destination", "dialect", "known", "sent_to")

    def __init__(self, dialect: AmqpDialect, destination: Destination) -> None:
        self.dialect = dialect
        self.destination = destination
        self.known: Known | None = None  # how the last one began: the next is likely to
        self.sent_to = lru_cache(maxsize=256)(lambda address, kind: _sent_to(address, kind, dialect, destination))


class AmqpHeaders:
    """A message as headers; no slots of its own, as `redelivery.transports.amqp.codec.messages.AmqpFields`."""

    __slots__ = tuple[str, ...]()
    raw: bytes | bytearray
    format: AmqpFormat
    _found: Found | None
    _fields: Sequence[Any] | None

    @abstractmethod
    def expires_at(self) -> int:
        """Epoch milliseconds, 0 for never or for what cannot be read."""

    def header(self, name: str) -> Any:
        """One of `redelivery.model.messages.HEADERS`. Raises MessageFormatError."""
        if name == "message_id":  # the one that most ask for: the first of the properties, and a short text
            at = (self._found or self._find())[2]
            usual = read_usual_id(self.raw, at + 3) if at and self.raw[at] == 0xC0 else None
            return usual or _message_id(self)
        return _HEADERS[name](self)

    def headers(self) -> tuple[Any, ...]:
        """The headers of `redelivery.model.content.columns`, times as epoch milliseconds. Raises MessageFormatError."""
        self._field(SUBJECT)  # all of them are decoded
        if not self._fields:  # they are longer than most: one by one
            names = ("message_id", "destination", "reply_to", "correlation_id", "type")
            more = ("priority", "persistent", "group_id", "group_sequence")
            some, others = map(self.header, names), map(self.header, more)
            return (*some, _sent(self) or 0, self.expires_at(), *others)
        at, _, to, subject, reply_to, correlation_id, _, _, _, sent, group, sequence, _ = self._fields[: len(NO_FIELDS)]
        durable, priority, _, _, _ = self._header()
        return (
            (read_usual_id(self.raw, at) or read_message_id(self.raw, at)) if at else None,
            self.format.destination if to is None else _to(self),
            None if reply_to is None else _reply_to(self),
            read_correlation_id(self.raw, correlation_id) if correlation_id else None,
            subject if isinstance(subject, str) else None,
            sent if isinstance(sent, int) else 0,
            self.expires_at(),
            4 if priority is None else min(9, priority),
            durable is True,
            group if isinstance(group, str) else None,
            None if sequence is None else _group_sequence(self),
        )

    @abstractmethod
    def _find(self) -> Found:
        """Find its sections, which `_found` has from then on. Raises MessageFormatError."""

    @abstractmethod
    def _header(self) -> Header:
        """Read the section `header`; of unset fields where there is none, or it cannot be read."""

    def place(self, field: int) -> int:
        """The place where a field of the properties begins; 0 where it is not set."""
        at = (self._found or self._find())[2]
        return field_place(self.raw, at, field) if at else 0

    def _field(self, field: int) -> Any:
        """A field of the properties; None where it is not set; of an id that is set the place."""
        fields = self._fields
        if fields is None:  # decoded together: who asks for one asks for several
            at = (self._found or self._find())[2]
            fields = self._fields = field_values(self.raw, at) if at else NO_FIELDS
        if fields:
            return fields[field]
        place = self.place(field)
        return place if field in IDS else read(self.raw, place)[0] if place else None


def _message_id(message: AmqpHeaders) -> str | None:
    place = message._field(MESSAGE_ID)
    return read_message_id(message.raw, place) if place else None


def _correlation_id(message: AmqpHeaders) -> str | bytes | None:
    place = message._field(CORRELATION_ID)
    return read_correlation_id(message.raw, place) if place else None


def _kind(message: AmqpHeaders, name: str, old: str) -> int | None:
    """The kind of an address, by its annotation, or by that of older clients."""
    annotations = read_annotations((message._found or message._find())[1])
    kind = annotations.get(name, annotations.get(old))
    if isinstance(kind, str):
        kind = _OLD_KINDS.get(",".join(sorted(word.strip() for word in kind.split(","))))
    return kind if isinstance(kind, int) else None


def _reply_to(message: AmqpHeaders) -> Destination | None:
    address, made = message._field(REPLY_TO), message.format
    if not isinstance(address, str):
        return None
    return from_address(
        address, _kind(message, "x-opt-jms-reply-to", "x-opt-reply-type"), made.dialect, made.destination
    )


def _to(message: AmqpHeaders) -> Destination:
    address = message._field(TO)
    if not isinstance(address, str):
        return message.format.destination
    return message.format.sent_to(address, _kind(message, "x-opt-jms-dest", "x-opt-to-type"))


def _sent_to(address: str, kind: int | None, dialect: AmqpDialect, here: Destination) -> Destination:
    found = from_address(address, kind, dialect, here)
    return here if found is None else consumed(found, here, dialect.capabilities)


def _typed(field: int, kind: type) -> Callable[[AmqpHeaders], Any]:
    def read_field(message: AmqpHeaders) -> Any:
        value = message._field(field)
        return value if isinstance(value, kind) else None

    return read_field


_sent: Final = _typed(CREATION_TIME, int)
_type: Final = _typed(SUBJECT, str)
_group_id: Final = _typed(GROUP_ID, str)


def _group_sequence(message: AmqpHeaders) -> int | None:
    value = message._field(GROUP_SEQUENCE)
    if not isinstance(value, int):
        return None
    return -1 if value == _CLOSES_GROUP else value


def _delivery_time(message: AmqpHeaders) -> datetime | None:
    annotations = read_annotations((message._found or message._find())[1])
    at = annotations.get("x-opt-delivery-time")
    if not isinstance(at, int):
        delay, sent = annotations.get("x-opt-delivery-delay"), _sent(message)
        at = sent + delay if sent and isinstance(delay, int) else 0
    return from_epoch_ms(at)


def _priority(message: AmqpHeaders) -> int:
    priority = message._header()[1]
    return 4 if priority is None else min(9, priority)


def _persistent(message: AmqpHeaders) -> bool:
    return message._header()[0] is True


_HEADERS: Final[Mapping[str, Callable[[AmqpHeaders], object]]] = {
    "message_id": _message_id,
    "destination": _to,
    "reply_to": _reply_to,
    "correlation_id": _correlation_id,
    "type": _type,
    "timestamp": lambda message: from_epoch_ms(_sent(message) or 0),
    "expiration": lambda message: from_epoch_ms(message.expires_at()),
    "delivery_time": _delivery_time,
    "priority": _priority,
    "persistent": _persistent,
    "group_id": _group_id,
    "group_sequence": _group_sequence,
}
