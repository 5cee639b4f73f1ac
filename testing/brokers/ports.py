"""Free ports, and waiting for somebody to listen on them."""

from __future__ import annotations

import random
import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

# Not those that systems give to outgoing connections (Linux: from 32768, others: from 49152). One of these would be
# taken now and then between the choice and the broker's start, or while the broker is down.
_PORTS = range(20000, 32768)


class NotStartedError(Exception):
    """A broker did not come up; the text says why."""


def free_ports(names: Iterable[str]) -> dict[str, int]:
    """One port for each name on which nobody listens, from 20000 to 32767; all different.

    They are chosen at random, so that two test runs beside each other have different ones.
    """
    free = (port for port in random.sample(_PORTS, len(_PORTS)) if _free(port))
    return {name: next(free) for name in names}


def _free(port: int) -> bool:
    with suppress(OSError), socket.create_server(("127.0.0.1", port)):
        return True
    return False


def wait_for_ports(
    host: str,
    ports: Mapping[str, int],
    ended: Callable[[float], bool],
    timeout: float,
    ready: Callable[[], bool] = lambda: True,
) -> None:
    """Return when every port accepts a connection, and the broker is ready.

    ``ended`` sleeps for the seconds that it is given and says whether the broker has ended. ``ready`` is asked once
    it listens.

    Raises:
        NotStartedError: the broker ended, or ``timeout`` seconds went by.
    """
    step = 0.1
    waiting = dict(ports)
    for _ in range(max(1, round(timeout / step))):
        waiting = {name: port for name, port in waiting.items() if not _listening(host, port)}
        if not waiting and ready():
            return
        if ended(step):
            raise NotStartedError("it ended before it listened")
    raise NotStartedError(f"after {timeout:g} s {f'nobody listened on {waiting}' if waiting else 'it was not ready'}")


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
