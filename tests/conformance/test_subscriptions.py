"""Durable subscriptions to topics, and how they end (JMS 3.1 §8.3)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.conformance.desk import Desk
from tests.conformance.outage import Outage, until
from tests.conformance.stage import bodies, nothing_comes, receive, receive_all
from tests.run.again import may_hide

from redelivery import (
    AckMode,
    ConfigError,
    Consumer,
    IllegalStateError,
    InvalidClientIDError,
    InvalidDestinationError,
    RedeliveryPolicy,
    Session,
    UnsupportedError,
)

DURABLE = pytest.mark.needs("durable subscriptions", refused=UnsupportedError)
ONCE = RedeliveryPolicy(maximum_redeliveries=1, initial_redelivery_delay=0.0, redelivery_delay=0.0)


@DURABLE
def test_a_durable_subscription_keeps_what_is_sent_while_nobody_is_there(desk: Desk) -> None:
    with desk.connect() as connection, connection.session() as session:
        consumer = session.durable_consumer(desk.topic, desk.name)
        desk.send("a")
        assert receive(consumer).body == "a"
        consumer.close()
        desk.send("b")
        consumer = session.durable_consumer(desk.topic, desk.name)
        assert receive(consumer).body == "b"
    desk.send("c", "d")
    session = desk.session()
    consumer = session.durable_consumer(desk.topic, desk.name)
    assert bodies(receive_all(consumer, 2)) == ["c", "d"]
    consumer.close()
    session.unsubscribe(desk.name)


@DURABLE
def test_a_durable_subscription_of_a_pattern_keeps_what_is_sent_to_every_topic(desk: Desk) -> None:
    session = desk.session()
    session.durable_consumer(f"{desk.topic}.>", desk.name).close()
    for word in ("x", "y.z"):
        desk.stage.send(word, queue=f"{desk.topic}.{word}")
    consumer = session.durable_consumer(f"{desk.topic}.>", desk.name)
    found = {message.body: str(message.destination) for message in receive_all(consumer, 2)}
    assert found == {word: f"{desk.topic}.{word}" for word in ("x", "y.z")}
    consumer.close()
    session.unsubscribe(desk.name)


@DURABLE
def test_an_unsubscribed_name_keeps_nothing_and_begins_anew(desk: Desk) -> None:
    session = desk.session()
    session.durable_consumer(desk.topic, desk.name).close()
    desk.send("kept in vain")
    session.unsubscribe(desk.name)
    consumer = session.durable_consumer(desk.topic, desk.name)
    desk.send("new")
    assert desk.left(consumer) == ["new"]
    consumer.close()
    session.unsubscribe(desk.name)


@DURABLE
def test_another_connection_of_the_client_id_unsubscribes(desk: Desk) -> None:
    with desk.connect() as connection:
        connection.session().durable_consumer(desk.topic, desk.name)
    desk.send("kept in vain")
    with desk.connect() as connection:
        connection.session().unsubscribe(desk.name)
    consumer = desk.session().durable_consumer(desk.topic, desk.name)
    assert nothing_comes(consumer)


@pytest.mark.everywhere_in_long_form
@DURABLE
def test_unsubscribe_is_refused_while_there_is_a_consumer(desk: Desk) -> None:
    session = desk.session()
    consumer = session.durable_consumer(desk.topic, desk.name)
    with pytest.raises(IllegalStateError, match="in use"):
        session.unsubscribe(desk.name)
    desk.send("still there")
    assert receive(consumer).body == "still there"
    consumer.close()
    session.unsubscribe(desk.name)


@pytest.mark.everywhere_in_long_form
@DURABLE
def test_unsubscribe_is_refused_while_messages_are_not_acknowledged(desk: Desk) -> None:
    session = desk.session(AckMode.CLIENT)
    consumer = session.durable_consumer(desk.topic, desk.name)
    desk.send("a")
    message = receive(consumer)
    consumer.close()
    with pytest.raises(IllegalStateError, match="not acknowledged"):
        session.unsubscribe(desk.name)
    message.acknowledge()
    session.unsubscribe(desk.name)


@DURABLE
@pytest.mark.needs("unsubscribing what is not there")
def test_unsubscribe_of_an_unknown_name_is_refused(desk: Desk) -> None:
    session = desk.session()
    with pytest.raises(InvalidDestinationError):
        session.unsubscribe(desk.name)
    session.durable_consumer(desk.topic, desk.name).close()
    session.unsubscribe(desk.name)
    with pytest.raises(InvalidDestinationError):
        session.unsubscribe(desk.name)


@pytest.mark.everywhere_in_long_form
@DURABLE
def test_a_durable_subscription_serves_one_consumer(desk: Desk) -> None:
    session = desk.session()
    consumer = session.durable_consumer(desk.topic, desk.name)
    with pytest.raises(IllegalStateError, match="one consumer"):
        session.durable_consumer(desk.topic, desk.name)
    with pytest.raises(IllegalStateError, match="one consumer"):
        session.durable_consumer(f"{desk.topic}.other", desk.name)
    desk.send("a")
    assert receive(consumer).body == "a"
    consumer.close()
    session.unsubscribe(desk.name)


@pytest.mark.everywhere_in_long_form
@DURABLE
def test_a_durable_subscription_needs_a_client_id(desk: Desk) -> None:
    session = desk.stage.session(AckMode.AUTO)
    with pytest.raises(IllegalStateError, match="client_id"):
        session.durable_consumer(desk.topic, desk.name)
    with pytest.raises((InvalidDestinationError, UnsupportedError), match=desk.name):
        session.unsubscribe(desk.name)
    assert session.consumer(desk.topic).receive(0) is None


@DURABLE
@pytest.mark.needs("one connection of a client id")
def test_a_client_id_is_one_connections(desk: Desk) -> None:
    with desk.connect() as connection:
        connection.session().durable_consumer(desk.topic, desk.name)
        with pytest.raises(InvalidClientIDError):
            desk.connect()
    with desk.connect() as connection, connection.session() as session:
        session.unsubscribe(desk.name)


@pytest.mark.everywhere_in_long_form
@DURABLE
def test_what_cannot_be_a_subscription_is_refused(desk: Desk) -> None:
    session = desk.session()
    for make in (session.durable_consumer, session.shared_consumer, session.shared_durable_consumer):
        with pytest.raises(InvalidDestinationError, match="topic://orders"):
            make("orders", "name")
        for name in ("", " x", "a\nb"):
            with pytest.raises(ConfigError, match="name of a subscription"):
                make(desk.topic, name)
    with pytest.raises(ConfigError, match="no_local"):
        session.shared_consumer(desk.topic, "name", no_local=True)
    with pytest.raises(ConfigError, match="unsubscribe"):
        session.unsubscribe("")
    session.durable_consumer(desk.topic, desk.name).close()
    session.unsubscribe(desk.name)


@DURABLE
@pytest.mark.needs("changed subscriptions")
def test_another_topic_makes_it_a_new_subscription(desk: Desk) -> None:
    with desk.connect() as connection:
        connection.session().durable_consumer(desk.topic, desk.name)
    desk.send("gone")
    session = desk.session()
    consumer = session.durable_consumer(f"{desk.topic}.other", desk.name)
    desk.send("of the old topic")
    desk.stage.send("of the new one", queue=f"{desk.topic}.other")
    assert desk.left(consumer) == ["of the new one"]
    consumer.close()
    session.unsubscribe(desk.name)


@DURABLE
def test_another_topic_in_the_same_connection_makes_it_a_new_subscription(desk: Desk) -> None:
    session = desk.session()
    session.durable_consumer(desk.topic, desk.name).close()
    desk.send("gone")
    consumer = session.durable_consumer(f"{desk.topic}.other", desk.name)
    desk.send("of the old topic")
    desk.stage.send("of the new one", queue=f"{desk.topic}.other")
    assert desk.left(consumer) == ["of the new one"]
    consumer.close()
    session.unsubscribe(desk.name)


@DURABLE
@pytest.mark.needs("selectors", refused=UnsupportedError)
def test_a_selector_chooses_and_another_one_makes_it_a_new_subscription(desk: Desk) -> None:
    session = desk.session()
    consumer = session.durable_consumer(desk.topic, desk.name, selector="colour = 'red'")
    for colour in ("red", "blue"):
        desk.send(colour, properties={"colour": colour})
    assert desk.left(consumer) == ["red"]
    consumer.close()
    desk.send("red and gone", properties={"colour": "red"})
    consumer = session.durable_consumer(desk.topic, desk.name, selector="colour = 'blue'")
    for colour in ("red", "blue"):
        desk.send(colour, properties={"colour": colour})
    assert desk.left(consumer) == ["blue"]
    consumer.close()
    session.unsubscribe(desk.name)


@pytest.mark.needs("no_local of a topic", refused=UnsupportedError)
def test_no_local_leaves_out_what_the_connection_sends_itself(desk: Desk) -> None:
    connection, other = desk.connect(), desk.stage.connect()
    session = connection.session()
    without, everything = session.consumer(desk.topic, no_local=True), other.session().consumer(desk.topic)
    session.producer(desk.topic).send("mine")
    connection.session().producer(desk.topic).send("of another session of mine")
    desk.send("another's")
    assert bodies(receive_all(everything, 3)) == ["mine", "of another session of mine", "another's"]
    assert desk.left(without) == ["another's"]


@DURABLE
@pytest.mark.needs("no_local of a durable subscription", refused=UnsupportedError)
def test_no_local_keeps_ones_own_messages_away_from_a_durable_subscription(desk: Desk) -> None:
    connection = desk.connect()
    session = connection.session()
    consumer = session.durable_consumer(desk.topic, desk.name, no_local=True)
    connection.session().producer(desk.topic).send("mine")
    desk.send("another's")
    assert desk.left(consumer) == ["another's"]
    consumer.close()
    desk.send("kept")
    consumer = session.durable_consumer(desk.topic, desk.name, no_local=True)
    assert desk.left(consumer) == ["kept"]
    consumer.close()
    session.unsubscribe(desk.name)


@DURABLE
def test_what_a_transaction_rolls_back_is_redelivered_and_then_gone(desk: Desk) -> None:
    session = desk.session(AckMode.TRANSACTED)
    consumer = session.durable_consumer(desk.topic, desk.name)
    desk.send("a", "b")
    assert bodies(receive_all(consumer, 2)) == ["a", "b"]
    session.rollback()
    again = receive_all(consumer, 2)
    assert [(message.body, message.delivery_count) for message in again] == [("a", 2), ("b", 2)]
    session.commit()
    consumer.close()
    consumer = session.durable_consumer(desk.topic, desk.name)
    assert nothing_comes(consumer)
    consumer.close()
    session.unsubscribe(desk.name)


@DURABLE
def test_what_is_rolled_back_by_a_close_is_kept(desk: Desk) -> None:
    with desk.connect() as connection, connection.session(AckMode.TRANSACTED) as session:
        consumer = session.durable_consumer(desk.topic, desk.name)
        desk.send("a", "b")
        receive_all(consumer, 2)
    session = desk.session()
    consumer = session.durable_consumer(desk.topic, desk.name)
    assert sorted(bodies(receive_all(consumer, 2))) == ["a", "b"]
    consumer.close()
    session.unsubscribe(desk.name)


def assert_poison_is_a_dead_letter(desk: Desk, session: Session, consumer: Consumer) -> None:
    desk.send("bad")
    desk.send("good")
    while (message := receive(consumer)).body == "bad":
        session.rollback(cause=ValueError("always"))
    assert message.body == "good"
    session.commit()
    (letter,) = desk.stage.dead_letters(at_least=1)
    assert letter.body == "bad"
    assert letter.dead_letter is not None
    assert str(letter.dead_letter.origin) == desk.topic


@DURABLE
def test_poison_of_a_durable_subscription_is_a_dead_letter_of_that_one(desk: Desk) -> None:
    other = Desk(desk.stage)
    spared = other.session().durable_consumer(desk.topic, other.name)
    session = desk.session(AckMode.TRANSACTED, redelivery_policy=ONCE)
    consumer = session.durable_consumer(desk.topic, desk.name)
    assert_poison_is_a_dead_letter(desk, session, consumer)
    assert bodies(receive_all(spared, 2)) == ["bad", "good"]


def test_poison_of_a_subscription_that_is_not_durable_is_a_dead_letter_too(desk: Desk) -> None:
    """ActiveMQ's broker drops what such a subscription gives up: it gets a copy there."""
    session = desk.session(AckMode.TRANSACTED, redelivery_policy=ONCE)
    consumer = session.consumer(desk.topic)
    assert_poison_is_a_dead_letter(desk, session, consumer)


@pytest.mark.everywhere_in_long_form
@DURABLE
def test_a_listener_of_a_durable_subscription_is_redelivered_what_it_refuses(desk: Desk) -> None:
    refused: list[int] = []
    done: list[Any] = []

    def on_message(message: Any) -> None:
        if len(refused) < 2:
            refused.append(message.delivery_count)
            raise ValueError(message.body)
        done.append(message.body)

    session = desk.session()
    consumer = session.durable_consumer(desk.topic, desk.name)
    consumer.listen(on_message)
    desk.send("a")
    until(lambda: bool(done))
    consumer.close()
    assert (refused, done) == ([1, 2], ["a"])


@may_hide
@DURABLE
def test_a_durable_consumer_comes_back_with_its_connection(desk: Desk, outage: Outage) -> None:
    connection = outage.connect(client_id=desk.client_id)
    session = connection.session()
    plain = session.durable_consumer(desk.topic, f"{desk.name}-2")
    consumer = session.durable_consumer(desk.topic, desk.name)
    outage.begin()
    desk.send("while it was away")
    assert receive(consumer).body == "while it was away"
    assert receive(plain).body == "while it was away"
    plain.close()
    consumer.close()
    outage.accepted(lambda: session.unsubscribe(desk.name))
