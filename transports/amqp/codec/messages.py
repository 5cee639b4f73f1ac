"""Reads an AMQP message: nothing of it is read before it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from redelivery.model.destinations import Destination
from redelivery.model.errors import MessageFormatError
from redelivery.model.values import Body, Value, from_epoch_ms
from redelivery.transports.amqp.codec.bodies import BYTES, MESSAGE, TEXT, read_body, read_usual
from redelivery.transports.amqp.codec.ids import read_correlation_id, read_message_id, read_usual_id
from redelivery.transports.amqp.codec.names import from_address
from redelivery.transports.amqp.codec.raw import AmqpBody, readable_map
from redelivery.transports.amqp.codec.sections import (
    ABSOLUTE_EXPIRY_TIME,
    CONTENT_TYPE,
    CORRELATION_ID,
    CREATION_TIME,
    GROUP_ID,
    GROUP_SEQUENCE,
    MESSAGE_ID,
    NO_HEADER,
    REPLY_TO,
    SUBJECT,
    TO,
    USER_ID,
    Found,
    Header,
    Known,
    body_sections,
    field_place,
    field_places,
    find,
    know,
    read_annotations,
    read_header,
)
from redelivery.transports.amqp.codec.values import read
from redelivery.transports.dialects.amqp import AmqpDialect
from redelivery.transports.dialects.composites import consumed
from redelivery.transports.wire.clock import epoch_ms

_CLOSES_GROUP: Final = 0xFFFF_FFFF  # JMS's -1, as Qpid JMS writes it
# Our own property of what was sent over STOMP, where the broker makes bytes of it, as it is encoded; and its values.
_STOMP_KIND: Final = b"\xa1\x13JMS_redelivery_kind\xa1\x04"
_STOMP_KINDS: Final = {b"text": TEXT, b"none": MESSAGE}
# Words of the annotations that older clients write, and their bytes of today.
_OLD_KINDS: Final = {"queue": 0, "topic": 1, "queue,temporary": 2, "temporary,topic": 3}


class AmqpFormat:
    """The way in which the messages of one link are read; ``destination`` is where they are consumed from."""

    __slots__ = ("destination", "dialect", "known")

    def __init__(self, dialect: AmqpDialect, destination: Destination) -> None:
        self.dialect = dialect
        self.destination = destination
        self.known: Known | None = None  # how the last one began: the next is likely to


class AmqpFields:
    """A message as fields. It has no slots of its own, so that a delivery can be one without a further object."""

    __slots__ = tuple[str, ...]()
    raw: bytes | bytearray
    format: AmqpFormat
    _found: Found | None
    _places: tuple[int, ...] | None
    _expires: int

    def wire_count(self) -> int:
        """The header's delivery-count and one; 1 where the message cannot be read, which `body` then says.

        At least 2 where this broker says by ``first-acquirer=false`` that it was delivered before. Where the broker
        charges what nobody saw: 2, or more where more is `proven`.
        """
        header = self._header()
        count = (header[4] or 0) + 1
        named = self.format.dialect.count_annotation
        if named is not None:
            count = max(count, self._annotated(named) + 1)
        if count == 1:
            again = header[3] is False and self.format.dialect.redelivered_by_first_acquirer
            return 2 if again else 1
        return 1 + max(1, self.proven()) if self.format.dialect.session_end_counts else count

    def _annotated(self, name: str) -> int:
        try:
            found = read_annotations((self._found or self._find())[1]).get(name)
        except MessageFormatError:
            return 0
        return found if isinstance(found, int) else 0

    def proven(self) -> int:
        """Deliveries before this one that an application had, as far as that is known beyond the broker's count."""
        return 0

    def expires_at(self) -> int:
        """Epoch milliseconds, 0 for never or for what cannot be read.

        The absolute-expiry-time; otherwise the header's ttl from when it is first read, as Qpid JMS does.
        """
        if self._expires < 0:
            self._expires = self._find_expiry()
        return self._expires

    def body(self) -> Body:
        """The body. Raises MessageFormatError; the message can still be acknowledged."""
        at = (self._found or self._find())[4]
        raw = self.raw
        kind = self.kind()
        usual = read_usual(raw, at, kind)
        if usual is not None:
            return usual
        content_type = self._field(CONTENT_TYPE) if kind is None or kind == 5 else None
        return read_body(raw, at, kind, content_type if isinstance(content_type, str) else None)

    def bare_at(self) -> int:
        """The place where the first section begins that no broker changes; 0 where the message cannot be read."""
        try:
            return min((each for each in (self._found or self._find())[2:] if each > 0), default=0)
        except MessageFormatError:
            return 0

    def kind(self) -> int | None:
        """The annotation ``x-opt-jms-msg-type``. Raises MessageFormatError."""
        found = self._found or self._find()
        kind = read_annotations(found[1]).get("x-opt-jms-msg-type")
        if kind in (None, BYTES) and (at := self.raw.find(_STOMP_KIND, 0, max(0, found[4]))) >= 0:
            said = bytes(self.raw[at + len(_STOMP_KIND) : at + len(_STOMP_KIND) + 4])
            return _STOMP_KINDS.get(said, kind)
        return kind if isinstance(kind, int) else None

    def raw_body(self) -> AmqpBody:
        """See `redelivery.model.content.bodies.Carrying`."""
        return AmqpBody(self)

    def readable(self) -> tuple[Mapping[str, Value], list[str]]:
        """See `redelivery.model.content.bodies.Carrying`."""
        try:
            at = (self._found or self._find())[3]
        except MessageFormatError:
            return MappingProxyType({}), ["its properties"]
        found, left_out = readable_map(self.raw, at) if at else ({}, [])
        return MappingProxyType(_as_properties(found)), left_out

    def nested_body(self) -> Any:
        """The one value of the body, whatever its keys: a broker's own answers have some that are no str.

        Raises:
            MessageFormatError: it cannot be read, or is not one value.
        """
        at = (self._found or self._find())[4]
        sections = body_sections(self.raw, at) if at >= 0 else []
        if len(sections) != 1:
            raise MessageFormatError(f"the body of the message is not one value: it has {len(sections)} sections")
        return read(self.raw, sections[0][1])[0]

    def properties(self) -> Mapping[str, Value]:
        """The application properties, and JMSXUserID; the broker's annotations are none, as with Qpid JMS.

        Binary, which JMS has no property for, is a str. Lists and maps, which AMQP has none for, are as they came.

        Raises:
            MessageFormatError: they cannot be read.
        """
        at = (self._found or self._find())[3]
        found: Any = read(self.raw, at)[0] if at else {}
        if not isinstance(found, dict):
            raise MessageFormatError("the application properties of the message are not a map")
        own = _as_properties(found)
        user = self._field(USER_ID)
        if isinstance(user, bytes) and user:
            own["JMSXUserID"] = _text(user)
        return MappingProxyType(own)

    def noted(self) -> Mapping[str, object]:
        """The message annotations. Raises MessageFormatError."""
        return read_annotations((self._found or self._find())[1])

    def header(self, name: str) -> Any:
        """One of `redelivery.model.messages.HEADERS`. Raises MessageFormatError."""
        if name == "message_id":  # the one that most ask for: the first of the properties, and a short text
            at = (self._found or self._find())[2]
            usual = read_usual_id(self.raw, at + 3) if at and self.raw[at] == 0xC0 else None
            return usual or _message_id(self)
        return _HEADERS[name](self)

    def _find_expiry(self) -> int:
        try:
            properties = (self._found or self._find())[2]
            place = field_place(self.raw, properties, ABSOLUTE_EXPIRY_TIME) if properties else 0  # asked for by itself
            if place:
                at = read(self.raw, place)[0]
                return max(0, at) if isinstance(at, int) else 0
        except MessageFormatError:
            return 0
        ttl = self._header()[2]
        return epoch_ms() + ttl if ttl else 0

    def _find(self) -> Found:
        raw, known = self.raw, self.format.known
        if known is not None and raw.startswith(known[0]):
            self._found = found = find(raw, known)
        else:
            self._found = found = find(raw)
            self.format.known = know(raw, found)
        return found

    def _header(self) -> Header:
        try:
            return read_header((self._found or self._find())[0])
        except MessageFormatError:
            return NO_HEADER

    def place(self, field: int) -> int:
        """The place where a field of the properties begins; 0 where it is not set."""
        places = self._places
        at = (self._found or self._find())[2]
        if places is None:
            places = self._places = field_places(self.raw, at) if at else ()
        if places:
            return places[field] if field < len(places) else 0
        return field_place(self.raw, at, field) if at else 0

    def _field(self, field: int) -> Any:
        place = self.place(field)
        return read(self.raw, place)[0] if place else None

    def _annotation(self, *names: str) -> Any:
        annotations = read_annotations((self._found or self._find())[1])
        for name in names:
            if name in annotations:
                return annotations[name]
        return None


