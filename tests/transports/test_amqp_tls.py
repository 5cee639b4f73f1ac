"""AMQP over TLS: who answers is verified, who asks can show a certificate, and every mistake is named."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.transports.amqp_peer import PeerEnd, ScriptedPeer
from tests.transports.amqp_sessions import Client
from tests.transports.scripted import TIMEOUT, text

from redelivery.model.errors import ConnectError, JMSError, SecurityError

ARTEMIS = "apache-activemq-artemis"


def greet(end: PeerEnd) -> None:
    end.log_in()
    end.goodbye()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is needed to make a certificate, and is not installed")
    folder = tmp_path_factory.mktemp("tls")
    for name in ("localhost", "ann"):
        command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}"]
        files = ["-keyout", str(folder / f"{name}.key"), "-out", str(folder / f"{name}.pem")]
        names = ["-addext", f"subjectAltName=DNS:{name}"]
        subprocess.run([*command, *files, *names], check=True, capture_output=True)  # noqa: S603  # of this test
    return folder


@pytest.fixture
def server_tls(certificates: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "localhost.pem", certificates / "localhost.key")
    return context


@pytest.fixture
def trusting(certificates: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificates / "localhost.pem"))


def test_a_client_certificate_logs_in_by_external(
    server_tls: ssl.SSLContext, trusting: ssl.SSLContext, certificates: Path
) -> None:
    names: list[object] = []

    def script(end: PeerEnd) -> None:
        assert isinstance(end.sock, ssl.SSLSocket)
        shown = end.sock.getpeercert()
        names.append(shown["subject"] if shown else None)
        end.log_in(mechanisms=("EXTERNAL", "PLAIN", "ANONYMOUS"))
        end.goodbye()

    server_tls.verify_mode = ssl.CERT_REQUIRED
    server_tls.load_verify_locations(certificates / "ann.pem")
    trusting.load_cert_chain(certificates / "ann.pem", certificates / "ann.key")
    with (
        ScriptedPeer(script, server_tls) as peer,
        Client(peer.port, host="localhost", scheme="amqps", tls=trusting),
    ):
        init = peer.peers[0].taken[0]
        assert (init["mechanism"], init["response"], init["hostname"]) == ("EXTERNAL", b"", "localhost")
    assert names == [((("commonName", "ann"),),)]


@pytest.mark.parametrize(
    ("options", "chosen"),
    [
        ({}, "ANONYMOUS"),
        ({"username": "ann", "password": "s3cr3tpw"}, "PLAIN"),
    ],
)
def test_without_external_the_login_is_as_without_tls(
    server_tls: ssl.SSLContext, trusting: ssl.SSLContext, options: dict[str, Any], chosen: str
) -> None:
    with (
        ScriptedPeer(greet, server_tls) as peer,
        Client(peer.port, host="localhost", scheme="amqps", tls=trusting, **options),
    ):
        assert peer.peers[0].taken[0]["mechanism"] == chosen


def test_a_refused_certificate_is_a_security_error(server_tls: ssl.SSLContext, trusting: ssl.SSLContext) -> None:
    def script(end: PeerEnd) -> None:
        end.sasl("EXTERNAL", outcome=1)
        end.goodbye()

    with ScriptedPeer(script, server_tls) as peer, pytest.raises(SecurityError, match="certificate"):
        Client(peer.port, host="localhost", scheme="amqps", tls=trusting)


def test_a_broker_that_wants_a_certificate_says_so(
    server_tls: ssl.SSLContext, trusting: ssl.SSLContext, certificates: Path
) -> None:
    server_tls.verify_mode = ssl.CERT_REQUIRED
    server_tls.load_verify_locations(certificates / "ann.pem")
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):  # within the handshake, and behind it
        server_tls.maximum_version = version
        with (
            ScriptedPeer(greet, server_tls) as peer,
            pytest.raises(ConnectError, match="want a client certificate") as caught,
        ):
            Client(peer.port, host="localhost", scheme="amqps", tls=trusting)
        assert "amqps://) or not" not in str(caught.value)


def test_tls_verifies_who_answers_and_names_what_it_is(server_tls: ssl.SSLContext, trusting: ssl.SSLContext) -> None:
    with ScriptedPeer(greet, server_tls) as peer:
        with pytest.raises(ConnectError, match="the certificate is not trusted"):
            Client(peer.port, host="localhost", scheme="amqps")
        with pytest.raises(ConnectError, match=r"the certificate is not trusted.*127\.0\.0\.1"):
            Client(peer.port, scheme="amqps", tls=trusting)
        with pytest.raises(JMSError, match=r"TLS"):
            Client(peer.port, host="localhost", connect_timeout=2.0)


def test_tls_to_a_plain_port_says_so() -> None:
    def script(end: PeerEnd) -> None:
        end.sock.recv(100)
        end.write(b"AMQP\x00\x01\x00\x00")

    with ScriptedPeer(script) as peer, pytest.raises(ConnectError, match="the port does not speak it"):
        Client(peer.port, scheme="amqps")


def test_tls_to_a_silent_port_costs_the_connect_timeout() -> None:
    ended = threading.Event()

    def script(_: PeerEnd) -> None:
        ended.wait(TIMEOUT)

    with ScriptedPeer(script) as peer:
        with pytest.raises(ConnectError, match=r"within connect_timeout=0\.3 s|timed out"):
            Client(peer.port, scheme="amqps", connect_timeout=0.3)
        ended.set()


def test_tls_carries_messages_both_ways_at_the_same_time(
    server_tls: ssl.SSLContext, trusting: ssl.SSLContext, pool: ThreadPoolExecutor
) -> None:
    number = 500
    small_ones_done = threading.Event()

    def script(end: PeerEnd) -> None:
        end.log_in(ARTEMIS, max_frame_size=1 << 16)
        link = end.attached()
        settled = sent = 0
        for each in range(number):
            end.message(link, each, b"x" * 3000)
        while settled < number or sent < number:
            frame = end.take("attach", "transfer", "disposition")
            if frame.name == "attach":
                end.confirm(frame)
                end.give(frame, 10_000)
            elif frame.name == "transfer":
                end.settle(frame)
                sent += 1
            else:
                settled = 1 + (frame["first"] if frame["last"] is None else frame["last"])
        small_ones_done.set()
        end.message(link, 0, b"y" * (3 << 20), frame_size=1 << 20)
        assert len(end.whole().payload) > 3 << 20
        end.goodbye()

    def produce(client: Client) -> None:
        session = client.session()
        for _ in range(number):
            session.channel.send(text(b"z" * 3000), transacted=False, pending=None)
        assert small_ones_done.wait(TIMEOUT)
        session.channel.send(text(b"z" * (3 << 20)), transacted=False, pending=None)

    with (
        ScriptedPeer(script, server_tls) as peer,
        Client(peer.port, host="localhost", scheme="amqps", tls=trusting) as client,
    ):
        session = client.session()
        session.attach(window=number + 1)
        producing = pool.submit(produce, client)
        for _ in range(number):
            session.channel.accept([session.receive()], batched=False)
        producing.result(TIMEOUT * 2)
        assert len(session.receive(TIMEOUT * 2).body()) == 3 << 20


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool
