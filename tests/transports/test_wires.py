"""A connection over a real socket, whatever is spoken on it: who closes it, who reads it, threads and fork."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

import pytest
from tests.transports.scripted import TIMEOUT, text
from tests.transports.sides import Side

from redelivery.client.sync.driver import close_transport
from redelivery.model.errors import ConnectError, ConnectionLostError, IllegalStateError
from redelivery.testing.brokers.ports import free_ports
from redelivery.transports.seam import Pending

Answers = SimpleQueue[Pending]


def send(session: Any, answers: Answers) -> None:
    session.channel.send(text(), transacted=False, pending=Pending(on_done=answers.put), batched=True)


def test_nobody_there_and_no_such_host(side: Side) -> None:
    port = free_ports(["nobody"])["nobody"]
    with pytest.raises(ConnectError, match="refused"):
        side.client(port)
    with pytest.raises(ConnectError, match="was not found"):
        side.client(port, host="no-such-host.invalid")


def test_closing_is_bounded_against_a_silent_peer_and_harmless_twice(side: Side) -> None:
    ended = threading.Event()

    def script(end: Any) -> None:
        end.log_in()
        ended.wait(TIMEOUT)

    with side.peer(script) as peer:
        client = side.client(peer.port, close_timeout=0.2)
        client.session()
        began = time.monotonic()
        client.close()
        client.close()
        client.transport.abort()
        assert 0.15 < time.monotonic() - began < TIMEOUT
        ended.set()
        assert client.lost == []
        with pytest.raises(ConnectionLostError, match="was closed"):
            client.transport.wait(client.transport.new_waiter(), 1)


def test_closing_a_connection_that_was_never_opened_is_harmless(side: Side) -> None:
    transport = side.client(1, opened=False).transport
    close_transport(transport)
    transport.abort()
    with pytest.raises(IllegalStateError, match="not open"):
        transport.wait(transport.new_waiter(), 0)


@pytest.mark.usefixtures("alone")
def test_no_thread_outlives_the_connection(side: Side) -> None:
    with side.peer(side.greet) as peer:
        with side.client(peer.port, heartbeat=5.0):
            pass
        deadline = time.monotonic() + 2
        while _housekeepers() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not _housekeepers()


def _housekeepers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("redelivery-housekeeping")]


def test_an_answer_comes_though_nobody_reads(side: Side) -> None:
    with side.peer(side.serve) as peer, side.client(peer.port) as client:
        session = client.session()
        for _ in range(20):
            answers: Answers = SimpleQueue()
            send(session, answers)
            assert answers.get(timeout=TIMEOUT).error is None


def test_an_answer_comes_though_the_one_who_read_has_left(side: Side, pool: ThreadPoolExecutor) -> None:
    event, answers = threading.Event(), SimpleQueue[Pending]()
    with side.peer(side.answer_when(event)) as peer, side.client(peer.port) as client:
        reading = pool.submit(client.session().receive, 0.3)
        send(client.session(), answers)
        assert reading.result(TIMEOUT) is None
        event.set()
        assert answers.get(timeout=TIMEOUT).error is None


def test_a_callback_runs_without_a_lock_and_may_send_again(side: Side) -> None:
    sent: list[int] = []
    done = threading.Event()
    with side.peer(side.serve) as peer, side.client(peer.port) as client:
        session = client.session()

        def again(pending: Pending) -> None:
            assert pending.error is None
            sent.append(1)
            if len(sent) == 50:
                done.set()
            else:
                session.channel.send(text(), transacted=False, pending=Pending(on_done=again), batched=True)

        session.channel.send(text(), transacted=False, pending=Pending(on_done=again), batched=True)
        assert done.wait(TIMEOUT)


def test_a_callback_that_raises_or_waits_harms_nobody(side: Side) -> None:
    def fail(_: Pending) -> None:
        raise ZeroDivisionError

    with side.peer(side.serve) as peer, side.client(peer.port) as client:
        session = client.session()

        def wait(_: Pending) -> None:
            client.transport.wait(client.transport.new_waiter(), 1)

        for callback in (fail, wait):
            session.channel.send(text(), transacted=False, pending=Pending(on_done=callback), batched=True)
        assert session.send(text()) is None
        assert client.lost == []


def test_a_child_after_fork_leaves_the_parent_s_connection_alone(side: Side) -> None:
    with side.peer(side.serve) as peer, side.client(peer.port, heartbeat=1.0) as client:
        session = client.session()
        child = os.fork()
        if child == 0:  # no assert here: it would be pytest's twice
            try:
                session.send(text())
            except ConnectionLostError as error:
                client.close()
                os._exit(0 if "before fork()" in str(error) else 2)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert session.send(text()) is None


def test_many_threads_send_by_sessions_of_their_own(side: Side, pool: ThreadPoolExecutor) -> None:
    def produce(client: Any) -> None:
        session = client.session()
        for _ in range(50):
            assert session.send(text(b"z" * 3000)) is None

    with side.peer(side.serve) as peer, side.client(peer.port) as client:
        for each in [pool.submit(produce, client) for _ in range(8)]:
            each.result(20)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool
