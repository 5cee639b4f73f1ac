"""The life of an embedded broker: who starts it, what ends it, and whom it lets in."""

from __future__ import annotations

import pytest
from tests.broker.vm.vm_client import Client, now

from redelivery.broker import EmbeddedBroker
from redelivery.model.errors import (
    ConfigError,
    ConnectError,
    ConnectionLostError,
    IllegalStateError,
    InvalidDestinationError,
)


def test_vm_starts_a_broker_that_ends_with_its_last_connection() -> None:
    one, two = Client("auto"), Client("auto")
    one.send("a")
    one.close()
    two.consume()
    assert two.bodies() == ["a"]
    with pytest.raises(IllegalStateError, match=r"'auto' already runs .* first connection to vm://auto"):
        EmbeddedBroker("auto").start()
    two.close()
    three = Client("auto")
    three.consume()
    assert three.bodies() == []
    three.close()


def test_create_false_needs_a_broker() -> None:
    with pytest.raises(ConnectError, match="no embedded broker of that name"):
        Client("nobody", params={"create": "false"})


def test_two_brokers_of_one_name_are_refused(broker: EmbeddedBroker) -> None:
    with pytest.raises(IllegalStateError, match=r"'vmtest' already runs .* by EmbeddedBroker"):
        EmbeddedBroker(broker.name).start()


def test_a_broker_that_was_started_by_name_outlives_its_connections(broker: EmbeddedBroker) -> None:
    one = Client(broker.name)
    one.send("a")
    one.close()
    assert broker.queue_depth("q") == 1


def test_close_ends_every_connection_and_is_harmless_twice() -> None:
    broker = EmbeddedBroker("closing").start()
    client = Client("closing")
    client.consume()
    broker.close()
    broker.close()
    assert [type(error) for error in client.events.lost] == [ConnectionLostError]
    with pytest.raises(ConnectionLostError, match="close"):
        client.send("a")
    with pytest.raises(ConnectionLostError):
        client.transport.wait(client.events.waiter, 30)
    now(client.channel.close())
    client.close()
    with pytest.raises(IllegalStateError, match="closed"):
        broker.queue_depth("q")
    with pytest.raises(IllegalStateError, match="closed"):
        broker.start()


@pytest.mark.parametrize(("name", "port"), [("", None), ("a/b", None), ("x", -1), ("x", 70000), ("x", True)])
def test_a_bad_name_or_port_is_a_config_error(name: str, port: int | None) -> None:
    with pytest.raises(ConfigError):
        EmbeddedBroker(name, stomp_port=port)


def test_messages_and_depth_are_for_queues(broker: EmbeddedBroker, client: Client) -> None:
    client.send("a", "b")
    assert [message.body for message in broker.messages("queue://q")] == ["a", "b"]
    assert broker.queue_depth("unknown") == 0
    with pytest.raises(InvalidDestinationError, match="topic"):
        broker.messages("topic://q")
