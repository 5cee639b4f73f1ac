"""HornetQ over AMQP: refused when connecting, with an error that says what to use instead."""

from __future__ import annotations

from typing import Any

import pytest
from tests.transports.amqp_peer import PeerEnd, ScriptedPeer

import redelivery
from redelivery import UnsupportedError
from redelivery.testing.brokers.real import RealBroker

REASON = r"HornetQ cannot be used over AMQP: .*; use its STOMP, stomp://host:61613"


def test_hornetq_over_amqp_is_refused_and_distinguished_from_all_others(hornetq: RealBroker) -> None:
    with pytest.raises(UnsupportedError, match=REASON):
        redelivery.connect(hornetq.amqp_url)
    with pytest.raises(UnsupportedError, match=REASON):
        redelivery.connect(hornetq.amqp_url, dialect="hornetq")
    redelivery.connect(hornetq.stomp_url).close()


def opened_by(container: str, **said: Any) -> str:
    """The dialect taken for a peer without a product and with that container id."""

    def script(end: PeerEnd) -> None:
        end.sasl("ANONYMOUS")
        end.header()
        end.take("open")
        end.send("open", container_id=container, **said)
        end.goodbye()

    with ScriptedPeer(script) as peer, redelivery.connect(f"amqp://127.0.0.1:{peer.port}") as connection:
        return connection.dialect


def test_what_says_nothing_in_hornetq_s_way_is_hornetq() -> None:
    with pytest.raises(UnsupportedError, match=REASON):
        opened_by(container="", hostname="")


def test_any_other_peer_that_says_nothing_of_itself_is_some_other_broker() -> None:
    assert opened_by(container="") == "unknown"
    assert opened_by(container="some-broker") == "unknown"
    assert opened_by(container="some-broker", hostname="") == "unknown"
