"""A TCP proxy that cuts a connection at the very frame, or does other harm: what a crash leaves, without luck."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic, sleep
from types import TracebackType
from typing import Literal, Self

Way = Literal["up", "down"]  # to the broker, from the broker


@dataclass(frozen=True, slots=True)
class Cut:
    """Both connections are closed when ``at`` is seen going ``way``; it is not passed on, what came before it is.

    ``after``: only once this has been passed on to the broker; empty: from the beginning. ``within``: so many bytes of
    it, and of what follows it, are passed on first: the frame is torn. ``answer``: what the client gets instead of the
    broker's answer before it is closed, made from ``at`` and what has come with it; of those that go up.
    """

    at: bytes
    way: Way = "up"
    after: bytes = b""
    within: int = 0
    answer: Callable[[bytes], bytes] | None = None


class Proxy:
    """Listens on `port` and passes everything on to ``host`` and ``port``; `cut` is obeyed once.

    Attributes:
        tls: what it speaks to clients, if anything; it may change between two of them.
        pause: seconds that each read waits before it is passed on.
        refusal: what is said to each new client, in the broker's place, before it is hung up on; empty: nothing.
        refusals: to how many it was said.
    """

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        self._broker = (host, port)
        self.tls = tls
        self.pause = 0.0
        self.refusal = b""
        self.refusals = 0
        self._still_until = 0.0
        self._refusing = False
        self._mute: set[socket.socket] = set()
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

    def stall(self, seconds: float) -> None:
        """Pass nothing on for so long, on any connection, then all of it."""
        self._still_until = monotonic() + seconds

    def forget(self) -> None:
        """Pass nothing on any more on the connections that there are, and close none of them: they are half open."""
        self._mute.update(self._sockets)

    def refuse(self, refusing: bool) -> None:
        """Hang up, and refuse every new connection; or stop doing so."""
        self._refusing = refusing
        if refusing:
            self._hang_up()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return  # closed
            threading.Thread(target=self._let_in, args=(client,), daemon=True).start()

    def _let_in(self, client: socket.socket) -> None:
        try:
            if self._refusing:
                raise ConnectionRefusedError
            if self.tls is not None:
                client.settimeout(10)
                client = self.tls.wrap_socket(client, server_side=True)
            if self.refusal:
                self._turn_away(client, self.refusal)
                return
            broker = socket.create_connection(self._broker, timeout=10)
        except OSError:  # the broker is down, or the client does not like our certificate
            client.close()
            return
        for each in (client, broker):
            each.settimeout(None)
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sockets += [client, broker]
        for source, sink, way in ((client, broker, "up"), (broker, client, "down")):
            thread = threading.Thread(target=self._pass_on, args=(source, sink, way), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _turn_away(self, client: socket.socket, refusal: bytes) -> None:
        with client:
            client.settimeout(10)
            client.recv(1 << 16)
            client.sendall(refusal)
            self.refusals += 1
            _until_it_leaves(client)

    def _pass_on(self, source: socket.socket, sink: socket.socket, way: Way) -> None:
        held = b""
        with suppress(OSError):  # the other side has hung up
            while data := source.recv(1 << 16):
                if source in self._mute:
                    continue
                sleep(max(self.pause, self._still_until - monotonic(), 0.0))
                held += data
                with self._lock:
                    ready, rest, ended = self._split(held, way)
                    sink.sendall(ready)
                    answer = self._cut.answer if ended and self._cut is not None else None
                    if ended:
                        self._cut = None
                if answer is not None:
                    with suppress(OSError):  # the client has gone, which hangs up as well
                        source.sendall(answer(held[len(ready) :]))
                        _until_it_leaves(source)
                held = rest
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
            return data[: found + cut.within], b"", True
        ready, rest = _whole(data[start:], cut.at)
        return data[:start] + ready, rest, False

    def _hang_up(self) -> None:
        sockets, self._sockets = self._sockets, []
        for each in sockets:
            with suppress(OSError):  # hung up already
                each.shutdown(socket.SHUT_RDWR)
            each.close()


def _until_it_leaves(client: socket.socket) -> None:
    """What it was answered is not lost by a reset, as it would be if what it still sends were not read."""
    client.shutdown(socket.SHUT_WR)
    client.settimeout(10)
    while client.recv(1 << 16):
        pass


def _whole(data: bytes, mark: bytes) -> tuple[bytes, bytes]:
    """Its end is held back as far as the mark may begin with it; not one byte, as many an AMQP frame ends with 0."""
    for length in range(min(len(mark) - 1, len(data)), 1, -1):
        if mark.startswith(data[-length:]):
            return data[:-length], data[-length:]
    return data, b""
