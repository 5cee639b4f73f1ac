"""Makes, of what Artemis' management shows of a message, the frame by which it would come over STOMP.

It cuts each text, and says so (``…, + 244 more``), where it is longer than ``management-message-attribute-size-limit``
of the address settings: 256 characters unless they say otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from redelivery.model.destinations import Destination
from redelivery.model.errors import MessageFormatError
from redelivery.model.messages import Message
from redelivery.model.values import Body, Value
from redelivery.transports.dialects.artemis import STOMP
from redelivery.transports.stomp.codec.formats import KIND, StompFormat
from redelivery.transports.stomp.codec.frames import encode_head
from redelivery.transports.stomp.codec.messages import StompMessage

CUT: Final = re.compile(r"(?s)(.*), \+ (\d{1,10}) more")
SETTING: Final = "management-message-attribute-size-limit"
REMEDY: Final = f"set {SETTING} to -1 in the broker's address settings, or connect by amqp://, which has a browser"
_KINDS: Final = tuple(f"{each}Properties" for each in ("String", "Boolean", "Byte", "Short", "Int", "Long", "Float"))
_TYPED: Final = (*_KINDS, "DoubleProperties")
_OWN: Final = "applicationProperties."  # of AMQP, where each name says its section
_NOTES: Final = ("messageAnnotations.", "extraProperties.")
_PROPERTIES: Final = "properties."
_AMQP: Final = "AMQP"
_TEXT: Final = 3  # kinds of bodies, as its clients number them
_BYTES: Final = (0, 4)
_DATA: Final = re.compile(r"Data\{(.*)\}", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\x([0-9a-f]{2})")
_NOTHING: Final = "AmqpValue{null}"
_SHOWN: Final = (  # as it calls them -> as a frame does
    ("expiration", "expires"),
    ("redelivered", "redelivered"),
    ("priority", "priority"),
    ("durable", "persistent"),
    ("timestamp", "timestamp"),
)
_GROUPS: Final = (("groupId", STOMP.group_header), ("groupSequence", STOMP.group_sequence_header))
_WRITTEN: Final = frozenset(  # headers of the frame that have a field of their own, as what STOMP's sender wrote
    ("destination", "content-length", "JMSCorrelationID", "JMSReplyTo", "JMSType", "receipt", "transaction")
)


def properties_of(shown: Mapping[str, Any]) -> dict[str, Value]:
    """All that it shows as properties of a message, with their types."""
    found: dict[str, Value] = {}
    for kind in _TYPED:
        found |= shown.get(kind) or {}
    return found


def plain(name: str) -> str:
    """A property's name without its section of AMQP."""
    return name.removeprefix(_OWN)


def is_cut(value: object, limit: int) -> bool:
    """Check whether a value is shown cut; one that only looks so would itself be too long."""
    if limit < 0 or not isinstance(value, str):
        return False
    found = CUT.fullmatch(value)
    return found is not None and len(found[1]) == limit


def as_artemis(shown: Mapping[str, Any], properties: Mapping[str, Value], queue: Destination, limit: int) -> Message:
    """The message, as it would have been received from this queue; ``properties`` are whole."""
    body, why = _body(shown, limit)
    own = {plain(name): value for name, value in properties.items()}
    head = encode_head("MESSAGE", _pairs(shown, properties, body))
    payload = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body or b""
    return Message.received(_BrowsedAtArtemis(head, payload, own, why, StompFormat(STOMP, "1.2", queue)), 0, None)


class _BrowsedAtArtemis(StompMessage):
    __slots__ = ("_typed", "_why")

    def __init__(
        self, head: bytes, payload: bytes, typed: Mapping[str, Value], why: str | None, format: StompFormat
    ) -> None:
        super().__init__(head, payload, format)
        self._typed = typed
        self._why = why

    def body(self) -> Body:
        """See `StompFields`. Raises MessageFormatError: the management does not show all of it."""
        if self._why is not None:
            raise MessageFormatError(f"the body of message {self.stable_id()} {self._why}: {REMEDY}")
        return super().body()

    def properties(self) -> Mapping[str, Value]:
        """See `StompFields`; with their types, which a frame does not have."""
        return MappingProxyType({name: self._typed.get(name, value) for name, value in super().properties().items()})

    def consumed_from(self) -> Destination:
        """See `redelivery.model.content.dead_letters.Noting`."""
        return self.format.destination


