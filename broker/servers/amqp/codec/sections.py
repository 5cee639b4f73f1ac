"""Sections of AMQP messages that the broker rewrites, and what it keeps of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from redelivery.broker.servers.amqp.codec.data import places
from redelivery.broker.servers.amqp.codec.terminus import DIALECT
from redelivery.model.destinations import Destination
from redelivery.model.values import Value
from redelivery.transports.amqp.codec.encoding import (
    write,
    write_list,
    write_map,
    write_symbol,
    write_text,
    write_timestamp,
    write_uint,
)
from redelivery.transports.amqp.codec.names import kind_of, to_address
from redelivery.transports.amqp.codec.sections import ABSOLUTE_EXPIRY_TIME, TO, find
from redelivery.transports.amqp.codec.values import read, skip
from redelivery.transports.dialects.artemis import DEAD_LETTER_NOTES

_NULL: Final = b"\x40"
_UINT_MAX: Final = (1 << 32) - 1
_DEST: Final = "x-opt-jms-dest"
_SECTION: Final = b"\x00\x53"
_HEADER, _ANNOTATIONS, _PROPERTIES, _APPLICATION = b"\x70", b"\x72", b"\x73", b"\x74"


class Header(NamedTuple):
    """The section `header`; None is not set. ``ttl`` in milliseconds."""

    durable: bool | None
    priority: int | None
    ttl: int | None
    first_acquirer: bool
    delivery_count: int


def write_header(header: Header) -> bytes:
    """The encoded header."""
    durable, priority, ttl, first, count = header
    fields = [
        _NULL if durable is None else b"\x41" if durable else b"\x42",
        _NULL if priority is None else b"\x50%c" % min(priority, 255),
        _NULL if ttl is None or ttl > _UINT_MAX else write_uint(ttl),
        b"\x41" if first else b"\x42",
        write_uint(min(count, _UINT_MAX)),
    ]
    return _SECTION + _HEADER + write_list(fields)


def dead_letter(
    raw: bytes | bytearray, destination: Destination, expiration: int, properties: Mapping[str, Value]
) -> tuple[bytes | memoryview, ...]:
    """The sections that follow the header of a dead letter; ``raw`` is the message as it came.

    ``expiration``: epoch milliseconds, 0 for never. ``properties``: the dead letter's: those that differ from the
    message's are written, Artemis' as annotations.
    """
    _, annotations, properties_at, application_at, body = find(raw)
    before = read(raw, application_at)[0] if application_at else {}
    changed = {
        name: write(value, "property", name)
        for name, value in properties.items()
        if name != "JMSXUserID" and (name not in before or before[name] != value)
    }
    notes = {note: changed.pop(name, b"") for name, note in DEAD_LETTER_NOTES.items() if name in changed}
    noted = {note: value for note, value in notes.items() if note is not None}
    parts: list[bytes | memoryview] = []
    if annotations and _DEST in read(annotations, 0)[0]:
        noted[_DEST] = b"\x51%c" % kind_of(destination)
    if annotations or noted:
        parts.append(_SECTION + _ANNOTATIONS + _with(annotations or write_map([]), 0, noted, write_symbol))
    fields = _fields(raw, properties_at) if properties_at else []
    fields += [_NULL] * (ABSOLUTE_EXPIRY_TIME + 1 - len(fields))
    fields[TO] = write_text(to_address(destination, DIALECT))
    fields[ABSOLUTE_EXPIRY_TIME] = write_timestamp(expiration) if expiration else _NULL
    parts.append(_SECTION + _PROPERTIES + write_list(fields))
    old = raw if application_at else write_map([])
    if application_at or changed:
        parts.append(_SECTION + _APPLICATION + _with(old, application_at, changed, write_text))
    parts.append(memoryview(raw)[body:] if body >= 0 else b"")
    return tuple(parts)


def _with(raw: bytes | bytearray, at: int, changed: Mapping[str, bytes], write_name: object) -> bytes:
    """The map at ``at`` with other values for some keys."""
    assert callable(write_name), "writes a key"
    items = []
    for place, value in _pairs(raw, at):
        key, end = read(raw, place)
        if key not in changed:
            items += [bytes(raw[place:end]), value]
    for name, value in changed.items():
        items += [write_name(name), value]
    return write_map(items)


def _pairs(raw: bytes | bytearray, at: int) -> list[tuple[int, bytes]]:
    """The place of each key of the map, and its encoded value."""
    found = places(raw, at)
    ends = [skip(raw, place) for place in found]
    return [(key, bytes(raw[value:end])) for key, value, end in zip(found[::2], found[1::2], ends[1::2], strict=True)]


def _fields(raw: bytes | bytearray, at: int) -> list[bytes]:
    """The encoded items of the list."""
    return [bytes(raw[place : skip(raw, place)]) for place in places(raw, at)]
