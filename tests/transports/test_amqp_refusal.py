"""The broker refuses the open: which error that is, and when it is asked again."""

from __future__ import annotations

import time
from typing import Any

import pytest
from proton import symbol
from tests.transports.amqp_frames import error
from tests.transports.amqp_peer import PeerEnd, ScriptedPeer
from tests.transports.amqp_sessions import Client

from redelivery.model.errors import ConnectError, InvalidClientIDError, JMSError, SecurityError

LOGIN: dict[str, Any] = {"username": "ann", "password": "s3cr3tpw"}
FAILED = {symbol("amqp:connection-establishment-failed"): True}


@pytest.mark.parametrize(
    ("condition", "description", "kind"),
    [
        ("amqp:unauthorized-access", "User name [ann] or password is invalid.", SecurityError),
        ("amqp:invalid-field", "Broker: b - Client: c1 already connected from tcp://1", InvalidClientIDError),
        ("amqp:resource-limit-exceeded", "too many connections", ConnectError),
        ("amqp:connection:forced", "", ConnectError),
    ],
)
@pytest.mark.parametrize("together", [True, False])
def test_an_open_that_is_only_there_to_be_closed_is_a_refusal(
    condition: str, description: str, kind: type[JMSError], together: bool
) -> None:
    def script(end: PeerEnd) -> None:
        end.sasl("PLAIN")
        end.header()
        end.take("open")
        end.send("open", container_id="peer", properties=FAILED)
        if not together:
            time.sleep(0.05)
        end.send("close", error=error(condition, description))
        end.goodbye()

    with ScriptedPeer(script) as peer, pytest.raises(kind) as caught:
        Client(peer.port, **LOGIN)
    assert (description or condition) in str(caught.value)
    assert LOGIN["password"] not in str(caught.value)


def _deny(end: PeerEnd) -> None:
    """As Broker-J 9.2 says it."""
    end.sasl("PLAIN")
    end.header()
    end.take("open")
    end.send("open", container_id="peer", properties=FAILED)
    denied = "Permission PERFORM_ACTION(connect) is denied for : VirtualHost 'default' on VirtualHostNode 'default'"
    end.send("close", error=error("amqp:not-allowed", denied))
    end.goodbye()


def test_who_is_denied_while_the_broker_starts_is_let_in_when_it_asks_again() -> None:
    answers = iter((_deny, _deny, PeerEnd.greet))
    with ScriptedPeer(lambda end: next(answers)(end)) as peer, Client(peer.port, **LOGIN):
        assert len(peer.peers) == 3


def test_who_is_still_denied_is_refused_within_the_connect_timeout() -> None:
    with ScriptedPeer(_deny) as peer:
        with pytest.raises(SecurityError, match=r"PERFORM_ACTION\(connect\) is denied"):
            Client(peer.port, connect_timeout=1.0, **LOGIN)
        assert len(peer.peers) in {2, 3}  # the third pause would last longer
