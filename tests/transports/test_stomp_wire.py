"""A connection over a real socket: peers that fall silent, stop reading, talk nonsense; threads, fork and TLS."""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

import pytest
from tests.transports.scripted import TIMEOUT, BrokerEnd, Client, ScriptedBroker, text

from redelivery.model.errors import ConnectError, ConnectionLostError, IllegalStateError, JMSError, ProtocolError
from redelivery.model.modes import AckMode
from redelivery.transports.base import Pending
from redelivery.transports.wire.housekeeping import housekeeper


def greet(end: BrokerEnd) -> None:
    end.log_in()
    end.goodbye()


def test_closing_is_bounded_against_a_silent_broker_and_harmless_twice() -> None:
    over = threading.Event()

    def script(end: BrokerEnd) -> None:
        end.log_in()
        end.take("DISCONNECT")
        over.wait(TIMEOUT)

    with ScriptedBroker(script) as broker:
        client = Client(broker.port, close_timeout=0.2)
        began = time.monotonic()
        client.transport.close()
        client.transport.close()
        client.transport.abort()
        assert 0.15 < time.monotonic() - began < 1.5
        over.set()
        assert client.lost == []
        with pytest.raises(ConnectionLostError, match="was closed"):
            client.transport.wait(client.transport.new_waiter(), 1)


def test_closing_a_connection_that_was_never_opened_is_harmless() -> None:
    transport = Client(1, opened=False).transport
    transport.close()
    transport.abort()
    with pytest.raises(IllegalStateError, match="not open"):
        transport.wait(transport.new_waiter(), 0)


def test_closing_wakes_whoever_waits(pool: ThreadPoolExecutor) -> None:
    with ScriptedBroker(greet) as broker:
        client = Client(broker.port)
        waiting = [pool.submit(client.session().receive, TIMEOUT) for _ in range(3)]
        while not client.transport._connection.leader.led:  # type: ignore[union-attr]  # it is open
            time.sleep(0.001)
        client.transport.close()
        for each in waiting:
            assert isinstance(each.exception(TIMEOUT), ConnectionLostError)


def test_a_loss_is_told_once_and_after_every_answer_has_failed() -> None:
    told: list[str] = []

    def script(end: BrokerEnd) -> None:
        end.log_in()
        end.take("SEND"), end.take("SEND")
        end.send("ERROR", message="shutting down")

    class Watched(Client):
        def on_lost(self, error: JMSError) -> None:
            told.append("lost")
            super().on_lost(error)

    with ScriptedBroker(script) as broker:
        client = Watched(broker.port)
        session = client.session()
        for _ in range(2):
            session.channel.send(text(), transacted=False, pending=Pending(on_done=lambda _: told.append("failed")))
        assert client.lost_event.wait(TIMEOUT)
        with pytest.raises(ConnectionLostError):
            session.send(text())
        client.transport.close()
    assert told == ["failed", "failed", "lost"]
    assert "the last that it said was: the broker says: shutting down" in str(client.lost[0])


def test_nonsense_in_the_middle_ends_the_connection() -> None:
    def script(end: BrokerEnd) -> None:
        end.log_in()
        end.take("SEND")
        end.write(b"RECEIPT\n\n\0")
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        client.session().channel.send(text(), transacted=False, pending=None)
        with pytest.raises(ConnectionLostError, match="without the header receipt-id"):
            client.session().receive()
        assert len(client.lost) == 1


@pytest.mark.parametrize("frame", [b"SEND\ndestination:x\n\n\0", b"MESSAGE\nack:1\n\nx\0"])
def test_frames_that_no_server_sends_end_the_connection(frame: bytes) -> None:
    def script(end: BrokerEnd) -> None:
        end.log_in()
        end.take("SEND")
        end.write(frame)
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        client.session().channel.send(text(), transacted=False, pending=None)
        with pytest.raises(ConnectionLostError):
            client.session().receive()


def test_nonsense_right_after_the_login_fails_the_opening() -> None:
    def script(end: BrokerEnd) -> None:
        end.take("CONNECT")
        end.write(b"CONNECTED\nversion:1.2\n\n\0MESSAGE\n\n\0")
        end.goodbye()

    with ScriptedBroker(script) as broker, pytest.raises(ProtocolError, match="without the header subscription"):
        Client(broker.port)


def test_a_body_beyond_the_limit_of_the_url_ends_the_connection() -> None:
    def script(end: BrokerEnd) -> None:
        end.log_in()
        end.message(end.subscribed(), 1, b"x" * 2000)
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port, params={"wireFormat.maxDataLength": "1000"}) as client:
        session = client.session()
        session.attach()
        with pytest.raises(ConnectionLostError, match="larger than 1000 bytes"):
            session.receive()


