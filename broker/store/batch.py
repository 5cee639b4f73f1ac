"""Steps that become durable together, and how they are written: in one transaction, with one sync."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeAlias

from redelivery.broker.engine.entries import Entry
from redelivery.broker.engine.queues import Binding
from redelivery.broker.engine.stored import StoredMessage
from redelivery.broker.store.bodies import pieces
from redelivery.broker.store.encoding import (
    checksum,
    encode_binding,
    encode_body,
    encode_head,
    encode_name,
    protocol_of,
)
from redelivery.broker.store.schema import PIECE_BITS

_Row: TypeAlias = tuple[int, bytes, bytes, bool, bool, int, int]


@dataclass(slots=True)
class Batch:
    """The writes of a batch; what is put and removed within one leaves nothing to write.

    Attributes:
        bound: new durable subscriptions, by their queues' names.
        queues: new ones, with their numbers.
        put: by key, ascending within a queue; with the number of a large body, else 0.
        removed: keys, and nothing of them is put any more; they are only noted in the file, which is one page of it.
        counted: by key; with the time until which the message waits for its redelivery.
        purged: the file lets go of all that were noted so, which changes the pages that have them.
        cleared: ranges of keys, each behind the first and up to the second.
        delayed: by number; with the number of a large body, else 0.
        large: new large bodies by number, each with one of its messages.
        forgotten: numbers of large bodies that nobody needs any more.
    """

    sequence: int = 0
    bound: dict[str, Binding] = field(default_factory=dict)
    unbound: list[str] = field(default_factory=list)
    queues: dict[str, int] = field(default_factory=dict)
    put: dict[int, tuple[Entry, int]] = field(default_factory=dict)
    removed: dict[int, None] = field(default_factory=dict)
    cleared: list[tuple[int, int]] = field(default_factory=list)
    counted: dict[int, tuple[int, int]] = field(default_factory=dict)
    purged: bool = False
    delayed: dict[int, tuple[StoredMessage, int]] = field(default_factory=dict)
    undelayed: list[int] = field(default_factory=list)
    large: dict[int, StoredMessage] = field(default_factory=dict)
    forgotten: list[int] = field(default_factory=list)


def execute(database: sqlite3.Connection, batch: Batch) -> None:
    """Write it. Raises sqlite3.Error; then nothing of it is written."""
    one, many = database.execute, database.executemany
    one("BEGIN IMMEDIATE")
    for number, message in batch.large.items():
        many("INSERT INTO piece VALUES (?, ?, ?, ?)", _pieces(number, message))
    for statement, rows in _statements(batch):
        if rows:
            many(statement, rows)
    if batch.purged:
        purge(database)
    one("COMMIT")


def purge(database: sqlite3.Connection) -> None:
    """Let go of what was noted as removed. Within a transaction; raises sqlite3.Error."""
    database.execute("DELETE FROM message WHERE key IN (SELECT key FROM removed)")
    database.execute("DELETE FROM counted WHERE key IN (SELECT key FROM removed)")
    database.execute("DELETE FROM removed")


def _statements(batch: Batch) -> tuple[tuple[str, list[Any]], ...]:
    """In their order: what was removed may have been put or bound by an earlier batch only."""
    return (
        (
            "INSERT INTO subscription VALUES (?, ?)",
            [(name, encode_binding(each)) for name, each in batch.bound.items()],
        ),
        ("DELETE FROM subscription WHERE name = ?", [(name,) for name in batch.unbound]),
        ("INSERT INTO queue VALUES (?, ?)", [(number, encode_name(name)) for name, number in batch.queues.items()]),
        ("INSERT INTO message VALUES (?, ?, ?, ?, ?, ?, ?)", [_row(key, put) for key, put in batch.put.items()]),
        ("DELETE FROM message WHERE key > ? AND key <= ?", batch.cleared),
        ("DELETE FROM counted WHERE key > ? AND key <= ?", batch.cleared),
        ("INSERT INTO removed VALUES (?)", [(key,) for key in batch.removed]),
        ("INSERT OR REPLACE INTO counted VALUES (?, ?, ?)", [(key, *each) for key, each in batch.counted.items()]),
        ("INSERT INTO delayed VALUES (?, ?, ?, ?, ?)", [_delayed(key, *each) for key, each in batch.delayed.items()]),
        ("DELETE FROM delayed WHERE number = ?", [(number,) for number in batch.undelayed]),
        (
            "DELETE FROM piece WHERE key >= ? AND key < ?",
            [(number << PIECE_BITS, (number + 1) << PIECE_BITS) for number in batch.forgotten],
        ),
    )


def _row(key: int, put: tuple[Entry, int]) -> _Row:
    entry, large = put
    message = entry.message
    head, body, crc = _encoded(message, large)
    return key, head, body, message.expiration > 0, not message.persistent, large, crc


def _delayed(number: int, message: StoredMessage, large: int) -> tuple[int, bytes, bytes, int, int]:
    return number, *_encoded(message, large), large


def _encoded(message: StoredMessage, large: int) -> tuple[bytes, bytes, int]:
    if large:
        head = encode_head(message, protocol_of(message))
        return head, b"", checksum(head)
    body = encode_body(message)
    head = encode_head(message, body.protocol)
    return head, body.data, checksum(head, body.data)


def _pieces(number: int, message: StoredMessage) -> Iterator[tuple[int, bytes | memoryview, int, bool]]:
    found = pieces(message)
    piece = next(found)
    for at in count():
        following = next(found, None)
        yield number << PIECE_BITS | at, piece, checksum(piece), following is None
        if following is None:
            return
        piece = following
