"""Loops over a bare socket at a STOMP peer: no client, the least that Python can do for the same bytes.

Where one is hardly faster than we are, the peer or Python sets the pace, and a ratio to a rival says little of us.
docs/cpu.md has the same loops at a peer that acts in the same thread.
"""

from __future__ import annotations

import socket
from contextlib import closing
from typing import Final
from urllib.parse import urlsplit

from benchmarks.machine import BenchmarkError, Spent, Stopwatch
from benchmarks.ours import BODY
from benchmarks.places import Place

READ: Final = 256 << 10
_SUBSCRIBE: Final = b"SUBSCRIBE\nid:1\nack:%b\ndestination:/queue/%b\n\n\0"
_SEND: Final = b"SEND\ndestination:/queue/x\npersistent:true\nreceipt:%d\n\n%b\0"
EACH, TOGETHER, NONE = "each", "together", "none"  # how a message is acknowledged


def more(connection: socket.socket) -> bytes:
    """Return what comes next. Raises BenchmarkError: nothing does."""
    data = connection.recv(READ)
    if not data:
        raise BenchmarkError("the peer closed the connection")
    return data


class Bare:
    """A socket that is connected to a STOMP peer."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._rest = b""
        self.send = self.socket.sendall
        self.send(b"CONNECT\naccept-version:1.2\nhost:/\n\n\0")
        self.frames()

    def frames(self) -> list[bytes]:
        """Return the whole frames of the next read, without their NUL."""
        *found, self._rest = (self._rest + more(self.socket)).split(b"\0")
        return found

    def close(self) -> None:
        self.socket.close()

    def subscribe(self, queue: str, ack: str) -> None:
        self.send(_SUBSCRIBE % (b"auto" if ack == NONE else b"client-individual", queue.encode()))

    def consume(self, messages: int, ack: str, *, read: bool = True) -> int:
        """Read id and body of so many messages, or a few more, and acknowledge them; how many there were."""
        done = 0
        while done < messages:
            acks = []
            for frame in self.frames():
                if read:
                    _read(frame)
                done += 1
                if ack == NONE:
                    continue
                written = _acknowledgement(frame)
                if ack == EACH:
                    self.send(written)
                else:
                    acks.append(written)
            if acks:
                self.send(b"".join(acks))
        return done

    def commit(self, messages: int, batch: int) -> None:
        """Acknowledge each batch and commit it in one write, whose receipt is awaited.

        A batch of one is an ACK with a receipt, as on ActiveMQ Classic.
        """
        acks: list[bytes] = []
        done, committing = 0, False
        while done < messages:
            for frame in self.frames():
                if frame.lstrip(b"\n").startswith(b"RECEIPT"):
                    done, committing = done + batch, False
                    continue
                _read(frame)
                acks.append(_acknowledgement(frame))
            if not committing and len(acks) >= batch:
                self.send(_transaction(acks[:batch]))
                del acks[:batch]
                committing = True

    def produce(self, messages: int, window: int) -> None:
        """Send so many messages, each confirmed, with at most a window of them open."""
        for first in range(0, messages, window):
            numbers = range(first, min(first + window, messages))
            self.send(b"".join([_SEND % (number, BODY.encode()) for number in numbers]))
            answered = 0
            while answered < len(numbers):
                answered += len(self.frames())


def _read(frame: bytes) -> tuple[str, str]:
    """Return message id and body."""
    at = frame.find(b"\nmessage-id:") + 12
    identifier = frame[at : frame.find(b"\n", at)].replace(b"\\c", b":").decode()
    return identifier, frame[frame.find(b"\n\n", at) + 2 :].decode()


def _acknowledgement(frame: bytes) -> bytes:
    at = frame.find(b"\nack:") + 5
    return b"ACK\nid:%b\n\n\0" % frame[at : frame.find(b"\n", at)]


def _transaction(acks: list[bytes]) -> bytes:
    if len(acks) == 1:
        return acks[0].replace(b"\n\n", b"\nreceipt:1\n\n")
    enlisted = b"".join(acks).replace(b"\n\n", b"\ntransaction:1\n\n")
    return b"BEGIN\ntransaction:1\n\n\0" + enlisted + b"COMMIT\ntransaction:1\nreceipt:1\n\n\0"


def run(place: Place, queue: str, count: int, *, ack: str = EACH, batch: int = 0, read: bool = True) -> Spent:
    """Receive at a fake peer."""
    with closing(Bare(urlsplit(place.url).port or 0)) as bare:
        watch = Stopwatch()
        bare.subscribe(queue, ack)
        if batch:
            bare.commit(count, batch)
        else:
            bare.consume(count, ack, read=read)
        return watch.stop()


def send(place: Place, _queue: str, count: int, *, window: int) -> Spent:
    """Send to a fake peer."""
    with closing(Bare(urlsplit(place.url).port or 0)) as bare:
        watch = Stopwatch()
        bare.produce(count, window)
        return watch.stop()
