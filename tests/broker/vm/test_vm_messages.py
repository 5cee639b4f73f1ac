"""``vm://`` through the seam itself, as a session uses it."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest
from tests.broker.vm.vm_client import Client, now

from redelivery import SharedDeadLetterStrategy
from redelivery.broker import BrokerConfig, EmbeddedBroker
from redelivery.model.errors import (
    ConfigError,
    InvalidDestinationError,
    InvalidSelectorError,
    ResourceAllocationError,
    TransactionRolledBackError,
)


def test_the_sender_and_receivers_cannot_change_each_others_message(client: Client, broker: EmbeddedBroker) -> None:
    client.consume()
    body = {"a": 1}
    (message,) = client.send(body)
    message.body["a"] = 2
    (delivery,) = client.take()
    received = delivery.body()
    assert received == {"a": 1}
    received["a"] = 3
    assert delivery.body() == {"a": 1}
    assert broker.messages("q")[0].body == {"a": 1}


@pytest.mark.parametrize("end", ["close", "abort"])
def test_a_connection_that_ends_gives_everything_back(broker: EmbeddedBroker, end: str) -> None:
    one = Client(broker.name)
    one.consume()
    one.send("a", "b")
    one.send("never", to="other", transacted=True)
    one.channel.dispatched(one.events.inbox[0])
    getattr(one, end)()
    getattr(one, end)()
    two = Client(broker.name)
    two.consume()
    assert [(delivery.body(), delivery.wire_count()) for delivery in two.take()] == [("a", 2), ("b", 1)]
    assert broker.queue_depth("other") == 0
    assert one.events.lost == []
    two.close()


def test_a_refused_commit_leaves_the_deliveries_ours(client: Client, broker: EmbeddedBroker) -> None:
    client.consume()
    client.send("a")
    held = client.take()
    client.send("x" * 100_000, to="other", transacted=True)
    with pytest.raises(TransactionRolledBackError, match="memory limit"):
        now(client.channel.commit(held))
    assert (broker.queue_depth("q"), broker.queue_depth("other")) == (1, 0)
    now(client.channel.commit(held))
    assert broker.queue_depth("q") == 0


def test_the_default_window_is_a_hundred(client: Client) -> None:
    client.send(*(str(number) for number in range(150)))
    link = client.consume()
    assert link.prefetch == 100
    assert len(client.events.inbox) == 100


def test_released_messages_go_to_others_and_do_not_come_straight_back(client: Client, broker: EmbeddedBroker) -> None:
    client.send("a", "b", "c")
    client.consume(window=2)
    unseen = list(client.events.inbox)
    client.events.inbox.clear()
    client.channel.release(unseen)
    assert not client.events.inbox
    other = Client(broker.name)
    other.consume()
    assert [(delivery.body(), delivery.wire_count()) for delivery in other.take()] == [("a", 1), ("b", 1), ("c", 1)]
    other.close()


def test_what_the_client_found_expired_is_dead_lettered_as_such() -> None:
    """Whatever its cause says: the broker's strategy may drop what has expired."""
    strategy = SharedDeadLetterStrategy(process_expired=False)
    with EmbeddedBroker("vmexpired", config=BrokerConfig(dead_letter_strategy=strategy)) as broker:
        client = Client(broker.name)
        client.consume()
        client.send("failed", "expired")
        failed, expired = client.take()
        now(client.channel.poison(failed, "it did not work", None))
        now(client.channel.poison(expired, "it came too late", None, expired=True))
        assert [message.body for message in broker.messages("ActiveMQ.DLQ")] == ["failed"]
        client.close()


def test_a_delayed_message_comes_by_itself_and_the_timer_thread_goes(client: Client) -> None:
    client.consume()
    client.send("late", delivery_time=datetime.now(UTC) + timedelta(milliseconds=80))
    assert not client.events.inbox
    timer = next(thread for thread in threading.enumerate() if thread.name == "redelivery-broker-vmtest-timer")
    while not client.events.inbox:
        client.transport.wait(client.events.waiter, 30)
    timer.join(30)
    assert not timer.is_alive()
    assert client.bodies() == ["late"]


def test_refusals_are_clear(client: Client) -> None:
    with pytest.raises(InvalidSelectorError, match="write = once"):
        client.consume(selector="a == 1")
    with pytest.raises(InvalidDestinationError, match=r"orders\.>"):
        client.send("a", to="orders.>")
    with pytest.raises(ResourceAllocationError, match="memory limit of 100000 bytes"):
        client.send("x" * 100_000)
    with pytest.raises(ConfigError, match="'persistent'"):
        Client(params={"persistent": "false"})
    with pytest.raises(ConfigError, match="create='yes'"):
        Client(params={"create": "yes"})
