"""Reads an AMQP message: nothing of it is read before it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from redelivery.model.content.columns import MessageColumns
from redelivery.model.errors import MessageFormatError
from redelivery.model.values import Body, Value
from redelivery.transports.amqp.codec.bodies import BYTES, MESSAGE, TEXT, read_body
from redelivery.transports.amqp.codec.headers import AmqpFormat, AmqpHeaders
from redelivery.transports.amqp.codec.raw import AmqpBody, readable_map
from redelivery.transports.amqp.codec.sections import (
    ABSOLUTE_EXPIRY_TIME,
    CONTENT_TYPE,
    NO_HEADER,
    USER_ID,
    Found,
    Header,
    body_sections,
    field_place,
    find,
    know,
    read_annotations,
    read_header,
)
from redelivery.transports.amqp.codec.values import read, read_usual_map
from redelivery.transports.wire.clock import epoch_ms

__all__ = ["AmqpFields", "AmqpFormat", "AmqpMessage"]

# Our own property of what was sent over STOMP, where the broker makes bytes of it, as it is encoded; and its values.
_STOMP_KIND: Final = b"\xa1\x13JMS_redelivery_kind\xa1\x04"
_STOMP_KINDS: Final = {b"text": TEXT, b"none": MESSAGE}
_SMALL: Final = 16 << 10  # bytes whose copy takes no longer than a view
# How the two most common bodies begin, and the bytes that say their length.
_USUAL: Final[Mapping[tuple[int | None, bytes], int]] = {
    (TEXT, b"\x00\x53\x77\xa1"): 1,
    (TEXT, b"\x00\x53\x77\xb1"): 4,
    (BYTES, b"\x00\x53\x75\xa0"): 1,
    (BYTES, b"\x00\x53\x75\xb0"): 4,
}


class AmqpFields(AmqpHeaders):
    """A message as fields. It has no slots of its own, so that a delivery can be one without a further object."""

    __slots__ = tuple[str, ...]()
    _expires: int

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
        usual = _read_usual(raw, at, kind)
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
        return MappingProxyType(self._properties())

    def columns(self) -> MessageColumns:
        """See `redelivery.model.content.columns`. Raises MessageFormatError."""
        return (*self.headers(), self._properties())

    def _properties(self) -> dict[str, Value]:
        at = (self._found or self._find())[3]
        own = read_usual_map(self.raw, at) if at else {}
        if own is None:
            found: Any = read(self.raw, at)[0]
            if not isinstance(found, dict):
                raise MessageFormatError("the application properties of the message are not a map")
            own = _as_properties(found)
        user = self._fields[USER_ID] if self._fields else self._field(USER_ID)
        if isinstance(user, bytes) and user:
            own["JMSXUserID"] = _text(user)
        return own

    def _find_expiry(self) -> int:
        try:
            if self._fields:
                at = self._fields[ABSOLUTE_EXPIRY_TIME]
            else:  # asked for by itself
                properties = (self._found or self._find())[2]
                place = field_place(self.raw, properties, ABSOLUTE_EXPIRY_TIME) if properties else 0
                at = read(self.raw, place)[0] if place else None
            if at is not None:
                return max(0, at) if isinstance(at, int) else 0
        except MessageFormatError:
            return 0
        ttl = self._header()[2]
        return epoch_ms() + ttl if ttl else 0

    def noted(self) -> Mapping[str, object]:
        """The message annotations. Raises MessageFormatError."""
        return read_annotations((self._found or self._find())[1])


class AmqpMessage(AmqpFields):
    """A message that was read and that nobody need settle."""

    __slots__ = ("_expires", "_fields", "_found", "format", "raw")

    def __init__(self, raw: bytes | bytearray, format: AmqpFormat) -> None:
        self.raw = raw
        self.format = format
        self._found = None
        self._fields = None
        self._expires = -1


def _read_usual(raw: bytes | bytearray, at: int, kind: int | None) -> str | bytes | None:
    """As `read_body` for a str, or bytes, in one section that ends the message; None for any other body."""
    size = at + 4
    start = size + _USUAL.get((kind, bytes(raw[at:size])), 0)
    length = len(raw) - start
    if start == size or int.from_bytes(raw[size:start], "big") != length:
        return None
    data = raw[start:] if length < _SMALL else memoryview(raw)[start:]
    try:
        return bytes(data) if kind == BYTES else str(data, "utf-8")
    except UnicodeDecodeError:
        return None


def _as_properties(found: Mapping[Any, Any]) -> dict[str, Any]:
    return {
        name if type(name) is str else str(name): _text(value) if type(value) is bytes else value
        for name, value in found.items()
    }


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.hex().upper()
