"""Processor time of one message in this client alone: the peer acts in the client's own threads, less its own time.

It answers where the client waits to read, over a real loopback socket: no scheduler decides what is measured, so that a
few percent can be seen on a machine that does other things too.
"""

from __future__ import annotations

import gc
import re
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager, nullcontext
from cProfile import Profile
from typing import Final, Protocol, TypeAlias
from unittest.mock import patch

import redelivery
from redelivery.client.sync import driver
from redelivery.events import Event, Observer
from redelivery.transports.seam import Opening, Readable
from redelivery.transports.wire.sockets import Stream
from redelivery.transports.wire.threads.opening import fulfil

PARTS: Final = 5  # of a run, each timed by itself
_WAIT: Final = 10.0
_SIZE: Final = 1024
_MANY: Final = 100  # messages that are received at once
_CHUNK: Final = 64 << 10  # bytes that the peer sends at once
_PROPERTIES: Final = {"colour": "blue", "number": 1}
_asked: Final = re.compile(rb"\nreceipt:([^\n]*)")
_subscribed: Final = re.compile(rb"SUBSCRIBE\n(?:[^\n]+\n)*?id:([^\n]*)")
_CONNECTED: Final = b"CONNECTED\nversion:1.2\nserver:ActiveMQ/5.18.3\nheart-beat:0,0\nsession:fake\n\n\0"
_HEAD: Final = (
    b"MESSAGE\nexpires:0\ndestination:/queue/x\nack:ID\\cvm-37881-1700000000000-5\\c%d\nsubscription:%b\npriority:4\n"
    b"message-id:ID\\cvm-37881-1700000000000-3\\c1\\c-1\\c1\\c%d\npersistent:true\ntimestamp:1700000000000\n\n%b\0\n"
)

Run: TypeAlias = Callable[[int], None]  # of so many messages
Prepare: TypeAlias = Callable[[redelivery.Connection], Run]


class Acting(Protocol):
    """A peer in the client's own threads. ``spent``: the seconds of processor that it took."""

    port: int
    spent: float

    def act(self) -> None:
        """Answer what has come; with nothing to answer, send more."""

    def close(self) -> None:
        """Both sockets."""


