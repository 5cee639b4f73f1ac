"""An error in a broker's answer to an end that we have asked for says nothing that anybody waits for."""

from __future__ import annotations

import logging

import pytest
from tests.transports.amqp_frames import error
from tests.transports.amqp_peer import PeerEnd, ScriptedPeer
from tests.transports.amqp_sessions import Client
from tests.transports.scripted import text

import redelivery
from redelivery import JMSError

ARTEMIS = "apache-activemq-artemis"


def test_a_detach_of_a_sending_link_that_is_answered_with_an_error_is_none(caplog: pytest.LogCaptureFixture) -> None:
    def script(end: PeerEnd) -> None:
        end.log_in(ARTEMIS)
        end.attached()
        end.settle(end.take("transfer"))
        frame = end.take("detach")
        end.send(
            "detach",
            frame.channel,
            handle=frame["handle"],
            closed=True,
            error=error("amqp:resource-deleted", "the queue is gone"),
        )
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session()
        assert session.send(text(destination="one")) is None
        session.do(session.channel.close())
        assert client.errors == []
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]


@pytest.mark.parametrize("way", ["consumer", "session"])
def test_a_consumer_that_the_broker_ends_while_we_close_it_is_not_reported(
    way: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Its queue was deleted after our last word before the detach, which asks for what is on its way."""

    def script(end: PeerEnd) -> None:
        end.log_in(ARTEMIS)
        link = end.attached()
        while not end.take("flow")["drain"]:
            pass
        end.detach(link, "amqp:resource-deleted", "the queue is gone")
        end.goodbye()

    errors: list[JMSError] = []
    with (
        ScriptedPeer(script) as peer,
        redelivery.connect(f"amqp://127.0.0.1:{peer.port}", exception_listener=errors.append) as connection,
    ):
        session = connection.session()
        consumer = session.consumer("orders")
        consumer.close() if way == "consumer" else session.close()
    assert errors == []
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]
