"""A listener: one thread serves all clients of one protocol of an embedded broker, and waits for none of them."""

from __future__ import annotations

import logging
import selectors
import socket
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Final, TypeAlias

from redelivery.broker.core import BrokerClosedError, Core
from redelivery.broker.servers.client import ClientSocket
from redelivery.broker.store.journal import UnreadableStoreError
from redelivery.model.errors import ConfigError, MessageFormatError
from redelivery.transports.wire.clock import monotonic

HOST: Final = "127.0.0.1"
_PAUSE: Final = 0.5  # seconds
_FEW_LOGINS: Final = 100  # may take as long as they are allowed; beyond, one that takes longer than this is ended:
_QUICK_LOGIN: Final = 1.0  # seconds
_MOST_LOGINS: Final = 1000  # beyond, the oldest is ended, however quick it is
log = logging.getLogger(__name__)


# Makes a client of a socket, the broker, a name for the session, and what to call when there is something to write,
# from any thread.
ClientFactory: TypeAlias = Callable[[socket.socket, Core, str, Callable[[ClientSocket], None]], ClientSocket]


class Listener:
    """Listens from the start on. Raises ConfigError: the port cannot be had.

    ``protocol``: "stomp" or "amqp". ``port``: 0 takes a free one. ``number``: of this listener, for the names of its
    sessions. ``new_client``: makes a client of a new socket.
    """

    def __init__(self, core: Core, protocol: str, port: int, number: int, new_client: ClientFactory) -> None:
        self._core = core
        self._protocol = protocol
        self._number = number
        self._new_client = new_client
        try:
            self._socket = socket.create_server((HOST, port))
        except OSError as error:
            raise ConfigError(f"{protocol}_port={port}: cannot listen on {HOST}:{port}: {error.strerror}") from error
        self._socket.setblocking(False)
        self.port: int = self._socket.getsockname()[1]
        self._pipe_out, self._pipe_in = socket.socketpair()  # a self-pipe: a byte in it wakes the thread
        self._pipe_out.setblocking(False)
        self._pipe_in.setblocking(False)
        self._woken = False
        self._closing = False
        self._write_all = False
        self._accept_again: float | None = None  # when, if accepting pauses
        self._ready: deque[ClientSocket] = deque()  # they may have something to write
        self._clients: dict[ClientSocket, int] = {}  # with the events that the selector looks for
        self._logins: dict[ClientSocket, None] = {}  # not finished when they were last looked at, the oldest first
        self._numbers = count(1)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._socket, selectors.EVENT_READ)
        self._selector.register(self._pipe_out, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name=f"redelivery-broker-{core.name}-{protocol}", daemon=True)
        core.faults.on_change(self._faults_changed)
        core.when_closed(self._stop)
        core.owners.add(self)
        self._thread.start()

    def close(self, timeout: float) -> None:
        """Cut every connection and end the thread, waiting for it up to ``timeout`` seconds. Idempotent."""
        self._stop()
        self._thread.join(timeout)

    def orphan(self) -> None:
        """In a child after fork(): its copies would keep port and clients when the parent is gone."""
        self._closing = True
        self._selector.close()
        for each in (self._socket, self._pipe_out, self._pipe_in, *(client.socket for client in list(self._clients))):
            each.close()

    def _stop(self) -> None:
        self._closing = True
        self._wake()

    def _run(self) -> None:
        with self._core.gathering(), suppress(BrokerClosedError):
            self._serve()

    def _serve(self) -> None:
        try:
            while not self._closing:
                for key, _ in self._selector.select(self._patience()):
                    if key.fileobj is self._socket:
                        self._accept()
                    elif key.fileobj is self._pipe_out:
                        self._empty_pipe()
                    else:
                        client: ClientSocket = key.data
                        if client.reads:
                            client.read()
                        self._ready.append(client)
                self._tick()
        except (UnreadableStoreError, MessageFormatError) as error:  # a message that was stored cannot be sent
            self._core.end(error)  # before the clients are closed, who would go on with it
        finally:
            for client in list(self._clients):
                client.close()
                client.socket.close()
            self._selector.close()
            for each in (self._socket, self._pipe_out, self._pipe_in):
                each.close()

    def _patience(self) -> float | None:
        """Seconds until something is due."""
        if self._ready or self._write_all:
            return 0.0
        deadlines = [self._accept_again, self._next_login_end(), *(client.next_deadline() for client in self._clients)]
        next_one = min((deadline for deadline in deadlines if deadline is not None), default=None)
        return None if next_one is None else max(0.0, next_one - monotonic())

    def _tick(self) -> None:
        """Do what is due, then write what is to be written."""
        now = monotonic()
        if self._accept_again is not None and self._accept_again <= now:
            self._accept_again = None
            self._selector.register(self._socket, selectors.EVENT_READ)
        self._end_logins(now)
        for client in self._clients:
            deadline = client.next_deadline()
            if deadline is not None and deadline <= now:
                client.tick(now)
                self._ready.append(client)
        if self._write_all:
            self._write_all = False
            self._ready.extend(self._clients)
        self._core.sync()  # once for all that these clients have asked for, before they are answered
        for client in dict.fromkeys([self._ready.popleft() for _ in range(len(self._ready))]):
            client.write()
            self._watch(client)

    def _watch(self, client: ClientSocket) -> None:
        """Look for what the client is ready for now; a closed one is removed."""
        before = self._clients.get(client)
        if before is None:
            return
        events = 0
        if client.closed:
            del self._clients[client]
            self._logins.pop(client, None)
        else:
            events = (selectors.EVENT_READ if client.reads else 0) | (selectors.EVENT_WRITE if client.writes else 0)
            self._clients[client] = events
        if before and not events:
            self._selector.unregister(client.socket)
        elif events and not before:
            self._selector.register(client.socket, events, client)
        elif events != before:
            self._selector.modify(client.socket, events, client)
        if client.closed:
            client.socket.close()

    def _accept(self) -> None:
        try:
            sock, _ = self._socket.accept()
        except (BlockingIOError, ConnectionAbortedError):  # the client is gone again
            return
        except OSError as error:  # no more files can be opened: new clients must wait
            log.warning("broker %s: no %s client can be accepted: %s", self._core.name, self._protocol.upper(), error)
            self._selector.unregister(self._socket)
            self._accept_again = monotonic() + _PAUSE
            return
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        name = f"ID:{self._core.name}-{self._core.started_at}-{self._number}:{next(self._numbers)}"
        client = self._new_client(sock, self._core, name, self._mark_ready)
        self._clients[client] = 0
        self._logins[client] = None
        self._watch(client)

    def _end_logins(self, now: float) -> None:
        """End old logins where there are many: a client that connects and says nothing must not keep others out."""
        if len(self._logins) > _FEW_LOGINS:
            self._logins = {client: None for client in self._logins if client.logs_in}
        while len(self._logins) > _FEW_LOGINS:
            oldest = next(iter(self._logins))
            if now < oldest.opened + _QUICK_LOGIN and len(self._logins) <= _MOST_LOGINS:
                return
            del self._logins[oldest]
            oldest.close()
            self._ready.append(oldest)

    def _next_login_end(self) -> float | None:
        return next(iter(self._logins)).opened + _QUICK_LOGIN if len(self._logins) > _FEW_LOGINS else None

    def _mark_ready(self, client: ClientSocket) -> None:
        """The client has something to write; called from any thread."""
        self._ready.append(client)
        if threading.current_thread() is not self._thread:
            self._wake()

    def _faults_changed(self) -> None:
        self._write_all = True
        self._wake()

    def _wake(self) -> None:
        if not self._woken:
            self._woken = True
            with suppress(OSError):  # the thread has ended
                self._pipe_in.send(b"!")

    def _empty_pipe(self) -> None:
        self._woken = False  # first: a wake from now on writes another byte
        with suppress(BlockingIOError):
            self._pipe_out.recv(64)
