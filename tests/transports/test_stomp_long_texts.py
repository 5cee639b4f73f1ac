"""A str that Artemis might lose over STOMP is sent as bytes."""

from __future__ import annotations

import pytest
from tests.transports.scripted import BrokerEnd, Client, ScriptedBroker, text, with_messages

ARTEMIS = "ActiveMQ-Artemis/2.44.0 ActiveMQ Artemis Messaging Engine"


@pytest.mark.parametrize("body", ["x" * 50_001, "\u00fc" * 50_001, "\U0001f600" * 25_001])
def test_a_text_that_it_would_lose_is_sent_as_bytes_with_its_kind(body: str) -> None:
    """Artemis without a journal; see test_stomp_artemis_memory.py."""

    def then(end: BrokerEnd) -> None:
        for _ in range(2):
            end.answer(end.take("SEND"))

    with ScriptedBroker(with_messages(0, then, server=ARTEMIS)) as broker, Client(broker.port) as client:
        session = client.session()
        session.attach()
        session.send(text(body))
        session.send(text(body[:-1]))
        long, short = (frame for frame in broker.ends[0].taken if frame.command == "SEND")
        assert (long.headers["content-length"], long.headers["JMS_redelivery_kind"]) == (
            str(len(body.encode())),
            "text",
        )
        assert "content-length" not in short.headers
