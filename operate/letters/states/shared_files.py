"""Files of JSON lines that several commands may use at the same time: a line is there as a whole, or not at all."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

_LONGEST: Final = 10.0  # seconds for which another command is waited for


def read(file: Path) -> str:
    """Return the text of a file; of one that is not there, nothing.

    Raises:
        OSError, UnicodeDecodeError: it cannot be read.
    """
    try:
        with file.open(encoding="utf-8") as opened:
            _lock(opened.fileno(), fcntl.LOCK_SH)
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
        _lock(opened.fileno(), fcntl.LOCK_EX)
        size = opened.seek(0, os.SEEK_END)
        if size and os.pread(opened.fileno(), 1, size - 1) != b"\n":  # a line that was cut short
            text = b"\n" + text
        if opened.write(text) != len(text):
            opened.truncate(size)
            raise OSError("the disk is full")
        os.fsync(opened.fileno())


def _lock(descriptor: int, how: int) -> None:
    """Lock a file until it is closed. Raises OSError: another command does not let it go."""
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
