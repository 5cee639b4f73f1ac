"""A message as a JSON object and back: what an application wrote is the same after it, types included.

A value that JSON has no type for is an object with one name: ``{"$bytes": base64}``, ``{"$long": 5}``, ``$byte``,
``$short``, ``$float``, ``$map`` and ``$list`` in a body, and ``{"$double": "NaN"}`` for what JSON has no number for.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from redelivery.client.entry.sync import Connection
from redelivery.model.content.bodies import is_nested, readable_of
from redelivery.model.content.dead_letters import EXPIRED, FAILURE_CAUSE, ORIGINAL_DESTINATION, PASSPORT
from redelivery.model.destinations import read_destination
from redelivery.model.errors import ConfigError, InvalidDestinationError, MessageFormatError
from redelivery.model.messages import Message
from redelivery.model.passport import passport_record, read_passport, write_passport
from redelivery.model.values import Byte, Float, Long, Short, Value, body_kind, to_epoch_ms
from redelivery.policies.dead_letter_headers import RUN, dead_letter_properties

_WHOLE: Final[Mapping[type, str]] = {Byte: "$byte", Short: "$short", Long: "$long"}
_READ: Final[Mapping[str, Callable[[Any], Any]]] = {
    "$byte": Byte,
    "$short": Short,
    "$long": Long,
    "$float": lambda value: Float(float(value)),
    "$double": float,
    "$bytes": lambda value: base64.b64decode(value, validate=True),
    "$map": lambda value: {name: _read(item) for name, item in value.items()},  # within a map or list of AMQP
    "$list": lambda value: [_read(item) for item in value],
}
_HEADERS: Final = ("type", "group_id", "group_sequence", "priority", "persistent")
_TIMES: Final = ("timestamp", "expiration", "delivery_time")
_BODIES: Final[Mapping[str, type]] = {"text": str, "bytes": bytes, "map": dict, "stream": list}


def to_record(message: Message) -> dict[str, Any]:
    """The message; where its body cannot be read, ``body`` is None, ``unreadable`` says why, ``raw_body`` has it."""
    record: dict[str, Any] = {"message_id": message.message_id, "destination": _text(message.destination)}
    record |= {name: getattr(message, name) for name in _HEADERS}
    record |= {name: None if (at := getattr(message, name)) is None else at.isoformat() for name in _TIMES}
    record["correlation_id"] = _value(message.correlation_id)
    record["reply_to"] = _text(message.reply_to)
    record["delivery_count"] = message.delivery_count
    record |= _content(message)
    said = dead_letter_record(message)
    if said is not None:
        record["dead_letter"] = said
    return record


def dead_letter_record(message: Message) -> dict[str, Any] | None:
    """The part of `to_record` that says why it is a dead letter; None: it is none."""
    letter = message.dead_letter
    if letter is None:
        return None
    return {
        "origin": _text(letter.origin),
        "cause": letter.cause,
        "exception": letter.exception,
        "count": letter.count,
        "at": None if letter.at is None else letter.at.isoformat(),
        "expired": letter.expired,
        "passport": None if letter.passport is None else passport_record(letter.passport),
    }


def failed_properties(said: Mapping[str, Any] | None) -> dict[str, Value]:
    """The properties by which a copy says this again, whichever broker's way it was said in; empty: it names no origin.

    ``said``: see `dead_letter_record`. Raises ValueError, InvalidDestinationError: a time or an origin is none.
    """
    if said is None or said.get("origin") is None:
        return {}
    at = None if said.get("at") is None else to_epoch_ms(datetime.fromisoformat(said["at"]))
    cause = said.get("cause") or said.get("exception") or (EXPIRED if said.get("expired") else "")
    stamp = dead_letter_properties(cause, read_destination(said["origin"]), 0, said.get("count") or 0, failed_at_ms=at)
    if not cause:
        del stamp[FAILURE_CAUSE]
    if (passport := read_passport(json.dumps(said.get("passport")))) is not None:
        stamp[PASSPORT] = write_passport(passport)
    return stamp


def to_content(message: Message) -> dict[str, Any]:
    """The part of `to_record` that its sender wrote and that no broker and no move changes: it costs half as much."""
    return {"type": message.type, "correlation_id": _value(message.correlation_id), **_content(message)}


def _content(message: Message) -> dict[str, Any]:
    properties, left_out = (message.properties, []) if message.source is None else readable_of(message.source)
    record: dict[str, Any] = {"properties": {name: _value(each) for name, each in properties.items() if name != RUN}}
    if left_out:
        record["unreadable_properties"] = left_out
    try:
        body = message.body
        record["body_type"], record["body"] = body_kind(body), _body(body)
    except MessageFormatError as error:
        record["body_type"], record["body"], record["unreadable"] = "none", None, str(error)
        record["raw_body"] = base64.b64encode(message.raw_body).decode()
    return record


def from_record(record: object) -> Message:
    """A message to be sent, with what its sender wrote; ids, times and counts are those of its own send.

    Raises:
        ConfigError: it is not such an object; the text says what is wrong.
    """
    if not isinstance(record, dict):
        raise ConfigError(f"a message must be a JSON object, not a {type(record).__name__}")
    if "unreadable" in record:
        raise ConfigError(f"its body could not be read when it was exported: {record['unreadable']}")
    properties = record.get("properties") or {}
    if not isinstance(properties, dict):
        raise ConfigError("properties must be a JSON object")
    try:
        message = Message(
            correlation_id=_read(record.get("correlation_id")),
            reply_to=None if record.get("reply_to") is None else read_destination(record["reply_to"]),
            type=record.get("type"),
            group_id=record.get("group_id"),
            group_sequence=record.get("group_sequence"),
        )
        stamp = {} if ORIGINAL_DESTINATION in properties else failed_properties(_failed(record))
        message.adopt({**stamp, **{name: _property(name, value) for name, value in properties.items()}})
        body = _read_body(record.get("body"), record.get("body_type"))
        if is_nested(body):
            message.fields["body"] = body
        else:
            message.body = body
        return message
    except (MessageFormatError, InvalidDestinationError, ValueError, TypeError) as error:
        raise ConfigError(f"not a message: {error}") from error


def _failed(record: Mapping[str, Any]) -> dict[str, Any] | None:
    said = record.get("dead_letter")
    if said is not None and not isinstance(said, dict):
        raise ConfigError("dead_letter must be a JSON object")
    return said


def fit(message: Message, connection: Connection) -> Message:
    """Make bytes of a str that the connection cannot carry: over STOMP one with a NUL, which can come over it."""
    if isinstance(message.body, str) and "\0" in message.body and connection.metadata.protocol.startswith("STOMP"):
        message.body = message.body.encode()
    return message


def expiration(record: Mapping[str, Any]) -> datetime | None:
    """The time when it expires. Raises ConfigError: that is not a time."""
    text = record.get("expiration")
    try:
        return None if text is None else datetime.fromisoformat(text)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"expiration={text!r} is not a time in ISO 8601") from error


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _value(value: object) -> Any:
    if isinstance(value, dict):
        return {"$map": {name: _value(item) for name, item in value.items()}}
    if isinstance(value, list):
        return {"$list": [_value(item) for item in value]}
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    if type(value) in _WHOLE:
        return {_WHOLE[type(value)]: int(str(value))}
    if isinstance(value, float) and (isinstance(value, Float) or not math.isfinite(value)):
        number = float(value) if math.isfinite(value) else str(float(value))
        return {"$float" if isinstance(value, Float) else "$double": number}
    return value


def _body(body: object) -> Any:
    if isinstance(body, dict):
        return {name: _value(value) for name, value in body.items()}
    if isinstance(body, list):
        return [_value(value) for value in body]
    return _value(body)


def _read(value: Any) -> Any:
    if isinstance(value, dict):
        ((name, inner),) = value.items() if len(value) == 1 else (("", None),)
        if name not in _READ:
            raise ConfigError(f"{value!r} is not a value: known are {', '.join(_READ)}")
        return _READ[name](inner)
    return value


def _property(name: str, value: Any) -> Any:
    if isinstance(value, list):  # of another program's, as a property of AMQP is written with its type
        raise ConfigError(f"property {name!r} is a list: write {{'$list': […]}}")
    return _read(value)


def _read_body(body: Any, kind: object) -> Any:
    if isinstance(body, list):
        found: Any = [_read(value) for value in body]
    elif isinstance(body, dict) and kind != "bytes":
        found = {name: _read(value) for name, value in body.items()}
    else:
        found = _read(body)
    expected = _BODIES.get(str(kind))
    if expected is not None and not isinstance(found, expected):
        raise ConfigError(f"body_type is {kind}, but the body is {body_kind(found)}")
    return found
