"""Files of JSON lines that several commands may use at the same time: a line is there as a whole, or not at all."""

from __future__ import annotations

import getpass
import json
import os
import socket
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

if sys.platform != "win32":
    import fcntl

_LONGEST: Final = 10.0  # seconds for which another command is waited for


def read(file: Path) -> str:
    """Return the text of a file; of one that is not there, nothing.

    Raises:
        OSError, UnicodeDecodeError: it cannot be read.
    """
    try:
        with file.open(encoding="utf-8") as opened:
            _lock(opened.fileno(), shared=True)
            return opened.read()
    except (FileNotFoundError, NotADirectoryError):
        return ""


def append(file: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    """Add lines, and return when they are on the disk; the file and its folder are made, for their owner only.

    Raises:
        OSError: they cannot be written; nothing was.
    """
    text = b"".join(json.dumps(each).encode() + b"\n" for each in lines)
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with os.fdopen(os.open(file, os.O_RDWR | os.O_CREAT, 0o600), "r+b", buffering=0) as opened:
        _lock(opened.fileno(), shared=False)
        if size := opened.seek(0, os.SEEK_END):
            opened.seek(size - 1)
            if opened.read(1) != b"\n":  # a line that was cut short
                text = b"\n" + text
        if opened.write(text) != len(text):
            opened.truncate(size)
            raise OSError("the disk is full")
        os.fsync(opened.fileno())


def who() -> str:
    """Return who works here: the user, and the machine."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a container's user may have no name
        user = "unknown"
    return f"{user}@{socket.gethostname()}"


def _lock(descriptor: int, *, shared: bool) -> None:
    """Lock a file until it is closed. Raises OSError: another command does not let it go; Windows has no such locks."""
    if sys.platform == "win32":
        raise OSError("files that several commands use need POSIX's file locks, which Windows lacks")
    how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    until = time.monotonic() + _LONGEST
    while True:
        try:
            fcntl.flock(descriptor, how | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                raise OSError("another command holds it") from None
            time.sleep(0.01)
        else:
            return
