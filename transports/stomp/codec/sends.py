"""From a message to a SEND frame."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import count
from sys import maxsize
from typing import Final
from uuid import uuid4

from redelivery.model.content.bodies import RawBody, decoded
from redelivery.model.destinations import Destination, Queue, Topic
from redelivery.model.errors import (
    InvalidDestinationError,
    MessageFormatError,
    ResourceAllocationError,
    UnsupportedError,
)
from redelivery.model.messages import Message
from redelivery.model.values import Body, Value, body_kind, to_epoch_ms
from redelivery.transports.dialects.composites import check_one
from redelivery.transports.dialects.dialect import StompDialect
from redelivery.transports.finding import Meaning
from redelivery.transports.stomp.codec.formats import KIND, MODE, OURS, SENDER
from redelivery.transports.stomp.codec.frames import encode_head, encode_text, escape
from redelivery.transports.stomp.codec.maps import START, write_map
from redelivery.transports.stomp.codec.names import QueueRoute, is_origin, is_owned, reply_to_wire, to_wire
from redelivery.transports.stomp.codec.raw import StompBody
from redelivery.transports.wire.clock import epoch_ms

_KIND_TEXT, _KIND_BYTES, _KIND_NONE = (f"{KIND}:{each}\n".encode() for each in ("text", "bytes", "none"))

# What every message has that a producer sends, and what needs no header of its own.
_PLAIN: Final = frozenset(
    (
        *("body", "destination", "persistent", "priority", "properties"),
        *("timestamp", "expiration", "delivery_time", "message_id"),
    )
)
_NAMES: Final = 1024  # names of properties that are kept
_MORE_HEADERS: Final = 2  # that a channel adds: receipt, transaction
_MORE_BYTES: Final = 80  # of these, and of what ends head and frame, at most


class SendEncoder:
    """Makes SEND frames for one version and dialect; heads are kept by destination.

    ``token`` names the connection; ``others``: see `to_wire`; ``max_frame``: see `StompDialect`, which the user may
    know better; ``meaning``: of its destinations; ``routes``: of queues whose name alone would be wrong, by name.
    ``has_maps``: one has had a map for a body.
    """

    def __init__(
        self,
        version: str,
        dialect: StompDialect,
        token: str = "",
        others: Collection[str] = frozenset(),
        max_frame: int = 0,
        meaning: Meaning | None = None,
        routes: Mapping[str, QueueRoute] | None = None,
    ) -> None:
        self.has_maps = False
        self._meaning = meaning or Meaning(dialect.spellings)
        self._others, self._routes = others, {} if routes is None else routes
        self._max_frame = max_frame or dialect.max_frame
        self._most = self._max_frame - _MORE_BYTES if self._max_frame else maxsize
        self._version = version
        self._dialect = dialect
        self._token = token
        self._start = lru_cache(maxsize=256)(self._make_start)
        self._newest: tuple[object, object, object, object, bytes] = (None, None, None, 0, b"")  # found without a hash
        self._names: dict[str, str] = {}  # of properties, checked and as they begin a header; empty: not sent
        self._id_start = f"ID:{uuid4().hex}-"
        self._numbers = count(1)
        # whether a message of nothing but `_PLAIN` needs no further header, and a str as a body none either
        self._bare = not (dialect.makes_message_ids or dialect.timestamp_unit or self._max_frame)
        self._bare_text = dialect.length_is_bytes and not dialect.max_body

    def encode(self, message: Message) -> tuple[bytes, bytes]:
        """The head, without the empty line that ends it, and the body.

        Raises:
            MessageFormatError: STOMP or the broker cannot carry the body, a property or a header.
            InvalidDestinationError: the message has no destination, or one that cannot be sent to.
            UnsupportedError: the broker has no delayed delivery, or would lose a body as large as this.
            ResourceAllocationError: the broker would end the connection at a frame as large as this.
        """
        fields = message.fields
        destination = fields.get("destination")
        if destination is None:
            raise InvalidDestinationError("a message without a destination cannot be sent")
        persistent, priority = fields.get("persistent", True), fields.get("priority", 4)
        to, kept, urgency, known, head = self._newest
        # which may change between the check of a message and its sending
        others = self._routes.get(destination.name) if self._routes else len(self._others)
        if to is not destination or kept is not persistent or urgency != priority or known != others:
            head = self._start(destination, persistent, priority, others)
            self._newest = destination, persistent, priority, others, head
        body = fields["body"]
        if body.__class__ is str and self._bare_text:
            payload = encode_text(body)
            if 0 in payload or payload.startswith(START):
                head, payload = self._body(head, body)
        else:
            head, payload = self._body(head, body)
        bare = (
            self._bare and _PLAIN.issuperset(fields) and not (fields.get("expiration") or fields.get("delivery_time"))
        )
        if bare and not fields.get("properties"):
            return head, payload
        lines: list[str] = []
        if not bare:
            version = self._version
            lines = [f"{escape(name, version)}:{escape(value, version)}\n" for name, value in self._headers(message)]
        if properties := message.properties:
            self._add_properties(properties, lines)
        if lines:
            head += encode_text("".join(lines))
            if self._dialect.max_header:
                self._check_headers(head)
        return self._whole(message, head, payload)

    def _whole(self, message: Message, head: bytes, payload: bytes) -> tuple[bytes, bytes]:
        size = len(head) + len(payload)
        if size < self._most:
            return head, payload
        setting = f" ({self._dialect.frame_setting})" if self._dialect.frame_setting else ""
        raise ResourceAllocationError(
            f"{message.destination}: nothing was sent: a frame of {size} bytes is larger than the {self._max_frame} "
            f"that the broker takes over STOMP{setting}: it would end the connection; where it is set up for more, say "
            "so in the URL: ?wireFormat.maxFrameSize=BYTES"
        )

    def _make_start(
        self,
        destination: Destination,
        persistent: bool,
        priority: int,
        others: QueueRoute | int | None,  # a head is for those that were known when it was made
    ) -> bytes:
        destination = self._meaning.of(destination)
        if destination.is_pattern:
            raise InvalidDestinationError(f"{destination} is a pattern: it can be consumed, not sent to")
        dialect = self._dialect
        check_one(destination, dialect.capabilities)
        if isinstance(others, QueueRoute) and isinstance(destination, Queue):
            headers = {"destination": others.to, **dict(others.headers)}
        else:
            headers = {"destination": to_wire(destination, dialect, self._others)}
            headers.update(dialect.send_to_queue if isinstance(destination, Queue) else dialect.send_to_topic)
        if priority != 4:
            headers["priority"] = str(priority)
        if persistent:
            headers["persistent"] = "true"  # `false` makes a queue that is not there yet vanish again on some broker
        elif not dialect.says_persistent:
            headers[MODE] = "NON_PERSISTENT"
        if dialect.sessions_per_wire and isinstance(destination, Topic):
            headers[SENDER] = self._token  # for no_local: the broker knows the socket only
        head = encode_head("SEND", headers, self._version)
        if dialect.max_header:
            self._check_headers(head)
        return head

    def _body(self, head: bytes, body: Body | RawBody) -> tuple[bytes, bytes]:
        match body:
            case RawBody():
                return self._carried(head, body) if isinstance(body, StompBody) else self._body(head, decoded(body))
            case str():
                return self._text(head, body)
            case bytes():
                self._check_size(len(body))
                if not self._dialect.length_is_bytes:
                    head += _KIND_BYTES
                return head + b"content-length:%d\n" % len(body), body
            case None:
                return head + _KIND_NONE, b""
            case dict() if self._dialect.map_transformation is not None:
                self.has_maps = True
                return head + b"transformation:%b\n" % self._dialect.map_transformation.encode(), write_map(body)
            case _:
                raise MessageFormatError(f"a {body_kind(body)} body cannot travel over STOMP here: send text (JSON)")

    def _text(self, head: bytes, body: str) -> tuple[bytes, bytes]:
        payload = encode_text(body)
        if 0 in payload:  # of bytes; to look for an int takes a sixth of the time
            raise MessageFormatError("a str with a NUL cannot travel over STOMP; send bytes")
        if not self._dialect.length_is_bytes or payload.startswith(START):
            head += _KIND_TEXT  # it could be taken for a map, or for bytes
        if self._dialect.max_body:
            self._check_size(_java_size(body, payload))
        return head + self._length(body, payload), payload

    def _length(self, body: str, payload: bytes) -> bytes:
        """The header that makes bytes of a long text; the header of its kind says that it is text."""
        most = self._dialect.longest_text
        too_long = most and len(payload) > most // 2 and _java_size(body, payload) > most
        return b"content-length:%d\n" % len(payload) if too_long else b""

    def _carried(self, head: bytes, body: StompBody) -> tuple[bytes, bytes]:
        """A body that came over STOMP, as it came, but for a str of other bytes than UTF-8 without a content type."""
        if body.sections and self._dialect.sections_type is not None:
            self._check_size(len(body.payload))
            kept = b"type:%b\ncontent-length:%d\n" % (self._dialect.sections_type.encode(), len(body.payload))
            return head + kept, body.payload
        value, kind, payload = body.sent(), body.kind, body.payload
        said = self._dialect.opaque_bodies and kind is None and bool(body.charset)
        if isinstance(value, dict):
            with suppress(MessageFormatError):  # the broker's JSON would change it; as bytes it stays what it is
                return self._body(head, value)
            return self._body(head, payload)
        if value is None:
            return head + _KIND_NONE, b""
        if isinstance(value, str) and not said:
            payload = encode_text(value)
        as_bytes = not isinstance(value, str) or 0 in payload or bool(self._length(value, payload))
        if kind is None and not said and isinstance(value, str) and (payload.startswith(START) or as_bytes):
            kind = b"text"  # it could be taken for a map, or for bytes
        self._check_size(len(value.encode("utf-16-le")) if isinstance(value, str) else len(payload))
        if kind is not None:
            head += b"%b:%b\n" % (KIND.encode(), kind)
        if as_bytes:
            head += b"content-length:%d\n" % len(payload)
        return head, payload

    def _check_headers(self, head: bytes) -> None:
        """Raise MessageFormatError for what would end the connection, and every other session's work with it."""
        most, longest = self._dialect.max_headers, self._dialect.max_header
        number = head.count(b"\n") + _MORE_HEADERS
        if number > most:
            raise MessageFormatError(
                f"the message has {number} headers and properties: over STOMP this broker ends the connection at more "
                f"than {most}; put them into the body"
            )
        if len(head) <= longest:
            return
        for line in head.split(b"\n"):
            if len(line) > longest:
                name = line.partition(b":")[0][:80].decode("utf-8", "replace")
                raise MessageFormatError(
                    f"the header {name!r} takes {len(line)} bytes: over STOMP this broker ends the connection at more "
                    f"than {longest}; put it into the body"
                )

    def _check_size(self, size: int) -> None:
        """``size`` is what the body takes at a broker in Java, where a character of a string has two bytes."""
        if 0 < self._dialect.max_body < size:
            raise UnsupportedError(
                f"this broker would confirm a body of {size} bytes and lose it: over STOMP it delivers up to "
                f"{self._dialect.max_body}, of a str half as many characters; send a smaller one, or in parts"
            )

    def _headers(self, message: Message) -> list[tuple[str, str]]:
        dialect = self._dialect
        headers: list[tuple[str, str]] = []
        expires = to_epoch_ms(message.expiration)
        if expires:
            headers.append(("expires", str(expires)))
            if dialect.expiration_header is not None:
                headers.append((dialect.expiration_header, str(max(0, expires - epoch_ms()))))
        due = to_epoch_ms(message.delivery_time)
        if due:
            headers += self._delay(due)
        if not self._bare:
            headers += self._for_the_broker(message)
        correlation = message.correlation_id
        if correlation is not None:
            headers.append(("correlation-id", _correlation(correlation)))
        if message.reply_to is not None:
            headers.append(("reply-to", reply_to_wire(self._meaning.of(message.reply_to), dialect)))
        if message.type is not None:
            headers.append(("type", message.type))
        if message.group_id is not None:
            headers.append(("JMSXGroupID", message.group_id))
        if message.group_sequence is not None:
            headers.append((dialect.group_sequence_header, str(message.group_sequence)))
        return headers

    def _for_the_broker(self, message: Message) -> list[tuple[str, str]]:
        """The headers that other brokers set themselves."""
        dialect = self._dialect
        headers: list[tuple[str, str]] = []
        if dialect.timestamp_unit and message.timestamp is not None:
            headers.append(("timestamp", str(to_epoch_ms(message.timestamp) // dialect.timestamp_unit)))
        if dialect.makes_message_ids and dialect.message_id_header is not None:
            identifier = f"{self._id_start}{next(self._numbers)}"
            message.stamp(message_id=identifier)
            headers.append((dialect.message_id_header, identifier))
        return headers

    def _delay(self, due: int) -> list[tuple[str, str]]:
        dialect, delay = self._dialect, due - epoch_ms()
        if delay <= 0:
            return []
        if dialect.delay_header is None:
            raise UnsupportedError("this broker has no delayed delivery over STOMP")
        return [(dialect.delay_header, str(due if dialect.delay_is_time else delay))]

    def _add_properties(self, properties: Mapping[str, Value], lines: list[str]) -> None:
        version, names = self._version, self._names
        for name, value in properties.items():
            start = names.get(name)
            if start is None:
                start = self._keep_name(name)
            if start:
                if type(value) is int:  # nothing to escape
                    lines.append(f"{start}{value}\n")
                else:
                    text = value if isinstance(value, str) else _value(name, value)
                    lines.append(f"{start}{escape(text, version)}\n")

    def _keep_name(self, name: str) -> str:
        """The start of a property's header; empty for one that is not sent: of the dead letter that this was."""
        start = "" if is_origin(name, self._dialect) else f"{escape(self._name(name), self._version)}:"
        if len(self._names) >= _NAMES:
            self._names.clear()
        self._names[name] = start
        return start

    def _name(self, name: str) -> str:
        asks = name in self._dialect.requests or name == self._dialect.capabilities.duplicate_id_property
        if (is_owned(name, self._dialect) and not asks) or name in OURS:
            raise MessageFormatError(f"property {name!r}: the name is STOMP's or the broker's own; choose another")
        return name


def _value(name: str, value: Value) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    raise MessageFormatError(f"property {name!r}: STOMP cannot carry {value!r} in a property")


def _correlation(value: str | bytes) -> str:
    if isinstance(value, str):
        return value
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MessageFormatError("a correlation_id of bytes must be UTF-8 over STOMP") from error


def _java_size(body: str, payload: bytes) -> int:
    """The size of a body at a broker in Java, where a character of a string has two bytes."""
    return 2 * len(body) if payload.isascii() else len(body.encode("utf-16-le"))