def test_a_peer_that_stops_reading_costs_a_sender_the_request_timeout() -> None:
    over = threading.Event()

    def script(end: BrokerEnd) -> None:
        end.log_in()
        over.wait(TIMEOUT)

    with ScriptedBroker(script) as broker:
        client = Client(broker.port, request_timeout=0.3)
        session = client.session()
        began = time.monotonic()
        with pytest.raises(ConnectionLostError, match=r"took no byte for 0\.3 s"):
            session.channel.send(text(b"x" * (64 << 20)), transacted=False, pending=None)
        assert time.monotonic() - began < 3
        assert len(client.lost) == 1
        over.set()


def test_two_full_pipes_do_not_wait_for_each_other() -> None:
    size = 48 << 20

    def script(end: BrokerEnd) -> None:
        end.log_in()
        subscription = end.subscribed()
        end.message(subscription, 1, b"y" * size)  # before it reads anything
        assert len(end.take("SEND").body) == size
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        session = client.session()
        session.attach()
        session.channel.send(text(b"x" * size), transacted=False, pending=None)
        assert len(session.receive().body()) == size


def test_a_confirmation_comes_though_nobody_reads() -> None:
    def script(end: BrokerEnd) -> None:
        end.log_in()
        for _ in range(20):
            end.answer(end.take("SEND"))
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        session = client.session()
        for _ in range(20):
            answers: SimpleQueue[Pending] = SimpleQueue()
            session.channel.send(text(), transacted=False, pending=Pending(on_done=answers.put))
            assert answers.get(timeout=TIMEOUT).error is None


def test_a_callback_that_raises_harms_nobody() -> None:
    def script(end: BrokerEnd) -> None:
        end.log_in()
        for _ in range(2):
            end.answer(end.take("SEND"))
        end.goodbye()

    def fail(_: Pending) -> None:
        raise ZeroDivisionError

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        session = client.session()
        session.channel.send(text(), transacted=False, pending=Pending(on_done=fail))
        assert session.send(text()) is None
        assert client.lost == []


def test_heart_beats_keep_a_connection_alive_that_nobody_uses() -> None:
    beats: list[bytes] = []

    def script(end: BrokerEnd) -> None:
        end.log_in(heart_beat="300,300")
        deadline = time.monotonic() + 1.5
        while time.monotonic() < deadline:
            end.write(b"\n")
            end.sock.settimeout(0.3)  # an interval without a byte fails the test
            beats.append(end.sock.recv(100))
        end.sock.settimeout(TIMEOUT)
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port, heartbeat=0.3) as client:
        assert not client.lost_event.wait(1.8)
    assert len(beats) > 4
    assert set(b"".join(beats)) == {10}


def test_a_peer_that_promised_heart_beats_and_is_silent_is_lost() -> None:
    over = threading.Event()

    def script(end: BrokerEnd) -> None:
        end.log_in(heart_beat="100,0")
        over.wait(TIMEOUT)

    with ScriptedBroker(script) as broker:
        client = Client(broker.port, heartbeat=0.1)
        began = time.monotonic()
        assert client.lost_event.wait(TIMEOUT)
        assert 0.15 < time.monotonic() - began < 1.0
        assert "a heart-beat was promised every 0.1 s" in str(client.lost[0])
        over.set()


def test_messages_that_nobody_takes_are_signs_of_life() -> None:
    def script(end: BrokerEnd) -> None:
        end.log_in(heart_beat="100,0")
        subscription = end.subscribed()
        for each in range(10):
            end.message(subscription, each)
            time.sleep(0.06)
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port, heartbeat=0.1) as client:
        session = client.session()
        session.attach()
        assert not client.lost_event.wait(0.5)
        assert len(session.receive_many(10)) == 10


def test_an_idle_connection_without_heart_beats_has_no_thread_and_costs_nothing() -> None:
    with ScriptedBroker(greet) as broker, Client(broker.port) as client, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.session().receive, 0.5)
        began = time.process_time()
        waiting.result()
        assert time.process_time() - began < 0.1
        assert housekeeper()._thread is None


def test_a_child_after_fork_leaves_the_parent_s_connection_alone() -> None:
    def script(end: BrokerEnd) -> None:
        end.log_in(heart_beat="1000,1000")
        end.answer(end.take("SEND"))
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port, heartbeat=1.0) as client:
        session = client.session()
        child = os.fork()
        if child == 0:  # no assert here: it would be pytest's twice
            try:
                session.send(text())
            except ConnectionLostError as error:
                client.transport.close()
                os._exit(0 if "before fork()" in str(error) else 2)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert session.send(text()) is None


