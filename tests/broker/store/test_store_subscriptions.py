"""Durable subscriptions are kept with what they hold; others end with the broker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import redelivery
from redelivery import Connection, Consumer, InvalidDestinationError, Session
from redelivery.broker import EmbeddedBroker


@contextmanager
def broker(store: Path) -> Iterator[EmbeddedBroker]:
    """One that is killed at the end."""
    with EmbeddedBroker("subscribed", store=store) as broker:
        yield broker
        broker.kill()


@contextmanager
def connected(broker: EmbeddedBroker) -> Iterator[tuple[Connection, Session]]:
    with redelivery.connect(broker.vm_url, client_id="me") as connection, connection.session() as session:
        yield connection, session


def bodies(consumer: Consumer) -> list[object]:
    return [message.body for message in consumer.receive_many(10, timeout=0.1)]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


def test_a_durable_subscription_keeps_what_was_sent_before_and_after_a_kill(store: Path) -> None:
    with broker(store) as first, connected(first) as (_, session):
        session.durable_consumer("topic://news", "all").close()
        session.durable_consumer("topic://news", "red", selector="colour = 'red'").close()
        session.shared_durable_consumer("topic://news", "shared").close()
        session.consumer("topic://news")
        for colour in ("red", "blue"):
            first.send("topic://news", colour, properties={"colour": colour})
    with broker(store) as second:
        second.send("topic://news", "later", properties={"colour": "red"})
        second.send("topic://news", "delayed", delivery_delay=0.05)
    with broker(store) as third, connected(third) as (_, session):
        shared = session.shared_durable_consumer("topic://news", "shared")
        red = session.durable_consumer("topic://news", "red", selector="colour = 'red'")
        everything = session.durable_consumer("topic://news", "all")
        assert [everything.receive(timeout=5).body for _ in range(4)] == ["red", "blue", "later", "delayed"]  # type: ignore[union-attr]  # or it fails
        assert bodies(red) == ["red", "later"]
        assert bodies(shared) == ["red", "blue", "later", "delayed"]


def test_a_changed_selector_makes_a_new_subscription_after_a_kill_too(store: Path) -> None:
    with broker(store) as first, connected(first) as (_, session):
        session.durable_consumer("topic://news", "red", selector="colour = 'red'").close()
        first.send("topic://news", "x", properties={"colour": "red"})
    with broker(store) as second, connected(second) as (_, session):
        assert bodies(session.durable_consumer("topic://news", "red", selector="colour = 'blue'")) == []
    with broker(store) as third, connected(third) as (_, session):
        assert bodies(session.durable_consumer("topic://news", "red", selector="colour = 'blue'")) == []


def test_what_was_unsubscribed_is_gone(store: Path) -> None:
    with broker(store) as first, connected(first) as (_, session):
        session.durable_consumer("topic://news", "all").close()
        first.send("topic://news", "x")
        session.unsubscribe("all")
    with broker(store) as second, connected(second) as (_, session):
        with pytest.raises(InvalidDestinationError):
            session.unsubscribe("all")
        assert bodies(session.durable_consumer("topic://news", "all")) == []


def test_no_local_counts_after_a_kill_too(store: Path) -> None:
    with broker(store) as first, connected(first) as (_, session):
        session.durable_consumer("topic://news", "others", no_local=True).close()
    with broker(store) as second, connected(second) as (_, session):
        session.producer("topic://news").send("mine")
        second.send("topic://news", "theirs")
        assert bodies(session.durable_consumer("topic://news", "others", no_local=True)) == ["theirs"]
