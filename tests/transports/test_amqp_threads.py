"""One AMQP connection and many who use it: callbacks, threads, fork, a flow of messages."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

import pytest
from tests.transports.amqp_peer import PeerEnd, ScriptedPeer
from tests.transports.amqp_sessions import Client, with_messages
from tests.transports.scripted import TIMEOUT, text

from redelivery.model.errors import ConnectionLostError
from redelivery.model.modes import AckMode
from redelivery.transports.seam import Pending

ARTEMIS = "apache-activemq-artemis"


def serve(end: PeerEnd) -> None:
    """Agree to every link, settle every message, until the client has gone."""
    end.log_in(ARTEMIS)
    try:
        while True:
            frame = end.take()
            if frame.name == "attach":
                end.confirm(frame)
                if not frame["role"]:
                    end.give(frame, 1 << 30)
            elif frame.name == "transfer":
                end.settle(frame)
            else:
                end.agree_to_end(frame)
    except OSError:
        return


def test_an_answer_comes_though_nobody_reads() -> None:
    with ScriptedPeer(serve) as peer, Client(peer.port) as client:
        session = client.session()
        for _ in range(20):
            answers: SimpleQueue[Pending] = SimpleQueue()
            session.channel.send(text(), transacted=False, pending=Pending(on_done=answers.put), batched=True)
            assert answers.get(timeout=TIMEOUT).error is None


def test_an_answer_comes_though_the_one_who_read_has_left(pool: ThreadPoolExecutor) -> None:
    answer = threading.Event()

    def script(end: PeerEnd) -> None:
        end.log_in()
        end.attached()
        frame = end.take("transfer")
        answer.wait(TIMEOUT)
        end.settle(frame)
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        reading = pool.submit(client.session().receive, 0.3)
        session = client.session()
        answers: SimpleQueue[Pending] = SimpleQueue()
        session.channel.send(text(), transacted=False, pending=Pending(on_done=answers.put), batched=True)
        assert reading.result(TIMEOUT) is None
        answer.set()
        assert answers.get(timeout=TIMEOUT).error is None


def test_a_callback_runs_without_a_lock_and_may_send_again() -> None:
    sent: list[int] = []
    done = threading.Event()

    with ScriptedPeer(serve) as peer, Client(peer.port) as client:
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


def test_a_callback_that_raises_or_waits_harms_nobody() -> None:
    def fail(_: Pending) -> None:
        raise ZeroDivisionError

    with ScriptedPeer(serve) as peer, Client(peer.port) as client:
        session = client.session()

        def wait(_: Pending) -> None:
            client.transport.wait(client.transport.new_waiter(), 1)

        session.channel.send(text(), transacted=False, pending=Pending(on_done=fail), batched=True)
        session.channel.send(text(), transacted=False, pending=Pending(on_done=wait), batched=True)
        assert session.send(text()) is None
        assert client.lost == []


def test_a_child_after_fork_leaves_the_parent_s_connection_alone() -> None:
    with ScriptedPeer(serve) as peer, Client(peer.port, heartbeat=1.0) as client:
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


@pytest.mark.parametrize("batched", [True, False])
def test_a_large_flow_of_messages_and_acknowledgements(batched: bool) -> None:
    number = 3000
    got: set[int] = set()

    def then(end: PeerEnd) -> None:
        while len(got) < number:
            frame = end.take("disposition")
            last = frame["first"] if frame["last"] is None else frame["last"]
            got.update(range(frame["first"], last + 1))

    with ScriptedPeer(with_messages(number, then, ARTEMIS)) as peer, Client(peer.port) as client:
        session = client.session(AckMode.INDIVIDUAL)
        session.attach()
        for each in range(1, number + 1):
            delivery = session.receive()
            assert delivery.header("message_id").endswith(f"m{each}")
            session.channel.accept([delivery], batched=batched)
        client.close()
    assert got == set(range(number))


def test_sessions_share_a_connection_and_get_what_is_theirs(pool: ThreadPoolExecutor) -> None:
    rounds = 100

    def script(end: PeerEnd) -> None:
        end.log_in(ARTEMIS)
        links = {frame.address: frame for frame in [end.attached() for _ in range(3)]}
        for each in range(rounds):
            for name, link in links.items():
                end.message(link, each, str(name).encode())
        end.goodbye()

    def consume(client: Client, name: str) -> None:
        session = client.session()
        session.attach(name, window=rounds)
        for each in range(rounds):
            delivery = session.receive()
            assert (delivery.body(), delivery.header("message_id")[-3:]) == (
                name.encode(),
                f"m{each}"[-3:].rjust(3, ":"),
            )
            session.channel.accept([delivery], batched=each % 2 == 0)

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        for each in [pool.submit(consume, client, str(number)) for number in range(3)]:
            each.result(TIMEOUT)


def test_many_threads_send_by_sessions_of_their_own(pool: ThreadPoolExecutor) -> None:
    def produce(client: Client) -> None:
        session = client.session()
        for _ in range(50):
            assert session.send(text(b"z" * 3000)) is None

    with ScriptedPeer(serve) as peer, Client(peer.port) as client:
        for each in [pool.submit(produce, client) for _ in range(8)]:
            each.result(20)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool
