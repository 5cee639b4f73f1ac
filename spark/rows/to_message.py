"""From a stored row back to a message: for the dead letters of a batch, and for rows to be sent.

What a row does not keep, the message does not have: the types of properties with ``propertiesType=string`` (they are
str then), the types within map and stream bodies that JSON lacks (`redelivery.spark.rows.bodies`), the delivery time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from redelivery.model.destinations import Destination, TemporaryQueue, TemporaryTopic, read_destination
from redelivery.model.errors import MessageFormatError
from redelivery.model.messages import Message
from redelivery.model.values import Value
from redelivery.spark.rows.bodies import body_of
from redelivery.spark.rows.from_message import GROUP_SEQUENCE
from redelivery.spark.rows.variants import decode

_TEMPORARY: Final = {each.scheme: each for each in (TemporaryQueue, TemporaryTopic)}


def messages(batch: Any) -> Iterator[Message]:
    """A message for each row of a RecordBatch, in order. Raises MessageFormatError, InvalidDestinationError."""
    return map(message_of, batch.to_pylist())


def message_of(row: Mapping[str, Any]) -> Message:
    """The message of one row, as ``RecordBatch.to_pylist`` gives it; columns may be missing.

    It can be sent and has the original's ``message_id``, ``destination``, ``timestamp``, ``expiration``, ``priority``
    and ``persistent`` to look at; sending overwrites them.

    Raises:
        MessageFormatError: the body is not of its ``body_type``, or a value is none of JMS.
        InvalidDestinationError: a destination is none.
    """
    message = Message(
        body_of(row.get("body"), row.get("body_type")),
        correlation_id=row.get("correlation_id"),
        reply_to=destination_of(row.get("reply_to")),
        type=row.get("type"),
    )
    message.properties = properties_of(row.get("properties"))
    priority, persistent = row.get("priority"), row.get("persistent")
    message.stamp(
        message_id=row.get("message_id"),
        destination=destination_of(row.get("destination")),
        timestamp=row.get("timestamp"),
        expiration=row.get("expiration"),
        priority=4 if priority is None else priority,
        persistent=True if persistent is None else persistent,
    )
    return message


def properties_of(column: Any) -> dict[str, Value]:
    """The properties of a map column's value: pairs or a mapping, of str or of Variants.

    Raises:
        MessageFormatError: a Variant is not a JMS value, or the JMSXGroupSeq is not a number.
    """
    pairs = column.items() if isinstance(column, Mapping) else column or ()
    found: dict[str, Value] = {
        name: decode(value["value"]) if isinstance(value, Mapping) else value for name, value in pairs
    }
    sequence = found.get(GROUP_SEQUENCE)
    if isinstance(sequence, str):
        if not (sequence.isascii() and sequence.isdigit() and len(sequence) <= 10):
            raise MessageFormatError(f"property {GROUP_SEQUENCE}={sequence!r} must be an integer >= 0")
        found[GROUP_SEQUENCE] = int(sequence)
    return found


def destination_of(text: str | None) -> Destination | None:
    """The destination of such a str, temporary ones too; None of None. Raises InvalidDestinationError."""
    if text is None:
        return None
    scheme, separator, name = text.partition("://")
    temporary = _TEMPORARY.get(scheme) if separator else None
    return read_destination(text) if temporary is None else temporary(name)
