"""A prefetch of 0 over a protocol that only pushes: what comes by a subscription that is given up."""

from __future__ import annotations

import pytest
from tests.conformance.blocking import Shell
from tests.transports.scripted import BrokerEnd, ScriptedBroker

from redelivery import RequestTimeoutError


@pytest.mark.parametrize("mode", ["auto", "individual"])
def test_the_next_receive_gets_a_message_of_its_own_subscription(shell: Shell, mode: str) -> None:
    """The broker's answer to the first comes too late, but its message came: it goes back with the UNSUBSCRIBE."""
    acknowledged: list[str] = []

    def script(end: BrokerEnd) -> None:
        end.log_in()
        first = end.take("SUBSCRIBE").headers["id"]
        end.message(first, 1, b"early")
        assert end.take("UNSUBSCRIBE").headers["id"] == first
        again = end.subscribed()
        assert again != first
        end.message(again, 2, b"again")
        acknowledged.append(end.take("ACK").headers["id"])
        end.goodbye()

    with ScriptedBroker(script) as broker:
        url = f"stomp://127.0.0.1:{broker.port}"
        with shell.connect(url, dialect="activemq", request_timeout=0.3, close_timeout=2) as connection:
            consumer = connection.session(mode).consumer("orders", prefetch=0)
            with pytest.raises(RequestTimeoutError):
                consumer.receive(5)
            message = consumer.receive(5)
            assert message is not None
            assert message.body == "again"
            message.acknowledge()
    assert acknowledged == ["a:2"]
