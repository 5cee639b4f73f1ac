"""Between STOMP frames and stored messages, as ActiveMQ's FrameTranslator does it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeAlias

from redelivery.broker.engine.stored import EncodedBody, StoredBody, StoredMessage, carried, detached, size_of
from redelivery.broker.servers.stomp.addresses import Addresses
from redelivery.broker.servers.stomp.bodies import LARGE, TEXT, LargeFrame, not_text, parts_of, read_large
from redelivery.broker.servers.stomp.spelling import Spelling
from redelivery.broker.views import TRANSFORMATION_ERROR, shown
from redelivery.model.content.bodies import body_bytes, is_nested
from redelivery.model.errors import InvalidDestinationError, MessageFormatError, UnsupportedError
from redelivery.model.values import Value
from redelivery.transports.dialects.embedded import DELAY, REPEATS
from redelivery.transports.stomp.codec.formats import KIND
from redelivery.transports.stomp.codec.frames import Frame, encode_head
from redelivery.transports.stomp.codec.maps import START, read_map, write_map

Written: TypeAlias = Sequence[bytes | bytearray]  # parts: a large body is not copied for its frame

MAP_JSON: Final = "jms-map-json"
TRANSFORMATION: Final = "transformation"
# Headers of a SEND that do not become properties: read here, part of the frame, or set by the broker.
_READ: Final = frozenset(
    (
        *("destination", "persistent", "priority", "expires", "timestamp", "correlation-id", "reply-to", "type"),
        *("content-length", "receipt", "transaction", "message-id", "subscription", "redelivered", "ack"),
        *("original-destination", "JMSXGroupID", "JMSXGroupSeq", "JMSXUserID", "JMSXDeliveryCount", DELAY),
        *(TRANSFORMATION, TRANSFORMATION_ERROR, KIND),
    )
)
_KEPT: Final = frozenset(("receipt", "transaction"))  # of a SEND, by Artemis and HornetQ


def read_send(frame: Frame, message_id: str, addresses: Addresses, *, now: int, origin: str) -> StoredMessage:
    """The message of a SEND: bytes where it has a content-length, else text, or the map that its JSON is.

    Raises:
        InvalidDestinationError: the destination is a pattern, or none.
        MessageFormatError: a header must be a number and is not, or a text body is not UTF-8.
        UnsupportedError: a repeated schedule.
    """
    headers = frame.headers
    destination = addresses.read_sent(headers)
    if destination.is_pattern:
        raise InvalidDestinationError(f"a message cannot be sent to {destination}: it is a pattern")
    for name in REPEATS:
        if name in headers:
            raise UnsupportedError(f"{name}: the embedded broker delays a message once ({DELAY}), it repeats nothing")
    read = _READ if addresses.spelling_of(headers["destination"]) is None else _READ - _KEPT
    properties: dict[str, Value] = {name: value for name, value in headers.items() if name not in read}
    body = _read_body(frame)
    if headers.get(TRANSFORMATION) == MAP_JSON and not isinstance(body, dict):
        properties[TRANSFORMATION_ERROR] = f"the body is not {MAP_JSON}"
    delay = _number(headers, DELAY)
    reply_to, original = headers.get("reply-to"), headers.get("original-destination")
    return StoredMessage(
        message_id=message_id,
        destination=destination,
        body=body,
        properties=MappingProxyType(properties),
        timestamp=_number(headers, "timestamp") or now,
        expiration=_number(headers, "expires"),
        delivery_time=now + delay if delay else 0,
        priority=min(9, _number(headers, "priority", 4)),
        persistent=headers.get("persistent") == "true",
        correlation_id=headers.get("correlation-id"),
        reply_to=addresses.read_reply_to(reply_to) if reply_to else None,
        type=headers.get("type"),
        group_id=headers.get("JMSXGroupID"),
        group_sequence=_group_sequence(headers.get("JMSXGroupSeq")),
        original_destination=addresses.read(original) if original else None,
        origin=origin,
        size=size_of(body, properties),
    )


def write_message(
    stored: StoredMessage,
    frame_headers: Mapping[str, str],
    addresses: Addresses,
    *,
    version: str,
    transformation: str | None,
    spelling: Spelling | None = None,
) -> Written:
    """The MESSAGE frame, in parts; ``frame_headers`` are those of this delivery (subscription, ack, redelivered).

    ``spelling``: the broker as which it is written, None: this one.

    What this version or the transformation cannot carry is left out; the header ``transformation-error`` says so.
    """
    headers = dict(_headers(stored, addresses, spelling))
    headers.update(frame_headers)
    body, extra = _write_body(stored.body, transformation)
    headers.update(extra)
    if spelling is not None:
        headers["content-length"] = str(len(body) if isinstance(body, bytes) else sum(map(len, body)))
    try:
        head = encode_head("MESSAGE", headers, version)
    except MessageFormatError:
        fitting = {name: value for name, value in headers.items() if _fits(name, value, version)}
        fitting[TRANSFORMATION_ERROR] = f"headers that STOMP {version} cannot carry were left out"
        head = encode_head("MESSAGE", fitting, version)
    if isinstance(body, bytes) and len(body) <= LARGE:
        return (b"%b\n%b\0" % (head, body),)
    return (b"%b\n" % head, *((body,) if isinstance(body, bytes) else body), b"\0")


def _headers(stored: StoredMessage, addresses: Addresses, spelling: Spelling | None) -> Iterator[tuple[str, str]]:
    for name, value in stored.properties.items():
        if value is not None:
            yield name, _text(value)
    yield "destination", addresses.write(shown(stored), spelling)
    yield "message-id", stored.message_id
    yield "expires", str(stored.expiration)
    yield "priority", str(stored.priority)
    yield "timestamp", str(stored.timestamp)
    if spelling is not None:
        yield from spelling.more_of(stored)
    elif stored.persistent:
        yield "persistent", "true"
    if stored.original_destination is not None:
        yield "original-destination", addresses.write(stored.original_destination)
    if stored.correlation_id is not None:
        identity = stored.correlation_id
        yield "correlation-id", identity if isinstance(identity, str) else identity.decode("utf-8", "replace")
    if stored.reply_to is not None:
        yield "reply-to", addresses.write(stored.reply_to, spelling)
    if stored.type is not None:
        yield "type", stored.type


def _read_body(frame: Frame) -> StoredBody:
    headers = frame.headers
    large = frame if isinstance(frame, LargeFrame) else None
    if headers.get(KIND) == "none" and not frame.body and large is None:
        return None
    if headers.get(TRANSFORMATION) == MAP_JSON:
        found = read_map(frame.body if large is None else large.join())
        if found is not None:
            return found
    if large is not None:
        return read_large(large, text="content-length" not in headers)
    if "content-length" in headers:
        return frame.body
    try:
        return frame.body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise not_text(error) from error


def _write_body(stored: StoredBody, transformation: str | None) -> tuple[bytes | Written, dict[str, str]]:
    """The bytes of a body, and the headers that name its kind."""
    try:
        if isinstance(stored, EncodedBody) and (parts := parts_of(stored)) is not None:
            return parts, _kind(parts, text=stored.protocol == TEXT)
        body = detached(stored)
    except MessageFormatError as error:  # what came all the same: bytes
        data = carried(stored).data()
        return data, {TRANSFORMATION_ERROR: str(error), **_kind((data,), text=False)}
    match body:
        case str():
            data = body.encode("utf-8", "replace")
            return data, _kind((data,), text=True)
        case bytes():
            return body, _kind((body,), text=False)
        case None:
            return b"", {KIND: "none"}
        case dict() if is_nested(body):
            return b"", {TRANSFORMATION_ERROR: "a map with a list or map in it cannot travel over STOMP"}
        case dict() if transformation == MAP_JSON:
            try:
                return write_map(body), {TRANSFORMATION: MAP_JSON}
            except MessageFormatError as error:
                return b"", {TRANSFORMATION: MAP_JSON, TRANSFORMATION_ERROR: str(error)}
        case dict():
            return b"", {TRANSFORMATION: MAP_JSON}  # the subscriber did not ask for the JSON
        case _:
            return b"", {TRANSFORMATION_ERROR: "a stream body cannot travel over STOMP"}


def _kind(parts: Written, *, text: bool) -> dict[str, str]:
    if not text or any(b"\0" in part for part in parts):  # text with a NUL arrives as bytes, or it would end there
        return {"content-length": str(sum(map(len, parts)))}
    start = b"".join(part[: len(START)] for part in parts[: len(START)])
    return {KIND: "text"} if start.startswith(START) else {}


def _fits(name: str, value: str, version: str) -> bool:
    try:
        encode_head("MESSAGE", {name: value}, version)
    except MessageFormatError:
        return False
    return True


def _text(value: Value) -> str:
    """As Java writes it; a list or map of AMQP as JSON."""
    if isinstance(value, (dict, list)):
        return body_bytes(value).decode()
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _number(headers: Mapping[str, str], name: str, default: int = 0) -> int:
    text = headers.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise MessageFormatError(f"header {name}:{text[:40]} is not an int ≥ 0")
    return int(text)


def _group_sequence(text: str | None) -> int | None:
    return -1 if text == "-1" else None if text is None else _number({"JMSXGroupSeq": text}, "JMSXGroupSeq")
