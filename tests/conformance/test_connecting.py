"""Connecting: who answers, who does not, and what the errors name."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from time import monotonic

import pytest
from tests.conformance.stage import Stage

import redelivery
from redelivery import ConfigError, ConnectError, JMSError, ProtocolError, SecurityError
from redelivery.testing.brokers.ports import free_ports
from redelivery.testing.brokers.real import RealBroker


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Somebody who accepts and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def http_port() -> Iterator[int]:
    """Somebody who answers whatever comes in the words of HTTP."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            peer, _ = server.accept()
            with peer:
                peer.recv(1000)
                peer.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        thread.join(5)


@pytest.mark.everywhere_in_long_form
def test_connection_knows_its_url_and_state(stage: Stage) -> None:
    connection = stage.connect()
    without_password = re.sub(r":[^:@/]+@", ":****@", stage.pair.url)
    assert (connection.url, connection.connected, connection.closed) == (without_password, True, False)
    connection.close()
    assert (connection.connected, connection.closed) == (False, True)


@pytest.mark.everywhere_in_long_form
def test_factory_makes_connections_with_its_options(stage: Stage) -> None:
    factory = redelivery.ConnectionFactory(stage.pair.url, client_id="conformance")
    with factory.create_connection() as connection:
        assert connection.client_id == "conformance"


@pytest.mark.everywhere_in_long_form
def test_options_of_the_url_are_activemqs(stage: Stage) -> None:
    url = stage.pair.url + "?jms.redeliveryPolicy.maximumRedeliveries=2&jms.redeliveryPolicy.redeliveryDelay=500"
    with redelivery.connect(url) as connection, connection.session() as session:
        policy = session.consumer(stage.queue).redelivery_policy
        assert (policy.maximum_redeliveries, policy.redelivery_delay) == (2, 0.5)


@pytest.mark.parametrize("option", ["jms.redeliveryPolicy.maximumRedeliverys=2", "jms.nonsense=1", "nonsense=1"])
def test_unknown_option_of_the_url_is_named(stage: Stage, option: str) -> None:
    with pytest.raises(ConfigError, match=option.partition("=")[0].rpartition(".")[2]):
        redelivery.connect(f"{stage.pair.url}?{option}")


def test_unknown_scheme_is_named() -> None:
    with pytest.raises(ConfigError, match="gopher"):
        redelivery.connect("gopher://localhost")


def test_wrong_password_is_refused_at_once_and_not_reported(activemq: RealBroker) -> None:
    began = monotonic()
    login = {"username": "admin", "password": "open sesame"}
    with pytest.raises(SecurityError) as raised:
        redelivery.connect(activemq.stomp_url, **login)  # type: ignore[arg-type]  # mypy does not look into the dict
    assert monotonic() - began < 5
    error: BaseException | None = raised.value
    while error is not None:
        assert "sesame" not in f"{error!r} {error}"
        error = error.__cause__


def test_password_in_the_url_is_masked(activemq: RealBroker) -> None:
    url = activemq.stomp_url.replace("stomp://", "stomp://admin:admin@")
    with redelivery.connect(url) as connection:
        assert ":admin@" not in f"{connection.url} {connection!r}"
        connection.session().close()


def test_closed_port_is_a_connect_error() -> None:
    port = free_ports(["nobody"])["nobody"]
    with pytest.raises(ConnectError, match=str(port)):
        redelivery.connect(f"stomp://127.0.0.1:{port}")


def test_silent_server_is_bounded_by_the_connect_timeout(silent_port: int) -> None:
    began = monotonic()
    with pytest.raises(JMSError, match="connect_timeout"):
        redelivery.connect(f"stomp://127.0.0.1:{silent_port}", connect_timeout=0.5)
    assert monotonic() - began < 3


def test_port_that_speaks_http_is_named(http_port: int) -> None:
    with pytest.raises(ProtocolError, match="HTTP"):
        redelivery.connect(f"stomp://127.0.0.1:{http_port}", connect_timeout=5)


def test_port_that_speaks_openwire_is_named(activemq: RealBroker) -> None:
    """ActiveMQ closes about one such connection in seven before it has said what it speaks; then that is said."""
    texts: list[str] = []
    while not texts or ("OpenWire" not in texts[-1] and len(texts) < 20):
        with pytest.raises((ProtocolError, ConnectError)) as refusal:
            redelivery.connect(activemq.openwire_url.replace("tcp://", "stomp://"), connect_timeout=5)
        texts.append(str(refusal.value))
    assert "OpenWire" in texts[-1]
    assert all("is it a STOMP port" in text for text in texts[:-1])


def test_port_that_speaks_amqp_is_refused(activemq: RealBroker) -> None:
    with pytest.raises(JMSError):
        redelivery.connect(activemq.amqp_url.replace("amqp://", "stomp://"), connect_timeout=5)
