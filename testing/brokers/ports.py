"""Free ports, and waiting for somebody to listen on them."""

from __future__ import annotations

import os
import random
import re
import socket
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Final

from tenacity import Retrying, retry_if_result, stop_after_attempt, wait_fixed

if sys.platform != "win32":
    import fcntl

# Not those that systems give to outgoing connections (Linux: from 32768, others: from 49152). One of these would be
# taken now and then between the choice and the broker's start, or while the broker is down.
_PORTS = range(20000, 32768)
_STEP: Final = 0.1  # seconds between two looks
_CHOOSING = Lock()
_OURS: set[int] = set()  # a process's locks do not exclude itself
# Java's and C's words, Broker-J's, Docker's, and Erlang's: of a port, of that of its port mapper, of the node's own.
_IN_USE = re.compile(
    "address already in use|port in use|port is already allocated|eaddrinuse|nodistribution|dist_port_already_used",
    re.IGNORECASE,
)


class NotStartedError(Exception):
    """A broker did not come up; the text says why."""


class AddressInUseError(NotStartedError):
    """The broker did not start, because another program had taken one of its ports: it may start on others."""


def free_ports(names: Iterable[str]) -> dict[str, int]:
    """One port for each name on which nobody listens, from 20000 to 32767; all different.

    They are chosen at random, and reserved until this process ends: neither it nor another process that asks here gets
    one of them, be it a worker of pytest-xdist or a second test run. A program that does not ask may still take one.

    Raises:
        NotStartedError: not so many are free.
    """
    wanted = list(names)
    with _CHOOSING:
        candidates = random.SystemRandom().sample(_PORTS, len(_PORTS))  # whatever seed a test has given to `random`
        found = list(islice((port for port in candidates if _reserve(port)), len(wanted)))
    if len(found) < len(wanted):
        raise NotStartedError(f"no more ports from {min(_PORTS)} to {max(_PORTS)} are free")
    return dict(zip(wanted, found, strict=True))


def _reserve(port: int) -> bool:
    """Reserve a port for this process; False where another process has it, by a reservation or by listening."""
    if port in _OURS or not _free(port):
        return False
    if sys.platform != "win32":  # which has no locks of that kind: there another process may take it as well
        try:
            fcntl.lockf(_reservations(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
        except OSError:
            return False
    _OURS.add(port)
    return True


@cache
def _reservations() -> int:
    """A file of this user's; a lock of a byte reserves the port of that number, and ends with the process."""
    assert sys.platform != "win32", "without locks there is nothing to reserve"
    file = Path(tempfile.gettempdir()) / f"redelivery-ports-{os.getuid()}.lock"
    return os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _free(port: int) -> bool:
    with suppress(OSError), socket.create_server(("127.0.0.1", port)):
        return True
    return False


def not_started(text: str, output: str) -> NotStartedError:
    """The error of a broker that did not start, by what it said on its output."""
    return AddressInUseError(text) if address_in_use(output) else NotStartedError(text)


def address_in_use(output: str) -> bool:
    """Check whether a broker, or Docker, prints there that it could not have one of its ports."""
    return _IN_USE.search(output) is not None


def wait_for_ports(
    host: str,
    ports: Mapping[str, int],
    ended: Callable[[float], bool],
    timeout: float,
    ready: Callable[[], bool],
) -> None:
    """Return when every port accepts a connection, and the broker is ready.

    ``ended`` sleeps for the seconds that it is given and says whether the broker has ended, or has given up. ``ready``
    is asked once somebody listens.

    Raises:
        NotStartedError: the broker ended, or ``timeout`` seconds went by.
    """
    waiting = dict(ports)

    def is_up() -> bool:
        for name in [name for name, port in waiting.items() if _listening(host, port)]:
            del waiting[name]
        return not waiting and ready()

    def pause(seconds: float) -> None:
        if ended(seconds):
            raise NotStartedError("it ended before it listened")

    until_up = Retrying(
        retry=retry_if_result(lambda up: not up),
        wait=wait_fixed(_STEP),
        stop=stop_after_attempt(max(1, round(timeout / _STEP))),
        sleep=pause,
        retry_error_callback=lambda _: False,
    )
    if not until_up(is_up):
        what = f"nobody listened on {waiting}" if waiting else "it was not ready"
        raise NotStartedError(f"after {timeout:g} s {what}")


def _listening(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=1.0) as sock:
            return _stays_open(sock)
    except OSError:
        return False


def _stays_open(sock: socket.socket) -> bool:
    """Docker's proxy accepts for a container that does not listen yet, and hangs up at once."""
    sock.settimeout(0.2)
    try:
        return sock.recv(1) != b""
    except TimeoutError:
        return True
