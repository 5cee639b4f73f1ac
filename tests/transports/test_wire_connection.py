"""A connection waits for a peer that takes nothing, with no lock held that others need."""

from __future__ import annotations

import _thread
import itertools
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from redelivery.model.errors import ConnectionLostError, JMSError
from redelivery.transports.wire.connection import WireConnection
from redelivery.transports.wire.outbox import Outbox
from redelivery.transports.wire.protocol import WireOwner
from redelivery.transports.wire.sockets import Stream
from redelivery.transports.wire.threads import guard
from redelivery.transports.wire.threads.guard import uninterruptible
from redelivery.transports.wire.threads.housekeeping import Housekeeper, housekeeper

LARGE = 8 << 20
TIMEOUT = 10.0


class Bytes:
    """A protocol without a meaning."""

    def __init__(self, stream: Stream, owner: WireOwner) -> None:
        self.outbox = Outbox(stream, owner)
        self.flush = self.outbox.flush_quietly
        self.flush_now = self.outbox.flush
        self.dispose = self.outbox.close
        self.awaits = self.blocked = False

    def receive(self, data: bytes) -> None: ...

    def take(self, taken: list[bytes]) -> bool:  # noqa: ARG002  # `receive` does it
        return False

    def resume(self) -> None: ...

    def next_deadline(self, now: float) -> float | None:  # noqa: ARG002  # nothing is due
        return None

    def tick(self, now: float) -> float | None:  # noqa: ARG002  # as above
        return None

    def quiet(self, now: float) -> bool:  # noqa: ARG002  # as above
        return False

    def fail(self, error: JMSError) -> JMSError:
        self.outbox.refusal = error
        return error

    def orphan(self, error: JMSError) -> None:
        self.outbox.orphan(error)


class Pipe:
    def __init__(self) -> None:
        self.lost: list[JMSError] = []
        ours, self.peer = socket.socketpair()
        stream = Stream(ours, "peer")
        self.wire = WireConnection(stream, lambda owner: Bytes(stream, owner), self, 0.3)
        self.outbox = self.wire.protocol.outbox
        self.wire.start()

    def on_lost(self, error: JMSError) -> None:
        self.lost.append(error)

    def on_error(self, error: JMSError) -> None:
        raise error

    def full(self) -> None:
        deadline = time.monotonic() + TIMEOUT
        while not self.outbox.blocked:
            assert time.monotonic() < deadline
            time.sleep(0.001)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    pipe.wire.lose(ConnectionLostError("the test is over"))
    pipe.peer.close()


def write(pipe: Pipe, data: bytes) -> threading.Thread:
    thread = threading.Thread(target=pipe.outbox.write, args=(data,))
    thread.start()
    return thread


def test_what_is_written_meanwhile_need_not_wait_where_it_may_leave_later(pipe: Pipe) -> None:
    writer = write(pipe, b"a" * LARGE)
    pipe.full()
    began = time.monotonic()
    pipe.outbox.later(b"b")
    assert time.monotonic() - began < TIMEOUT / 2
    read = b""
    while len(read) < LARGE + 1:
        read += pipe.peer.recv(1 << 20)
    writer.join(TIMEOUT)
    assert read == b"a" * LARGE + b"b"


def test_a_peer_that_is_slow_is_not_lost_by_those_who_write_behind_a_large_body(pipe: Pipe) -> None:
    first = write(pipe, b"a" * LARGE)
    pipe.full()
    second = write(pipe, b"b")
    left = LARGE + 1
    until = time.monotonic() + 1.0  # three times as long as it may take no byte
    while time.monotonic() < until:
        left -= len(pipe.peer.recv(64 << 10))
        time.sleep(0.02)
    while left:
        left -= len(pipe.peer.recv(1 << 20))
    first.join(TIMEOUT)
    second.join(TIMEOUT)
    assert pipe.lost == []


def test_a_peer_that_takes_nothing_is_lost_once(pipe: Pipe) -> None:
    refused = threading.Event()

    def second() -> None:
        pipe.full()
        with pytest.raises(ConnectionLostError):
            pipe.outbox.write(b"b")
        refused.set()

    later = threading.Thread(target=second)
    later.start()
    with pytest.raises(ConnectionLostError, match=r"took no byte for 0\.3 s"):
        pipe.outbox.write(b"a" * LARGE)
    later.join(TIMEOUT)
    assert refused.is_set()
    assert len(pipe.lost) == 1


def test_the_error_of_a_loss_has_no_frames_though_a_write_raises_it(pipe: Pipe) -> None:
    pipe.peer.close()
    with pytest.raises(ConnectionLostError, match="Broken pipe") as raised:
        pipe.outbox.write(b"a")
    error: BaseException | None = pipe.lost[0]
    assert raised.value.__cause__ is error
    while error is not None:
        assert error.__traceback__ is None, "it would keep the connection"
        error = error.__cause__


@pytest.fixture
def closing(pipe: Pipe) -> Iterator[Callable[[], None]]:
    """Sends this thread a signal whose handler writes and closes."""

    def handle(*_: object) -> None:
        pipe.outbox.write(b"b")
        pipe.wire.lose(ConnectionLostError("closed by the handler"))

    main = threading.main_thread().ident
    assert main is not None
    before = signal.signal(signal.SIGUSR1, handle)
    guard.enter(pipe)
    pipe.wire.timeout = TIMEOUT
    yield lambda: signal.pthread_kill(main, signal.SIGUSR1)
    guard.leave(pipe)
    signal.signal(signal.SIGUSR1, before)


def test_a_signal_handler_may_write_and_close_while_its_thread_waits(pipe: Pipe, closing: Callable[[], None]) -> None:
    threading.Timer(0.1, closing).start()
    began = time.monotonic()
    with pytest.raises(ConnectionLostError, match="closed by the handler"):
        uninterruptible(lambda: pipe.outbox.write(b"a" * LARGE))()  # as each call of a session is
    assert time.monotonic() - began < TIMEOUT / 2


@pytest.mark.timeout(TIMEOUT)
def test_a_signal_handler_may_close_while_its_thread_asks_the_housekeeping_thread(
    pipe: Pipe, closing: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper, times = housekeeper(), itertools.count()

    def need(due: float) -> None:
        if not next(times):
            closing()
        Housekeeper._need(keeper, due)

    monkeypatch.setattr(keeper, "_need", need)
    with pytest.raises(ConnectionLostError, match="closed by the handler"):
        uninterruptible(lambda: pipe.outbox.write(b"a" * LARGE))()
    assert len(pipe.lost) == 1


def test_a_thread_that_python_does_not_know_may_lose_a_connection_and_leaves_no_trace(pipe: Pipe) -> None:
    before, ended = threading.active_count(), threading.Event()

    def lose() -> None:
        uninterruptible(lambda: pipe.wire.lose(ConnectionLostError("dropped")))()  # as the collector's thread does
        ended.set()

    _thread.start_new_thread(lose, ())
    assert ended.wait(TIMEOUT)
    assert len(pipe.lost) == 1
    assert threading.active_count() <= before
