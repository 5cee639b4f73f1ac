"""Raw stomp.py as its documentation shows it: a listener, ``ack`` in ``on_message``; begin, ack, commit.

A commit, or a window of sends, waits for the broker on the main thread, because the listener's thread is the one that
reads. Every function returns what the messages took.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from urllib.parse import urlsplit

import stomp
from stomp.utils import Frame

from benchmarks.machine import BenchmarkError, Spent, Stopwatch
from benchmarks.ours import BODY, PATIENCE
from benchmarks.places import Place, stomp_at


class Reading(stomp.ConnectionListener):  # type: ignore[misc]  # stomp.py has no types
    """Reads body and id of each message and acknowledges it."""

    def __init__(self, connection: stomp.Connection12, count: int, ack: bool) -> None:
        self.connection, self.left, self.ack = connection, count, ack
        self.done = threading.Event()

    def on_message(self, frame: Frame) -> None:
        _ = frame.headers["message-id"], frame.body
        if self.ack:
            self.connection.ack(frame.headers["ack"])
        self.left -= 1
        if not self.left:
            self.done.set()


class Handing(stomp.ConnectionListener):  # type: ignore[misc]  # stomp.py has no types
    """Hands messages and receipts to the main thread, by the cheapest queue that there is."""

    def __init__(self) -> None:
        self.messages: SimpleQueue[Frame] = SimpleQueue()
        self.receipts: SimpleQueue[str] = SimpleQueue()

    def on_message(self, frame: Frame) -> None:
        self.messages.put(frame)

    def on_receipt(self, frame: Frame) -> None:
        self.receipts.put(frame.headers["receipt-id"])


@contextmanager
def connected(place: Place) -> Iterator[stomp.Connection12]:
    parts = urlsplit(place.url)
    connection = stomp.Connection12([(parts.hostname, parts.port)], vhost=stomp_at(place.broker).virtual_host)
    connection.connect(parts.username, parts.password, wait=True)
    try:
        yield connection
    finally:
        connection.disconnect(receipt="bye")  # waits, so that no acknowledgement is cut off


def subscribe(connection: stomp.Connection12, place: Place, queue: str, ack: str) -> None:
    its = stomp_at(place.broker)
    connection.subscribe(its.queue_prefix + queue, id="1", ack=ack, headers=dict(its.consume_queue))


def consume(place: Place, queue: str, count: int, *, ack: str = "client-individual") -> Spent:
    """``ack``: auto, or client-individual with an ACK for each message."""
    with connected(place) as connection:
        reading = Reading(connection, count, ack != "auto")
        connection.set_listener("", reading)
        watch = Stopwatch()
        subscribe(connection, place, queue, ack)
        if not reading.done.wait(PATIENCE):
            raise BenchmarkError(f"{queue}: {reading.left} of {count} messages did not come")
        return watch.stop()


def consume_transacted(place: Place, queue: str, count: int, *, batch: int, nodelay: bool) -> Spent:
    """``nodelay``: TCP_NODELAY set by hand, which stomp.py never does."""
    with connected(place) as connection:
        handing = Handing()
        connection.set_listener("", handing)
        if nodelay:
            connection.transport.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        watch = Stopwatch()
        subscribe(connection, place, queue, "client-individual")
        for number in range(count // batch):
            transaction = connection.begin()
            for _ in range(batch):
                frame = handing.messages.get(timeout=PATIENCE)
                _ = frame.headers["message-id"], frame.body
                connection.ack(frame.headers["ack"], transaction=transaction)
            connection.commit(transaction, receipt=str(number))
            handing.receipts.get(timeout=PATIENCE)
        return watch.stop()


def send(place: Place, queue: str, count: int, *, window: int) -> Spent:
    """Persistent, each with a receipt, at most ``window`` of them open."""
    its = stomp_at(place.broker)
    destination, headers = its.queue_prefix + queue, {"persistent": "true", **dict(its.send_to_queue)}
    with connected(place) as connection:
        handing = Handing()
        connection.set_listener("", handing)
        watch = Stopwatch()
        for number in range(count):
            if number >= window:
                handing.receipts.get(timeout=PATIENCE)
            connection.send(destination, BODY, headers=dict(headers), receipt=str(number))
        for _ in range(min(window, count)):
            handing.receipts.get(timeout=PATIENCE)
        return watch.stop()
