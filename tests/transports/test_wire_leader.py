"""Leader and followers: a thread that waits is woken, one that leads leaves, and while anybody waits somebody reads."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from tests.run.forms import every

from redelivery.model.errors import ConnectionLostError, IllegalStateError, JMSError, ProtocolError
from redelivery.transports.wire.sockets import Stream
from redelivery.transports.wire.threads.leader import Leader
from redelivery.transports.wire.threads.waiter import ThreadWaiter

TIMEOUT = 5.0


class Line:
    """A stream of which each byte wakes the waiter of its number, and its peer."""

    def __init__(self) -> None:
        ours, self.peer = socket.socketpair()
        self.stream = Stream(ours, "peer")
        self.waiters = [ThreadWaiter() for _ in range(8)]
        self.received: list[int] = []
        self.problems: list[JMSError] = []
        self.left = 0
        self.closed = threading.Event()
        self.before: Callable[[int], None] = lambda _: None
        self.leader = Leader(self.stream, self, self)

    def receive(self, data: bytes) -> None:
        for number in data:
            self.before(number)
            self.received.append(number)
            if number == 255:
                raise ProtocolError("bad byte")
            self.waiters[number].wake()

    def take(self, taken: list[bytes]) -> bool:  # noqa: ARG002  # `receive` does it
        return False

    def resume(self) -> None: ...

    def lose(self, error: JMSError) -> None:
        self.problems.append(error)
        self.leader.stop(error)

    def nobody_reads(self) -> None:
        self.left += 1

    def release_stream(self) -> None:
        self.stream.close()
        self.closed.set()

    def wait(self, number: int, timeout: float | None = TIMEOUT) -> None:
        self.leader.wait(self.waiters[number], timeout)

    def end(self) -> None:
        self.leader.stop(ConnectionLostError("the test is over"))
        self.peer.close()
        assert self.closed.wait(TIMEOUT)


@pytest.fixture
def line() -> Iterator[Line]:
    line = Line()
    yield line
    line.end()


@pytest.fixture
def threads(line: Line) -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool
        line.end()  # or a thread that still waits or sends were joined for ever


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.0005)


def test_a_wake_before_the_wait_is_not_lost(line: Line) -> None:
    line.waiters[0].wake()
    line.waiters[0].wake()
    line.wait(0)
    began = time.monotonic()
    line.wait(0, 0.05)  # one wait takes all wakes
    assert time.monotonic() - began >= 0.05


def test_without_a_timeout_one_look_is_taken(line: Line) -> None:
    line.wait(0, 0)
    line.peer.send(b"\0")
    until(lambda: line.stream.wait_readable(0))
    line.wait(0, 0)
    assert line.received == [0]


def test_without_a_timeout_one_look_is_taken_also_by_one_who_was_woken_before(line: Line) -> None:
    line.waiters[0].wake()
    line.peer.send(b"\0")
    until(lambda: line.stream.wait_readable(0))
    line.wait(0, 0)
    assert line.received == [0]


@pytest.mark.parametrize("round_", range(200 // every(1)))
def test_two_sessions_each_receiving_only_after_the_other(line: Line, threads: ThreadPoolExecutor, round_: int) -> None:
    turns = 6

    def session(number: int) -> int:
        for _ in range(turns):
            line.wait(number)
            line.peer.send(bytes([1 - number]))
        return number

    done = [threads.submit(session, number) for number in (0, 1)]
    line.peer.send(bytes([round_ % 2]))
    assert [each.result(TIMEOUT) for each in done] == [0, 1]


@pytest.mark.parametrize("round_", range(100 // every(1)))
def test_a_leader_that_leaves_by_time_out_has_an_heir(line: Line, threads: ThreadPoolExecutor, round_: int) -> None:
    first = threads.submit(line.wait, 0, 0.01)
    others = [threads.submit(line.wait, number) for number in range(1, 5)]
    first.result(TIMEOUT)
    if round_ % 2:
        until(lambda: line.leader.led)
    line.peer.send(bytes([3, 1, 4, 2]))
    for each in others:
        each.result(TIMEOUT)


@pytest.mark.parametrize("round_", range(50 // every(1)))
def test_a_leader_that_leaves_by_an_exception_has_an_heir(line: Line, threads: ThreadPoolExecutor, round_: int) -> None:
    def interrupt(number: int) -> None:
        if number == 7:
            raise KeyboardInterrupt

    line.before = interrupt
    first = threads.submit(line.wait, 0)
    until(lambda: line.leader.led)
    second = threads.submit(line.wait, 1)
    if round_ % 2:
        until(lambda: line.leader._parked)
    line.peer.send(b"\x07")
    with pytest.raises(KeyboardInterrupt):
        (first if first.exception(TIMEOUT) else second).result(TIMEOUT)
    line.peer.send(b"\x01\x00")
    second.result(TIMEOUT)


@pytest.mark.parametrize("round_", range(50 // every(1)))
def test_many_threads_many_messages(line: Line, threads: ThreadPoolExecutor, round_: int) -> None:
    sent = 120
    counts = [0] * 4

    def session(number: int) -> None:
        while counts[number] < sent // 4:
            line.wait(number)
            counts[number] = line.received.count(number)

    done = [threads.submit(session, number) for number in range(4)]
    for at in range(sent):
        line.peer.send(bytes([at % 4]))
        if at % 7 == round_ % 7:
            time.sleep(0)
    for each in done:
        each.result(TIMEOUT)


def test_another_thread_wakes_a_leader_in_its_system_call(line: Line, threads: ThreadPoolExecutor) -> None:
    for _ in range(50):
        waiting = threads.submit(line.wait, 0)
        until(lambda: line.waiters[0].poke is not None)
        line.waiters[0].wake()
        waiting.result(TIMEOUT)


def test_another_thread_wakes_a_follower(line: Line, threads: ThreadPoolExecutor) -> None:
    leader = threads.submit(line.wait, 0)
    until(lambda: line.leader.led)
    follower = threads.submit(line.wait, 1)
    until(lambda: line.leader._parked)
    line.waiters[1].wake()
    follower.result(TIMEOUT)
    assert not leader.done()
    line.waiters[0].wake()
    leader.result(TIMEOUT)


@pytest.mark.parametrize("how", ["peer", "stop", "protocol"])
def test_the_end_of_the_connection_ends_every_wait(line: Line, threads: ThreadPoolExecutor, how: str) -> None:
    waiting = [threads.submit(line.wait, number, None) for number in range(4)]
    until(lambda: len(line.leader._parked) == 3)
    if how == "peer":
        line.peer.shutdown(socket.SHUT_RDWR)
    elif how == "stop":
        line.leader.stop(ConnectionLostError("aborted"))
    else:
        line.peer.send(b"\xff")
    for each in waiting:
        with pytest.raises(
            ConnectionLostError, match={"peer": "closed the", "stop": "aborted", "protocol": "bad byte"}[how]
        ):
            each.result(TIMEOUT)
    assert line.closed.wait(TIMEOUT)
    assert line.stream.fileno() == -1
    with pytest.raises(ConnectionLostError):
        line.wait(0)


def test_another_thread_reads_only_when_nobody_does(line: Line, threads: ThreadPoolExecutor) -> None:
    line.peer.send(b"\x00")
    until(lambda: line.stream.wait_readable(0))
    assert line.leader.read_now()
    assert line.received == [0]
    waiting = threads.submit(line.wait, 1)
    until(lambda: line.leader.led)
    assert not line.leader.read_now()
    line.peer.send(b"\x01")
    waiting.result(TIMEOUT)


def test_a_callback_on_the_reading_thread_cannot_wait(line: Line) -> None:
    def again(number: int) -> None:
        if number == 0:
            assert line.leader.leads
            with pytest.raises(IllegalStateError, match="cannot wait"):
                line.wait(1)

    line.before = again
    line.peer.send(b"\x00")
    line.wait(0)


def test_others_messages_do_not_hold_a_wait_beyond_its_time(line: Line, threads: ThreadPoolExecutor) -> None:
    ended = threading.Event()
    line.peer.setblocking(False)

    def flood() -> None:
        while not ended.is_set():
            with suppress(BlockingIOError):  # nobody reads when the wait has ended
                line.peer.send(b"\x01")

    flooding = threads.submit(flood)
    try:
        began = time.monotonic()
        line.wait(0, 0.1)
        assert time.monotonic() - began < TIMEOUT
    finally:
        ended.set()
        flooding.result(TIMEOUT)


def test_a_waiter_alone_keeps_time_and_wakes() -> None:
    waiter = ThreadWaiter()
    began = time.monotonic()
    assert not waiter.wait(0.05)
    assert time.monotonic() - began >= 0.05
    waiter.wake()
    assert waiter.wait(None)
    waiter.nudge()
    assert not waiter.wait(0.01)  # a nudge is no wake
    with ThreadPoolExecutor(1) as pool:
        for _ in range(200):
            waiting = pool.submit(waiter.wait, TIMEOUT)
            waiter.wake()
            assert waiting.result(TIMEOUT)


def test_a_wake_just_before_the_system_call_is_not_slept_through(line: Line) -> None:
    class WokenMeanwhile(ThreadWaiter):
        """Another thread wakes it when it has looked, and cannot be poked yet."""

        @property
        def poke(self) -> None:
            return None

        @poke.setter
        def poke(self, value: object) -> None:
            self.woken = self.woken or value is not None

    began = time.monotonic()
    line.leader.wait(WokenMeanwhile(), TIMEOUT)
    assert time.monotonic() - began < TIMEOUT / 2
