"""How a connection is lost: over TCP by a relay that can be cut, in one process by a fault of the broker."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

from redelivery import Connection, ConnectionLostError, InDoubtError
from redelivery.broker import EmbeddedBroker


class Relay:
    """Forwards one connection from a port of its own to ``host:port``, until it is cut."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, name="relay")]
        self._threads[0].start()

    def _accept(self) -> None:
        try:
            client, _ = self._listener.accept()
        except OSError:  # cut before anyone connected
            return
        server = socket.create_connection(self._target)
        self._sockets = [client, server]
        for end in self._sockets:
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for ends in ((client, server), (server, client)):
            thread = threading.Thread(target=self._forward, args=ends, name="relay")
            self._threads.append(thread)
            thread.start()

    def _forward(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):  # the connection was cut
            while data := source.recv(65536):
                sink.sendall(data)
        self._shut()

    def _shut(self) -> None:
        for end in self._sockets:
            with suppress(OSError):  # the other side was first
                end.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        """Close both connections at once; harmless twice."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._threads[0].join()
        self._shut()
        for thread in self._threads[1:]:
            thread.join()
        for end in self._sockets:
            end.close()


def cut_vm(broker: EmbeddedBroker, connection: Connection) -> None:
    """Break a connection over vm: the broker drops it at a send, which it does not execute."""
    broker.faults.drop("SEND")
    with suppress(ConnectionLostError, InDoubtError):
        connection.session().producer("never").send("never")
