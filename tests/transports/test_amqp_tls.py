"""AMQP over TLS: who answers is verified, who asks can show a certificate, and every mistake is named."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.transports.amqp_peer import PeerEnd, ScriptedPeer
from tests.transports.amqp_sessions import Client
from tests.transports.scripted import TIMEOUT, text

from redelivery.model.errors import SecurityError

ARTEMIS = "apache-activemq-artemis"


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
    with ScriptedPeer(script, server_tls) as peer, Client(peer.port, host="localhost", scheme="amqps", tls=trusting):
        init = peer.peers[0].taken[0]
        assert (init["mechanism"], init["response"], init["hostname"]) == ("EXTERNAL", b"", "localhost")
    assert names == [((("commonName", "ann"),),)]


@pytest.mark.parametrize(
    ("options", "chosen"), [({}, "ANONYMOUS"), ({"username": "ann", "password": "s3cr3tpw"}, "PLAIN")]
)
def test_without_external_the_login_is_as_without_tls(
    server_tls: ssl.SSLContext, trusting: ssl.SSLContext, options: dict[str, Any], chosen: str
) -> None:
    with (
        ScriptedPeer(PeerEnd.greet, server_tls) as peer,
        Client(peer.port, host="localhost", scheme="amqps", tls=trusting, **options),
    ):
        assert peer.peers[0].taken[0]["mechanism"] == chosen


def test_a_refused_certificate_is_a_security_error(server_tls: ssl.SSLContext, trusting: ssl.SSLContext) -> None:
    def script(end: PeerEnd) -> None:
        end.sasl("EXTERNAL", outcome=1)
        end.goodbye()

    with ScriptedPeer(script, server_tls) as peer, pytest.raises(SecurityError, match="certificate"):
        Client(peer.port, host="localhost", scheme="amqps", tls=trusting)


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
