"""Artemis' addresses whose queues have other names: what a SEND reaches, and no queue that nobody reads."""

from __future__ import annotations

from contextlib import closing
from typing import Any, Final

import pytest
from tests.promises.real.addressed import AT_ONCE, SENDS, Artemis, fail, frame, holds

import redelivery
from redelivery import AckMode, InvalidDestinationError, SharedDeadLetterStrategy

pytest.importorskip("proton")
from proton import Message, symbol
from proton.reactor import SenderOption
from proton.utils import BlockingConnection

pytestmark = [pytest.mark.short_form, pytest.mark.timeout(150), pytest.mark.together("addresses of artemis")]

FRAMES: Final = [
    ("destination:orders", {"ordersQueue": 1}),
    ("destination:orders\\c\\cordersQueue", {"ordersQueue": 1}),
    ("destination:multi", {"multi.1": 1, "multi.2": 1}),
    ("destination:both", {"both.one": 1, "both.all": 1}),
    ("destination:unknown", {}),  # an address without a queue is made: it is gone, and answered
    ("destination:ordersQueue\ndestination-type:ANYCAST", {}),  # likewise
    ("destination:multi\\c\\cmulti.1\ndestination-type:ANYCAST", {}),  # likewise
    ("destination:unknown2\ndestination-type:ANYCAST", {"unknown2": 1}),
    ("destination:unknown3\\c\\cits", {"its": 1}),
]


def test_what_a_frame_of_stomp_reaches(broker: Artemis) -> None:
    for headers, found in FRAMES:
        frame(broker, f"SEND\n{headers}\npersistent:true\nreceipt:1\n\nx")
        holds(broker, headers, found)
        broker.empty()


def test_a_frame_that_says_anycast_makes_a_second_queue(broker: Artemis) -> None:
    sent = "SEND\ndestination:orders\ndestination-type:ANYCAST\npersistent:true\nreceipt:{}\n\nx"
    for number in range(4):
        frame(broker, sent.format(number))
    holds(broker, "orders", {"orders": 2, "ordersQueue": 2})


@pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.TRANSACTED])
def test_a_send_over_stomp_reaches_the_queues_of_the_address(broker: Artemis, mode: AckMode) -> None:
    with redelivery.connect(broker.urls["stomp"]) as connection, connection.session(mode) as session:
        for name, found in SENDS:
            producer = session.producer(name)
            for number in range(4):
                producer.send(f"m{number}")
            if session.transacted:
                session.commit()
            holds(broker, name, found)
            broker.empty()


LOST_OVER_AMQP: Final = ("ordersQueue", "lost", "lost::lost.1")


def test_what_a_link_of_amqp_confirms_and_loses(broker: Artemis) -> None:
    """What is sent to a queue's own name on another address, and to queues of a topic's kind."""
    for address in LOST_OVER_AMQP:
        connection = BlockingConnection(broker.urls["amqp"])
        with closing(connection):
            connection.create_sender(address, options=[OfAQueue()]).send(Message("x", durable=True))
        assert (address, broker.depths()) == (address, {})


class OfAQueue(SenderOption):  # type: ignore[misc]  # proton has no types
    """The target is a queue's."""

    def apply(self, sender: Any) -> None:
        sender.target.capabilities.put_object(symbol("queue"))


OVER_AMQP: Final = [*SENDS, ("each::each", {"each": 4})]


@pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.TRANSACTED])
@pytest.mark.parametrize("user", ["", "restricted"])
def test_a_send_over_amqp_reaches_the_queues_of_the_address(broker: Artemis, mode: AckMode, user: str) -> None:
    """Who may not ask the management has the file."""
    given: dict[str, Any] = {"policies": broker.policies} if user else {}
    url = broker.urls["amqp"].replace("://", f"://{user}:{user}@" if user else "://")
    with redelivery.connect(url, **given) as connection, connection.session(mode) as session:
        for name, found in OVER_AMQP:
            producer = session.producer(name)
            for number in range(4):
                producer.send(f"m{number}")
            if session.transacted:
                session.commit()
            holds(broker, name, found)
            broker.empty()


def test_a_send_over_amqp_makes_a_queue_beside_the_subscriptions_of_a_topic(broker: Artemis) -> None:
    with (
        redelivery.connect(broker.urls["amqp"]) as connection,
        connection.session() as session,
        session.consumer("topic://news.of.both"),
    ):
        session.producer("news.of.both").send("for the queue")
        message = session.consumer("news.of.both").receive(timeout=10)
        assert message is not None
        assert message.body == "for the queue"


def test_a_dead_letter_over_amqp_reaches_a_queue_by_its_own_name(broker: Artemis) -> None:
    for name, found in (("deadQueue", "deadQueue"), ("multi::multi.2", "multi.2")):
        letters = SharedDeadLetterStrategy(name)
        with redelivery.connect(
            broker.urls["amqp"], redelivery_policy=AT_ONCE, dead_letter_strategy=letters
        ) as connection:
            fail(connection, "same")
        holds(broker, name, {found: 1})
        broker.empty()


def test_who_may_not_ask_over_amqp_gets_one_warning(broker: Artemis, caplog: pytest.LogCaptureFixture) -> None:
    url = broker.urls["amqp"].replace("://", "://restricted:restricted@")
    with redelivery.connect(url) as connection:
        for name in ("same", "orders", "orders::ordersQueue"):
            with connection.session() as session:
                session.producer(name).send("x")
    holds(broker, "same, orders", {"same": 1, "ordersQueue": 2})
    assert sum("permission `manage`" in each.message for each in caplog.records) == 1


CONSUMED: Final = ("orders", "ordersQueue", "orders::ordersQueue", "multi::multi.1", "multi.1", "both", "each", "new")


def test_a_consumer_over_stomp_gets_what_was_sent_before(broker: Artemis) -> None:
    with redelivery.connect(broker.urls["stomp"]) as connection, connection.session() as session:
        for name in CONSUMED:
            session.producer(name).send("before")
            with session.consumer(name) as consumer:
                message = consumer.receive(timeout=10)
            assert message is not None, name
            assert message.body == "before"
        assert broker.depths() == {"new": 0}


@pytest.mark.parametrize("name", ["named.many", "multi"])
def test_a_consumer_of_an_address_of_several_queues_must_name_one(broker: Artemis, name: str) -> None:
    with (
        redelivery.connect(broker.urls["stomp"]) as connection,
        connection.session() as session,
        pytest.raises(InvalidDestinationError, match=f"consume one of them: {name}::"),
    ):
        session.consumer(name)
    assert broker.depths() == {}
