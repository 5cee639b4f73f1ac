"""Sockets: connected within a deadline, never blocking afterwards, plain or TLS."""

from __future__ import annotations

import errno
import os
import socket
import ssl
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from redelivery.model.errors import ConnectError, ConnectionLostError, UnsupportedError
from redelivery.transports.flows import Address, Flow, Lookup, Pause, Readable, Writable
from redelivery.transports.wire.clock import monotonic
from redelivery.transports.wire.polls import READABLE, WRITABLE, poller
from redelivery.transports.wire.threads.guard import interruptible, interruption_point
from redelivery.transports.wire.tls import tls_problem

# One read at most. The system gives and takes back the memory of a large one each time, which costs more than a small
# message: it is used while there is much to read. TLS brings no more than its record at once.
_LITTLE: Final = 64 << 10
_MUCH: Final = 256 << 10
_LONGEST: Final = 86_400.0  # seconds of one poll, whose count of milliseconds is 32 bits; the caller polls again
_TLS_WRITE: Final = 64 << 10  # at once, so that a reader need not wait long for the lock
_WANTS: Final = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
_USER_TIMEOUT: Final[int | None] = getattr(socket, "TCP_USER_TIMEOUT", None)


class Stream:
    """A connected socket. One thread at a time receives, one at a time sends; both may at the same time.

    OpenSSL forbids the latter, so on TLS each call holds a lock, for as long as it does not wait.
    """

    def __init__(self, sock: socket.socket, name: str) -> None:
        self.name = name
        self.drained = False  # the last `receive` brought all that was there
        self._read_size = _LITTLE
        sock.setblocking(False)
        self._sock = sock
        self._tls = sock if isinstance(sock, ssl.SSLSocket) else None
        self._tls_lock = threading.Lock()
        self._quick_ack: int | None = getattr(socket, "TCP_QUICKACK", None)
        self.owes_ack = False  # something was received, and nothing sent since
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake = self._wake_in.fileno()
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)
        self._readable = poller()
        self._readable.register(sock.fileno(), READABLE)
        self._readable.register(self._wake, READABLE)

    @property
    def address(self) -> str | None:
        """The peer's, which a further connection to the same one names instead of the host; None once closed."""
        try:
            return str(self._sock.getpeername()[0])
        except OSError:
            return None

    def fileno(self) -> int:
        """For others that wait for input; -1 once closed."""
        return self._sock.fileno()

    @interruptible
    def wait_readable(self, timeout: float | None) -> bool:
        """Wait up to ``timeout`` seconds; True: there is input, or `poke` was called. One thread at a time."""
        interruption_point()
        if self._tls is not None and self._tls.pending():
            return True
        if self.owes_ack:
            self.acknowledge_quickly()
        if timeout is not None:
            timeout = (timeout if timeout < _LONGEST else _LONGEST) * 1000
        events = self._readable.poll(timeout)
        for descriptor, _ in events:
            if descriptor == self._wake:
                self._drain_pokes()
        return bool(events)

    def poke(self) -> None:
        """End a `wait_readable` of another thread."""
        with suppress(OSError):  # full: it is poked already; closed: nobody waits
            self._wake_out.send(b"!")

    def receive(self) -> bytes | None:
        """Read what is there, None for nothing; leaves `acknowledge_quickly` to the next `wait_readable` or the caller.

        Raises:
            ConnectionLostError: also at the end of the stream.
        """
        self.drained = True
        try:
            if self._tls is None:
                data = self._sock.recv(self._read_size)
            else:
                with self._tls_lock:
                    data = self._tls.recv(_LITTLE)
        except _WANTS:
            return None
        except OSError as error:
            raise ConnectionLostError(f"{self.name}: {error}") from error
        if not data:
            raise ConnectionLostError(f"{self.name} closed the connection")
        self.owes_ack = True
        self.drained = self._tls is None and len(data) < self._read_size
        self._read_size = _MUCH if len(data) >= _LITTLE else _LITTLE
        return data

    def acknowledge_owed(self) -> None:
        """`acknowledge_quickly`, unless what was sent since has done so."""
        if self.owes_ack:
            self.acknowledge_quickly()

    def acknowledge_quickly(self) -> None:
        """TCP's ACK at once: brokers leave Nagle's algorithm on, and a delayed ACK would cost 40 ms per commit.

        Not sticky. What is sent carries the ACK too, so that one who asks and has the answer needs none of its own.
        """
        self.owes_ack = False
        if self._quick_ack is not None:
            try:
                self._sock.setsockopt(socket.IPPROTO_TCP, self._quick_ack, 1)
            except OSError:  # no TCP, or just being shut down
                self._quick_ack = None

    def send(self, data: bytes | memoryview) -> int:
        """Send what the system takes now; how many bytes that were. Raises ConnectionLostError."""
        try:
            if self._tls is None:
                sent = self._sock.send(data)
            else:
                with self._tls_lock:
                    sent = self._tls.send(data[:_TLS_WRITE])
            self.owes_ack = False
            return sent
        except _WANTS:
            return 0
        except OSError as error:
            raise ConnectionLostError(f"{self.name}: {error}") from error

    @interruptible
    def wait_writable(self, timeout: float) -> bool:
        """Wait up to ``timeout`` seconds; True: the peer takes more."""
        interruption_point()
        descriptor = self._sock.fileno()
        if descriptor < 0:  # closed: `send` says so
            return True
        writable = poller()
        writable.register(descriptor, WRITABLE)
        return bool(writable.poll(timeout * 1000))

    def shut_down(self) -> None:
        """End it for the peer and for a thread that waits here; the descriptor stays taken until `close`."""
        with suppress(OSError):  # the peer was faster
            socket.socket.shutdown(self._sock, socket.SHUT_RDWR)  # SSLSocket's own would turn TLS off under a reader
        self.poke()

    def close(self) -> None:
        """Give the descriptors back; nobody may be inside another method but `poke`."""
        for each in (self._sock, self._wake_in, self._wake_out):
            each.close()

    def _drain_pokes(self) -> None:
        with suppress(OSError):  # drained already
            self._wake_in.recv(4096)


