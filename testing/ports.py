"""Free ports, and waiting for somebody to listen on them."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack


class NotStartedError(Exception):
    """A broker did not come up; the text says why."""


def free_ports(names: Iterable[str]) -> dict[str, int]:
    """One free port of this machine for each name; all different."""
    with ExitStack() as held:
        sockets = {name: held.enter_context(socket.create_server(("127.0.0.1", 0))) for name in names}
        return {name: sock.getsockname()[1] for name, sock in sockets.items()}


def wait_for_ports(host: str, ports: Mapping[str, int], ended: Callable[[float], bool], timeout: float) -> None:
    """Return when every port accepts a connection.

    ``ended`` sleeps for the seconds that it is given and says whether the broker has ended.

    Raises:
        NotStartedError: the broker ended, or ``timeout`` seconds went by.
    """
    step = 0.1
    waiting = dict(ports)
    for _ in range(max(1, round(timeout / step))):
        waiting = {name: port for name, port in waiting.items() if not _listening(host, port)}
        if not waiting:
            return
        if ended(step):
            raise NotStartedError("it ended before it listened")
    raise NotStartedError(f"after {timeout:g} s nobody listened on {waiting}")


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
