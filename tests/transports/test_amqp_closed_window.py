"""A session whose window the peer has closed: RabbitMQ does that, without a word, while it has raised an alarm."""

from __future__ import annotations

import pytest
from tests.transports.amqp_peer import PeerEnd, ScriptedPeer

import redelivery
from redelivery import InDoubtError


def test_a_send_that_the_peer_s_window_holds_back_says_so() -> None:
    def script(end: PeerEnd) -> None:
        end.log_in()
        end.window = 0
        end.attached()
        end.nothing(0.3)
        end.gone("close")

    url = "amqp://127.0.0.1:{}"
    with ScriptedPeer(script) as peer:
        connection = redelivery.connect(url.format(peer.port), request_timeout=0.3, close_timeout=0.3, heartbeat=0)
        session = connection.session()
        producer = session.producer("orders")
        with pytest.raises(InDoubtError, match=r"raised an alarm \(memory, disk\)"):
            producer.send("x")
        connection.close()
