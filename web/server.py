"""Serves the console as a program of its own, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

import uvicorn

from redelivery.client.containers.running import handled_by
from redelivery.model.errors import ConfigError
from redelivery.web.guard import ADDRESSES, LOOPBACK
from redelivery.web.guard import Guard as ConsoleApp

_ANY: Final = ("0.0.0.0", "::")  # noqa: S104  # only named here


class _ConsoleServer(uvicorn.Server):
    """Ends with the first signal: a page that waits for a broker is cut short."""

    by = 0

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle them here, and raise none again at the end: the exit code says it."""
        with handled_by(self._on_signal):
            yield

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        self.by = number
        self.should_exit = self.force_exit = True


def is_loopback(host: str) -> bool:
    """Check whether only this machine reaches it there."""
    return host in LOOPBACK


def known_as(bind: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """The hosts by which a console is reached that listens there, beside these names."""
    if is_loopback(bind):
        return (*LOOPBACK, *names)
    return (*LOOPBACK, ADDRESSES, socket.gethostname(), *(() if bind in _ANY else (bind,)), *names)


def listening(bind: str, port: int) -> socket.socket:
    """A socket that listens there. Raises ConfigError: the port is not free, or the address is none of this machine."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(bind, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ConfigError(f"--bind {bind}: {error.strerror or error}") from error
    try:
        if os.name == "posix":  # or the port of a console that has just ended would not be free
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(128)
    except OSError as error:
        found.close()
        text = error.strerror or error
        raise ConfigError(
            f"{bind}:{port}: {text}: another program, perhaps another console, is there; take another --port"
        ) from error
    return found


def serve(app: ConsoleApp, listener: socket.socket) -> int:
    """Serve until a signal comes; the exit code. The socket is closed then.

    Threads that still wait for a broker are daemons, and end with the program.
    """
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=1,
    )
    server = _ConsoleServer(config)
    with listener:
        server.run(sockets=[listener])
    if server.by == signal.SIGINT:
        print("redelivery console: interrupted", file=sys.stderr)  # noqa: T201  # as the other commands do
        return 128 + signal.SIGINT
    return 0
