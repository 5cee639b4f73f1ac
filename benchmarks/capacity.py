"""What the fake peer can do against a bare socket: a client that reaches this is measuring the peer."""

from __future__ import annotations

import socket
import time
from urllib.parse import urlsplit

from benchmarks.places import FakePlace
from benchmarks.results import Measure

READ = 1 << 18
SEND = b"SEND\ndestination:/queue/bench\npersistent:true\nreceipt:1\n\n%b\0" % (b"x" * 1024)
STEP = 500  # sends in flight, twice


def delivered_per_second(place: FakePlace, count: int) -> float:
    """MESSAGE frames, counted and not looked at; each is acknowledged."""
    queue = place.prepare(count)
    with _connected(place.url) as connection:
        start = time.perf_counter()
        connection.sendall(b"SUBSCRIBE\nid:1\nack:client-individual\ndestination:/queue/%b\n\n\0" % queue.encode())
        left = count
        while left:
            came = connection.recv(READ).count(b"\0")
            left -= came
            connection.sendall(b"ACK\nid:1\n\n\0" * came)
        seconds = time.perf_counter() - start
    place.finish(queue, acked=count)
    return count / seconds


def confirmed_per_second(place: FakePlace, count: int) -> float:
    """SEND frames with a receipt each."""
    steps = max(1, count // STEP)
    with _connected(place.url) as connection:
        start = time.perf_counter()
        owed = 0
        for _ in range(steps):
            connection.sendall(SEND * STEP)
            owed += STEP
            while owed > STEP:
                owed -= connection.recv(READ).count(b"\0")
        while owed:
            owed -= connection.recv(READ).count(b"\0")
        seconds = time.perf_counter() - start
    place.finish("sends", sent=steps * STEP)
    return steps * STEP / seconds


def measure(place: FakePlace, scale: float) -> tuple[Measure, ...]:
    """Both."""
    count = max(1_000, int(100_000 * scale))
    return (
        Measure("peer-delivers", "fake peer to a bare socket", delivered_per_second(place, count), "msg/s", None),
        Measure("peer-confirms", "bare socket to the fake peer", confirmed_per_second(place, count), "msg/s", None),
    )


def _connected(url: str) -> socket.socket:
    parts = urlsplit(url)
    connection = socket.create_connection((parts.hostname, parts.port), timeout=60)
    connection.sendall(b"CONNECT\naccept-version:1.2\nhost:/\n\n\0")
    connection.recv(READ)
    return connection
