"""A message as a row: a tuple in the order of `redelivery.spark.rows.schema`, but with the properties' names and values
apart, and times as microseconds since 1970, which Arrow takes faster than datetimes.

Whatever cannot be a column fails here, one message at a time, and not when Arrow makes a batch of thousands.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any, Final, TypeAlias

from redelivery.model.content.columns import NAMES as HEADERS
from redelivery.model.content.columns import MessageColumns, columns_of
from redelivery.model.destinations import Destination
from redelivery.model.errors import MessageFormatError
from redelivery.model.messages import Message
from redelivery.model.values import INT_MAX, Float, Value, from_epoch_ms
from redelivery.policies.destinations.patterns import matches
from redelivery.spark.rows.bodies import body_bytes
from redelivery.spark.rows.digests import digest
from redelivery.spark.rows.variants import encode
from redelivery.transports.delivery import Delivery

Converter: TypeAlias = Callable[[Message], "bytes | str | None"]
Row: TypeAlias = tuple[Any, ...]

MESSAGE_ID: Final = 0
DESTINATION: Final = 3
SENT: Final = 7
REDELIVERED: Final = 11
NAMES: Final = 13
VALUES: Final = 14
ERROR: Final = 15
DIGEST: Final = 16  # no column: it stands beside the rows of a segment
SIZE: Final = 17  # bytes of body and properties, no column either

GROUP_ID: Final = "JMSXGroupID"
GROUP_SEQUENCE: Final = "JMSXGroupSeq"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_LAST_MS: Final = 253_402_300_799_999  # of the year 9999
_BINARY_ID: Final = "ID:AMQP_BINARY:"  # of the AMQP JMS mapping: sent over AMQP it becomes bytes
_PLAIN: Final = range(-3, 7)  # decimal exponents that Java writes without an E
_FLOAT_DIGITS: Final = range(2, 10)


def row_of(message: Message, *, variant: bool, converter: Converter | None, digests: bool = True) -> Row:
    """The row of a message; its digest is None without ``digests``.

    Raises:
        MessageFormatError: a part of it cannot be read, or cannot be a column.
        Exception: whatever the converter raised.
    """
    source = message.source
    if converter is not None:
        body: Any = _converted(converter(message))
    else:
        body = message.body if source is None else source.body()
    raw, kind = body_bytes(body)
    (
        message_id,
        destination,
        reply_to,
        correlation_id,
        kind_of_message,
        timestamp,
        expiration,
        priority,
        persistent,
        group,
        sequence,
        own,
    ) = _fields(message) if source is None else columns_of(source)
    sent = _time(timestamp)
    key_digest = None
    if digests:
        key_digest = digest(kind, raw, own, sent) if converter is None else _digest(message, sent)
    properties = own if group is None else _grouped(own, group, sequence)
    names, values = tuple(properties), _values(properties, variant)
    place, reply_place = _place(destination), None if reply_to is None else str(reply_to)
    correlation = _correlation(correlation_id)
    count = message.delivery_count
    texts = "".join(names if variant else [*names, *filter(None, values)])
    _check_text(f"{message_id}{kind_of_message}{place}{reply_place}{correlation}{texts}")
    return (
        message_id,
        raw,
        kind,
        place,
        correlation,
        reply_place,
        kind_of_message,
        sent,
        None if expiration == 0 else _time(expiration),
        priority,
        persistent,
        count > 1,
        min(count, INT_MAX) or None,
        names,
        values,
        None,
        key_digest,
        _size(raw, names, values) if variant else len(raw or b"") + len(texts),
    )


def consumed_from(message: Message) -> Destination | None:
    """The queue or topic whose message it is, whatever its sender has written on it; None: it was not received."""
    source = message.source
    return source.came_from() if isinstance(source, Delivery) else message.destination


def known_place(message: Message) -> str | None:
    """The same for a column; None: of a pattern's, where nothing but its sender says it, and that does not fit.

    Over AMQP no broker does: what its sender has not written as `to`, or what was moved since, is not made up.
    """
    found, source = consumed_from(message), message.source
    if found is None:
        return None
    asked = source.link.destination if isinstance(source, Delivery) else found
    if asked.is_pattern and (found.is_pattern or found.scheme != asked.scheme or not matches(asked.name, found.name)):
        return None
    return str(found)


def broken_row_of(message: Message, error: str, *, variant: bool, digests: bool = True) -> Row:
    """The readable parts of a message that `row_of` refused: its body as it came, ``?`` for what UTF-8 cannot carry."""

    def read(part: Callable[[], Any], otherwise: Any = None) -> Any:
        try:
            return part()
        except MessageFormatError:
            return otherwise

    header = _headers(message)
    raw, kind = read(lambda: body_bytes(message.body), (None, None))
    own, group = read(lambda: message.properties, {}), read(lambda: header("group_id"))
    properties = own if group is None else _grouped(own, group, read(lambda: header("group_sequence")))
    properties = {_clean(name): _clean(value) for name, value in properties.items()}
    names, values = tuple(properties), _values(properties, variant)
    count = read(lambda: message.delivery_count, 0)
    return (
        _clean(read(lambda: header("message_id"))),
        raw,
        kind,
        _clean(read(lambda: _place(header("destination")))),
        _clean(read(lambda: _correlation(header("correlation_id")))),
        _clean(read(lambda: _place(header("reply_to")))),
        _clean(read(lambda: header("type"))),
        read(lambda: _time(header("timestamp"))),
        read(lambda: _time(header("expiration"))),
        read(lambda: header("priority")),
        read(lambda: header("persistent")),
        count > 1,
        min(count, INT_MAX) or None,
        names,
        values,
        _clean(error),
        _digest(message, read(lambda: _time(header("timestamp")))) if digests else None,
        _size(raw, names, values),
    )


def _digest(message: Message, sent: int | None) -> bytes:
    """The digest of what can be read: a converter may change its mind about a body, the sender's does not change."""
    try:
        raw, kind = body_bytes(message.body)
    except MessageFormatError:
        raw, kind = None, None
    try:
        properties = message.properties
    except MessageFormatError:
        properties = {}
    return digest(kind, raw, properties, sent)


