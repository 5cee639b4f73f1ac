"""Planned faults, as a client of ``vm://`` meets them."""

from __future__ import annotations

import pytest
from tests.broker.vm_door.vm_client import Client, now

from redelivery.broker import EmbeddedBroker
from redelivery.model.errors import (
    ConfigError,
    ConnectError,
    ConnectionLostError,
    InDoubtError,
    JMSError,
    TransactionRolledBackError,
)


def test_a_planned_error_is_raised_and_nothing_done(client: Client, broker: EmbeddedBroker) -> None:
    fault = broker.faults.error("SEND", "no room today", nth=2)
    client.send("a")
    with pytest.raises(JMSError, match="no room today"):
        client.send("b")
    client.send("c")
    assert [message.body for message in broker.messages("q")] == ["a", "c"]
    assert fault.hits == 1


def test_a_commit_that_is_refused_on_purpose(client: Client, broker: EmbeddedBroker) -> None:
    client.consume()
    client.send("a")
    held = client.take()
    broker.faults.error("COMMIT", "not now")
    with pytest.raises(TransactionRolledBackError, match="not now"):
        now(client.channel.commit(held))
    now(client.channel.commit(held))
    assert broker.queue_depth("q") == 0


@pytest.mark.parametrize(("how", "left"), [("drop", 1), ("drop_after", 0)])
def test_a_commit_whose_answer_is_lost_is_in_doubt(broker: EmbeddedBroker, how: str, left: int) -> None:
    client = Client(broker.name)
    client.consume()
    client.send("a")
    held = client.take()
    fault = getattr(broker.faults, how)("COMMIT")
    with pytest.raises(InDoubtError):
        now(client.channel.commit(held))
    assert fault.wait(0)
    assert len(client.events.lost) == 1
    assert broker.queue_depth("q") == left
    with pytest.raises(ConnectionLostError):
        client.channel.accept(held, lazy=False)


def test_a_connect_can_be_refused(broker: EmbeddedBroker) -> None:
    broker.faults.drop("CONNECT")
    with pytest.raises(ConnectError):
        Client(broker.name)
    Client(broker.name).transport.close()


def test_faults_check_their_arguments_and_can_be_cleared(client: Client, broker: EmbeddedBroker) -> None:
    for arguments in ({"command": "PUBLISH"}, {"command": "SEND", "nth": 0}, {"command": "SEND", "times": True}):
        with pytest.raises(ConfigError):
            broker.faults.drop(**arguments)
    with pytest.raises(ConfigError, match="seconds"):
        broker.faults.delay("SEND", -1)
    broker.faults.error("SEND", "never", times=None)
    broker.faults.clear()
    client.send("a")
