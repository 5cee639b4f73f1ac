"""Shared subscriptions to topics, durable or not (JMS 3.1 §8.3)."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from tests.conformance.desk import Desk, share
from tests.conformance.outage import Outage
from tests.conformance.stage import QUICK, bodies, nothing_comes, receive, receive_all
from tests.run.again import may_hide

from redelivery import AckMode, IllegalStateError, UnsupportedError

SHARED = pytest.mark.needs("shared subscriptions", refused=UnsupportedError)
SHARED_DURABLE = pytest.mark.needs("shared durable subscriptions", refused=UnsupportedError)


@SHARED
def test_consumers_of_a_shared_subscription_share_and_it_ends_with_the_last(desk: Desk) -> None:
    sessions = [desk.stage.session(AckMode.AUTO) for _ in range(2)]
    consumers = [session.shared_consumer(desk.topic, desk.name, prefetch=1) for session in sessions]
    beside = sessions[0].consumer(desk.topic)
    desk.send(*"abcdef")
    share(consumers, list("abcdef"))
    assert bodies(receive_all(beside, 6)) == list("abcdef")
    consumers[0].close()
    desk.send("for the other")
    assert receive(consumers[1]).body == "for the other"
    consumers[1].close()
    desk.send("for nobody")
    assert nothing_comes(sessions[0].shared_consumer(desk.topic, desk.name))


@SHARED_DURABLE
def test_consumers_of_a_shared_durable_subscription_share_what_was_kept(desk: Desk) -> None:
    connection = desk.connect()
    sessions = [connection.session() for _ in range(2)]
    consumers = [session.shared_durable_consumer(desk.topic, desk.name, prefetch=1) for session in sessions]
    desk.send(*"abcdef")
    share(consumers, list("abcdef"))
    for each in consumers:
        each.close()
    desk.send(*"ghij")
    consumers = [session.shared_durable_consumer(desk.topic, desk.name, prefetch=1) for session in sessions]
    share(consumers, list("ghij"))
    with pytest.raises(IllegalStateError, match="in use"):
        sessions[0].unsubscribe(desk.name)
    for each in consumers:
        each.close()
    sessions[0].unsubscribe(desk.name)
    desk.send("for nobody")
    consumer = sessions[0].shared_durable_consumer(desk.topic, desk.name)
    assert nothing_comes(consumer)
    consumer.close()
    sessions[0].unsubscribe(desk.name)


@may_hide
@SHARED_DURABLE
def test_consumers_of_a_shared_durable_subscription_come_back_to_it(desk: Desk, outage: Outage) -> None:
    connection = outage.connect(client_id=desk.client_id)
    sessions = [connection.session() for _ in range(2)]
    consumers = [session.shared_durable_consumer(desk.topic, desk.name, prefetch=1) for session in sessions]
    outage.begin()
    desk.send(*"abcd")
    share(consumers, list("abcd"))
    for each in consumers:
        each.close()
    outage.accepted(lambda: sessions[0].unsubscribe(desk.name))


@SHARED_DURABLE
@pytest.mark.needs("shared durable subscriptions of no client id", refused=UnsupportedError)
def test_a_shared_durable_subscription_without_a_client_id_is_every_connections(desk: Desk) -> None:
    sessions = [desk.stage.session(AckMode.AUTO) for _ in range(2)]
    consumers = [session.shared_durable_consumer(desk.topic, desk.name, prefetch=1) for session in sessions]
    desk.send(*"abcd")
    share(consumers, list("abcd"))
    for each in consumers:
        each.close()
    sessions[1].unsubscribe(desk.name)


@SHARED_DURABLE
@pytest.mark.needs("shared durable subscriptions of no client id", refused=UnsupportedError)
def test_unsubscribe_keeps_a_shared_subscription_that_another_connection_consumes(desk: Desk) -> None:
    consumer = desk.stage.session(AckMode.AUTO).shared_durable_consumer(desk.topic, desk.name)
    other = desk.stage.connect().session()
    other.shared_durable_consumer(desk.topic, desk.name).close()  # or AMQP does not find it
    confirmed = desk.stage.pair.real  # Artemis and Broker-J confirm it
    with nullcontext() if confirmed else pytest.raises(IllegalStateError):
        other.unsubscribe(desk.name)
    desk.send("a")
    assert receive(consumer).body == "a"
    consumer.close()
    desk.send("kept")
    consumer = other.shared_durable_consumer(desk.topic, desk.name)
    assert receive(consumer).body == "kept"
    consumer.close()
    other.unsubscribe(desk.name)
    desk.send("for nobody")
    consumer = other.shared_durable_consumer(desk.topic, desk.name)
    assert nothing_comes(consumer)
    consumer.close()
    other.unsubscribe(desk.name)


@pytest.mark.everywhere_in_long_form
@SHARED_DURABLE
def test_a_name_is_a_shared_subscription_or_an_unshared_one(desk: Desk) -> None:
    session = desk.session()
    shared = session.shared_durable_consumer(desk.topic, desk.name)
    with pytest.raises(IllegalStateError, match="use another name"):
        session.durable_consumer(desk.topic, desk.name)
    with pytest.raises(IllegalStateError, match="another topic"):
        session.shared_durable_consumer(f"{desk.topic}.other", desk.name)
    shared.close()
    session.unsubscribe(desk.name)
    unshared = session.durable_consumer(desk.topic, desk.name)
    with pytest.raises(IllegalStateError, match="use another name"):
        session.shared_durable_consumer(desk.topic, desk.name)
    unshared.close()
    session.unsubscribe(desk.name)


@SHARED
def test_a_shared_subscription_and_a_durable_one_of_one_name_are_two(desk: Desk) -> None:
    session = desk.session()
    durable, shared = session.durable_consumer(desk.topic, desk.name), session.shared_consumer(desk.topic, desk.name)
    desk.send("a")
    assert [receive(consumer).body for consumer in (durable, shared)] == ["a", "a"]
    durable.close()
    session.unsubscribe(desk.name)
    desk.send("b")
    assert receive(shared).body == "b"


@SHARED
def test_what_one_consumer_of_a_shared_subscription_leaves_goes_to_another(desk: Desk) -> None:
    leaving, staying = (desk.stage.session(AckMode.CLIENT, redelivery_policy=QUICK) for _ in range(2))
    consumer = leaving.shared_consumer(desk.topic, desk.name)
    desk.send("a", "b")
    receive_all(consumer, 2)
    other = staying.shared_consumer(desk.topic, desk.name)
    leaving.close()
    assert sorted(bodies(receive_all(other, 2))) == ["a", "b"]
    staying.acknowledge()
