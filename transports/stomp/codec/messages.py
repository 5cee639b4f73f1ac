"""Reads a MESSAGE frame: nothing of it is read before it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from redelivery.model.content.columns import MessageColumns
from redelivery.model.destinations import Destination
from redelivery.model.errors import MessageFormatError, ProtocolError
from redelivery.model.values import Body, Value, from_epoch_ms
from redelivery.transports.amqp.codec.bodies import read_body
from redelivery.transports.amqp.codec.texts import modified_utf_8, text_charset
from redelivery.transports.dialects.dialect import StompDialect
from redelivery.transports.stomp.codec.formats import KIND, MODE, OURS, StompFormat, number
from redelivery.transports.stomp.codec.frames import parse_headers, raw_value, unescape
from redelivery.transports.stomp.codec.maps import START, read_map
from redelivery.transports.stomp.codec.names import is_property, reply_to_from_wire
from redelivery.transports.stomp.codec.raw import StompBody, readable_headers

_SECONDS: Final = 100_000_000_000  # a number below is a time in seconds, of this millennium or the next
_ID_KEY: Final = b"\nmessage-id:"
_UNDERSCORE: Final = ord("_")
_MODE_KEY: Final = b"\n" + MODE.encode() + b":"
_KIND_KEY: Final = b"\n" + KIND.encode() + b":"


class StompFields:
    """A MESSAGE as fields. It has no slots of its own, so that a delivery can be one without a further object."""

    __slots__ = ()
    head: bytes
    payload: bytes
    format: StompFormat

    def wire_count(self) -> int:
        """2 where the broker says ``redelivered:true``, which is all that STOMP says; more where it counts."""
        head = self.head
        at = head.find(b"\nredelivered:")  # the first is the broker's; a producer may have sent another
        again = at >= 0 and head.startswith(b"true\n", at + 13)
        return 1 + max(self.counted(), again)

    def counted(self) -> int:
        """The number of deliveries before this one, as a broker says that counts; otherwise 0."""
        key = self.format.count_key
        return 0 if key is None else number(raw_value(self.head, key))

    def raw_id(self) -> bytes:
        """`broker_id`, as it is written."""
        found, separator = raw_value(self.head, _ID_KEY) or b"", self.format.dialect.message_id_separator
        return found.rpartition(separator.encode())[2] if separator else found

    def expires_at(self) -> int:
        """Epoch milliseconds, 0 for never or for what is not a number."""
        _, key, rest = self.head.partition(b"\nexpires:")  # the quickest way to a header
        return 0 if not key or rest.startswith(b"0\n") else number(rest.partition(b"\n")[0])

    def body(self) -> Body:
        """The body. Raises MessageFormatError where a string is not UTF-8; the message can still be acknowledged."""
        head, payload = self.head, self.payload
        if not self.format.usual_bodies or b"\ncontent-length:" in head or (_UNDERSCORE in head and _KIND_KEY in head):
            return self._unusual_body()
        if payload.startswith(START):
            return self._unusual_body()
        try:
            return payload.decode()
        except UnicodeDecodeError:
            return self._unusual_body()

    def raw_body(self) -> StompBody:
        """See `redelivery.model.content.bodies.Carrying`."""
        translated, sections = self._is_transformed(), self.is_sections()
        return StompBody(self, self.payload, self._kind(), translated=translated, sections=sections)

    def is_sections(self) -> bool:
        """Check whether the body is an AMQP one's sections; one that was only sent with that type begins otherwise."""
        said = self.format.dialect.sections_type
        return said is not None and self.payload[:1] == b"\0" and b"\ntype:%b\n" % said.encode() in self.head

    def readable(self) -> tuple[Mapping[str, Value], list[str]]:
        """See `redelivery.model.content.bodies.Carrying`."""
        try:
            return MappingProxyType(self._read()[1]), []
        except MessageFormatError:
            found, left_out = readable_headers(self.head, self.format.version, self.format.dialect.binary_headers)
        own = {
            name: value for name, value in found.items() if name not in OURS and is_property(name, self.format.dialect)
        }
        return MappingProxyType(own), left_out

    def _kind(self) -> bytes | None:
        """The kind of the body, where something says it: ours, or the sender's client."""
        head, header = self.head, self.format.dialect.kind_header
        kind = raw_value(head, _KIND_KEY) if _KIND_KEY in head else None
        return _foreign_kind(raw_value(head, b"\n%b:" % header.encode())) if kind is None and header else kind

    def _unusual_body(self) -> Body:
        wished = self.format.bodies
        if wished == "auto":
            return self.sent_body()
        if self.is_sections() and isinstance(found := self.sent_body(), str):
            return found if wished == "text" else found.encode()
        return self.payload if wished == "bytes" else self._text("utf-8")

    def sent_body(self) -> Body:
        """The body as its sender, or the broker, says what it is; whatever the consumer wishes."""
        head, payload, dialect = self.head, self.payload, self.format.dialect
        if self.is_sections():
            return read_body(payload, 0, None, None)
        kind = self._kind()
        if kind == b"none" and not payload:
            return None
        if kind == b"bytes" or (kind is None and dialect.length_is_bytes and b"\ncontent-length:" in head):
            return payload
        if kind is None and dialect.map_transformation and payload.startswith(START) and self._is_transformed():
            found = read_map(payload)
            if found is not None:
                return found
        if kind is not None or dialect.length_is_bytes:
            return self._text("utf-8")
        charset = self.charset()
        if charset is not None:
            return self._text(charset) if charset else payload
        try:
            return payload.decode("utf-8")
        except UnicodeDecodeError:
            return payload  # nothing says what it is

    def charset(self) -> str | None:
        """The charset of the text that the content type says; empty: it says bytes; None: nothing says anything."""
        opaque = self.format.dialect.opaque_bodies
        try:
            said = self.text(b"\ncontent-type:")
        except MessageFormatError:
            said = None
        if said is None:
            return "utf-8" if opaque else None
        charset = text_charset(said)
        return "" if charset is None else charset if opaque else "utf-8"  # what looks into bodies writes UTF-8

    def _text(self, charset: str) -> str:
        try:
            return self.payload.decode(charset)
        except (UnicodeDecodeError, LookupError) as error:
            text = modified_utf_8(self.payload) if self.format.dialect.length_is_bytes else None
            if text is not None:
                return text
            why = f"{error.reason} at byte {error.start}" if isinstance(error, UnicodeDecodeError) else str(error)
            raise MessageFormatError(
                f"the text of message {self.header('message_id')} is not {charset.upper()} ({why}); raw_body has its "
                "bytes, and consumer(…, bodies='bytes') takes all for bytes"
            ) from error

    def properties(self) -> Mapping[str, Value]:
        """All headers but those of STOMP, JMS and the broker; STOMP carries strings only. Raises MessageFormatError."""
        return MappingProxyType(self._read()[1])

    def columns(self) -> MessageColumns:
        """See `redelivery.model.content.columns`. Raises MessageFormatError."""
        found, properties = self._read()
        stable, own, to, reply_to, correlation_id, kind, sent, expires, priority, persistent, mode = found[:11]
        made, group, sequence = self.format, found[11], found[12]
        usual = to, reply_to, priority, persistent, mode  # the same for most messages
        destination, reply_place, urgency, kept = made.alike.get(usual) or made.read_alike(usual)
        return (
            own if made.usual_ids else self._stable_id(stable, own),
            destination,
            reply_place,
            correlation_id,
            None if kind is None or self.is_sections() else kind,
            _sent_ms(sent, made.dialect),
            0 if expires is None or expires == "0" else number(expires),
            urgency,
            kept,
            group,
            None if sequence is None else -1 if sequence == "-1" else number(sequence),
            properties,
        )

    def noted(self) -> Mapping[str, object]:
        """All headers. Raises MessageFormatError."""
        try:
            return parse_headers(self._readable(), self.format.version)
        except ProtocolError as error:
            raise MessageFormatError(str(error)) from error

    def header(self, name: str) -> Any:
        """One of `redelivery.model.messages.HEADERS`. Raises MessageFormatError."""
        if name == "message_id" and self.format.usual_ids:
            # the one that most ask for: `text`, with the usual escape and no further call
            _, key, rest = self.head.partition(_ID_KEY)
            try:
                usual = rest.partition(b"\n")[0].decode().replace("\\c", ":")
            except UnicodeDecodeError:
                return self.text(_ID_KEY)
            return usual if key and "\\" not in usual else self.text(_ID_KEY)
        return _HEADERS[name](self)

    def text(self, key: bytes) -> str | None:
        """A header's value, unescaped; the key is ``b"\\nname:"``. Raises MessageFormatError."""
        head = self.head
        at = head.find(key)
        if at < 0:
            return None
        at += len(key)
        try:
            text = head[at : head.find(b"\n", at)].decode("utf-8")
            return unescape(text, self.format.version) if "\\" in text else text
        except (UnicodeDecodeError, ProtocolError) as error:
            raise MessageFormatError(f"the header {key[1:-1].decode()} cannot be read: {error}") from error

    def persistent(self) -> bool:
        """Check whether the broker keeps it; where it does not say, a message is kept unless it says the contrary."""
        head = self.head
        said = raw_value(head, b"\npersistent:")
        if self.format.dialect.says_persistent or said is not None:
            return said == b"true"
        return _MODE_KEY not in head

    def stable_id(self) -> str | None:
        """The id that stays the same when the message is delivered again; None: there is none."""
        header = self.format.dialect.message_id_header
        return self._stable_id(None if header is None else self.text(b"\n%b:" % header.encode()), self.text(_ID_KEY))

    def _stable_id(self, sent: str | None, own: str | None) -> str | None:
        return sent or (None if self.format.dialect.makes_message_ids else self._broker_id(own))

    def broker_id(self) -> str | None:
        """The broker's own, which no producer can choose; as stable as it is."""
        return self._broker_id(self.text(_ID_KEY))

    def _broker_id(self, found: str | None) -> str | None:
        separator = self.format.dialect.message_id_separator
        return found.rpartition(separator)[2] if found and separator else found

    def _read(self) -> tuple[Sequence[str | None], dict[str, Any]]:
        """See `HeadReader.read`. Raises MessageFormatError."""
        try:
            return self.format.heads.read(self._readable())
        except ProtocolError as error:
            raise MessageFormatError(str(error)) from error

    def _readable(self) -> bytes:
        """The head without headers that are no text."""
        head, key = self.head, self.format.binary_key
        if key and key in head:
            binary = key[1:]
            return b"\n".join([line for line in head.split(b"\n") if not line.startswith(binary)])
        return head

    def _is_transformed(self) -> bool:
        # The broker puts our wish on every message of the subscription, and an error where it could not fulfil it.
        return b"\ntransformation-error:" not in self.head


