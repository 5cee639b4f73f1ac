"""Named subscriptions of the embedded broker, by whichever protocol."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.broker.engine.bench import Box

import redelivery
from redelivery import InvalidClientIDError, InvalidDestinationError
from redelivery.broker import EmbeddedBroker, NamedSubscription
from redelivery.broker.engine.engine import Engine
from redelivery.broker.engine.stored import StoredMessage
from redelivery.broker.engine.subscriptions import Subscription
from redelivery.broker.engine.transactions import Transaction
from redelivery.model.destinations import SubscriptionName, Topic


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker("subscriptions", stomp_port=0, amqp_port=0) as broker:
        yield broker


def test_every_protocol_finds_what_another_one_made(broker: EmbeddedBroker) -> None:
    urls = [broker.vm_url, broker.stomp_url, broker.amqp_url]
    for number, url in enumerate([*urls, urls[0]]):
        with redelivery.connect(url, client_id="me") as connection, connection.session() as session:
            consumer = session.durable_consumer("topic://t", "sub")
            if number:
                message = consumer.receive(timeout=10)
                assert message is not None
                assert message.body == f"m{number}"
            assert consumer.receive(timeout=0) is None
        broker.send("topic://t", f"m{number + 1}")


def test_a_client_id_is_one_connections_whatever_it_speaks(broker: EmbeddedBroker) -> None:
    with redelivery.connect(broker.vm_url, client_id="me"):
        for url in (broker.stomp_url, broker.amqp_url):
            with pytest.raises(InvalidClientIDError, match="already connected"):
                redelivery.connect(url, client_id="me")


def test_what_is_of_no_client_id_is_found_by_its_name_alone(broker: EmbeddedBroker) -> None:
    for url in (broker.amqp_url, broker.stomp_url, broker.vm_url):
        with redelivery.connect(broker.vm_url) as connection, connection.session() as session:
            session.shared_durable_consumer("topic://t", "sub")
        with redelivery.connect(url) as connection, connection.session() as session:
            session.unsubscribe("sub")
            with pytest.raises(InvalidDestinationError, match="no durable subscription 'sub'"):
                session.unsubscribe("sub")


def test_a_store_keeps_durable_subscriptions_and_what_they_hold(tmp_path: Path) -> None:
    file = tmp_path / "subscriptions.db"
    with (
        EmbeddedBroker("stored", store=file) as broker,
        redelivery.connect("vm://stored", client_id="me") as connection,
    ):
        session = connection.session()
        consumer = session.durable_consumer("topic://t.>", "kept", no_local=True)
        session.durable_consumer("topic://t.a", "unsubscribed").close()
        session.shared_durable_consumer("topic://t.a", "shared").close()
        session.durable_consumer("topic://t.>", "selected", selector="colour = 'red'").close()
        session.shared_consumer("topic://t.a", "volatile")
        broker.send("topic://t.a", "one")
        broker.send("topic://t.b", "two")
        session.producer("topic://t.a").send("mine")
        assert _next(consumer) == "one"
        session.unsubscribe("unsubscribed")
    with (
        EmbeddedBroker("stored", store=file) as broker,
        redelivery.connect("vm://stored", client_id="me") as connection,
    ):
        session = connection.session()
        broker.send("topic://t.c", "three")
        broker.send("topic://t.c", "red", properties={"colour": "red"})
        consumer = session.durable_consumer("topic://t.>", "kept", no_local=True)
        assert [_next(consumer) for _ in range(3)] == ["two", "three", "red"]
        selected = session.durable_consumer("topic://t.>", "selected", selector="colour = 'red'")
        assert [_next(selected), selected.receive(timeout=0)] == ["red", None]
        shared = session.shared_durable_consumer("topic://t.a", "shared")
        assert [_next(shared), _next(shared), shared.receive(timeout=0)] == ["one", "mine", None]
        with pytest.raises(InvalidDestinationError):
            session.unsubscribe("unsubscribed")
        assert session.shared_consumer("topic://t.a", "volatile").receive(timeout=0) is None
    with _stored(file) as (_, connection):
        consumer = connection.session().durable_consumer("topic://t.>", "kept", no_local=True)
        assert consumer.receive(timeout=0) is None


def test_what_a_transaction_had_of_a_changed_one_is_gone_after_a_restart(tmp_path: Path) -> None:
    """It was removed while the transaction was open, and the broker ended before that did."""
    file = tmp_path / "changed.db"
    named = SubscriptionName("sub", durable=True, shared=False)

    def consume(engine: Engine, topic: str) -> Subscription:
        subscription = Subscription(Topic(topic), Box(), prefetch=9, named=named, client_id="other")
        engine.subscribe(subscription)
        engine.start(subscription, 0)
        return subscription

    def change(engine: Engine, now: int) -> None:
        engine.send(StoredMessage(message_id="1", destination=Topic("t"), body="a"), now)
        engine.enlist(Transaction(), list(first.in_flight.values()), now)
        engine.unsubscribe(first, now, all_seen=False)
        engine.unsubscribe(consume(engine, "u"), now, all_seen=False)

    with _stored(file) as (broker, _):
        first = broker.core.call(lambda engine, _now: consume(engine, "t"))
        broker.core.call(change)
        broker.send("topic://u", "b")
    with _stored(file) as (broker, _):
        kept = broker.core.call(
            lambda engine, _now: {str(each.destination): len(each) for each in engine.queues.values()}
        )
        assert kept == {"topic://u": 1}


@contextmanager
def _stored(file: Path) -> Iterator[tuple[EmbeddedBroker, redelivery.Connection]]:
    broker = EmbeddedBroker("stored", store=file)
    with broker, redelivery.connect("vm://stored", client_id="me") as connection:
        yield broker, connection


def _next(consumer: redelivery.Consumer) -> object:
    message = consumer.receive(timeout=10)
    assert message is not None
    return message.body


def test_the_broker_reports_how_much_each_subscription_holds(broker: EmbeddedBroker) -> None:
    with redelivery.connect(broker.stomp_url, client_id="me") as connection, connection.session("client") as session:
        session.durable_consumer("topic://news", "mine").close()
        session.shared_durable_consumer("topic://news", "ours").close()
        shared = session.shared_consumer("topic://news", "shared")
        broker.send("topic://news", "a")
        broker.send("topic://news", "b")
        message = shared.receive(timeout=10)
        assert message is not None
        news = Topic("news")
        assert broker.subscriptions() == [
            NamedSubscription(news, "mine", "me", durable=True, shared=False, depth=2, consumers=0),
            NamedSubscription(news, "ours", "me", durable=True, shared=True, depth=2, consumers=0),
            NamedSubscription(news, "shared", "me", durable=False, shared=True, depth=2, consumers=1),
        ]
        message.acknowledge()
        session.unsubscribe("mine")
    assert [(each.name, each.depth) for each in broker.subscriptions()] == [("ours", 2)]


def test_the_depth_of_a_topic_is_that_of_its_subscriptions(broker: EmbeddedBroker) -> None:
    with pytest.raises(InvalidDestinationError, match=r"see subscriptions\(\)"):
        broker.queue_depth("topic://news")
