"""What is to happen to the users of a `killing` file system, at which of their operations, and whether it has.

| ``do`` | what happens, once the order's turn has come |
|---|---|
| kill | kill -9 of the process itself |
| all | kill -9 of every process of the session: driver, JVMs, runner, workers |
| driver | kill -9 of the driver: the session's first process and its JVM; this one goes on |
| jvm | kill -9 of the JVM that has started this process; this one goes on |
| gate | it waits until the gate opens |
| freeze | the whole process is stopped (SIGSTOP) until the gate opens |
| zombie | its JVM believes that it has died; it waits until the gate opens, and goes on |
| full | ENOSPC |
| broken | EIO |
| readonly | EROFS |
| slow | it takes a second |
"""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Literal

_GATE_SECONDS = 120.0
_SLOW_SECONDS = 1.0
_ERRORS = {"full": errno.ENOSPC, "broken": errno.EIO, "readonly": errno.EROFS}


@dataclass(frozen=True, slots=True)
class Order:
    """``name``: a pattern; ``who``: the role of the process, any if empty; the first ``skip`` matches are let by.

    ``times``: how often, over all processes; 0: always. ``broker``: a zombie's connections to this port stay.
    """

    do: Literal["kill", "all", "driver", "jvm", "gate", "freeze", "zombie", "full", "broken", "readonly", "slow"]
    when: Literal["before", "after"]
    operation: Literal["write", "read", "list", "delete"]
    name: str
    who: Literal["", "runner", "lane", "worker"] = ""
    skip: int = 0
    times: int = 1
    broker: int = 0


class Orders:
    """A file with orders, and what has become of them beside it. Each process reads it anew for each operation."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, orders: Sequence[Order]) -> None:
        self.path.write_text(json.dumps([asdict(order) for order in orders]), encoding="utf-8")

    def forget(self) -> None:
        """What is held goes on, nothing else happens any more."""
        self.open_gate()
        self.write([])

    def begin_anew(self) -> None:
        """Forget what happened, and how many matches were let by."""
        self.write([])
        for pattern in ("turn-*", "done-*"):
            for each in self.path.parent.glob(f"{self.path.name}.{pattern}"):
                each.unlink(missing_ok=True)

    def open_gate(self) -> None:
        self._beside("gate").touch()
        for each in self._done():
            with suppress(ProcessLookupError):
                os.kill(int(each.read_text(encoding="utf-8").split()[1]), signal.SIGCONT)

    def happened(self) -> int:
        """How often an order was carried out."""
        return len(self._done())

    def _done(self) -> list[Path]:
        return list(self.path.parent.glob(f"{self.path.name}.done-*"))

    def went_on(self) -> int:
        """How many have passed the gate."""
        return len(list(self.path.parent.glob(f"{self.path.name}.passed-*")))

    def obey(self, when: str, operation: str, name: str) -> None:
        for number, each in enumerate(json.loads(self.path.read_text(encoding="utf-8"))):
            order = Order(**each)
            if (order.when, order.operation) != (when, operation) or not fnmatch(name, order.name):
                continue
            if order.who and order.who != role():
                continue
            turn = self._turn(number)
            if turn >= order.skip and (not order.times or turn < order.skip + order.times):
                self._beside(f"done-{number}-{turn}").write_text(f"{role()} {os.getpid()}", encoding="utf-8")
                self._carry_out(order, f"{number}-{turn}")

    def _turn(self, number: int) -> int:
        turn = 0
        while True:
            try:
                self._beside(f"turn-{number}-{turn}").touch(exist_ok=False)
            except FileExistsError:
                turn += 1
            else:
                return turn

    def _carry_out(self, order: Order, key: str) -> None:
        if order.do in _ERRORS:
            raise OSError(_ERRORS[order.do], os.strerror(_ERRORS[order.do]))
        match order.do:
            case "slow":
                time.sleep(_SLOW_SECONDS)
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "all":
                kill_session(os.getsid(0))
            case "driver" | "jvm":
                leader, jvm = os.getsid(0), order.do == "jvm"
                ours = [_java_above(os.getpid())] if jvm else [leader, *filter(_is_java, _children(leader))]
                for pid in ours:
                    _kill(pid)
            case "gate":
                self._wait(key)
            case "freeze":
                os.kill(os.getpid(), signal.SIGSTOP)
                self._beside(f"passed-{key}").touch()
            case "zombie":
                _lose_jvm(order.broker)
                self._wait(key)

    def _wait(self, key: str) -> None:
        gate, until = self._beside("gate"), time.monotonic() + _GATE_SECONDS
        while not gate.exists() and time.monotonic() < until:
            time.sleep(0.01)
        self._beside(f"passed-{key}").touch()

    def _beside(self, suffix: str) -> Path:
        return self.path.with_name(f"{self.path.name}.{suffix}")


def role() -> str:
    """What this process is to the source: runner, lane or worker."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    program = f"{spec and spec.name} {sys.argv[0]}"
    return "runner" if "source_runner" in program else "lane" if "lane_process" in program else "worker"


def kill_session(session: int) -> None:
    """kill -9 of all its processes; this one, if it belongs to them, last."""
    own = os.getpid()
    found = [int(each) for each in os.listdir("/proc") if each.isdigit() and _stat(int(each))[3:4] == [str(session)]]
    for pid in sorted(found, key=lambda pid: pid == own):
        _kill(pid)


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _children(parent: int) -> list[int]:
    """Its own, and theirs: spark-submit may be a shell in between."""
    found = [int(each) for each in os.listdir("/proc") if each.isdigit() and _stat(int(each))[1:2] == [str(parent)]]
    return found + [pid for each in found if not _is_java(each) for pid in _children(each)]


def _java_above(pid: int) -> int:
    while not _is_java(pid):
        pid = int(_stat(pid)[1])
    return pid


def _is_java(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip() == "java"
    except OSError:
        return False


def _stat(pid: int) -> list[str]:
    """State, parent, process group, session, …; nothing if it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return []


def _lose_jvm(broker: int) -> None:
    """End every connection of this process but those to the broker."""
    for descriptor in [int(each) for each in os.listdir("/proc/self/fd")]:
        with suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as connection:
            if connection.family != socket.AF_UNIX and connection.getpeername()[1] != broker:
                connection.shutdown(socket.SHUT_RDWR)