class StompMessage(StompFields):
    """A MESSAGE that was read and that nobody need acknowledge."""

    __slots__ = ("format", "head", "payload")

    def __init__(self, head: bytes, payload: bytes, format: StompFormat) -> None:
        self.head = head
        self.payload = payload
        self.format = format


def _foreign_kind(code: bytes | None) -> bytes | None:
    """Qpid JMS's `x-opt-jms-msg-type`; what is neither text nor nothing arrives as bytes."""
    return None if code is None else {b"0": b"none", b"5": b"text"}.get(code, b"bytes")


def _reply_to(message: StompFields) -> Destination | None:
    value = message.text(b"\nreply-to:")
    return None if value is None else reply_to_from_wire(value, message.format.dialect)


def _sent_ms(said: bytes | str | None, dialect: StompDialect) -> int:
    value, unit = number(said), dialect.timestamp_unit
    return value * unit if unit and value < _SECONDS else value


def _group_id(message: StompFields) -> str | None:
    return message.text(b"\n%b:" % message.format.dialect.group_header.encode())


def _group_sequence(message: StompFields) -> int | None:
    value = raw_value(message.head, b"\n%b:" % message.format.dialect.group_sequence_header.encode())
    return None if value is None else -1 if value == b"-1" else number(value)


_HEADERS: Final[Mapping[str, Callable[[StompFields], object]]] = {
    "destination": lambda message: message.format.sent_to(message.text(b"\ndestination:")),
    "message_id": StompFields.stable_id,
    "reply_to": _reply_to,
    "correlation_id": lambda message: message.text(b"\ncorrelation-id:"),
    "type": lambda message: None if message.is_sections() else message.text(b"\ntype:"),
    "timestamp": lambda message: from_epoch_ms(
        _sent_ms(raw_value(message.head, b"\ntimestamp:"), message.format.dialect)
    ),
    "expiration": lambda message: from_epoch_ms(message.expires_at()),
    "delivery_time": lambda _: None,
    "priority": lambda message: min(9, number(raw_value(message.head, b"\npriority:") or b"4")),
    "persistent": StompFields.persistent,
    "group_id": _group_id,
    "group_sequence": _group_sequence,
}