def _body(shown: Mapping[str, Any], limit: int) -> tuple[str | bytes | None, str | None]:
    """The body as it is shown; and why that is not the body."""
    text, kind = shown.get("text"), shown.get("type")
    if shown.get("largeMessage"):
        return None, "is too large for the broker's management to show it"
    if isinstance(text, str) and is_cut(text, limit):
        return text[:limit], f"is shown by the broker's management as its first {limit} characters only"
    if kind == _TEXT:
        return text or "", None
    if shown.get("protocol") == _AMQP:
        return _amqp_body(str(text))
    if kind in _BYTES:
        data = bytes(each & 0xFF for each in shown.get("BodyPreview") or ())
        if 0 <= limit <= len(data) and not _says_length(shown, len(data)):
            return data, f"is shown by the broker's management as its first {limit} bytes only"
        return data, None
    return None, "is of a kind that the broker's management does not show"


def _amqp_body(text: str) -> tuple[bytes | None, str | None]:
    if text == _NOTHING:
        return None, None
    found = _DATA.fullmatch(text)
    if found is None:
        return None, "is of a kind that the broker's management does not show"
    return _ESCAPED.sub(lambda each: chr(int(each[1], 16)), found[1]).encode("latin-1"), None


def _says_length(shown: Mapping[str, Any], length: int) -> bool:
    return (shown.get("StringProperties") or {}).get("content-length") == str(length)


def _pairs(
    shown: Mapping[str, Any], properties: Mapping[str, Value], body: str | bytes | None
) -> Iterator[tuple[str, str]]:
    yield "message-id", f"0,{shown['messageID']}"
    yield "destination", _text(shown["address"])  # the property `destination` of a dead letter is its origin
    for header, value in _headers(shown, properties):
        if value is not None:
            yield header, _text(value)
    is_amqp = shown.get("protocol") == _AMQP
    if is_amqp and shown.get("userID"):
        yield "NATIVE_MESSAGE_ID", _text(shown["userID"])
    for name, value in properties.items():
        if plain(name) and name not in _WRITTEN and not name.startswith(_PROPERTIES):
            yield _header_of(name), _text(value)
    if isinstance(body, bytes):
        yield "content-length", str(len(body))
        if KIND not in properties and not is_amqp:
            yield KIND, "bytes"


def _headers(shown: Mapping[str, Any], properties: Mapping[str, Value]) -> Iterator[tuple[str, object]]:
    yield "correlation-id", properties.get("JMSCorrelationID", properties.get(_PROPERTIES + "correlationId"))
    yield "reply-to", _reply_to(properties)
    yield "type", properties.get("JMSType", properties.get(_PROPERTIES + "subject"))
    for name, header in _SHOWN:
        yield header, shown.get(name)
    for name, header in _GROUPS:
        yield header, properties.get(_PROPERTIES + name)


def _header_of(name: str) -> str:
    for prefix in _NOTES:
        if name.startswith(prefix):
            name = name.removeprefix(prefix)
            return name if name.startswith("_AMQ_") else f"JMS_AMQP_MA_{name}"
    return plain(name)


def _reply_to(properties: Mapping[str, Value]) -> object:
    """The reply address of AMQP, of which an annotation says whether it is a topic's."""
    written, address = properties.get("JMSReplyTo"), properties.get(_PROPERTIES + "replyTo")
    if written is not None or address is None:
        return written
    topic = properties.get(_NOTES[0] + "x-opt-jms-reply-to") in (1, 3)
    return f"{'topic' if topic else 'queue'}://{_text(address)}"


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
