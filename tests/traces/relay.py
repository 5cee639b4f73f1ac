"""How a connection is lost: over TCP by a relay that can be cut, in one process by a fault of the broker."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress

from redelivery import Connection, ConnectionLostError, InDoubtError
from redelivery.broker import EmbeddedBroker

NOTICED_SECONDS = 5.0  # for a broker to close its end of what was cut


class Relay:
    """Forwards connections from a port of its own to ``host:port``, until they are cut."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._clients: list[socket.socket] = []
        self._servers: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept, name="relay")
        self._accepting.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:  # cut
                return
            server = socket.create_connection(self._target)
            self._clients.append(client)
            self._servers.append(server)
            for source, sink in ((client, server), (server, client)):
                source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                thread = threading.Thread(target=_forward, args=(source, sink), name="relay")
                self._threads.append(thread)
                thread.start()

    def cut(self) -> None:
        """End all connections at once, without a goodbye; harmless twice.

        The broker has closed its ends as well when this returns, or had its time to.
        """
        _shut(self._listener)
        self._listener.close()
        self._accepting.join()
        _shut(*self._clients)
        deadline = time.monotonic() + NOTICED_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        _shut(*self._servers)
        for thread in self._threads:
            thread.join()
        for end in (*self._clients, *self._servers):
            end.close()


def _forward(source: socket.socket, sink: socket.socket) -> None:
    """All that comes, to its end; what cannot be passed on is read all the same, so that no end is reset."""
    with suppress(OSError):  # it was cut
        while data := source.recv(65536):
            with suppress(OSError):  # so was the other
                sink.sendall(data)
    with suppress(OSError):  # as above
        sink.shutdown(socket.SHUT_WR)


def _shut(*ends: socket.socket) -> None:
    for end in ends:
        with suppress(OSError):  # the other side was first
            end.shutdown(socket.SHUT_RDWR)


def cut_vm(broker: EmbeddedBroker, connection: Connection) -> None:
    """Break a connection over vm: the broker drops it at a send, which it does not execute."""
    broker.faults.drop("SEND")
    with suppress(ConnectionLostError, InDoubtError):
        connection.session().producer("never").send("never")
