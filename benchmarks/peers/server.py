"""Servers of the fake peers: a socket served by one thread that reads and writes in turn, and the bodies they send."""

from __future__ import annotations

import json
import os
import select
import socket
import ssl
import sys
import threading
from abc import ABC, abstractmethod
from collections import deque
from functools import lru_cache

READ = 1 << 18


@lru_cache(maxsize=4)
def body_of(size: int, kind: str) -> bytes:
    """A body of one kind; kept, so that only the first subscription pays for making it."""
    if kind == "nul":
        return bytes(size)
    if kind == "random":
        chunk = os.urandom(min(size, 1 << 20))
        return (chunk * (size // max(1, len(chunk)) + 1))[:size]
    return b"x" * size


def parse_queue(name: str) -> tuple[int, int, str]:
    """``bench.<n>.<size>.<kind>``: how many messages, of how many bytes, of which kind."""
    _, count, size, kind = name.split(".")
    return int(count), int(size), kind


class Server(ABC):
    """One connection. A protocol fills `out` in `take` and `refill`, and sets `over` when the client said goodbye."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.out: deque[memoryview] = deque()
        self.rest = b""
        self.finished = False

    @abstractmethod
    def take(self, data: bytes) -> None:
        """Answer what came; `rest` is for the beginning of what has not come whole."""

    @abstractmethod
    def refill(self) -> bool:
        """Put what may be sent next into `out`; False when there is nothing."""

    @abstractmethod
    def counts(self) -> dict[str, int]:
        """Return the numbers of what came over the connection."""

    def serve(self) -> None:
        """Until the client is gone; then one line of JSON says what came."""
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        interest = select.POLLIN
        with self.socket:
            try:
                while not self.finished or self.out:
                    wanted = select.POLLIN | (select.POLLOUT if self.out or self.refill() else 0)
                    if wanted != interest:
                        poll.modify(self.socket, wanted)
                        interest = wanted
                    ((_, event),) = poll.poll()
                    if event & ~select.POLLOUT and not self.read():
                        break
                    if event & select.POLLOUT:
                        self.write()
            except ConnectionError:
                pass  # a client may leave as it likes; the counts below say how far it came
        print(json.dumps(self.counts()), flush=True)

    def write(self) -> None:
        """As much as the socket takes."""
        try:
            while self.out:
                sent = self.socket.send(self.out[0])
                if sent < len(self.out[0]):
                    self.out[0] = self.out[0][sent:]
                    return
                self.out.popleft()
        except (BlockingIOError, ssl.SSLWantWriteError):
            return

    def read(self) -> bool:
        """Take what came and write the answers; False at the end of the stream."""
        try:
            data = self.socket.recv(READ)
        except ssl.SSLWantReadError:  # a part of a record
            return True
        if not data:
            return False
        self.take(self.rest + data if self.rest else data)
        if self.out:
            self.write()
        return True


def listen(kind: type[Server]) -> None:
    """Serve every connection until killed; the first line written is the port. An argument is its certificate: TLS."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    for certificate in sys.argv[1:]:
        tls.load_cert_chain(certificate)
    with socket.create_server(("127.0.0.1", 0)) as server:
        print(server.getsockname()[1], flush=True)
        while True:
            connection, _ = server.accept()
            if sys.argv[1:]:
                connection = tls.wrap_socket(connection, server_side=True)
            threading.Thread(target=kind(connection).serve, daemon=True).start()