class AmqpMessage(AmqpFields):
    """A message that was read and that nobody need settle."""

    __slots__ = ("_expires", "_found", "_places", "format", "raw")

    def __init__(self, raw: bytes | bytearray, format: AmqpFormat) -> None:
        self.raw = raw
        self.format = format
        self._found = None
        self._places = None
        self._expires = -1


def _as_properties(found: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(name): _text(value) if isinstance(value, bytes) else value for name, value in found.items()}


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.hex().upper()


def _message_id(message: AmqpFields) -> str | None:
    place = message.place(MESSAGE_ID)
    return read_message_id(message.raw, place) if place else None


def _correlation_id(message: AmqpFields) -> str | bytes | None:
    place = message.place(CORRELATION_ID)
    return read_correlation_id(message.raw, place) if place else None


def _address(field: int, *annotations: str) -> Callable[[AmqpFields], Destination | None]:
    def read_address(message: AmqpFields) -> Destination | None:
        address = message._field(field)
        if not isinstance(address, str):
            return None
        kind = message._annotation(*annotations)
        if isinstance(kind, str):
            kind = _OLD_KINDS.get(",".join(sorted(word.strip() for word in kind.split(","))))
        return from_address(
            address, kind if isinstance(kind, int) else None, message.format.dialect, message.format.destination
        )

    return read_address


