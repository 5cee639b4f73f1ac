"""Processor time of one message in this client alone: the peer acts in the client's own threads, less its own time.

It answers where the client waits to read, over a real loopback socket: no scheduler decides what is measured, so that a
few percent can be seen on a machine that does other things too. A case is one of `benchmarks.ours`; ``amqp-CASE`` is
measured at a fake peer that is another process, so that a scheduler is in the numbers: it decides how many messages an
answer is for, and which thread reads it. So is ``tls-CASE``, STOMP over TLS. ``amqp-CASE-in-thread`` is ``amqp-CASE``
with a peer in the client's thread.
"""

from __future__ import annotations

import asyncio
import gc
import select
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from cProfile import Profile
from functools import partial
from typing import Any, Final
from unittest.mock import patch

import redelivery
from benchmarks import bare, ours
from benchmarks.peers.amqp import AmqpServer
from benchmarks.peers.server import Server
from benchmarks.peers.stomp import StompServer
from benchmarks.places import fake_place
from redelivery.client.sync import driver
from redelivery.events import Event, Observer
from redelivery.transports.seam import Opening, Readable
from redelivery.transports.wire.sockets import Stream
from redelivery.transports.wire.threads.opening import fulfil

PARTS: Final = 5  # of a run, each timed by itself
_ENDLESS: Final = f"bench.{1 << 40}.1024.text"  # a queue of the fake peers
_OPTIONS: Final[dict[str, Any]] = {"dialect": "activemq", "prefetch": 1000, "close_timeout": 1, "heartbeat": 0}
# The bare loops, by their names on docs/cpu.md.
FLOORS: Final[dict[str, tuple[str, int]]] = {
    "an ACK each": (bare.EACH, 0),
    "ACKs together": (bare.TOGETHER, 0),
    "no ACK": (bare.NONE, 0),
    "send, window 100": ("", 100),
    "send, one by one": ("", 1),
}


class Peer:
    """A fake peer in the client's own threads; ``spent``: the seconds of processor that it took."""

    def __init__(self, protocol: str) -> None:
        self._kind: type[Server] = StompServer if protocol == "stomp" else AmqpServer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.spent = 0.0
        self._server: Server | None = None

    def act(self) -> None:
        """Answer what has come; with nothing to answer, send more."""
        if self._server is None:
            connection = self._listener.accept()[0]
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 << 20)
            connection.setblocking(False)
            self._server = self._kind(connection)
        with suppress(BlockingIOError):
            while self._server.read():
                pass
        if not self._server.out:
            self._server.refill()
        self._server.write()

    def let(self, readable: Callable[[], object]) -> None:
        """Let it act where nothing is there to be read."""
        began = time.thread_time()
        if not readable():
            self.act()
        self.spent += time.thread_time() - began

    def close(self) -> None:
        """Close both sockets."""
        self._listener.close()
        if self._server is not None:
            self._server.socket.close()


class _ActingSelector(selectors.DefaultSelector):  # type: ignore[valid-type, misc, unused-ignore]  # the system's
    """Lets the peer act when nothing is there to be read."""

    peer: Peer

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout != 0:  # a loop of its own would look only once
            self.peer.let(partial(super().select, 0))
        return super().select(timeout)


