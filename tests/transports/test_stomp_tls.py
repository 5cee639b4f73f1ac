"""STOMP over TLS: both ways at the same time, and every mistake is named."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.transports.scripted import SHARING, TIMEOUT, BrokerEnd, Client, ScriptedBroker, text

from redelivery.model.errors import ConnectError, JMSError


def greet(end: BrokerEnd) -> None:
    end.log_in()
    end.goodbye()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


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
        end.log_in(SHARING)
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
            session.channel.accept([session.receive()], batched=False)
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


def test_a_broker_that_wants_a_certificate_says_so(
    server_tls: ssl.SSLContext, trusting: ssl.SSLContext, certificate: Path
) -> None:
    server_tls.verify_mode = ssl.CERT_REQUIRED
    server_tls.load_verify_locations(certificate / "certificate")
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):  # within the handshake, and behind it
        server_tls.maximum_version = version
        with (
            ScriptedBroker(greet, server_tls) as broker,
            pytest.raises(ConnectError, match="want a client certificate") as caught,
        ):
            Client(broker.port, host="localhost", scheme="stomp+ssl", tls=trusting)
        assert "stomp+ssl://) or not" not in str(caught.value)


def test_tls_to_a_plain_port_says_so() -> None:
    def script(end: BrokerEnd) -> None:
        end.sock.recv(100)
        end.write(b"ERROR\nmessage:what?\n\n\0")

    with (
        ScriptedBroker(script) as broker,
        pytest.raises(ConnectError, match=r"the port does not speak it; is it a TLS port\?"),
    ):
        Client(broker.port, scheme="stomp+ssl")


def test_tls_to_a_port_that_hangs_up_says_so() -> None:
    def script(end: BrokerEnd) -> None:
        end.sock.recv(100)

    with ScriptedBroker(script) as broker, pytest.raises(ConnectError, match=r"is it a TLS port\?"):
        Client(broker.port, scheme="stomp+ssl")


def test_tls_to_a_silent_port_costs_the_connect_timeout() -> None:
    ended = threading.Event()

    def script(_: BrokerEnd) -> None:
        ended.wait(TIMEOUT)

    with ScriptedBroker(script) as broker:
        with pytest.raises(ConnectError, match=r"not answer in TLS within connect_timeout=0\.3 s: is it a TLS port\?"):
            Client(broker.port, scheme="stomp+ssl", connect_timeout=0.3)
        ended.set()


def test_each_wire_of_a_connection_is_encrypted_and_verified(
    server_tls: ssl.SSLContext, trusting: ssl.SSLContext
) -> None:
    """A further one goes to the address of the first, and is asked for the certificate of the host all the same."""

    def script(end: BrokerEnd) -> None:
        end.log_in()
        end.answer(end.take("SEND"))
        end.goodbye()

    with (
        ScriptedBroker(script, server_tls) as broker,
        Client(broker.port, host="localhost", scheme="stomp+ssl", tls=trusting) as client,
    ):
        sessions = [client.session() for _ in range(2)]
        assert [session.send(text()) for session in sessions] == [None, None]
        assert [isinstance(end.sock, ssl.SSLSocket) for end in broker.ends] == [True, True]
