"""Claims a walLocation for one process that lives: a second query is refused while the first one runs.

It only spares the first one; who may write is decided by the epochs (`redelivery.spark.log.epochs`). Whether a process
lives is known on its own host: a query elsewhere takes the location over, and so does one whose predecessor was killed,
or stopped by a signal.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Self

from redelivery.transports.wire.clock import utc_now

_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
_DEAD: Final = frozenset("TtZXx")  # stopped, traced, zombie, dead
_ours: set[tuple[str, int]] = set()  # (location, epoch) of the queries of this process
_guard = threading.Lock()


@dataclass(frozen=True, slots=True)
class Claim:
    """``boot``: of the host. ``started``: when the process began, for its number may be given again; empty: unknown."""

    host: str
    boot: str
    pid: int
    started: str
    since: str

    @classmethod
    def of_this_process(cls) -> Self:
        """Since now."""
        pid = os.getpid()
        return cls(socket.gethostname(), _boot(), pid, _started(pid), f"{utc_now():%Y-%m-%d %H:%M:%S} UTC")

    @property
    def owner(self) -> str:
        """For errors."""
        return f"{self.host}, process {self.pid}, since {self.since}"

    def json(self) -> dict[str, Any]:
        """As an epoch's file holds it."""
        return {"owner": self.owner, **asdict(self)}


def take(location: str, epoch: int) -> None:
    """A query of this process has it."""
    with _guard:
        _ours.add((location, epoch))


def leave(location: str, epoch: int) -> None:
    """End this process's claim."""
    with _guard:
        _ours.discard((location, epoch))


def lives(location: str, epoch: int, claim: Mapping[str, Any]) -> bool:
    """Check whether the query that wrote this into its epoch's file surely still runs."""
    names = ("host", "boot", "pid", "started")
    host, boot, pid, started = (claim.get(name) for name in names)
    if not started or not isinstance(pid, int) or (host, boot) != (socket.gethostname(), _boot()):
        return False
    if pid == os.getpid():
        with _guard:
            return (location, epoch) in _ours
    return bool(_started(pid) == started)


def _boot() -> str:
    try:
        return _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _started(pid: int) -> str:
    """The time when a process began, in ticks of its host; empty where the system does not say, or it does not run."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in _DEAD else fields[19]
