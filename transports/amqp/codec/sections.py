"""Finds where the sections of an AMQP message begin (part 3.2 of the standard), in one pass that decodes none."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias

from redelivery.model.errors import MessageFormatError
from redelivery.transports.amqp.codec.values import LENGTHS, read, skip

HEADER: Final = 0x70
DELIVERY_ANNOTATIONS: Final = 0x71
ANNOTATIONS: Final = 0x72
PROPERTIES: Final = 0x73
APPLICATION_PROPERTIES: Final = 0x74
DATA: Final = 0x75
SEQUENCE: Final = 0x76
VALUE: Final = 0x77
FOOTER: Final = 0x78
_NAMES: Final[Mapping[str | int, int]] = {
    "amqp:header:list": HEADER,
    "amqp:delivery-annotations:map": DELIVERY_ANNOTATIONS,
    "amqp:message-annotations:map": ANNOTATIONS,
    "amqp:properties:list": PROPERTIES,
    "amqp:application-properties:map": APPLICATION_PROPERTIES,
    "amqp:data:binary": DATA,
    "amqp:amqp-sequence:list": SEQUENCE,
    "amqp:amqp-value:*": VALUE,
    "amqp:footer:map": FOOTER,
}
_CODES: Final = frozenset(_NAMES.values())

# The fields of the section `properties`, by their place.
(
    MESSAGE_ID,
    USER_ID,
    TO,
    SUBJECT,
    REPLY_TO,
    CORRELATION_ID,
    CONTENT_TYPE,
    CONTENT_ENCODING,
    ABSOLUTE_EXPIRY_TIME,
    CREATION_TIME,
    GROUP_ID,
    GROUP_SEQUENCE,
    REPLY_TO_GROUP_ID,
) = range(13)

# The encoded header and message annotations (empty: there are none), where the value of the properties and of the
# application properties begins (0: there are none), and where the first section of the body does (-1: there is none).
Found: TypeAlias = tuple[bytes, bytes, int, int, int]
Known: TypeAlias = tuple[bytes, bytes, bytes]  # the first bytes of messages, and the header and annotations in them
_UNKNOWN: Final[Known] = (b"", b"", b"")
# durable, priority, ttl, first-acquirer, delivery-count; None where it is not set
Header: TypeAlias = tuple[bool | None, int | None, int | None, bool | None, int | None]
NO_HEADER: Final[Header] = (None, None, None, None, None)
_NULL: Final = 0x40
IDS: Final = (MESSAGE_ID, CORRELATION_ID)
NO_FIELDS: Final[list[Any]] = [None] * (REPLY_TO_GROUP_ID + 1)
_KEPT: Final = 256  # bytes: a header or annotations up to this length are decoded once for all messages that have them


def find(raw: bytes | bytearray, known: Known = _UNKNOWN) -> Found:
    """The sections before the body; ``known``: how the message begins.

    Raises:
        MessageFormatError: this is no AMQP message, or cut off before its body.
    """
    try:
        found, at = _find(raw, known)
    except IndexError as error:
        raise MessageFormatError(f"the message is cut off after {len(raw)} bytes") from error
    if at > len(raw):
        raise MessageFormatError(f"the message is cut off after {len(raw)} bytes")
    return found


def know(raw: bytes | bytearray, found: Found) -> Known | None:
    """The beginning of this message, for those that begin alike: all before its properties; None for unusual ones.

    ``found``: what `find` has said of it.
    """
    header, annotations, properties, application, _ = found
    start = properties - 3
    if not 0 < start <= _KEPT or raw[start:properties] != b"\x00\x53\x73" or 0 < application < properties:
        return None
    return bytes(raw[:start]), header, annotations


def _find(raw: bytes | bytearray, known: Known) -> tuple[Found, int]:
    begin, header, annotations = known
    properties = application = 0
    at, end = len(begin), len(raw)
    while at < end:
        code, start = raw[at + 2], at + 3
        if raw[at] or raw[at + 1] != 0x53:
            code, start = descriptor(raw, at)
        if code >= DATA:
            return (header, annotations, properties, application, at), at
        at = start + 2 + raw[start + 1] if raw[start] in b"\xc0\xc1" else skip(raw, start)  # the usual: no call
        if code == PROPERTIES:
            properties = start
        elif code == HEADER:
            header = bytes(raw[start:at])
        elif code == ANNOTATIONS:
            annotations = bytes(raw[start:at])
        elif code == APPLICATION_PROPERTIES:
            application = start
        elif code != DELIVERY_ANNOTATIONS:
            raise MessageFormatError(f"byte {start} of the message does not follow the name of a section")
    return (header, annotations, properties, application, -1), at


def descriptor(raw: bytes | bytearray, at: int) -> tuple[int, int]:
    """The code of the section at ``at``, and where its value begins; in any of the forms that AMQP allows.

    Raises:
        MessageFormatError: no section begins there.
    """
    if raw[at] == 0:
        code, start = read(raw, at + 1)
        code = _NAMES.get(code, code) if isinstance(code, (int, str)) else None
        if code in _CODES:
            return code, start
    raise MessageFormatError(f"byte {at} of the message does not begin a section of AMQP")


def body_sections(raw: bytes | bytearray, at: int) -> list[tuple[int, int]]:
    """The code of each section of the body, and where its value begins."""
    found = []
    try:
        while at < len(raw):
            code, start = descriptor(raw, at)
            if code == FOOTER:
                break
            if code < DATA:
                raise MessageFormatError(f"byte {at} of the message begins a section that belongs before the body")
            found.append((code, start))
            at = skip(raw, start)
    except IndexError as error:
        raise MessageFormatError(f"the message is cut off after {len(raw)} bytes") from error
    return found


def read_header(encoded: bytes) -> Header:
    """The section `header`. Raises MessageFormatError."""
    if not encoded:
        return NO_HEADER
    return _kept_header(encoded) if len(encoded) <= _KEPT else _make_header(encoded)


def read_annotations(encoded: bytes) -> Mapping[str, Any]:
    """The section `message-annotations`; not to be written to. Raises MessageFormatError."""
    if not encoded:
        return {}
    return _kept_annotations(encoded) if len(encoded) <= _KEPT else _make_annotations(encoded)


def field_place(raw: bytes | bytearray, at: int, field: int) -> int:
    """The place of a field of the properties whose value begins at ``at``; 0 where it is not set.

    Raises:
        MessageFormatError: the properties are no list, or cut off.
    """
    try:
        code = raw[at]
        if code == 0xC0:
            count, place, end = raw[at + 2], at + 3, at + 2 + raw[at + 1]
        elif code == 0xD0:
            count, place = int.from_bytes(raw[at + 5 : at + 9], "big"), at + 9
            end = at + 5 + int.from_bytes(raw[at + 1 : at + 5], "big")
        elif code == 0x45:
            return 0
        else:
            raise MessageFormatError(f"the properties of the message are not a list: 0x{code:02x}")
        if field >= count:
            return 0
        for _ in range(field):
            length = LENGTHS[raw[place]]
            place = skip(raw, place) if length < 0 else place + (length or 2 + raw[place + 1])  # the usual: no call
        if place < end:
            return 0 if raw[place] == _NULL else place
    except IndexError as error:
        raise MessageFormatError(f"the message is cut off after {len(raw)} bytes") from error
    raise MessageFormatError("the properties of the message go on after their end")


def field_values(raw: bytes | bytearray, at: int) -> list[Any]:
    """All fields of the properties whose value begins at ``at``, for who asks for several: None for what is not set.

    Of the two ids it is their `field_place`. Empty where the properties are longer than most, or something of them
    cannot be read: `field_place` then says which.
    """
    try:
        if raw[at] != 0xC0:
            return []
        count, place, end = raw[at + 2], at + 3, at + 2 + raw[at + 1]
        values: list[Any] = []
        for field in range(count):
            code = raw[place]
            if code == _NULL:
                values.append(None)
                place += 1
            elif field in IDS:
                values.append(place)
                place = skip(raw, place)
            elif code == 0xA1:
                start, place = place + 2, place + 2 + raw[place + 1]
                values.append(raw[start:place].decode())
            else:
                value, place = read(raw, place)
                values.append(value)
    except (IndexError, UnicodeDecodeError, MessageFormatError):
        return []
    return values + NO_FIELDS[count:] if place == end <= len(raw) else []


def _make_header(encoded: bytes) -> Header:
    fields = read(encoded, 0)[0]
    if not isinstance(fields, list):
        raise MessageFormatError("the header of the message is not a list")
    durable, priority, ttl, first, count = (fields + [None] * 5)[:5]
    return (
        durable if isinstance(durable, bool) else None,
        _whole(priority),
        _whole(ttl),
        first if isinstance(first, bool) else None,
        _whole(count),
    )


def _make_annotations(encoded: bytes) -> Mapping[str, Any]:
    found = read(encoded, 0)[0]
    if not isinstance(found, dict):
        raise MessageFormatError("the annotations of the message are not a map")
    return found


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


_kept_header = lru_cache(maxsize=256)(_make_header)
_kept_annotations = lru_cache(maxsize=256)(_make_annotations)
