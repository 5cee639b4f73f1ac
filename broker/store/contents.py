"""Reads what a file holds when its store is opened, after what nobody needs was removed from it."""

from __future__ import annotations

import sqlite3
from typing import Protocol

from redelivery.broker.engine.stored import StoredMessage
from redelivery.broker.store.batch import purge
from redelivery.broker.store.bodies import LargeBodies
from redelivery.broker.store.encoding import decode_binding, decode_name
from redelivery.broker.store.journal import Contents
from redelivery.broker.store.schema import PIECE_BITS, PLACE, PLACE_BITS

_LARGE = "SELECT large FROM message WHERE large UNION ALL SELECT large FROM delayed WHERE large"


class Decoder(Protocol):
    """Makes the message of a row again; a key below 0 is the number of a delayed one."""

    def __call__(self, key: int, head: bytes, body: bytes, large: int, crc: int | None, /) -> StoredMessage:
        """Raises ConfigError, ValueError and others where it is damaged."""


def read_contents(database: sqlite3.Connection, large: LargeBodies, decode: Decoder) -> tuple[Contents, dict[str, int]]:
    """The contents, and the numbers of its queues. Raises sqlite3.Error, and as ``decode``."""
    execute = database.execute
    execute("BEGIN IMMEDIATE")
    purge(database)
    execute("DELETE FROM message WHERE volatile")
    execute("DELETE FROM counted WHERE key NOT IN (SELECT key FROM message)")
    execute(f"DELETE FROM piece WHERE key >> ? NOT IN ({_LARGE})", (PIECE_BITS,))  # noqa: S608 - of this file
    counts = dict(execute("SELECT key >> ?, count(*) FROM message GROUP BY 1", (PLACE_BITS,)))
    empty = [row for row in execute("SELECT number FROM queue") if row[0] not in counts]
    database.executemany("DELETE FROM queue WHERE number = ?", empty)
    execute("COMMIT")
    for number, messages in execute(f"SELECT large, count(*) FROM ({_LARGE}) GROUP BY large"):  # noqa: S608 - as above
        large.restore(number, messages)
    names = {number: decode_name(name) for number, name in execute("SELECT number, name FROM queue")}
    expiring = execute("SELECT DISTINCT key >> ? FROM message WHERE expires", (PLACE_BITS,)).fetchall()
    rows = execute("SELECT -number, head, body, large, crc FROM delayed ORDER BY number")
    delayed = [(-row[0], decode(*row).delivery_time) for row in rows]
    bindings = execute("SELECT name, binding FROM subscription").fetchall()
    contents = Contents(
        {name: decode_binding(binding) for name, binding in bindings},
        {names[number]: count for number, count in counts.items()},
        {names[number] for (number,) in expiring},
        delayed,
        max([0, *(number for number, _ in delayed), *(_last_order(database, number) for number in counts)]),
    )
    return contents, {name: number for number, name in names.items()}


def _last_order(database: sqlite3.Connection, queue: int) -> int:
    keys = (queue << PLACE_BITS, queue << PLACE_BITS | PLACE)
    found = database.execute("SELECT max(key) FROM message WHERE key BETWEEN ? AND ?", keys).fetchone()
    return int(found[0]) & PLACE
