"""Processor time of one message over AMQP.

Of `CASES` two are of the same thing each. In one the fake peer is another process, so a scheduler is in the numbers: it
decides how many messages an answer is for, and which thread reads it; the least of several runs counts. In the other,
*in thread*, the peer acts in the client's own threads, as in `in_thread`: what differs between two runs is the client.
"""

from __future__ import annotations

import gc
import socket
import threading
from contextlib import suppress
from cProfile import Profile
from functools import partial
from typing import Final

from benchmarks import in_thread, ours
from benchmarks.cases import Run
from benchmarks.in_thread import PARTS
from benchmarks.peers.amqp import AmqpServer
from benchmarks.places import FakePlace, fake_place
from redelivery import AckMode

_BESIDE: Final[dict[str, Run]] = {
    "amqp-auto": partial(ours.consume, mode=AckMode.AUTO),
    "amqp-individual": partial(ours.consume, mode=AckMode.INDIVIDUAL),
    "amqp-send-100": partial(ours.send, window=100),
    "amqp-send": partial(ours.send, window=1),
}
_IN_THREAD: Final = {f"{case}-in-thread": case.removeprefix("amqp-") for case in _BESIDE}
CASES: Final = (*_BESIDE, *_IN_THREAD)


class Peer:
    """See `in_thread.Acting`: it sends for ever to each receiver, within its credit."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.spent = 0.0
        self._server: _Endless | None = None

    def act(self) -> None:
        """Answer what has come, all of it at once; with nothing to answer, send more."""
        if self._server is None:
            connection = self._listener.accept()[0]
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 << 20)
            connection.setblocking(False)
            self._server = _Endless(connection)
        with suppress(BlockingIOError):
            while self._server.read():
                pass
        if not self._server.out:
            self._server.refill()
        self._server.write()

    def close(self) -> None:
        """Both sockets."""
        self._listener.close()
        if self._server is not None:
            self._server.socket.close()


class _Endless(AmqpServer):
    def wanted(self, address: str) -> tuple[int, int, str]:  # noqa: ARG002  # of any queue
        return 1 << 40, 1024, "text"


def measure(case: str, messages: int, profiler: Profile | None = None) -> list[float]:
    """Microseconds of processor per message, of each part of the run."""
    if case in _IN_THREAD:
        return in_thread.beside(Peer(), "amqp", in_thread.CASES[_IN_THREAD[case]], messages, profiler)
    with fake_place("amqp") as place:
        _once(place, case, messages // PARTS, None)  # loads what is needed
        return [_once(place, case, messages // PARTS, profiler) for _ in range(PARTS)]


def measure_in_thread(case: str, messages: int) -> list[float]:
    """The same in a thread that is not the main one: nothing is handed over."""
    found: list[float] = []
    thread = threading.Thread(target=lambda: found.extend(measure(case, messages)))
    thread.start()
    thread.join()
    return found


def _once(place: FakePlace, case: str, messages: int, profiler: Profile | None) -> float:
    sends = "send" in case
    queue = place.prepare(0 if sends else messages)
    gc.collect()
    if profiler is not None:
        profiler.enable()
    spent = _BESIDE[case](place, queue, messages)
    if profiler is not None:
        profiler.disable()
    place.finish(queue, **{"sent" if sends else "acked": messages})
    return (spent.cpu or 0.0) / messages * 1e6