def _headers(message: Message) -> Callable[[str], Any]:
    """A reader of headers that goes past the message, which would keep what nobody asks for again."""
    source = message.source
    return partial(getattr, message) if source is None else source.header


def _fields(message: Message) -> MessageColumns:
    return (*(getattr(message, name) for name in HEADERS), message.properties)


def _converted(result: object) -> bytes | str | None:
    if result is None or isinstance(result, (bytes, str)):
        return result
    raise MessageFormatError(f"the converter returned a {type(result).__name__}; return bytes, str or None")


def _grouped(properties: Mapping[str, Value], group: str, sequence: int | None) -> Mapping[str, Value]:
    names: dict[str, Value] = {GROUP_ID: group} if sequence is None else {GROUP_ID: group, GROUP_SEQUENCE: sequence}
    return {**properties, **names}


def _size(body: bytes | None, names: tuple[str, ...], values: tuple[Any, ...]) -> int:
    return len(body or b"") + len("".join(names)) + sum([len(value) for value in values if value is not None])


def _values(properties: Mapping[str, Value], variant: bool) -> tuple[Any, ...]:
    if variant:
        return tuple([encode(value) for value in properties.values()])
    return tuple([value if type(value) is str else property_string(value) for value in properties.values()])


def _place(destination: Destination | None) -> str | None:
    return None if destination is None else str(destination)


def _correlation(value: str | bytes | None) -> str | None:
    return _BINARY_ID + value.hex().upper() if isinstance(value, bytes) else value


def _time(value: datetime | int | None) -> int | None:
    """Microseconds since 1970."""
    if isinstance(value, int):
        if 0 < value <= _LAST_MS:
            return value * 1000
        value = from_epoch_ms(value)
    return None if value is None else (value - _EPOCH) // _MICROSECOND


def _check_text(joined: str) -> None:
    if joined.isascii():
        return
    try:
        joined.encode()
    except UnicodeEncodeError as error:
        raise MessageFormatError(
            f"a header or property has half a surrogate pair, which UTF-8 cannot carry: {error.reason}"
        ) from error


def _clean(value: Any) -> Any:
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


def property_string(value: Value) -> str | None:
    """``true`` or ``false``, a whole number in digits, a floating one as Java writes it (``1.0E10``), None for null."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _floating(value)
    return value.hex().upper() if isinstance(value, bytes) else int.__repr__(value)


def _floating(value: float) -> str:
    """As Double.toString and Float.toString since Java 19: the fewest digits that mean this number."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    sign = "-" if math.copysign(1, value) < 0 else ""
    number = Decimal(_fewest(abs(value)) if isinstance(value, Float) else float.__repr__(abs(value)))
    if len(number.as_tuple().digits) == 1:
        number = Decimal(f"{abs(value):.1e}")  # Java takes the best of two digits, where one would do
    if not number:
        return sign + "0.0"
    _, digits, _ = number.as_tuple()
    text = "".join(map(str, digits)).rstrip("0")
    exponent = number.adjusted()
    if exponent not in _PLAIN:
        return f"{sign}{text[0]}.{text[1:] or '0'}E{exponent}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{text}"
    return f"{sign}{text[: exponent + 1].ljust(exponent + 1, '0')}.{text[exponent + 1 :] or '0'}"


def _fewest(value: float) -> str:
    """The fewest digits that mean the same number of 32 bits."""
    wanted = struct.pack("<f", value)
    (value,) = struct.unpack("<f", wanted)
    for digits in _FLOAT_DIGITS:
        text = f"{value:.{digits}g}"
        try:
            if struct.pack("<f", float(text)) == wanted:
                return text
        except OverflowError:  # rounded up beyond the largest
            continue
    return float.__repr__(value)