class _ActingBare(bare.Bare):
    """A bare socket that is connected to a peer in its thread."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._readable = select.poll()
        super().__init__(peer.port)
        self.socket.settimeout(None)  # with a time-out each write looks first

    def frames(self) -> list[bytes]:
        self._peer.let(partial(_poll_once, self.socket, self._readable))
        self._readable.poll(1000)
        return super().frames()


def _poll_once(stream: socket.socket | Stream, poll: select.poll) -> object:
    poll.register(stream.fileno(), select.POLLIN)
    return poll.poll(0)


@contextmanager
def _acting(peer: Peer) -> Iterator[None]:
    """Let the peer act where a client with threads waits to read."""
    wait_readable = Stream.wait_readable

    def wait(stream: Stream, timeout: float | None) -> bool:
        peer.let(partial(_poll_once, stream, select.poll()))
        return wait_readable(stream, timeout)

    def log_in(wish: Opening) -> None:
        if isinstance(wish, Readable):
            peer.act()
        fulfil(wish)

    with patch.object(Stream, "wait_readable", wait), patch.object(driver, "fulfil", log_in):
        yield


def do_nothing(_event: Event) -> None:
    """An observer."""


def measure(
    case: str, messages: int, how: str = "main", profiler: Profile | None = None, observer: Observer | None = None
) -> list[float]:
    """Return microseconds of processor per message, of each part of the run.

    ``how``: in the main thread, in another ``thread``, with ``asyncio``, or ``bare``: one of `FLOORS`.
    """
    part = messages // PARTS
    if how == "thread":
        found = list[float]()
        thread = threading.Thread(target=lambda: found.extend(measure(case, messages, "main", profiler, observer)))
        thread.start()
        thread.join()
        return found
    if how == "bare":
        return _floor(case, part)
    protocol = "amqp" if case.startswith("amqp-") else "stomp"
    its, tls = case.removeprefix("amqp-").removeprefix("tls-").removesuffix("-in-thread"), case.startswith("tls-")
    if tls or (protocol == "amqp" and not case.endswith("-in-thread")):
        return _beside(protocol, its, part, how, profiler, tls=tls)
    with closing(Peer(protocol)) as peer:
        url = f"{protocol}://127.0.0.1:{peer.port}"
        if how == "asyncio":
            selector = _ActingSelector()
            selector.peer = peer
            with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
                return runner.run(_measured_loop(url, its, _ENDLESS, [part] * (PARTS + 1), peer, profiler))[1:]
        with _acting(peer), redelivery.connect(url, observer=observer, **_OPTIONS) as connection:
            run, found = ours.prepared(connection, _ENDLESS, its), list[float]()
            for number in range(PARTS + 1):  # the first part warms up
                with _timed(found, part, peer, profiler if number else None):
                    run(part)
            return found[1:]


@contextmanager
def _timed(found: list[float], messages: int, peer: Peer | None, profiler: Profile | None) -> Iterator[None]:
    """Add the µs of a part to those found."""
    gc.collect()
    began, spent = time.process_time(), peer.spent if peer else 0.0
    with profiler or nullcontext():
        yield
    theirs = peer.spent - spent if peer else 0.0
    found.append((time.process_time() - began - theirs) / messages * 1e6)


def _floor(name: str, part: int) -> list[float]:
    (ack, window), found = FLOORS[name], list[float]()
    with closing(Peer("stomp")) as peer, closing(_ActingBare(peer)) as socket_:
        if ack:
            socket_.subscribe(_ENDLESS, ack)
        for _ in range(PARTS + 1):
            with _timed(found, part, peer, None):
                if ack:
                    socket_.consume(part, ack)
                else:
                    socket_.produce(part, window)
    return found[1:]


async def _measured_loop(
    url: str, case: str, queue: str, parts: list[int], peer: Peer | None, profiler: Profile | None
) -> list[float]:
    """Return the same with asyncio; of several parts the first warms up."""
    found = list[float]()
    async with redelivery.aio.connect(url, **(_OPTIONS if peer else {})) as connection:
        run = await ours.prepared_loop(connection, queue, case)
        for number, part in enumerate(parts):
            with _timed(found, part, peer, profiler if number or not peer else None):
                await run(part)
    return found


def _beside(protocol: str, case: str, part: int, how: str, profiler: Profile | None, *, tls: bool) -> list[float]:
    """Return the same at a fake peer in a process of its own; each part has a connection of its own."""
    found = []
    with fake_place(protocol, tls=tls) as place:
        for number in range(PARTS + 1):
            queue = place.prepare(0 if case.startswith("send") else part)
            profiling = profiler if number else None
            gc.collect()
            if how == "asyncio":
                found += asyncio.run(_measured_loop(place.url, case, queue, [part], None, profiling))
            else:
                with profiling or nullcontext():
                    spent = ours.run(place, queue, part, case=case)
                found.append((spent.cpu or 0.0) / part * 1e6)
            place.finish(queue, **{"sent" if case.startswith("send") else "acked": part})
    return found[1:]