@pytest.mark.parametrize("lazy", [True, False])
def test_a_large_flow_of_messages_and_acks(lazy: bool) -> None:
    number = 3000
    got: list[str] = []

    def script(end: BrokerEnd) -> None:
        end.log_in()
        subscription = end.subscribed()
        for each in range(number):
            end.message(subscription, each, b"x" * (each % 300))
        got.extend(end.take("ACK").headers["id"] for _ in range(number))
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        session = client.session(AckMode.INDIVIDUAL)
        session.attach()
        for each in range(number):
            delivery = session.receive()
            assert (delivery.header("message_id"), len(delivery.body())) == (f"m{each}", each % 300)
            session.channel.accept([delivery], lazy=lazy)
    assert got == [f"a:{each}" for each in range(number)]


def test_sessions_share_a_connection_and_get_what_is_theirs(pool: ThreadPoolExecutor) -> None:
    rounds = 100

    def script(end: BrokerEnd) -> None:
        end.log_in()
        ids = {}
        for _ in range(3):
            frame = end.answer(end.take("SUBSCRIBE"))
            ids[frame.headers["destination"]] = frame.headers["id"]
        for each in range(rounds):
            for name in ("/queue/0", "/queue/1", "/queue/2"):
                end.message(ids[name], each, name.encode())
        for _ in range(rounds * 3):
            end.take("ACK")
        end.goodbye()

    def consume(client: Client, name: str) -> None:
        session = client.session()
        session.attach(name)
        for each in range(rounds):
            delivery = session.receive()
            assert (delivery.body(), delivery.header("message_id")) == (f"/queue/{name}", f"m{each}")
            session.channel.accept([delivery], lazy=each % 2 == 0)

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        for each in [pool.submit(consume, client, str(number)) for number in range(3)]:
            each.result(TIMEOUT)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


# TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is needed to make a certificate, and is not installed")
    folder = tmp_path_factory.mktemp("tls")
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    files = ["-keyout", str(folder / "key"), "-out", str(folder / "certificate")]
    names = ["-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*command, *files, *names], check=True, capture_output=True)  # noqa: S603  # of this test
    return folder


@pytest.fixture
def server_tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "certificate", certificate / "key")
    return context


@pytest.fixture
def trusting(certificate: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificate / "certificate"))


def test_tls_carries_messages_both_ways_at_the_same_time(
    server_tls: ssl.SSLContext, trusting: ssl.SSLContext, pool: ThreadPoolExecutor
) -> None:
    number = 1000

    def script(end: BrokerEnd) -> None:
        end.log_in()
        subscription = end.subscribed()
        for each in range(number):
            end.message(subscription, each, b"x" * 3000)
            end.take("ACK", "SEND")
        for _ in range(number):
            end.take("ACK", "SEND")
        end.message(subscription, 0, b"y" * (3 << 20))
        assert len(end.take("SEND").body) == 3 << 20
        end.goodbye()

    def produce(client: Client) -> None:
        session = client.session()
        for _ in range(number):
            session.channel.send(text(b"z" * 3000), transacted=False, pending=None)

    with (
        ScriptedBroker(script, server_tls) as broker,
        Client(broker.port, host="localhost", scheme="stomp+ssl", tls=trusting) as client,
    ):
        session = client.session()
        session.attach()
        producing = pool.submit(produce, client)
        for _ in range(number):
            session.channel.accept([session.receive()], lazy=False)
        producing.result(TIMEOUT)
        assert len(session.receive().body()) == 3 << 20
        session.channel.send(text(b"z" * (3 << 20)), transacted=False, pending=None)


def test_tls_verifies_who_answers_and_names_what_it_is(server_tls: ssl.SSLContext, trusting: ssl.SSLContext) -> None:
    with ScriptedBroker(greet, server_tls) as broker:
        with pytest.raises(ConnectError, match="the certificate is not trusted"):
            Client(broker.port, host="localhost", scheme="stomp+ssl")
        with pytest.raises(ConnectError, match=r"the certificate is not trusted.*127\.0\.0\.1"):
            Client(broker.port, scheme="stomp+ssl", tls=trusting)
        with pytest.raises(JMSError, match=r"TLS"):
            Client(broker.port, host="localhost", connect_timeout=2.0)


def test_tls_to_a_plain_port_says_so() -> None:
    def script(end: BrokerEnd) -> None:
        end.sock.recv(100)
        end.write(b"ERROR\nmessage:what?\n\n\0")

    with ScriptedBroker(script) as broker, pytest.raises(ConnectError, match="the port does not speak it"):
        Client(broker.port, scheme="stomp+ssl")


def test_tls_to_a_silent_port_costs_the_connect_timeout() -> None:
    over = threading.Event()

    def script(_: BrokerEnd) -> None:
        over.wait(TIMEOUT)

    with ScriptedBroker(script) as broker:
        with pytest.raises(ConnectError, match=r"within connect_timeout=0\.3 s|timed out"):
            Client(broker.port, scheme="stomp+ssl", connect_timeout=0.3)
        over.set()
