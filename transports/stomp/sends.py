"""From a message to a SEND frame."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from redelivery.model.destinations import Destination
from redelivery.model.errors import InvalidDestinationError, MessageFormatError, UnsupportedError
from redelivery.model.messages import Message
from redelivery.model.times import to_epoch_ms
from redelivery.model.values import Body, Value, body_kind
from redelivery.transports.dialects.dialect import StompDialect
from redelivery.transports.stomp.frames import encode_head, encode_text, escape
from redelivery.transports.stomp.maps import START, write_map
from redelivery.transports.stomp.messages import KIND
from redelivery.transports.stomp.names import to_wire
from redelivery.transports.wire.clock import epoch_ms

# Properties that ask the broker for something; they do not arrive.
_REQUESTS: Final = frozenset(("AMQ_SCHEDULED_DELAY",))
_KIND_TEXT: Final = f"{KIND}:text\n".encode()
_KIND_BYTES: Final = f"{KIND}:bytes\n".encode()
_KIND_NONE: Final = f"{KIND}:none\n".encode()


# What every message has that a producer sends, and what needs no header of its own.
_PLAIN: Final = frozenset(
    ("body", "destination", "persistent", "priority", "timestamp", "expiration", "delivery_time", "message_id")
)


class SendEncoder:
    """Makes SEND frames for one version and dialect; heads are kept by destination."""

    def __init__(self, version: str, dialect: StompDialect) -> None:
        self._version = version
        self._dialect = dialect
        self._start = lru_cache(maxsize=256)(self._make_start)

    def encode(self, message: Message) -> tuple[bytes, bytes]:
        """The head, without the empty line that ends it, and the body.

        Raises:
            MessageFormatError: STOMP or the broker cannot carry the body, a property or a header.
            InvalidDestinationError: the message has no destination, or one that cannot be sent to.
            UnsupportedError: the broker has no delayed delivery.
        """
        fields = message.fields
        destination = fields.get("destination")
        if destination is None:
            raise InvalidDestinationError("a message without a destination cannot be sent")
        head = self._start(destination, fields.get("persistent", True), fields.get("priority", 4))
        head, payload = self._body(head, fields["body"])
        if _PLAIN.issuperset(fields) and not fields.get("expiration") and not fields.get("delivery_time"):
            return head, payload
        extra = self._headers(message)
        properties = message.properties
        if properties:
            for name, value in properties.items():
                extra.append((self._name(name), _value(name, value)))
        if extra:
            lines = [f"{escape(name, self._version)}:{escape(value, self._version)}\n" for name, value in extra]
            head += encode_text("".join(lines))
        return head, payload

    def _make_start(self, destination: Destination, persistent: bool, priority: int) -> bytes:
        if destination.is_pattern:
            raise InvalidDestinationError(f"{destination} is a pattern: it can be consumed, not sent to")
        headers = {"destination": to_wire(destination, self._dialect), "persistent": "true" if persistent else "false"}
        if priority != 4:
            headers["priority"] = str(priority)
        return encode_head("SEND", headers, self._version)

    def _body(self, head: bytes, body: Body) -> tuple[bytes, bytes]:
        match body:
            case str():
                payload = encode_text(body)
                if b"\0" in payload:
                    raise MessageFormatError("a text with a NUL cannot travel over STOMP; send bytes")
                if not self._dialect.length_is_bytes or payload.startswith(START):
                    head += _KIND_TEXT  # it could be taken for a map, or for bytes
                return head, payload
            case bytes():
                if not self._dialect.length_is_bytes:
                    head += _KIND_BYTES
                return head + b"content-length:%d\n" % len(body), body
            case None:
                return head + _KIND_NONE, b""
            case dict() if self._dialect.map_transformation is not None:
                return head + b"transformation:%b\n" % self._dialect.map_transformation.encode(), write_map(body)
            case _:
                raise MessageFormatError(f"a {body_kind(body)} body cannot travel over STOMP to this broker")

    def _headers(self, message: Message) -> list[tuple[str, str]]:
        headers: list[tuple[str, str]] = []
        expires = message.expiration
        if expires is not None:
            headers.append(("expires", str(to_epoch_ms(expires))))
        due = message.delivery_time
        if due is not None:
            headers += self._delay(to_epoch_ms(due) - epoch_ms())
        correlation = message.correlation_id
        if correlation is not None:
            headers.append(("correlation-id", _correlation(correlation)))
        if message.reply_to is not None:
            headers.append(("reply-to", to_wire(message.reply_to, self._dialect)))
        if message.type is not None:
            headers.append(("type", message.type))
        if message.group_id is not None:
            headers.append(("JMSXGroupID", message.group_id))
        if message.group_sequence is not None:
            headers.append(("JMSXGroupSeq", str(message.group_sequence)))
        return headers

    def _delay(self, milliseconds: int) -> list[tuple[str, str]]:
        if milliseconds <= 0:
            return []
        if self._dialect.delay_header is None:
            raise UnsupportedError("this broker has no delayed delivery over STOMP")
        return [(self._dialect.delay_header, str(milliseconds))]

    def _name(self, name: str) -> str:
        if (name in self._dialect.owned_headers and name not in _REQUESTS) or name == KIND:
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
