"""The lock of a store: one broker has it, whatever else its process, or another one, does with the file.

SQLite's own lock is of the kind that goes when its process closes any descriptor of the file, which a copy of it does
(https://www.sqlite.org/howtocorrupt.html, 2.2). Ours go with the process, or with the last copy of their descriptors.
"""

from __future__ import annotations

import ctypes
import logging
import os
import sqlite3
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

if sys.platform != "win32":
    import fcntl

log = logging.getLogger(__name__)
_PLACE: Final = 1 << 62  # of one byte, far behind those that SQLite locks
_CLOSED: Final = sqlite3.connect(":memory:")
_CLOSED.close()
_held: set[StoreLock] = set()  # of this process


class StoreLock:
    """Held from here to `release`: beside the file by its real name, and in the file, which may have other names.

    Raises:
        BlockingIOError: another broker has it, in this process or another one.
        OSError: the file cannot be made or opened; Windows has no such locks.
    """

    def __init__(self, path: Path) -> None:
        if sys.platform == "win32":
            raise OSError(
                "a store needs POSIX's file locks, which Windows lacks; without store= messages are in memory"
            )
        real = os.path.realpath(path)
        self._beside = f"{real}-lock"
        self._descriptors = [_only(self._beside)]
        self._file: tuple[int, int] | None = None
        _held.add(self)
        try:
            with suppress(FileNotFoundError):  # not opened: a close would end SQLite's lock
                if _identity(os.stat(real)) in [each._file for each in _held]:
                    raise BlockingIOError(f"{real} is open in this process by another name")
            self._descriptors.append(os.open(real, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644))
            found = os.fstat(self._descriptors[-1])
            _lock_byte(self._descriptors[-1])
            self._file = _identity(found)
        except BaseException:
            self.release()
            raise
        if found.st_nlink > 1:
            log.warning(
                "store=%r has %d names (hard links): open it by the same one each time, as its log stands beside it",
                str(path),
                found.st_nlink,
            )

    def release(self) -> None:
        """Let go of it, behind the last use of the file. Idempotent."""
        if self._descriptors:
            with suppress(OSError):  # somebody has removed it
                os.unlink(self._beside)  # while it is held: who waits for it looks whether it is still there
        self.abandon()

    def abandon(self) -> None:
        """Close our copies of the descriptors: in a child after fork() those of the parent hold the lock."""
        descriptors, self._descriptors = self._descriptors, []
        for each in descriptors:
            os.close(each)
        _held.discard(self)


def leak(database: sqlite3.Connection) -> sqlite3.Connection:
    """Keep it open until the process ends: not even the interpreter's end closes it. A closed one takes its place.

    For a child after fork(), which must not use its parent's (https://www.sqlite.org/howtocorrupt.html, 2.6).
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(database))
    return _CLOSED


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _only(name: str) -> int:
    """The descriptor of a lock file that nobody else holds."""
    assert sys.platform != "win32", "StoreLock refuses"
    while True:
        descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise
            except OSError as error:  # a file system without such locks: SQLite's is left
                log.warning("%s: no lock can be held here: %s", name, error)
                return descriptor
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), os.stat(name)):
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # its holder has removed it meanwhile


def _lock_byte(descriptor: int) -> None:
    """Lock the file itself, by whatever name it was opened. Raises BlockingIOError."""
    if sys.platform == "linux":  # elsewhere such a lock has no name in Python, or is one with SQLite's
        request = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, _PLACE, 1, 0)
        try:
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, request)
        except BlockingIOError:
            raise
        except OSError as error:
            log.debug("no lock can be held in the store itself: %s", error)


def _after_fork() -> None:
    for each in list(_held):
        each.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
