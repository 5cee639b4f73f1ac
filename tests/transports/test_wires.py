"""A connection over a real socket, whatever is spoken on it: who closes it, who reads it, threads and fork."""

from __future__ import annotations

import logging
import os
import threading
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any

import pytest
from tests.transports.scripted import TIMEOUT, text
from tests.transports.sides import Side

from redelivery.client.sync.driver import close_transport
from redelivery.model.errors import ConnectError, ConnectionLostError, IllegalStateError, JMSError
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


def test_closing_wakes_whoever_waits(side: Side, pool: ThreadPoolExecutor) -> None:
    with side.peer(side.greet) as peer:
        client = side.client(peer.port)
        waiting = [pool.submit(client.session().receive, TIMEOUT) for _ in range(3)]
        while not side.led(client):
            time.sleep(0.001)
        client.close()
        for each in waiting:
            assert isinstance(each.exception(TIMEOUT), ConnectionLostError)


def test_a_loss_is_reported_once_and_after_every_answer_has_failed(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[str] = []

    def script(end: Any) -> None:
        side.let_send(end)
        end.take(side.sent), end.take(side.sent)
        side.say_why(end, "shutting down")

    with side.peer(script) as peer:
        client = side.client(peer.port)
        on_lost = client.on_lost

        def lost(error: JMSError) -> None:
            reported.append("lost")
            on_lost(error)

        monkeypatch.setattr(client, "on_lost", lost)
        session = client.session()
        for _ in range(2):
            pending = Pending(on_done=lambda _: reported.append("failed"))
            session.channel.send(text(), transacted=False, pending=pending, batched=True)
        assert client.lost_event.wait(TIMEOUT)
        with pytest.raises(ConnectionLostError):
            session.send(text())
        client.close()
    assert reported == ["failed", "failed", "lost"]
    assert "shutting down" in str(client.lost[0])


def test_a_peer_that_stops_reading_costs_a_sender_the_request_timeout(side: Side) -> None:
    ended = threading.Event()

    def script(end: Any) -> None:
        side.let_send(end)
        side.answer(end, end.take(side.sent))
        ended.wait(TIMEOUT)

    with side.peer(script) as peer:
        client = side.client(peer.port, request_timeout=0.3)
        session = client.session()
        assert session.send(text()) is None
        pending = Pending()
        began = time.monotonic()
        with pytest.raises(ConnectionLostError, match=r"took no byte for 0\.3 s|timed out"):
            session.channel.send(text(b"x" * (64 << 20)), transacted=False, pending=pending)
        assert time.monotonic() - began < 15
        assert isinstance(pending.error, ConnectionLostError)
        assert len(client.lost) == 1
        ended.set()


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


@pytest.mark.usefixtures("alone")
def test_a_connection_that_wants_no_signs_of_life_has_no_thread_and_costs_nothing(side: Side) -> None:
    with side.peer(side.greet) as peer, side.client(peer.port) as client, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.session().receive, 0.5)
        began = time.process_time()
        waiting.result()
        assert time.process_time() - began < 0.25  # a loop: 0.5
        assert not _housekeepers()


@pytest.mark.parametrize("silent", [True, False])
def test_the_password_is_nowhere_to_be_seen(side: Side, silent: bool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    login = {"username": "ann", "password": "s3cr3tpw"}
    with side.peer(side.greet) as peer, side.client(peer.port, **login) as client:
        client.session()
        seen = [repr(client.transport), repr(client.transport.options), repr(client.transport.peer)]
    ended = threading.Event()
    with side.peer(lambda _: ended.wait(TIMEOUT) if silent else None) as peer:
        with pytest.raises(JMSError) as caught:
            side.client(peer.port, **login, connect_timeout=0.3)
        ended.set()
    seen += ["".join(traceback.format_exception(caught.value)), caplog.text]
    assert not [each for each in seen if login["password"] in each]


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
