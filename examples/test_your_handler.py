"""Test your own handler against a broker in the test's process, which also fails when the test plans it.

    pytest test_your_handler.py

The fixture `redelivery_broker` comes with redelivery; there is nothing to import or to start.
"""

from contextlib import suppress

import pytest

import redelivery
from redelivery import Consumer, InDoubtError, RedeliveryPolicy, Session
from redelivery.broker import EmbeddedBroker

AT_ONCE = RedeliveryPolicy(maximum_redeliveries=2, initial_redelivery_delay=0, redelivery_delay=0)


def ship_one(session: Session, orders: Consumer) -> None:
    """The code under test: ships the next order, or fails."""
    with session.transaction():
        order = orders.receive(timeout=1)
        if order is None:
            return
        if order.body == "the moon":
            raise LookupError("no such article")
        session.producer("parcels").send(f"parcel with {order.body}")


def ship(broker: EmbeddedBroker, times: int = 1) -> None:
    """A worker as it will run: it connects, and continues after a failure."""
    with (
        redelivery.connect(broker.vm_url, redelivery_policy=AT_ONCE) as connection,
        connection.session("transacted") as session,
    ):
        orders = session.consumer("orders")  # made once: messages to be redelivered wait with it
        for _ in range(times):
            with suppress(LookupError):
                ship_one(session, orders)


def given(broker: EmbeddedBroker, *orders: str) -> None:
    for order in orders:
        broker.send("orders", order)


def bodies(broker: EmbeddedBroker, queue: str) -> list[str]:
    return [message.body for message in broker.messages(queue)]


def test_an_order_becomes_a_parcel(redelivery_broker: EmbeddedBroker) -> None:
    given(redelivery_broker, "a chair")
    ship(redelivery_broker)
    assert bodies(redelivery_broker, "parcels") == ["parcel with a chair"]
    assert bodies(redelivery_broker, "orders") == []


def test_an_order_that_always_fails_is_dead_lettered_after_three_tries(redelivery_broker: EmbeddedBroker) -> None:
    given(redelivery_broker, "the moon", "a chair")
    ship(redelivery_broker, times=4)
    assert bodies(redelivery_broker, "parcels") == ["parcel with a chair"]
    (letter,) = redelivery_broker.messages("ActiveMQ.DLQ")
    assert letter.dead_letter is not None
    assert letter.dead_letter.exception == "LookupError: no such article"


def test_a_lost_connection_loses_no_order(redelivery_broker: EmbeddedBroker) -> None:
    given(redelivery_broker, "a chair")
    redelivery_broker.faults.drop("COMMIT")  # the connection is cut when the COMMIT arrives
    with pytest.raises(InDoubtError):
        ship(redelivery_broker)
    assert bodies(redelivery_broker, "orders") == ["a chair"]  # for the next consumer
    assert bodies(redelivery_broker, "parcels") == []


def test_a_lost_answer_is_in_doubt_and_not_repeated(redelivery_broker: EmbeddedBroker) -> None:
    given(redelivery_broker, "a chair")
    redelivery_broker.faults.drop_after("COMMIT")  # it is executed, and its answer is lost
    with pytest.raises(InDoubtError) as caught:
        ship(redelivery_broker)
    assert [message.body for message in caught.value.sent] == ["parcel with a chair"]
    assert bodies(redelivery_broker, "parcels") == ["parcel with a chair"]
