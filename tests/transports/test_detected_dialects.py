"""Which dialect is spoken, by both protocols: what the peer says of itself, and what was asked for."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.transports.sides import PRODUCTS, SERVERS, Side

from redelivery.model.errors import ConfigError

ALL = sorted({*SERVERS, *PRODUCTS})


def says(side: Side, server: str, **more: str) -> Any:
    """A peer that says so."""

    def script(end: Any) -> None:
        end.log_in(server, **more)
        end.goodbye()

    return side.peer(script)


@pytest.mark.parametrize("dialect", [*ALL, "embedded", "unknown"])
def test_the_dialect_is_detected(side: Side, dialect: str) -> None:
    others = {"embedded": (side.embedded,), "unknown": ("Strange/1", "some other", "")}
    for server in others.get(dialect, (side.servers[dialect],) if dialect in side.servers else ()):
        with says(side, server) as peer, side.client(peer.port) as client:
            assert client.transport.peer.dialect == dialect


@pytest.mark.parametrize("said", ALL)
@pytest.mark.parametrize("asked", [*ALL, "embedded"])
def test_a_dialect_that_contradicts_what_the_peer_says_is_refused(side: Side, said: str, asked: str) -> None:
    if said not in side.servers:
        return  # it does not speak this protocol
    with says(side, side.servers[said]) as peer:
        if asked == said:
            with side.client(peer.port, dialect=asked):
                pass
            return
        with pytest.raises(ConfigError, match=f"dialect='{asked}'.*{re.escape(side.servers[said])}.*insist"):
            side.client(peer.port, dialect=asked)
        if asked in side.servers or asked == "embedded":
            with side.client(peer.port, dialect=f"{asked}!") as client:
                assert client.transport.peer.dialect == asked


def test_the_dialect_can_be_chosen_and_must_exist(side: Side) -> None:
    with side.peer(side.greet) as peer, side.client(peer.port, dialect="unknown") as client:
        assert client.transport.peer.dialect == "unknown"
        assert not client.transport.peer.capabilities.selectors
    with pytest.raises(ConfigError, match="dialect='hornet' is not known; it is one of 'auto', 'activemq'"):
        side.client(1, dialect="hornet", opened=False)


@pytest.mark.parametrize(("side", "container"), [("amqp", ""), ("amqp", "peer")], indirect=["side"])
def test_a_peer_that_says_nothing_of_itself_is_not_known(side: Side, container: str) -> None:
    with says(side, "", container_id=container) as peer, side.client(peer.port) as client:
        assert client.transport.peer.dialect == "unknown"
