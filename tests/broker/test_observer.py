"""Of what an embedded broker notifies its observer (that it does of each message: test_engine_machine.py)."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest
from tests.client.shell import receive

import redelivery
from redelivery import ConfigError, Queue, RedeliveryPolicy
from redelivery.broker import EmbeddedBroker
from redelivery.events import Committed, DeadLettered, Discarded, Enqueued, Event, MessageEvent


def lives(notified: list[Event]) -> list[tuple[str, int]]:
    """Kind and count of each event of a message."""
    return [(type(each).__name__, each.delivery_count) for each in notified if isinstance(each, MessageEvent)]


def test_a_transaction() -> None:
    notified: list[Event] = []
    with EmbeddedBroker("observed-commit", observer=notified.append) as broker:
        sent = broker.send("orders", "the moon")
        with redelivery.connect(broker.vm_url) as connection:
            session = connection.session("transacted")
            receive(session.consumer("orders"))
            session.producer("invoices").send("of the moon")
            session.commit()
            assert [each.body for each in session.browser("invoices")] == ["of the moon"]
    assert lives(notified) == [("Enqueued", 0), ("Dispatched", 1), ("Acknowledged", 1), ("Enqueued", 0)]
    assert notified[-1] == Committed(session=0, sent=1, received=1)
    first = notified[0]
    assert isinstance(first, Enqueued)
    assert (first.session, first.message_id, first.destination) == (0, sent.message_id, Queue("orders"))


def test_a_consumer_that_leaves_with_its_message() -> None:
    notified: list[Event] = []
    with EmbeddedBroker("observed-release", observer=notified.append) as broker:
        broker.send("orders", "the moon")
        for _ in range(2):
            with redelivery.connect(broker.vm_url) as connection:
                receive(connection.session("transacted").consumer("orders"))
    assert lives(notified) == [("Enqueued", 0), ("Dispatched", 1), ("Released", 1), ("Dispatched", 2), ("Released", 2)]


def test_a_dead_letter_and_its_reason() -> None:
    notified: list[Event] = []
    with EmbeddedBroker("observed-dead", observer=notified.append) as broker:
        broker.send("orders", "the moon")
        policy = RedeliveryPolicy(maximum_redeliveries=0)
        with redelivery.connect(broker.vm_url, redelivery_policy=policy) as connection:
            session = connection.session("transacted")
            receive(session.consumer("orders"))
            session.rollback(cause=ValueError("no such moon"))
    assert lives(notified) == [("Enqueued", 0), ("Dispatched", 1), ("DeadLettered", 1), ("Enqueued", 0)]
    dead = notified[2]
    assert isinstance(dead, DeadLettered)
    assert (dead.destination, dead.dead_letter_destination) == (Queue("orders"), Queue("ActiveMQ.DLQ"))
    assert "no such moon" in dead.reason


def test_an_expired_message() -> None:
    notified: list[Event] = []
    with EmbeddedBroker("observed-expiry", observer=notified.append) as broker:
        broker.send("orders", "short-lived", ttl=0.05)
        broker.wait_for("orders", depth=0, timeout=5)
    assert lives(notified) == [("Enqueued", 0), ("Expired", 0), ("DeadLettered", 0), ("Enqueued", 0)]


def test_a_topics_message_that_its_subscriber_never_took() -> None:
    notified: list[Event] = []
    with EmbeddedBroker("observed-topic", observer=notified.append) as broker:
        broker.send("topic://news", "nobody is there")
        with redelivery.connect(broker.vm_url, start=False) as connection:
            connection.session().consumer("topic://news")
            broker.send("topic://news", "somebody is")
    assert lives(notified) == [("Enqueued", 0), ("Dispatched", 1), ("Released", 1), ("Discarded", 0)]
    assert isinstance(notified[-1], Discarded)
    assert notified[-1].reason == "its subscriber has gone"


def test_the_order_is_that_of_the_broker_whatever_thread_it_is() -> None:
    notified: list[int] = []

    def observer(event: Event) -> None:
        if isinstance(event, Enqueued):
            notified.append(int(str(event.message_id).rpartition(":")[2]))

    with EmbeddedBroker("observed-threads", observer=observer) as broker:

        def send() -> None:
            for _ in range(200):
                broker.send("orders", None)

        threads = [threading.Thread(target=send) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        there = [int(str(each.message_id).rpartition(":")[2]) for each in broker.messages("orders")]
    assert notified == there


def test_one_that_asks_its_broker_and_raises(caplog: pytest.LogCaptureFixture) -> None:
    depths: list[int] = []

    def observer(_: Event) -> None:
        depths.append(broker.queue_depth("orders"))
        raise ValueError("of the observer's")

    with EmbeddedBroker("observed-asking", observer=observer) as broker:
        broker.send("orders", "one")
        broker.send("orders", "two")
    assert depths == [1, 2]
    complaints = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert [each.getMessage().partition(";")[0] for each in complaints] == ["the observer raised"]


async def _coroutine(_: Event) -> None: ...


@pytest.mark.parametrize("observer", [3, "print", _coroutine])
def test_what_cannot_be_one(observer: Any) -> None:
    with pytest.raises(ConfigError, match="observer must be"):
        EmbeddedBroker("observed-by-nobody", observer=observer)