def connect(
    host: str,
    port: int,
    tls: ssl.SSLContext | None,
    timeout: float,
    user_timeout: float | None = None,
    address: str | None = None,
) -> Flow[Stream]:
    """Resolve, connect and shake hands for TLS, all within ``timeout`` seconds. Ended early, it closes its socket.

    ``user_timeout`` is after how many seconds without an acknowledgement by its system the peer counts as gone;
    ``address``: the one of the host's that is meant.

    Raises:
        ConnectError: the host is not known, refuses, is silent, or its certificate is not trusted.
    """
    _refuse_eventlet()
    deadline = monotonic() + timeout
    name = f"{host}:{port}"
    problem: OSError | None = None
    found = yield from _resolve(address or host, port, timeout)
    for family, kind, protocol, _, target in found:
        sock = socket.socket(family, kind, protocol)
        shaking_hands = False
        try:
            sock.setblocking(False)
            yield from _reach(sock, target, deadline)
            _tune(sock, user_timeout)
            if tls is not None:
                shaking_hands = True
                sock = secured = tls.wrap_socket(sock, server_hostname=host, do_handshake_on_connect=False)
                yield from _shake_hands(secured, deadline)
            return Stream(sock, name)
        except ssl.SSLError as error:
            sock.close()
            raise ConnectError(f"{name}: no TLS: {tls_problem(error)}") from error
        except OSError as error:
            sock.close()
            if shaking_hands:  # it is there, but does not answer in TLS
                how = f"within connect_timeout={timeout:g} s" if isinstance(error, TimeoutError) else f"({error})"
                raise ConnectError(f"{name} did not answer in TLS {how}: is it a TLS port?") from error
            problem = error
            if monotonic() >= deadline:
                break
        except BaseException:  # thrown in, or an interrupt
            sock.close()
            raise
    if isinstance(problem, TimeoutError):
        raise ConnectError(
            f"{name} did not answer within connect_timeout={timeout:g} s: does a firewall drop what is sent there?"
        ) from problem
    raise ConnectError(f"{name}: {problem}") from problem


def read(stream: Stream, deadline: float) -> Flow[bytes]:
    """Wait for what comes next, never empty. Raises TimeoutError after the deadline, ConnectionLostError."""
    while True:
        data = stream.receive()
        if data:
            return data
        if monotonic() >= deadline:
            raise TimeoutError
        yield Readable(stream, deadline)


def go_on(deadline: float) -> Flow[None]:
    """Between two reads for one answer: a peer that never stops ends no loop, and an event loop has other tasks too.

    Raises TimeoutError after the deadline.
    """
    if monotonic() >= deadline:
        raise TimeoutError
    yield Pause(0)


def until_writable(stream: Stream, deadline: float) -> Flow[None]:
    """Wait until the system may take more. Raises TimeoutError after the deadline."""
    if monotonic() >= deadline:
        raise TimeoutError
    yield Writable(stream, deadline)


def _refuse_eventlet() -> None:
    patcher = sys.modules.get("eventlet.patcher")
    if patcher is not None and patcher.is_monkey_patched("select"):
        raise UnsupportedError(
            "sockets are waited for by select.poll, which eventlet.monkey_patch() has taken away;"
            " use gevent, threads or asyncio; vm:// needs none"
        )


def _resolve(host: str, port: int, timeout: float) -> Flow[Sequence[Address]]:
    asked = Lookup(host, port, monotonic() + timeout)
    yield asked
    if asked.problem is not None:
        raise ConnectError(f"the host {host!r} was not found: {asked.problem}") from asked.problem
    if not asked.found:
        raise ConnectError(f"the host {host!r} was not found within connect_timeout={timeout:g} s")
    return asked.found


def _reach(sock: socket.socket, target: tuple[object, ...], deadline: float) -> Flow[None]:
    """Connect. Raises OSError."""
    code = sock.connect_ex(target)
    if code not in (0, errno.EINPROGRESS, errno.EWOULDBLOCK, errno.EINTR):
        raise _error(code)
    while True:
        try:
            sock.getpeername()
            return
        except OSError as error:
            if error.errno != errno.ENOTCONN:
                raise
        if monotonic() >= deadline:
            raise TimeoutError("timed out")
        yield Writable(sock, deadline)
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise _error(code)


def _error(code: int) -> OSError:
    return OSError(code, getattr(socket, "errorTab", {}).get(code) or os.strerror(code))  # Windows has the first


def _shake_hands(sock: ssl.SSLSocket, deadline: float) -> Flow[None]:
    """TLS's handshake. Raises OSError, of which ssl.SSLError is one."""
    while True:
        try:
            sock.do_handshake()
            return
        except ssl.SSLWantReadError:
            wish: Readable | Writable = Readable(sock, deadline)
        except ssl.SSLWantWriteError:
            wish = Writable(sock, deadline)
        if monotonic() >= deadline:
            raise TimeoutError("timed out")
        yield wish


def _tune(sock: socket.socket, user_timeout: float | None) -> None:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if _USER_TIMEOUT is not None and user_timeout:
        sock.setsockopt(socket.IPPROTO_TCP, _USER_TIMEOUT, int(user_timeout * 1000))
