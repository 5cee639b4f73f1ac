"""The file of a store: what is in it, how it is opened, and when it is refused.

An SQLite database in WAL mode, held by one broker alone. A message's key has its queue's number and its place in one,
so that a queue stands together and in order without an index.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

from redelivery.broker.store.lock import StoreLock
from redelivery.model.errors import ConfigError

APPLICATION: Final = 0x52454449  # "REDI": SQLite's application_id
VERSION: Final = 6  # SQLite's user_version
PLACE_BITS: Final = 43  # of a message's key: 8.8e12 messages; the other 20 are its queue's number
PLACE: Final = (1 << PLACE_BITS) - 1
PIECE_BITS: Final = 20  # of a piece's key; the other 43 are its body's number
_LOG_PAGES: Final = 4000  # after so many the write-ahead log goes into the database, and is written from its start
_LOG_SIZE: Final = _LOG_PAGES * (4096 + 24) + 32  # bytes
_FEW_PAGES: Final = 1000  # free ones will be used again
_CHECKED: Final = 32 << 20  # bytes: a larger file is not read as a whole at the start

# Keys of messages that are still there, but for nobody: a removal changes this page, and theirs some time later.
_REMOVED: Final = "CREATE TABLE removed (key INTEGER PRIMARY KEY)"
_TABLES: Final = (
    "CREATE TABLE queue (number INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE)",
    # large: the number of a body that is in pieces, else 0; crc, here and below: CRC-32 of what is beside it
    "CREATE TABLE message (key INTEGER PRIMARY KEY, head BLOB NOT NULL, body BLOB NOT NULL,"
    " expires INTEGER NOT NULL, volatile INTEGER NOT NULL, large INTEGER NOT NULL, crc INTEGER)",
    "CREATE INDEX expiring ON message (key) WHERE expires",
    "CREATE INDEX volatile ON message (key) WHERE volatile",  # not persistent: gone with the broker
    "CREATE INDEX large ON message (large) WHERE large",
    # key: its body's number, and its place in that; last: 1 for the last of a body, else 0
    "CREATE TABLE piece (key INTEGER PRIMARY KEY, data BLOB NOT NULL, crc INTEGER, last INTEGER)",
    "CREATE TABLE subscription (name TEXT PRIMARY KEY, binding BLOB NOT NULL) WITHOUT ROWID",  # by its queue's name
    # only of those that have been; until: it waits for its redelivery (epoch milliseconds), 0 for never
    "CREATE TABLE counted (key INTEGER PRIMARY KEY, redeliveries INTEGER NOT NULL, until INTEGER NOT NULL DEFAULT 0)",
    _REMOVED,
    "CREATE TABLE delayed (number INTEGER PRIMARY KEY, head BLOB NOT NULL, body BLOB NOT NULL, crc INTEGER,"
    " large INTEGER NOT NULL DEFAULT 0)",
)
FILE_ERRORS: Final = (sqlite3.Error, UnicodeDecodeError)  # SQLite's words may quote damaged ones
_IN_USE: Final = "store={!r} is in use by another broker, in this process or another one; close that first"
# What brings a file of each older version to the next one.
_MIGRATIONS: Final[dict[int, tuple[str, ...]]] = {
    1: (_REMOVED,),
    2: ("ALTER TABLE counted ADD COLUMN until INTEGER NOT NULL DEFAULT 0",),
    3: tuple(f"ALTER TABLE {table} ADD COLUMN crc INTEGER" for table in ("message", "piece", "delayed")),  # NULL: none
    4: ("ALTER TABLE delayed ADD COLUMN large INTEGER NOT NULL DEFAULT 0",),
    5: ("ALTER TABLE piece ADD COLUMN last INTEGER",),  # NULL: not known
}


def check_place(path: Path) -> None:
    """Raise ConfigError where no store can be there; the text says why."""
    try:
        os.fsencode(path)
        if "\0" in str(path):
            raise ConfigError(f"store={str(path)!r} is not a file's name: it has a NUL")
        if path.is_dir():
            raise ConfigError(f"store={str(path)!r} is a folder: pass the name of a file")
        if not path.parent.is_dir():
            raise ConfigError(f"store={str(path)!r}: there is no folder {str(path.parent)!r}; make it first")
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise ConfigError(
                f"store={str(path)!r}: this user cannot write to the folder {str(path.parent)!r}, where a log is kept"
                " beside the file"
            )
        if path.exists() and not os.access(path, os.R_OK | os.W_OK):
            raise ConfigError(f"store={str(path)!r}: the file cannot be read and written by this user")
        if path.exists() and not path.is_file():
            raise ConfigError(f"store={str(path)!r} is not a file")
    except (OSError, UnicodeError) as error:  # no name for this file system
        raise ConfigError(f"store={str(path)!r} cannot be opened: {error}") from error


def open_alone(path: Path, *, synchronous: str) -> tuple[sqlite3.Connection, StoreLock]:
    """Lock a store, then open it. Raises as `check_place` and `open_file`, and ConfigError: another broker has it."""
    check_place(path)
    try:
        lock = StoreLock(path)
    except BlockingIOError as error:
        raise ConfigError(_IN_USE.format(str(path))) from error
    except OSError as error:
        raise ConfigError(f"store={str(path)!r} cannot be opened: {error}") from error
    try:
        return open_file(path, synchronous=synchronous), lock
    except BaseException:
        lock.release()
        raise


def open_file(path: Path, *, synchronous: str) -> sqlite3.Connection:
    """Open a store, or make it where there is no file; by who holds its lock.

    Raises:
        ConfigError: it cannot be had, is something else, is damaged, or of a newer version; then it was not changed.
    """
    database: sqlite3.Connection | None = None
    try:
        database = sqlite3.connect(
            f"file:{quote(os.fsencode(path.absolute()))}?mode=rwc",
            uri=True,
            timeout=0,
            isolation_level=None,
            check_same_thread=False,
        )
        database.execute("PRAGMA locking_mode=EXCLUSIVE")
        _check(database, path)
        _set_up(database, synchronous)
    except BaseException as error:
        if database is not None:
            database.close()
        if isinstance(error, FILE_ERRORS):
            raise _refusal(path, error) from error
        raise
    return database


def extend_log(path: Path) -> None:
    """Give the write-ahead log its full size: a sync of a file that grows waits for the file system's own log as well.

    SQLite takes what stands behind its last valid frame for nothing. Where the disk has no room, nothing is changed.
    """
    with suppress(OSError), open(f"{os.path.realpath(path)}-wal", "r+b") as file:
        size = file.seek(0, os.SEEK_END)
        try:
            while file.tell() < _LOG_SIZE:
                file.write(bytes(min(1 << 20, _LOG_SIZE - file.tell())))
            file.flush()
            os.fsync(file.fileno())
        except OSError:
            file.truncate(size)
            raise


def compact(database: sqlite3.Connection, pages: int) -> None:
    """Give the file's free pages back to the disk, up to so many, if they are most of it. Raises sqlite3.Error."""
    free, all_pages = _pragma(database, "freelist_count"), _pragma(database, "page_count")
    if free > max(_FEW_PAGES, all_pages // 2):
        database.executescript(f"PRAGMA incremental_vacuum({pages})")  # `execute` would do one page


def free_space(folder: str) -> int:
    """Bytes of a disk that are free."""
    try:
        return shutil.disk_usage(folder).free
    except OSError:  # the folder is gone
        return 0


def _check(database: sqlite3.Connection, path: Path) -> None:
    """Look at the file without changing it."""
    application, version = _pragma(database, "application_id"), _pragma(database, "user_version")
    tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if application != APPLICATION and (application or version or tables):
        raise ConfigError(f"store={str(path)!r} is a database of another program; pass another file")
    if version > VERSION:
        raise ConfigError(
            f"store={str(path)!r} was written by a newer version of redelivery (schema {version}, this one knows"
            f" {VERSION}); use that version, or another file"
        )
    if application == APPLICATION and not _MIGRATIONS.keys() >= set(range(version, VERSION)):
        raise ConfigError(
            f"store={str(path)!r} was written by an older version of redelivery (schema {version}), which this one does"
            " not read; empty it with that version, or pass another file"
        )
    if path.stat().st_size <= _CHECKED:
        found = database.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise ConfigError(f"store={str(path)!r} is damaged: {found}; restore it from a copy, or move it away")


def _set_up(database: sqlite3.Connection, synchronous: str) -> None:
    new = _pragma(database, "application_id") != APPLICATION
    if new:
        database.execute("PRAGMA auto_vacuum=INCREMENTAL")  # only before the first table
    mode = database.execute("PRAGMA journal_mode=WAL").fetchone()[0]
    if mode != "wal":
        raise sqlite3.OperationalError(f"its file system has no write-ahead log (journal_mode is {mode})")
    database.execute(f"PRAGMA synchronous={synchronous}")
    database.execute("PRAGMA fullfsync=1")  # macOS: else a sync reaches the disk's cache only
    database.execute("PRAGMA checkpoint_fullfsync=1")
    database.execute(f"PRAGMA wal_autocheckpoint={_LOG_PAGES}")
    database.execute(f"PRAGMA journal_size_limit={64 << 20}")
    database.execute("BEGIN IMMEDIATE")
    if new:
        for statement in _TABLES:
            database.execute(statement)
        database.execute(f"PRAGMA application_id={APPLICATION}")
    else:
        for version in range(_pragma(database, "user_version"), VERSION):
            for statement in _MIGRATIONS[version]:
                database.execute(statement)
    if _pragma(database, "user_version") != VERSION:
        database.execute(f"PRAGMA user_version={VERSION}")
    database.execute("COMMIT")


def _pragma(database: sqlite3.Connection, name: str) -> int:
    value: int = database.execute(f"PRAGMA {name}").fetchone()[0]
    return value


def _refusal(path: Path, error: Exception) -> ConfigError:
    if isinstance(error, UnicodeDecodeError):
        said = error.object.decode(errors="backslashreplace")
        return ConfigError(f"store={str(path)!r} is damaged: {said}; it was not changed")
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return ConfigError(_IN_USE.format(str(path)))
    if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
        return ConfigError(f"store={str(path)!r} is not a store, or is damaged: {error}; it was not changed")
    return ConfigError(f"store={str(path)!r} cannot be opened: {error}")
