"""Which dialect is spoken: what the peer says of itself, and what was asked for."""

from __future__ import annotations

import pytest
from tests.transports.amqp_peer import PeerEnd, ScriptedPeer
from tests.transports.amqp_sessions import Client

from redelivery.model.errors import (
    ConfigError,
)


def greet(end: PeerEnd) -> None:
    end.log_in()
    end.goodbye()


@pytest.mark.parametrize(
    ("product", "dialect"),
    [
        ("ActiveMQ", "activemq"),
        ("apache-activemq-artemis", "artemis"),
        ("Apache Qpid Broker-J Core", "qpid"),
        ("RabbitMQ", "rabbitmq"),
        ("redelivery", "embedded"),
        ("some other", "unknown"),
        ("", "unknown"),
    ],
)
def test_the_dialect_is_detected(product: str, dialect: str) -> None:
    def script(end: PeerEnd) -> None:
        end.log_in(product)
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        assert client.transport.peer.dialect == dialect


PRODUCTS = {
    "activemq": "ActiveMQ",
    "artemis": "apache-activemq-artemis",
    "qpid": "Apache Qpid Broker-J Core",
    "rabbitmq": "RabbitMQ",
}


@pytest.mark.parametrize("said", PRODUCTS)
@pytest.mark.parametrize("asked", [*PRODUCTS, "hornetq", "embedded"])
def test_a_dialect_that_contradicts_the_product_is_refused(said: str, asked: str) -> None:
    def script(end: PeerEnd) -> None:
        end.log_in(PRODUCTS[said])
        end.goodbye()

    with ScriptedPeer(script) as peer:
        if asked == said:
            with Client(peer.port, dialect=asked):
                pass
            return
        with pytest.raises(ConfigError, match=f"dialect='{asked}'.*{PRODUCTS[said]}.*insist"):
            Client(peer.port, dialect=asked)
        if asked != "hornetq":
            with Client(peer.port, dialect=f"{asked}!") as client:
                assert client.transport.peer.dialect == asked


@pytest.mark.parametrize("container", ["", "peer"])
def test_a_peer_that_says_nothing_of_itself_is_not_known(container: str) -> None:
    def script(end: PeerEnd) -> None:
        end.log_in("", container_id=container)
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        assert client.transport.peer.dialect == "unknown"


def test_the_dialect_can_be_chosen_and_must_exist() -> None:
    with ScriptedPeer(greet) as peer, Client(peer.port, dialect="unknown") as client:
        assert client.transport.peer.dialect == "unknown"
    with pytest.raises(ConfigError, match="dialect='hornet' is not known; it is one of 'auto', 'activemq'"):
        Client(1, dialect="hornet", opened=False)
