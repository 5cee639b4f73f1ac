"""TLS, whatever is spoken within it: who answers is verified, and every mistake is named."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.transports import scripted
from tests.transports.scripted import TIMEOUT

from redelivery.model.errors import ConnectError, JMSError


@dataclass(frozen=True, slots=True)
class Side:
    """A peer that follows a script, and who connects to it; ``plain``: what it says to a client that it cannot read."""

    peer: Callable[..., Any]
    client: Callable[..., Any]
    scheme: str
    plain: bytes


@pytest.fixture(params=["stomp", "amqp"])
def side(request: pytest.FixtureRequest) -> Side:
    if request.param == "stomp":
        return Side(scripted.ScriptedBroker, scripted.Client, "stomp+ssl", b"ERROR\nmessage:what?\n\n\0")
    pytest.importorskip("proton")
    from tests.transports import amqp_peer, amqp_sessions

    return Side(amqp_peer.ScriptedPeer, amqp_sessions.Client, "amqps", b"AMQP\x00\x01\x00\x00")


def greet(end: Any) -> None:
    end.log_in()
    end.goodbye()


def test_it_verifies_who_answers_and_names_what_it_is(
    side: Side, server_tls: ssl.SSLContext, trusting: ssl.SSLContext
) -> None:
    with side.peer(greet, server_tls) as peer:
        with pytest.raises(ConnectError, match="the certificate is not trusted"):
            side.client(peer.port, host="localhost", scheme=side.scheme)
        with pytest.raises(ConnectError, match=r"the certificate is not trusted.*127\.0\.0\.1"):
            side.client(peer.port, scheme=side.scheme, tls=trusting)
        with pytest.raises(JMSError, match=r"TLS"):
            side.client(peer.port, host="localhost", connect_timeout=2.0)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])  # in the handshake, and behind it
def test_a_broker_that_wants_a_certificate_says_so(
    side: Side, server_tls: ssl.SSLContext, trusting: ssl.SSLContext, certificates: Path, version: ssl.TLSVersion
) -> None:
    server_tls.verify_mode = ssl.CERT_REQUIRED
    server_tls.load_verify_locations(certificates / "ann.pem")
    server_tls.maximum_version = version
    with side.peer(greet, server_tls) as peer, pytest.raises(ConnectError, match="want a client certificate") as caught:
        side.client(peer.port, host="localhost", scheme=side.scheme, tls=trusting)
    assert f"{side.scheme}://) or not" not in str(caught.value)


@pytest.mark.parametrize("answers", [True, False])
def test_a_plain_port_says_so(side: Side, answers: bool) -> None:
    def script(end: Any) -> None:
        end.sock.recv(100)
        if answers:
            end.write(side.plain)

    said = "the port does not speak it" if answers else r"is it a TLS port\?"
    with side.peer(script) as peer, pytest.raises(ConnectError, match=said):
        side.client(peer.port, scheme=side.scheme)


def test_a_silent_port_costs_the_connect_timeout(side: Side) -> None:
    ended = threading.Event()

    def script(_: Any) -> None:
        ended.wait(TIMEOUT)

    with side.peer(script) as peer:
        with pytest.raises(ConnectError, match=r"not answer in TLS within connect_timeout=0\.3 s: is it a TLS port\?"):
            side.client(peer.port, scheme=side.scheme, connect_timeout=0.3)
        ended.set()
