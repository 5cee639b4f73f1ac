"""A loop over a bare socket at the fake STOMP peer: no client, the least that Python can do for the same bytes.

Where it is hardly faster than we are, the peer or Python sets the pace, and a ratio to a rival says little of us.
"""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from benchmarks.cases import Contender, Run
from benchmarks.places import Place
from benchmarks.results import BARE, BenchmarkError
from benchmarks.stopwatch import Spent, Stopwatch

_READ = 64 << 10
_BODY = "x" * 1024
_SUBSCRIBE = b"SUBSCRIBE\nid:1\nack:%b\ndestination:/queue/%b\n\n\0"
_SEND = b"SEND\ndestination:/queue/bench\npersistent:true\nreceipt:%d\n\n%b\0"


def consume(place: Place, queue: str, count: int, *, each: bool = False, acks: bool = True) -> Spent:
    """Body and id of every message; the ACKs of one read together, or ``each`` in a write of its own, or none."""
    length, rest = 0, b""
    with _connected(place) as connection:
        watch = Stopwatch()
        mode = b"client-individual" if acks else b"auto"
        connection.sendall(_SUBSCRIBE % (mode, queue.encode()))
        while count:
            *frames, rest = (rest + more(connection)).split(b"\0")
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


def commit(place: Place, queue: str, count: int, *, batch: int) -> Spent:
    """Body and id of every message; the ACKs of a batch and its COMMIT in one write, whose receipt is awaited.

    A batch of one is an ACK with a receipt, as on ActiveMQ Classic.
    """
    length, rest = 0, b""
    acks: list[bytes] = []
    done, committing = 0, False
    with _connected(place) as connection:
        watch = Stopwatch()
        connection.sendall(_SUBSCRIBE % (b"client-individual", queue.encode()))
        while done < count:
            *frames, rest = (rest + more(connection)).split(b"\0")
            for frame in frames:
                head, _, body = frame.lstrip(b"\n").partition(b"\n\n")
                if head.startswith(b"RECEIPT"):
                    done, committing = done + batch, False
                    continue
                length += len(_header(head, b"\nmessage-id:").decode()) + len(body.decode())
                acks.append(_header(head, b"\nack:"))
            if not committing and len(acks) >= batch:
                connection.sendall(_transaction(acks[:batch]))
                del acks[:batch]
                committing = True
        return watch.stop()


def _transaction(acks: list[bytes]) -> bytes:
    if len(acks) == 1:
        return b"ACK\nid:%b\nreceipt:1\n\n\0" % acks[0]
    written = [b"ACK\nid:%b\ntransaction:1\n\n\0" % ack for ack in acks]
    return b"".join((b"BEGIN\ntransaction:1\n\n\0", *written, b"COMMIT\ntransaction:1\nreceipt:1\n\n\0"))


def send(place: Place, queue: str, count: int, *, window: int) -> Spent:  # noqa: ARG001  # the peer keeps none
    """Confirmed, with at most ``window`` open."""
    with _connected(place) as connection:
        watch = Stopwatch()
        written = answered = 0
        while answered < count:
            able = min(count - written, window - (written - answered))
            frames = [_SEND % (number, _BODY.encode()) for number in range(written, written + able)]
            if frames:
                connection.sendall(b"".join(frames))
            written += able
            answered += more(connection).count(b"\0")
        return watch.stop()


def beside(run: Run, *, acks: bool = True) -> Contender:
    """As a contender of a case, at the fake peers."""
    return Contender(BARE, run, acks=acks, remark="no client", fake_only=True)


def more(connection: socket.socket) -> bytes:
    """What comes next. Raises BenchmarkError: nothing does."""
    data = connection.recv(_READ)
    if not data:
        raise BenchmarkError("the peer closed the connection")
    return data


def _connected(place: Place) -> socket.socket:
    parts = urlsplit(place.url)
    connection = socket.create_connection((parts.hostname, parts.port), timeout=60)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(b"CONNECT\naccept-version:1.2\nhost:/\n\n\0")
    more(connection)
    return connection


def _header(head: bytes, key: bytes) -> bytes:
    return head.partition(key)[2].partition(b"\n")[0]
