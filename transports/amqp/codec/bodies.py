"""The body of an AMQP message as a JMS body: what Qpid JMS takes it for, in the kinds that this library has."""

from __future__ import annotations

from itertools import chain
from typing import Any, Final

from redelivery.model.errors import MessageFormatError
from redelivery.model.values import Body, Value
from redelivery.transports.amqp.codec.sections import DATA, SEQUENCE, body_sections
from redelivery.transports.amqp.codec.texts import text_charset
from redelivery.transports.amqp.codec.values import read

# The annotation `x-opt-jms-msg-type`.
MESSAGE: Final = 0
MAP: Final = 2
BYTES: Final = 3
STREAM: Final = 4
TEXT: Final = 5


def read_body(raw: bytes | bytearray, at: int, kind: int | None, content_type: str | None) -> Body:
    """The body whose first section is at ``at`` (-1: there is none).

    Args:
        raw: the whole message.
        at: where the body begins.
        kind: what the annotation ``x-opt-jms-msg-type`` says; None: the section and the content type say it.
        content_type: of the properties.

    Raises:
        MessageFormatError: it is cut off, a string of another encoding, or of a form that JMS has no body for.
    """
    sections = body_sections(raw, at) if at >= 0 else []
    codes = {code for code, _ in sections}
    if len(codes) > 1:
        raise MessageFormatError("the body of the message mixes sections of several kinds")
    if not sections:
        return _empty(kind, content_type)
    values = [read(raw, start)[0] for _, start in sections]
    if codes == {DATA}:
        return _data(values, kind, content_type)
    if codes == {SEQUENCE}:
        if not all(isinstance(value, list) for value in values):
            raise MessageFormatError("a section `amqp-sequence` of the message is not a list")
        return _stream(list(chain.from_iterable(values)))
    if len(values) > 1:
        raise MessageFormatError("the message has more than one section `amqp-value`")
    return _value(values[0], kind)


def _value(value: Any, kind: int | None) -> Body:
    if value is None:
        return None if kind is None else _empty(kind, None)
    if isinstance(value, (str, bytes)):
        return value
    if isinstance(value, dict):
        return _map(value)
    return _stream(value if isinstance(value, list) else [value])  # of a single number: a stream of one


def _empty(kind: int | None, content_type: str | None) -> Body:
    """The empty body of a kind: JMS has an empty BytesMessage, but a TextMessage of null."""
    if kind is None:
        return b"" if content_type in (None, "application/octet-stream") else None
    empty: dict[int, Body] = {MAP: {}, BYTES: b"", STREAM: []}
    return empty.get(kind)


def _data(values: list[Any], kind: int | None, content_type: str | None) -> Body:
    if not all(isinstance(value, bytes) for value in values):
        raise MessageFormatError("a section `data` of the message is not a binary")
    data: bytes = values[0] if len(values) == 1 else b"".join(values)
    if kind == MESSAGE and not data:  # RabbitMQ makes one of an `amqp-value` of null
        return None
    charset = text_charset(content_type) if content_type and kind in (None, TEXT) else None
    if charset is None and kind == TEXT:
        charset = "utf-8"
    if charset is None:
        return data
    try:
        return data.decode(charset)
    except (UnicodeDecodeError, LookupError) as error:
        raise MessageFormatError(f"the text of the message is not {charset}") from error


def _map(value: dict[Any, Any]) -> dict[str, Value]:
    """A map of any JMS values, lists and maps. Raises MessageFormatError where a key of it is not a str."""
    for name, item in value.items():
        if not isinstance(name, str) or not name:
            raise MessageFormatError(f"the map of the message has {name!r} as a key; in JMS that is a str, not empty")
        _check_nested(item)
    return value


def _stream(items: list[Any]) -> list[Value]:
    for item in items:
        _check_nested(item)
    return items


def _check_nested(item: object) -> None:
    """Check what JMS has not, but a client of AMQP may have written: it can be read, as JSON can."""
    if isinstance(item, dict):
        _map(item)
    elif isinstance(item, list):
        _stream(item)
