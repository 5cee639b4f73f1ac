"""``vm://`` through the seam itself, as a session uses it."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest
from tests.broker.vm.vm_client import Client, now

from redelivery import SharedDeadLetterStrategy
from redelivery.broker import BrokerConfig, EmbeddedBroker
from redelivery.model.destinations import destination
from redelivery.model.errors import (
    ConfigError,
    InvalidDestinationError,
    InvalidSelectorError,
    ResourceAllocationError,
    TransactionRolledBackError,
)
from redelivery.model.messages import Message
from redelivery.transports.seam import Delivery


def test_headers_and_properties_arrive(client: Client) -> None:
    client.consume()
    message = Message(
        "m", properties={"n": 1, "s": "x"}, correlation_id="c", reply_to="topic://r", type="t", group_id="g"
    )
    later = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    message.stamp(destination=destination("q"), priority=7, persistent=False, expiration=later)
    client.channel.send(message, transacted=False, pending=None)
    received = Message.received(client.take()[0], 0, None)
    assert dict(received.properties) == {"n": 1, "s": "x"}
    assert received.message_id == message.message_id
    assert (received.correlation_id, str(received.reply_to), received.type) == ("c", "topic://r", "t")
    assert (received.group_id, received.priority, received.persistent) == ("g", 7, False)
    assert received.expiration == later
    assert received.timestamp is not None
    assert received.timestamp == message.timestamp
    assert str(received.destination) == "queue://q"


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


def test_messages_of_one_broker_have_different_ids(client: Client) -> None:
    ids = {message.message_id for message in client.send(*"abcdef")}
    assert len(ids) == 6
    assert None not in ids


def test_a_delivery_is_counted_by_what_the_application_saw(client: Client) -> None:
    link = client.consume()
    client.send("a", "b")
    first = client.events.inbox.popleft()
    client.channel.dispatched(first)
    assert first.wire_count() == 1
    now(client.channel.detach(link))
    client.events.inbox.clear()
    client.consume()
    assert [(delivery.body(), delivery.wire_count()) for delivery in client.take()] == [("a", 2), ("b", 1)]


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


def test_a_rollback_drops_the_sends_and_leaves_the_deliveries(client: Client, broker: EmbeddedBroker) -> None:
    client.consume()
    client.send("a")
    held = client.take()
    client.send("x", to="other", transacted=True)
    now(client.channel.rollback())
    now(client.channel.commit(held))
    assert (broker.queue_depth("q"), broker.queue_depth("other")) == (0, 0)
    assert client.take() == []


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


@pytest.mark.parametrize("prefetch", [None, 1, 0, 5])
def test_a_batch_larger_than_the_prefetch_does_not_stall(client: Client, prefetch: int | None) -> None:
    client.send(*(str(number) for number in range(250)))
    client.consume(window=prefetch)
    held: list[Delivery] = []
    while taken := client.take():
        held += taken
    assert [delivery.body() for delivery in held] == [str(number) for number in range(250)]
    now(client.channel.commit(held))


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


def test_poison_goes_to_the_dead_letter_queue_with_its_cause(client: Client, broker: EmbeddedBroker) -> None:
    client.consume()
    client.send("a", "b")
    bad, good = client.take()
    now(client.channel.poison(bad, "Delivery[7] exceeds", None))
    client.channel.accept([good], batched=True)
    (letter,) = broker.messages("ActiveMQ.DLQ")
    assert letter.body == "a"
    assert letter.properties["dlqDeliveryFailureCause"] == "Delivery[7] exceeds"
    assert letter.properties["originalDestination"] == "queue://q"
    assert letter.properties["originalExpiration"] == "0"
    assert letter.delivery_count == 1
    assert broker.queue_depth("q") == 0


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


def test_poison_as_a_copy_is_one_unit(client: Client, broker: EmbeddedBroker) -> None:
    client.consume()
    client.send("a")
    (bad,) = client.take()
    copy = Message("copy of a")
    copy.stamp(destination=destination("my.dlq"))
    now(client.channel.poison(bad, "cause", copy))
    assert [message.body for message in broker.messages("my.dlq")] == ["copy of a"]
    assert broker.queue_depth("q") == 0
    assert broker.queue_depth("ActiveMQ.DLQ") == 0


def test_the_waiter_is_woken_by_a_message_from_another_connection(client: Client, broker: EmbeddedBroker) -> None:
    client.consume()
    other = Client(broker.name)
    threading.Timer(0.05, lambda: other.send("a")).start()
    while not client.events.inbox:
        client.transport.wait(client.events.waiter, 30)
    assert client.bodies() == ["a"]
    other.close()


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
