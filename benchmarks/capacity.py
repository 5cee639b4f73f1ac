"""What a fake peer can do against a bare socket: a client that reaches this is measuring the peer."""

from __future__ import annotations

import socket
import time
from typing import Final
from urllib.parse import urlsplit

from benchmarks.naming import AMQP
from benchmarks.peers.amqp_feed import Feed
from benchmarks.peers.values import described, number
from benchmarks.places import FAKE, FakePlace
from benchmarks.plain_amqp import DISPOSITION, WINDOW, session_at
from benchmarks.results import Measure

READ: Final = 1 << 18
SEND: Final = b"SEND\ndestination:/queue/bench\npersistent:true\nreceipt:1\n\n%b\0" % (b"x" * 1024)
STEP: Final = 500  # sends in flight, twice; and credit at a time


def stomp_delivers(place: FakePlace, count: int) -> float:
    """MESSAGE frames, counted and not looked at; each is acknowledged."""
    queue = place.prepare(count)
    with _stomp(place.url) as connection:
        start = time.perf_counter()
        connection.sendall(b"SUBSCRIBE\nid:1\nack:client-individual\ndestination:/queue/%b\n\n\0" % queue.encode())
        left = count
        while left:
            came = connection.recv(READ).count(b"\0")
            left -= came
            connection.sendall(b"ACK\nid:1\n\n\0" * came)
        seconds = time.perf_counter() - start
    place.finish(queue, acked=count)
    return seconds


def stomp_confirms(place: FakePlace, count: int) -> float:
    """SEND frames with a receipt each."""
    with _stomp(place.url) as connection:
        start = time.perf_counter()
        owed = 0
        for _ in range(count // STEP):
            connection.sendall(SEND * STEP)
            owed += STEP
            while owed > STEP:
                owed -= connection.recv(READ).count(b"\0")
        while owed:
            owed -= connection.recv(READ).count(b"\0")
        seconds = time.perf_counter() - start
    place.finish("sends", sent=count)
    return seconds


def amqp_delivers(place: FakePlace, count: int) -> float:
    """Transfers, counted by their bytes; accepted as often as credit is given."""
    queue = place.prepare(count)
    length = len(Feed(0, 0, 1, 1024, "text", WINDOW).block)
    with session_at(place.url) as session:
        session.attach(AMQP[FAKE], queue, receives=True)
        start = time.perf_counter()
        for taken in range(0, count, STEP):
            session.grant(taken, taken, STEP)
            left = STEP * length
            while left:
                left -= len(session.socket.recv(min(READ, left)))
            session.say(DISPOSITION, True, taken, taken + STEP - 1, True, described(0x24, []))
        seconds = time.perf_counter() - start
    place.finish(queue, acked=count)
    return seconds


def amqp_confirms(place: FakePlace, count: int) -> float:
    """Transfers, each accepted."""
    feed = Feed(0, 0, count, 1024, "text", WINDOW)
    feed.limit = count
    with session_at(place.url) as session:
        session.attach(AMQP[FAKE], "sends", receives=False)
        start = time.perf_counter()
        sent = owed = 0
        while sent < count or owed:
            taken, parts = feed.next(sent, WINDOW)
            for part in parts:
                session.socket.sendall(part)
            sent += taken
            owed += taken
            while owed > (STEP if sent < count else 0):
                fields = session.next(DISPOSITION)
                owed -= number(fields[2]) + 1 - number(fields[1])
        seconds = time.perf_counter() - start
    place.finish("sends", sent=count)
    return seconds


def measure(place: FakePlace, scale: float) -> tuple[Measure, ...]:
    """Both of one protocol."""
    count = max(1_000, int(100_000 * scale)) // STEP * STEP
    stomp = place.protocol == "stomp"
    delivers, confirms = (stomp_delivers, stomp_confirms) if stomp else (amqp_delivers, amqp_confirms)
    name = place.name
    return (
        Measure(
            f"{place.protocol}-delivers", f"{name}, to a bare socket", count / delivers(place, count), "msg/s", None
        ),
        Measure(f"{place.protocol}-confirms", f"{name}, from one", count / confirms(place, count), "msg/s", None),
    )


def _stomp(url: str) -> socket.socket:
    parts = urlsplit(url)
    connection = socket.create_connection((parts.hostname, parts.port), timeout=60)
    connection.sendall(b"CONNECT\naccept-version:1.2\nhost:/\n\n\0")
    connection.recv(READ)
    return connection
