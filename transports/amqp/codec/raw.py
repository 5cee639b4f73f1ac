"""A message as its copy has it: its body's sections as they came, and the properties that can be read."""

from __future__ import annotations

from typing import Any, Final, Protocol

from redelivery.model.content.bodies import RawBody, named
from redelivery.model.errors import MessageFormatError
from redelivery.model.values import Body
from redelivery.transports.amqp.codec.encoding import binary_head
from redelivery.transports.amqp.codec.sections import CONTENT_ENCODING, CONTENT_TYPE, DATA, VALUE, body_sections, find
from redelivery.transports.amqp.codec.values import LENGTHS, read, skip

_NULL: Final = b"\x40"
_NO_VALUE: Final = b"\x00\x53\x77\x40"  # a section `amqp-value` of null
_DATA: Final = b"\x00\x53\x75"
_VARIABLE: Final = b"\xa0\xa1\xa3\xb0\xb1\xb3"  # binary, string and symbol: after their length they are their content


class Fields(Protocol):
    """A message that was received."""

    raw: bytes | bytearray

    def body(self) -> Body:
        """Decoded. Raises MessageFormatError."""

    def kind(self) -> int | None:
        """The annotation ``x-opt-jms-msg-type``."""

    def place(self, field: int) -> int:
        """The place where a field of the properties begins, 0 for nowhere. Raises MessageFormatError."""


class AmqpBody(RawBody):
    """The body of a message over AMQP."""

    __slots__ = ("_fields", "_start")

    def __init__(self, fields: Fields) -> None:
        self._fields = fields
        try:
            self._start: int | None = find(fields.raw)[4]
        except MessageFormatError:
            self._start = None  # nobody knows where it begins

    def data(self) -> bytes:
        """The content of data, of one string or binary; else all sections as they are encoded."""
        raw, start = self._fields.raw, self._start
        if start is None:
            return bytes(raw)
        if start < 0:
            return b""
        try:
            sections = body_sections(raw, start)
            if {code for code, _ in sections} == {DATA} or (len(sections) == 1 and sections[0][0] == VALUE):
                return b"".join([_content(raw, at) for _, at in sections])
        except (MessageFormatError, IndexError):
            pass
        return bytes(raw[start:])

    def read(self) -> Body:
        """See `RawBody`."""
        return self._fields.body()

    def sections(self) -> bytes:
        """The sections of the body for a copy: all that came, or all of a message of which no part can be found."""
        if self._start is None:
            return _DATA + binary_head(len(self._fields.raw)) + bytes(self._fields.raw)
        if self._start < 0:
            return _NO_VALUE
        came = memoryview(self._fields.raw)[self._start :]
        try:
            codes = [code for code, _ in body_sections(self._fields.raw, self._start)]
        except MessageFormatError:
            return bytes(came)
        if len(codes) < 2 or {*codes} != {DATA}:
            return bytes(came)
        data = self.data()  # one section means the same, and some broker turns their order round
        return _DATA + binary_head(len(data)) + data

    def kind(self) -> int | None:
        """The annotation ``x-opt-jms-msg-type``; None where there is none."""
        try:
            return self._fields.kind()
        except MessageFormatError:
            return None

    def content(self) -> tuple[bytes, bytes]:
        """The content type and content encoding, as they are encoded."""
        return self._field(CONTENT_TYPE), self._field(CONTENT_ENCODING)

    def _field(self, field: int) -> bytes:
        raw = self._fields.raw
        try:
            place = self._fields.place(field)
            read(raw, place)
            return bytes(raw[place : skip(raw, place)]) if place else _NULL
        except MessageFormatError:
            return _NULL


def _content(raw: bytes | bytearray, at: int) -> bytes:
    code = raw[at]
    if code in _VARIABLE:
        start = at + (5 if LENGTHS[code] else 2)
        end = skip(raw, at)
        if end <= len(raw):
            return bytes(raw[start:end])
    if code == _NULL[0]:
        return b""
    raise MessageFormatError("not a string or binary")


def readable_map(raw: bytes | bytearray, at: int) -> tuple[dict[str, Any], list[str]]:
    """The entries of a map that can be read, and what to call the others."""
    found: dict[str, Any] = {}
    left_out: list[str] = []
    try:
        code = raw[at]
        wide = code == 0xD1
        if code not in (0xC1, 0xD1):
            return {}, ["its properties"]
        count = int.from_bytes(raw[at + 5 : at + 9], "big") if wide else raw[at + 2]
        place, last = at + (9 if wide else 3), skip(raw, at)
        for _ in range(count // 2):
            value = skip(raw, place)
            end = skip(raw, value)
            if end > last:
                raise MessageFormatError("the map is cut off")
            name: object = bytes(raw[place:value])
            try:
                name = read(raw, place)[0]
                found[str(name)] = read(raw, value)[0]
            except MessageFormatError:
                left_out.append(named(name))
            place = end
    except (IndexError, MessageFormatError):
        left_out.append("the rest of its properties")
    return found, left_out