def _typed(field: int, kind: type) -> Callable[[AmqpFields], Any]:
    def read_field(message: AmqpFields) -> Any:
        value = message._field(field)
        return value if isinstance(value, kind) else None

    return read_field


_to: Final = _address(TO, "x-opt-jms-dest", "x-opt-to-type")
_reply_to: Final = _address(REPLY_TO, "x-opt-jms-reply-to", "x-opt-reply-type")
_sent: Final = _typed(CREATION_TIME, int)


def _sent_to(message: AmqpFields) -> Destination:
    here, found = message.format.destination, _to(message)
    return here if found is None else consumed(found, here, message.format.dialect.capabilities)


def _group_sequence(message: AmqpFields) -> int | None:
    value = message._field(GROUP_SEQUENCE)
    if not isinstance(value, int):
        return None
    return -1 if value == _CLOSES_GROUP else value


def _delivery_time(message: AmqpFields) -> datetime | None:
    at = message._annotation("x-opt-delivery-time")
    if not isinstance(at, int):
        delay, sent = message._annotation("x-opt-delivery-delay"), _sent(message)
        at = sent + delay if sent and isinstance(delay, int) else 0
    return from_epoch_ms(at)


def _priority(message: AmqpFields) -> int:
    priority = message._header()[1]
    return 4 if priority is None else min(9, priority)


_HEADERS: Final[Mapping[str, Callable[[AmqpFields], object]]] = {
    "message_id": _message_id,
    "destination": _sent_to,
    "reply_to": _reply_to,
    "correlation_id": _correlation_id,
    "type": _typed(SUBJECT, str),
    "timestamp": lambda message: from_epoch_ms(_sent(message) or 0),
    "expiration": lambda message: from_epoch_ms(message.expires_at()),
    "delivery_time": _delivery_time,
    "priority": _priority,
    "persistent": lambda message: message._header()[0] is True,
    "group_id": _typed(GROUP_ID, str),
    "group_sequence": _group_sequence,
}
