"""A loop over a bare socket at the fake STOMP peer: no client, the least that Python can do for the same bytes.

Where it is hardly faster than we are, the peer or Python sets the pace, and a ratio to a rival says little of us.
"""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from benchmarks.places import Place
from benchmarks.stopwatch import Spent, Stopwatch

_READ = 64 << 10
_BODY = "x" * 1024
_SEND = b"SEND\ndestination:/queue/bench\npersistent:true\nreceipt:%d\n\n%b\0"


def consume(place: Place, queue: str, count: int, *, each: bool = False, acks: bool = True) -> Spent:
    """Body and id of every message; the ACKs of one read together, or ``each`` in a write of its own, or none."""
    length, rest = 0, b""
    with _connected(place) as connection:
        watch = Stopwatch()
        mode = b"client-individual" if acks else b"auto"
        connection.sendall(b"SUBSCRIBE\nid:1\nack:%b\ndestination:/queue/%b\n\n\0" % (mode, queue.encode()))
        while count:
            *frames, rest = (rest + connection.recv(_READ)).split(b"\0")
            written = []
            for frame in frames:
                head, _, body = frame.lstrip(b"\n").partition(b"\n\n")
                length += len(_header(head, b"\nmessage-id:").decode()) + len(body.decode())
                if acks:
                    written.append(b"ACK\nid:%b\n\n\0" % _header(head, b"\nack:"))
                    if each:
                        connection.sendall(written.pop())
            if written:
                connection.sendall(b"".join(written))
            count -= len(frames)
        return watch.stop()


def send(place: Place, queue: str, count: int, *, window: int) -> Spent:  # noqa: ARG001  # the peer keeps none
    """Confirmed, with at most ``window`` open."""
    with _connected(place) as connection:
        watch = Stopwatch()
        written = answered = 0
        while answered < count:
            more = min(count - written, window - (written - answered))
            frames = [_SEND % (number, _BODY.encode()) for number in range(written, written + more)]
            if frames:
                connection.sendall(b"".join(frames))
            written += more
            answered += connection.recv(_READ).count(b"\0")
        return watch.stop()


def _connected(place: Place) -> socket.socket:
    parts = urlsplit(place.url)
    connection = socket.create_connection((parts.hostname, parts.port), timeout=60)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(b"CONNECT\naccept-version:1.2\nhost:/\n\n\0")
    connection.recv(_READ)
    return connection


def _header(head: bytes, key: bytes) -> bytes:
    return head.partition(key)[2].partition(b"\n")[0]
