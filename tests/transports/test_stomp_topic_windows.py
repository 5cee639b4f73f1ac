"""Which consumers have no window, where no ACK may leave before the commit."""

from __future__ import annotations

import pytest
from tests.transports.scripted import BrokerEnd, Client, Script, ScriptedBroker

from redelivery.model.destinations import Queue, Topic
from redelivery.model.modes import AckMode

ARTEMIS = "ActiveMQ-Artemis/2.44.0"


def script_of(server: str, destination: dict[str, str]) -> Script:
    def script(end: BrokerEnd) -> None:
        end.log_in(server=server)
        frame = end.answer(end.take("SUBSCRIBE"))
        destination.update(frame.headers)
        end.goodbye()

    return script


@pytest.mark.parametrize(
    ("mode", "target", "expected"),
    [
        (AckMode.AUTO, Queue("q"), "2048"),
        (AckMode.TRANSACTED, Queue("q"), "2048"),
        (AckMode.AUTO, Topic("q"), "2048"),
        (AckMode.TRANSACTED, Topic("q"), "-1"),  # a second subscription would get everything twice
    ],
)
def test_only_a_topics_consumer_that_defers_acks_has_no_window(
    mode: AckMode, target: Queue | Topic, expected: str
) -> None:
    headers: dict[str, str] = {}
    with ScriptedBroker(script_of(ARTEMIS, headers)) as broker, Client(broker.port) as client:
        client.session(mode).attach(target, window=2)
    assert headers["consumer-window-size"] == expected
    assert headers["subscription-type"] == ("ANYCAST" if isinstance(target, Queue) else "MULTICAST")
