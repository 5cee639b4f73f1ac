"""TLS, whatever is spoken within it: who answers is verified, and every mistake is named."""

from __future__ import annotations

import ssl
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.transports.scripted import TIMEOUT
from tests.transports.sides import Side

from redelivery.model.errors import ConnectError, JMSError


def test_it_verifies_who_answers_and_names_what_it_is(
    side: Side, server_tls: ssl.SSLContext, trusting: ssl.SSLContext
) -> None:
    with side.peer(side.greet, server_tls) as peer:
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
    with (
        side.peer(side.greet, server_tls) as peer,
        pytest.raises(ConnectError, match="want a client certificate") as caught,
    ):
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
