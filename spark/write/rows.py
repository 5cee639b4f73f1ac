"""Rows as messages: which columns the sink knows, what each must be, and what a row becomes.

The columns are those that the source gives, so that its rows can be written back. What a provider sets at a send (JMS:
what the application wrote there is overwritten) is left to the broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from decimal import Decimal
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    CharType,
    DataType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    VarcharType,
    VariantType,
)

from redelivery.model.content.dead_letters import (
    DELIVERY_COUNT,
    FAILED_AT,
    FAILURE_CAUSE,
    ORIGINAL_DELIVERY_MODE,
    ORIGINAL_DESTINATION,
    ORIGINAL_EXPIRATION,
    PASSPORT,
)
from redelivery.model.destinations import Destination
from redelivery.model.errors import ConfigError, InvalidDestinationError, JMSError
from redelivery.model.messages import Message
from redelivery.policies.dead_letter_headers import is_broker_owned
from redelivery.spark.options.query import SinkOptions
from redelivery.spark.rows.to_message import message_of

DEDUPE_ID: Final = "redelivery_dedupe_id"

_LEFT_TO_BROKER: Final = frozenset(("message_id", "timestamp", "expiration", "redelivered", "delivery_count"))
_REASONS: Final = frozenset(
    (
        *(DELIVERY_COUNT, FAILED_AT, FAILURE_CAUSE, ORIGINAL_DELIVERY_MODE, ORIGINAL_DESTINATION, ORIGINAL_EXPIRATION),
        PASSPORT,
    )
)
_STRING: Final = (StringType, VarcharType, CharType)
_WHOLE: Final = (ByteType, ShortType, IntegerType, LongType)
_NUMBER: Final = (*_WHOLE, FloatType, DoubleType)


def _anything(_: DataType) -> bool:
    return True


def _is(*types: type[Any]) -> Callable[[DataType], bool]:
    return lambda found: isinstance(found, types)


def _is_properties(found: DataType) -> bool:
    values = (*_STRING, *_NUMBER, BooleanType, VariantType)
    return isinstance(found, MapType) and isinstance(found.keyType, _STRING) and isinstance(found.valueType, values)


_COLUMNS: Final[Mapping[str, tuple[Callable[[DataType], bool], str]]] = {
    "body": (_is(*_STRING, BinaryType), "string or binary"),
    "body_type": (_is(*_STRING), "string (text, bytes, map, stream or none)"),
    "destination": (_is(*_STRING), "string"),
    "properties": (_is_properties, "map<string, string>, or a map of numbers, booleans or variants"),
    "correlation_id": (_is(*_STRING), "string"),
    "reply_to": (_is(*_STRING), "string"),
    "type": (_is(*_STRING), "string"),
    "group_id": (_is(*_STRING), "string"),
    "persistent": (_is(BooleanType), "boolean"),
    "priority": (_is(*_WHOLE), "an integer from 0 to 9"),
    "ttl": (_is(*_NUMBER, DecimalType, DayTimeIntervalType), "a number of seconds, or an interval of days to seconds"),
}


class Outgoing(NamedTuple):
    """A message, and how it is to be sent. ``destination``: None where the option names it; ``ttl``: in seconds."""

    message: Message
    destination: Destination | None
    persistent: bool
    priority: int
    ttl: float | timedelta


def check_columns(schema: StructType, *, destination_given: bool) -> None:
    """Check that rows of this schema can be sent. ``destination_given``: an option names the destination.

    Raises:
        ConfigError: a column is missing, unknown, of another type than wanted, or occurs twice; the text names it.
    """
    names = [field.name for field in schema]
    unknown = [repr(name) for name in names if name not in _COLUMNS and name not in _LEFT_TO_BROKER]
    if unknown:
        raise ConfigError(
            f"the sink has no column {', '.join(unknown)}: put it into the map column 'properties', or drop it. "
            f"The columns are {', '.join(_COLUMNS)}"
        )
    for field in schema:
        fits, wanted = _COLUMNS.get(field.name, (_anything, ""))
        if not fits(field.dataType):
            raise ConfigError(f"the column {field.name!r} is {field.dataType.simpleString()}; it must be {wanted}")
        if names.count(field.name) > 1:
            raise ConfigError(f"the column {field.name!r} occurs twice: drop one of the two")
    if "body" not in names:
        raise ConfigError("the column 'body' is missing (string or binary; null is a message without a body)")
    if not destination_given and "destination" not in names:
        raise ConfigError("destination is missing: give the option, or each row its own in a column 'destination'")


class Rows:
    """The rows of one task, as messages.

    What a row says counts; where it says nothing (null, or no such column), the options do. The other way round it is
    with the destination only: a row that was read names where it was, and is to go where the option says. ``ids``: what
    the dedupe ids of this task's rows begin with; None: they have none.
    """

    def __init__(self, options: SinkOptions, ids: str | None) -> None:
        self._options = options
        self._ids = ids
        self._ignored = _LEFT_TO_BROKER if options.destination is None else _LEFT_TO_BROKER | {"destination"}
        self._content: Any = None
        self.count = 0
        self.bytes = 0  # of the bodies; a str counts in UTF-8

    @property
    def have_ids(self) -> bool:
        """True: every row has a dedupe id."""
        return self._ids is not None

    def start_digest(self) -> None:
        """Begin the digest of all rows that `task_id` needs; before the first is read."""
        self._content = blake2b(digest_size=16)

    @property
    def task_id(self) -> str:
        """The dedupe id of the last row that was read, and a digest of all rows up to it (see `start_digest`)."""
        return f"{self._ids}-{self.count - 1}-{self._content.hexdigest()}"

    def outgoing(self, batches: Iterable[Any]) -> Iterator[Outgoing]:
        """A message for each row of the RecordBatches.

        Raises:
            JMSError: a row cannot be a message; a note says which row of the task it is.
        """
        for batch in batches:
            names = [name for name in batch.schema.names if name not in self._ignored]
            columns = [batch.column(name).to_pylist() for name in names]
            for values in zip(*columns, strict=True):
                try:
                    outgoing = self._next(dict(zip(names, values, strict=True)))
                except JMSError as error:
                    error.add_note(f"in row {self.count} of the task, counted from 0")
                    raise
                self.count += 1
                yield outgoing

    def _next(self, row: dict[str, Any]) -> Outgoing:
        body = row["body"]
        if isinstance(body, str):
            body = row["body"] = body.encode()
            row["body_type"] = row.get("body_type") or "text"
        self.bytes += len(body or b"")
        properties = {name: value for name, value in row.get("properties") or () if _may_be_sent(name)}
        if self._content is not None:
            self._add_to_digest(row)
        if self._ids is not None:
            properties[DEDUPE_ID] = f"{self._ids}-{self.count}"
        row["properties"] = properties
        message = message_of(row)
        if row.get("group_id") is not None:
            message.group_id = row["group_id"]
        if message.destination is None and self._options.destination is None:
            raise InvalidDestinationError("the column 'destination' is null, and the option destination is not set")
        options = self._options
        persistent, priority, ttl = row.get("persistent"), row.get("priority"), row.get("ttl")
        return Outgoing(
            message,
            message.destination,
            options.persistent if persistent is None else persistent,
            options.priority if priority is None else priority,
            options.ttl if ttl is None else float(ttl) if isinstance(ttl, Decimal) else ttl,
        )

    def _add_to_digest(self, row: dict[str, Any]) -> None:
        body = row["body"]
        if body is not None:
            self._content.update(body)
        rest = [(name, value) for name, value in row.items() if name != "body"]
        self._content.update(f"{None if body is None else len(body)} {rest!r}".encode())


def _may_be_sent(name: str) -> bool:
    """Not what a broker would obey, such as the duplicate id of an earlier send; a dead letter's reasons may."""
    return name in _REASONS or not is_broker_owned(name)
