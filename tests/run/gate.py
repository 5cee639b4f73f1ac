"""A gate before a broker: connections pass, until it is shut, which resets them and refuses others."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from time import monotonic, sleep
from types import TracebackType
from typing import Final, Self

_RESET: Final = struct.pack("ii", 1, 0)  # SO_LINGER: on, and no time: close() sends RST


class Gate:
    """Listens on `port` and passes everything on to ``host`` and ``port``, while it is open."""

    def __init__(self, host: str, port: int) -> None:
        self._broker = (host, port)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self._lock = threading.Lock()
        self._open = True
        self._deaf: set[socket.socket] = set()
        self._still_until = 0.0
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self.passed: list[tuple[bytearray, bytearray]] | None = None  # a list: what each connection sends and gets
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._timers: list[threading.Timer] = []
        self._threads[0].start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for timer in self._timers:
            timer.cancel()
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self.shut()
        for thread in (*self._timers, *self._threads):
            thread.join(timeout=10)

    def shut(self, seconds: float | None = None) -> None:
        """Reset all connections, and refuse new ones; ``seconds``: open it after that."""
        with self._lock:  # also of the resets: one who finds nothing left to reset may rely on it
            self._open = False
            for pair in self._pairs:
                _reset(*pair)
            self._pairs = []
        if seconds is not None:
            timer = threading.Timer(seconds, self.open)
            self._timers = [*(each for each in self._timers if each.is_alive()), timer]
            timer.start()

    def open(self) -> None:
        """Let connections pass (again)."""
        with self._lock:
            self._open = True

    def deafen(self) -> None:
        """Drop what the broker says, on the connections that there are."""
        with self._lock:
            self._deaf.update(broker for _, broker in self._pairs)

    def stall(self, seconds: float) -> None:
        """Pass nothing on for so long, on any connection, then all of it."""
        self._still_until = monotonic() + seconds

    def forget(self) -> None:
        """Drop what either side says on the connections that there are, and close none of them: they are half open."""
        with self._lock:
            self._deaf.update(each for pair in self._pairs for each in pair)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return  # closed
            with self._lock:
                if not self._open:
                    _reset(client)
                    continue
                try:
                    broker = socket.create_connection(self._broker, timeout=10)
                except OSError:  # it is being started again
                    _reset(client)
                    continue
                broker.settimeout(None)
                for each in (client, broker):
                    each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._pairs.append((client, broker))  # from now on it may be shut at any moment
            self._threads = [each for each in self._threads if each.is_alive()]
            copies = bytearray(), bytearray()
            if self.passed is not None:
                self.passed.append(copies)
            for source, sink, copy in ((client, broker, copies[0]), (broker, client, copies[1])):
                kept = None if self.passed is None else copy
                thread = threading.Thread(target=self._pass_on, args=(source, sink, kept), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, kept: bytearray | None) -> None:
        with suppress(OSError):  # reset, or the other side has hung up
            while data := _received(source):
                sleep(max(0.0, self._still_until - monotonic()))
                if source not in self._deaf:
                    if kept is not None:
                        kept += data
                    sink.sendall(data)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)


def _received(source: socket.socket) -> bytes:
    """What has come, acknowledged at once: a broker that waits for that (Nagle) writes a second answer 40 ms later."""
    if hasattr(socket, "TCP_QUICKACK"):  # Linux; it does not stay
        source.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
    return source.recv(1 << 16)


def _reset(*sockets: socket.socket) -> None:
    for each in sockets:
        with suppress(OSError):  # it has gone already
            each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            each.shutdown(socket.SHUT_RDWR)
        each.close()
