"""A journal in an SQLite file. It notes steps in memory; `write` makes what was noted durable, all at once."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Final

from redelivery.broker.engine.entries import Entry
from redelivery.broker.engine.queues import Binding
from redelivery.broker.engine.stored import StoredMessage
from redelivery.broker.store.batch import Batch, execute
from redelivery.broker.store.bodies import LargeBodies, is_kept, with_kept
from redelivery.broker.store.contents import read_contents
from redelivery.broker.store.encoding import check, decode, decode_late, protocol_of
from redelivery.broker.store.journal import Contents, UnreadableStoreError
from redelivery.broker.store.lock import leak
from redelivery.broker.store.schema import (
    FILE_ERRORS,
    PIECE_BITS,
    PLACE,
    PLACE_BITS,
    compact,
    extend_log,
    free_space,
    open_alone,
)
from redelivery.model.errors import ConfigError, MessageFormatError, ResourceAllocationError

_PAGE: Final = (
    "SELECT message.key, head, body, large, crc, redeliveries, until FROM message"
    " LEFT JOIN counted ON message.key = counted.key"
    " WHERE message.key > ? AND message.key <= ? AND message.key NOT IN (SELECT key FROM removed)"
    " ORDER BY message.key LIMIT ?"
)
_ONE: Final = _PAGE.replace("message.key > ? AND message.key <= ?", "message.key = ?").partition(" ORDER")[0]
_DELAYED: Final = "SELECT head, body, large, crc FROM delayed WHERE number = ?"
_PIECES: Final = "SELECT key, data, crc, last FROM piece WHERE key >= ? AND key < ? ORDER BY key"
_PAGE_SIZE: Final = 8 << 20  # bytes: a page ends with the message that is beyond
_BUSY: Final = 32  # writes
_COMPACTED: Final = 256  # after so many writes, and by so many pages:
_PAGES: Final = 1000
PURGED: Final = 1000  # removed messages that may still be in the file, and so many bytes of them
_PURGED_SIZE: Final = 4 << 20
_RESERVE: Final = 32 << 20  # bytes


class SqliteStore:
    """A `redelivery.broker.store.journal.Journal`; `take` and `write` are for the broker's core.

    All but `write` is called under the broker's lock, `write` by one thread at a time without it. Raises ConfigError:
    see `redelivery.broker.store.schema.open_alone`.
    """

    def __init__(self, path: Path, *, synchronous: str = "full", window: int = 1000, memory: int = 64 << 20) -> None:
        self.path = path.absolute()
        self._folder = str(self.path.parent)
        self._room: int | None = None  # bytes that are free, as it was after the last write
        self.window = window
        self.memory = memory
        self.sequence = 0
        self.durable = 0  # of the sequence, what is on the disk
        self.is_full: Callable[[], bool] = bool  # a planned fault; without one never
        self._database, self._lock = open_alone(path, synchronous=synchronous)
        self._reading = threading.Lock()  # of the connection: held while it is written, too
        self._batch = Batch()
        self._writing: Batch | None = None  # what was taken, and is not yet in the file
        self._large = LargeBodies(self._load)
        self._queues: dict[str, int] = {}
        self._last_queue = 0
        self._failed = False
        self._given_up = ""  # why
        self._synchronous = synchronous
        self._writes = self._unpurged = self._unpurged_size = 0  # the latter: removed messages that are in the file

    def restore(self) -> Contents:
        """Read what the file holds; once, before anything else.

        Raises:
            ConfigError: it is damaged, or holds what cannot be read here.
        """
        try:
            with self._reading_what_is_kept():
                contents, self._queues = read_contents(self._database, self._large, self._message)
                self._last_queue = max(self._queues.values(), default=0)
                return contents
        except BaseException:
            self._database.close()
            self._lock.release()
            raise

    # For the engine

    def check_room(self, size: int) -> None:
        """Some of the disk stays free, so that messages can be consumed when it is full."""
        room = self._room  # the writing thread takes it away
        if room is None:
            room = free_space(self._folder)
        free = 0 if self.is_full() else room
        self._room = room - size
        if free < _RESERVE + size:
            self._room = None
            raise ResourceAllocationError(
                f"the disk of the store {str(self.path)!r} is full: {free} bytes are free, and {_RESERVE} are kept for"
                " acknowledgements; consume messages or make room"
            )

    def bound(self, name: str, binding: Binding) -> None:
        """See `redelivery.broker.store.journal.Journal`, here and below."""
        self.sequence += 1
        self._batch.bound[name] = binding

    def unbound(self, name: str) -> None:
        """Note that a binding was removed."""
        self.sequence += 1
        if self._batch.bound.pop(name, None) is None:
            self._batch.unbound.append(name)

    def put(self, entry: Entry) -> None:
        """Note that a message waits."""
        self.sequence += 1
        assert entry.queue is not None, "a browser's copy is not stored"
        key = self._key(entry.queue, entry.order)
        self._batch.put[key] = entry, self._body(key, entry.message)

    def removed(self, entry: Entry) -> None:
        """Note that a message was removed."""
        self.sequence += 1
        assert entry.queue is not None, "as above"
        key = self._key(entry.queue, entry.order)
        self._batch.counted.pop(key, None)
        self._large.remove(key)
        if self._batch.put.pop(key, None) is None:
            self._batch.removed[key] = None
            self._unpurged += 1
            self._unpurged_size += entry.message.size

    def counted(self, entry: Entry, redeliveries: int, until: int = 0) -> None:
        """Note that a message's counter has changed, or that it waits for a redelivery."""
        self.sequence += 1
        assert entry.queue is not None, "as above"
        self._batch.counted[self._key(entry.queue, entry.order)] = redeliveries, until

    def page(self, queue: str, after: int, limit: int) -> list[Entry]:
        """From the file, and behind that from what is noted and not yet written."""
        with self._reading, self._reading_what_is_kept():
            return _page(islice(self._behind(queue, after, limit), limit))

    def read(self, queue: str, orders: Sequence[int]) -> list[Entry]:
        """Each by itself: they need not stand together."""
        with self._reading, self._reading_what_is_kept():
            return _page(self._one(queue, self._key(queue, order)) for order in orders)

    def cleared(self, queue: str, after: int) -> None:
        """Note that a queue's messages behind a place were removed."""
        self.sequence += 1
        first, last = self._key(queue, after), self._key(queue, PLACE)
        for key in [key for key in self._batch.put if first < key <= last]:
            del self._batch.put[key]
        self._large.clear(first, last)
        self._batch.cleared.append((first, last))

    def delayed(self, number: int, message: StoredMessage) -> None:
        """Note that a message waits for its time."""
        self.sequence += 1
        self._batch.delayed[number] = message, self._body(-number, message)

    def undelayed(self, number: int) -> StoredMessage:
        """Return a delayed message, whose time has come."""
        self.sequence += 1
        noted = self._batch.delayed.pop(number, None)
        if noted is None:
            self._batch.undelayed.append(number)
            writing = self._writing  # the writing thread takes it away when it is in the file
            noted = None if writing is None else writing.delayed.get(number)
        if noted is not None:
            message = noted[0]
        else:
            with self._reading, self._reading_what_is_kept():
                message = self._message(-number, *self._database.execute(_DELAYED, (number,)).fetchone())
        self._large.remove(-number)
        return message

    # For the core

    def take(self) -> Batch:
        """Take what was noted since the last call."""
        batch, self._batch = self._batch, Batch()
        batch.sequence = self.sequence
        batch.forgotten = self._large.forgotten()
        for number in batch.forgotten:
            batch.large.pop(number, None)
        if self._unpurged >= PURGED or self._unpurged_size >= _PURGED_SIZE:
            batch.purged = True
            self._unpurged = self._unpurged_size = 0
        self._writing = batch
        return batch

    def write(self, batch: Batch) -> None:
        """Make it durable.

        Raises:
            ResourceAllocationError: it cannot be written; the file holds what was durable before.
        """
        if self._failed or self._given_up:
            raise ResourceAllocationError(self._given_up or f"the store {str(self.path)!r} is not written any more")
        self._failed = True  # until it is done: whatever happens, nothing is written after it
        try:
            with self._reading:
                execute(self._database, batch)
                self._writing = None
                self._busy()
        except FILE_ERRORS as error:
            raise ResourceAllocationError(f"the store {str(self.path)!r} cannot be written: {error}") from error
        self._failed = False
        self._room = None
        self.durable = batch.sequence
        for entry, large in batch.put.values():
            if large and not is_kept(entry.message):
                kept = self._large.kept(large, protocol_of(entry.message), entry.message.size)
                entry.message = with_kept(entry.message, kept)
        for large in batch.large:
            self._large.written(large)

    def _busy(self) -> None:
        """A store that is written again and again is prepared for more."""
        self._writes += 1
        if self._writes == _BUSY and self._synchronous == "full":
            extend_log(self.path)
        if self._writes % _COMPACTED == 0:
            compact(self._database, _PAGES)

    def give_up(self) -> None:
        """Write nothing from now on."""
        self._given_up = f"the store {str(self.path)!r} is not written any more"

    def close(self) -> None:
        """Write what was noted, unless it cannot be written any more, and close the file."""
        with suppress(ResourceAllocationError):  # it was answered to nobody
            batch = self.take()
            batch.purged = True
            self.write(batch)
            with suppress(*FILE_ERRORS):  # the file stays larger
                compact(self._database, 10 * _PAGES)
        with self._reading:
            self._database.close()
        self._lock.release()

    def orphan(self, reason: str) -> None:
        """In a child after fork(): it is the parent's, whose log SQLite would remove if it was closed here."""
        self._given_up = reason
        self._reading = threading.Lock()
        self._database = leak(self._database)

    def _key(self, queue: str, order: int) -> int:
        number = self._queues.get(queue)
        if number is None:
            self._last_queue += 1
            number = self._queues[queue] = self._batch.queues[queue] = self._last_queue
        return number << PLACE_BITS | order

    @property
    def _noted(self) -> tuple[Batch, ...]:
        """The batches that may not be in the file yet."""
        return (self._batch,) if self._writing is None else (self._writing, self._batch)

    def _behind(self, queue: str, after: int, limit: int) -> Iterator[Entry]:
        first, last, noted = self._key(queue, after), self._key(queue, PLACE), self._noted
        for row in self._database.execute(_PAGE, (first, last, limit)):
            if not any(row[0] in batch.removed for batch in noted):
                yield self._entry(queue, *row)
        for batch in noted:
            yield from (entry for key, (entry, _) in batch.put.items() if first < key <= last)

    def _one(self, queue: str, key: int) -> Entry:
        for batch in self._noted:
            if key in batch.put:
                return batch.put[key][0]
        return self._entry(queue, *self._database.execute(_ONE, (key,)).fetchone())

    def _body(self, key: int, message: StoredMessage) -> int:
        """The number of a large body, which is to be written, else 0."""
        number, new = self._large.add(key, message)
        if new:
            self._batch.large[number] = message
        return number

    def _message(self, key: int, head: bytes, body: bytes, large: int, crc: int | None) -> StoredMessage:
        if large:
            return decode_late(head, crc, lambda protocol, size: self._large.found(key, large, protocol, size))
        return decode(head, body, crc)

    def _entry(self, queue: str, key: int, head: bytes, body: bytes, large: int, *rest: int | None) -> Entry:
        crc, counts = rest[0], rest[1:]
        entry = Entry(self._message(key, head, body, large, crc), key & PLACE, queue)
        for batch in self._noted:
            counts = batch.counted.get(key, counts)  # not in the file yet
        entry.redeliveries, entry.until = (each or 0 for each in counts)
        entry.acquired = entry.redeliveries > 0
        entry.stored = True
        return entry

    @contextmanager
    def _reading_what_is_kept(self) -> Iterator[None]:
        """Give the store up where it is damaged: half of the step that needs it is noted."""
        try:
            yield
        except (sqlite3.Error, ValueError, KeyError, TypeError, AttributeError) as error:
            self._given_up = str(error) if isinstance(error, ConfigError) else self._damaged(error)
            raise UnreadableStoreError(self._given_up) from error

    def _damaged(self, how: object) -> str:
        return f"store={str(self.path)!r} is damaged: {how}; restore it from a copy"

    def _load(self, number: int, take: Callable[[bytes], object]) -> None:
        """A large body, a piece at a time."""
        expected, behind, complete = number << PIECE_BITS, (number + 1) << PIECE_BITS, False
        try:
            with self._reading:
                for key, piece, crc, last in self._database.execute(_PIECES, (expected, behind)):
                    complete = key == expected and last != 0
                    if key != expected:
                        break
                    check(crc, piece)
                    take(piece)
                    expected += 1
        except sqlite3.ProgrammingError as error:  # it is closed
            why = self._given_up or error
            raise MessageFormatError(f"the body cannot be read from the store {str(self.path)!r}: {why}") from error
        except (sqlite3.Error, ValueError) as error:
            raise UnreadableStoreError(self._damaged(error)) from error
        if not complete:
            raise UnreadableStoreError(self._damaged("a body, or a piece of one, is missing"))


def _page(entries: Iterator[Entry]) -> list[Entry]:
    """The entries that make a page."""
    page, size = [], 0
    for entry in entries:
        page.append(entry)
        size += entry.message.size
        if size > _PAGE_SIZE:
            break
    return page
