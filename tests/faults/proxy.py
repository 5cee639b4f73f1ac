"""A TCP proxy that cuts a connection at the very frame: what a crash at that moment leaves, without luck."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Self

Way = Literal["up", "down"]  # to the broker, from the broker


@dataclass(frozen=True, slots=True)
class Cut:
    """Both connections are closed when ``at`` is seen going ``way``; it is not passed on, what came before it is.

    ``after``: only once this has been passed on to the broker; empty: from the beginning.
    """

    at: bytes
    way: Way = "up"
    after: bytes = b""


class Proxy:
    """Listens on `port` and passes everything on to ``host`` and ``port``; `cut` is obeyed once."""

    def __init__(self, host: str, port: int) -> None:
        self._broker = (host, port)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self._lock = threading.Lock()
        self._cut: Cut | None = None
        self._armed = False
        self.happened = threading.Event()
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._hang_up()
        for thread in self._threads:
            thread.join(timeout=10)

    def cut(self, where: Cut) -> None:
        """Arm it: from the next byte on."""
        with self._lock:
            self._cut, self._armed = where, not where.after
            self.happened.clear()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return  # closed
            broker = socket.create_connection(self._broker, timeout=10)
            broker.settimeout(None)
            for each in (client, broker):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._sockets += [client, broker]
            for source, sink, way in ((client, broker, "up"), (broker, client, "down")):
                thread = threading.Thread(target=self._pass_on, args=(source, sink, way), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, way: Way) -> None:
        held = b""
        with suppress(OSError):  # the other side has hung up
            while data := source.recv(1 << 16):
                held += data
                with self._lock:
                    ready, held, ended = self._split(held, way)
                    sink.sendall(ready)
                    if ended:
                        self._cut = None
                if ended:
                    self._hang_up()
                    self.happened.set()
                    return
            sink.shutdown(socket.SHUT_RDWR)

    def _split(self, data: bytes, way: Way) -> tuple[bytes, bytes, bool]:
        """What may leave, what may be the beginning of a mark and waits for more, and whether it is cut here."""
        cut = self._cut
        if cut is None:
            return data, b"", False
        start = 0
        if not self._armed and way == "up":
            found = data.find(cut.after)
            if found < 0:
                return *_whole(data, cut.after), False
            self._armed, start = True, found + len(cut.after)
        if not self._armed or way != cut.way:
            return data, b"", False
        found = data.find(cut.at, start)
        if found >= 0:
            return data[:found], b"", True
        ready, rest = _whole(data[start:], cut.at)
        return data[:start] + ready, rest, False

    def _hang_up(self) -> None:
        sockets, self._sockets = self._sockets, []
        for each in sockets:
            with suppress(OSError):  # hung up already
                each.shutdown(socket.SHUT_RDWR)
            each.close()


def _whole(data: bytes, mark: bytes) -> tuple[bytes, bytes]:
    """Its end is held back as far as the mark may begin with it."""
    for length in range(min(len(mark) - 1, len(data)), 0, -1):
        if mark.startswith(data[-length:]):
            return data[:-length], data[-length:]
    return data, b""