class Peer:
    """ActiveMQ Classic, as far as these cases go; sends for ever to each subscriber."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.spent = 0.0  # seconds of processor
        self._socket: socket.socket | None = None
        self._rest = b""
        self._chunks: deque[bytes] = deque()

    def act(self) -> None:
        """Answer what has come; with nothing to answer, send more."""
        if self._socket is None:
            self._socket = self._listener.accept()[0]
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 << 20)
            self._socket.setblocking(False)
        answers = self._answers(self._socket)
        if not answers and self._chunks:
            self._chunks.rotate(-1)
            answers = [self._chunks[0]]
        if answers:
            self._socket.send(b"".join(answers))

    def close(self) -> None:
        """Both sockets."""
        self._listener.close()
        if self._socket is not None:
            self._socket.close()

    def _answers(self, connection: socket.socket) -> list[bytes]:
        try:
            while data := connection.recv(1 << 20):
                self._rest += data
        except BlockingIOError:
            pass
        whole, end, self._rest = self._rest.rpartition(b"\0")
        if not end:
            return []
        answers = [_CONNECTED] if whole.startswith((b"CONNECT\n", b"STOMP\n")) else []
        found = _subscribed.search(whole)
        if found is not None:
            self._fill(found[1])
        if b"UNSUBSCRIBE\n" in whole:
            self._chunks.clear()
        return answers + [b"RECEIPT\nreceipt-id:%b\n\n\0" % receipt for receipt in _asked.findall(whole)]

    def _fill(self, identifier: bytes) -> None:
        body = b"x" * _SIZE
        frames = [_HEAD % (number, identifier, number, body) for number in range(4000)]
        each = max(1, _CHUNK // len(frames[0]))
        self._chunks.extend(b"".join(frames[at : at + each]) for at in range(0, len(frames), each))


def do_nothing(_event: Event) -> None:
    """An observer."""


def measure(case: str, messages: int, profiler: Profile | None = None, observer: Observer | None = None) -> list[float]:
    """Microseconds of processor per message, of each part of the run. ``case``: one of `CASES`, or `OBSERVED`."""
    name, _, observed = case.partition("+")
    return beside(Peer(), "stomp", CASES[name], messages, profiler, do_nothing if observed else observer)


def beside(
    peer: Acting,
    scheme: str,
    prepare: Prepare,
    messages: int,
    profiler: Profile | None = None,
    observer: Observer | None = None,
) -> list[float]:
    """Microseconds of processor per message, of each part of the run, without those of the peer."""
    with (
        closing(peer),
        _acting(peer),
        redelivery.connect(
            f"{scheme}://127.0.0.1:{peer.port}",
            dialect="activemq",
            prefetch=1000,
            close_timeout=1,
            heartbeat=0,
            observer=observer,
        ) as connection,
    ):
        run = prepare(connection)
        run(messages // PARTS)
        return [_timed(run, messages // PARTS, peer, profiler) for _ in range(PARTS)]


@contextmanager
def _acting(peer: Acting) -> Iterator[None]:
    """Where the client waits to read."""
    wait_readable = Stream.wait_readable

    def wait(stream: Stream, timeout: float | None) -> bool:
        began = time.thread_time()
        poll = select.poll()
        poll.register(stream.fileno(), select.POLLIN)
        if not poll.poll(0):
            peer.act()
        peer.spent += time.thread_time() - began
        return wait_readable(stream, timeout)

    def log_in(wish: Opening) -> None:
        if isinstance(wish, Readable):
            peer.act()
        fulfil(wish)

    with patch.object(Stream, "wait_readable", wait), patch.object(driver, "fulfil", log_in):
        yield


def measure_in_thread(case: str, messages: int) -> list[float]:
    """The same in a thread that is not the main one."""
    found: list[float] = []
    thread = threading.Thread(target=lambda: found.extend(measure(case, messages)))
    thread.start()
    thread.join()
    return found


def _timed(run: Run, messages: int, peer: Acting, profiler: Profile | None) -> float:
    gc.collect()
    began, spent = time.process_time(), peer.spent
    with profiler or nullcontext():
        run(messages)
    return (time.process_time() - began - (peer.spent - spent)) / messages * 1e6


def _receiving(mode: str, batch: int = 0) -> Prepare:
    def prepare(connection: redelivery.Connection) -> Run:
        session = connection.session(mode)
        consumer = session.consumer("x")

        def run(messages: int) -> None:
            for number in range(1, messages + 1):
                message = consumer.receive(_WAIT)
                assert message is not None, "the peer sends for ever"
                _ = message.message_id, message.body
                if mode == "individual":
                    message.acknowledge()
                elif batch and number % batch == 0:
                    session.commit()
            if batch:
                session.commit()

        return run

    return prepare


def _receiving_many(connection: redelivery.Connection) -> Run:
    consumer = connection.session("auto").consumer("x")

    def run(messages: int) -> None:
        left = messages
        while left:
            found = consumer.receive_many(min(_MANY, left), _WAIT)
            assert found, "the peer sends for ever"
            for message in found:
                _ = message.message_id, message.body
            left -= len(found)

    return run


def _sending(window: int, properties: dict[str, object] | None = None) -> Prepare:
    def prepare(connection: redelivery.Connection) -> Run:
        producer = connection.session().producer("x")
        body = "x" * _SIZE

        def run(messages: int) -> None:
            flying: deque[Future[redelivery.Message]] = deque()
            for _ in range(messages):
                if window == 1:
                    producer.send(body, properties=properties)
                    continue
                if len(flying) == window:
                    flying.popleft().result(_WAIT)
                flying.append(producer.send_async(body, properties=properties))
            for future in flying:
                future.result(_WAIT)

        return run

    return prepare


CASES: Final[dict[str, Prepare]] = {
    "auto": _receiving("auto"),
    "auto-many": _receiving_many,
    "individual": _receiving("individual"),
    "dups-ok": _receiving("dups_ok"),
    "commit-100": _receiving("transacted", 100),
    "commit-10": _receiving("transacted", 10),
    "commit-1": _receiving("transacted", 1),
    "send-100": _sending(100),
    "send-100-properties": _sending(100, dict(_PROPERTIES)),
    "send": _sending(1),
}
OBSERVED: Final = tuple(f"{case}+observer" for case in CASES)  # the same with an observer that does nothing
