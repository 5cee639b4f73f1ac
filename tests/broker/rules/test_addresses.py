"""The embedded broker with Artemis' or HornetQ's file: an address is no queue, and what is sent to it reaches its own.

What the real ones do: tests/promises/real/test_addresses*.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.broker.raw_stomp import Raw

import redelivery
from redelivery import AckMode, RedeliveryPolicy, SharedDeadLetterStrategy
from redelivery.broker import EmbeddedBroker

ARTEMIS = """<configuration><core><address-settings>
<address-setting match="#">
<dead-letter-address>dead</dead-letter-address><max-delivery-attempts>1</max-delivery-attempts>
</address-setting></address-settings><addresses>
<address name="dead"><anycast><queue name="deadQueue"/></anycast></address>
<address name="orders"><anycast><queue name="ordersQueue"/></anycast></address>
<address name="many"><anycast><queue name="many.1"/><queue name="many.2"/></anycast></address>
<address name="multi"><multicast><queue name="multi.1"/><queue name="multi.2"/></multicast></address>
<address name="both"><anycast><queue name="both.one"/></anycast>
<multicast><queue name="both.all"/></multicast></address>
<address name="some"><multicast><queue name="some.red"><filter string="colour = 'red'"/></queue></multicast></address>
<address name="same"><anycast><queue name="same"/></anycast></address>
</addresses></core></configuration>"""
PLACES = (
    *("dead::deadQueue", "orders::ordersQueue", "many::many.1", "many::many.2", "multi::multi.1", "multi::multi.2"),
    *("both::both.one", "both::both.all", "some::some.red", "same", "new", "new::its"),
)
SENDS = [
    ("orders", {"orders::ordersQueue": 4}),
    ("ordersQueue", {"orders::ordersQueue": 4}),
    ("orders::ordersQueue", {"orders::ordersQueue": 4}),
    ("many", {"many::many.1": 2, "many::many.2": 2}),
    ("many::many.1", {"many::many.1": 4}),
    ("multi", {"multi::multi.1": 4, "multi::multi.2": 4}),
    ("multi::multi.2", {"multi::multi.2": 4}),
    ("topic://multi", {"multi::multi.1": 4, "multi::multi.2": 4}),
    ("both", {"both::both.one": 4}),
    ("topic://both", {"both::both.all": 4}),
    ("same", {"same": 4}),
    ("same::same", {"same": 4}),
    ("topic://some", {}),
    ("new", {"new": 4}),
    ("new::its", {"new::its": 4}),
]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    file = tmp_path / "broker.xml"
    file.write_text(ARTEMIS)
    with EmbeddedBroker(config=str(file), stomp_port=0, amqp_port=0) as running:
        yield running


def depths(broker: EmbeddedBroker) -> dict[str, int]:
    return {each: depth for each in PLACES if (depth := broker.queue_depth(each))}


def url(broker: EmbeddedBroker, protocol: str) -> str:
    if protocol == "amqp":
        pytest.importorskip("proton")
    return str(getattr(broker, f"{protocol}_url"))


@pytest.mark.parametrize("protocol", ["vm", "stomp", "amqp"])
@pytest.mark.parametrize(("name", "found"), SENDS)
def test_what_is_sent_reaches_the_queues_of_the_address(
    broker: EmbeddedBroker, protocol: str, name: str, found: dict[str, int]
) -> None:
    with redelivery.connect(url(broker, protocol)) as connection, connection.session(AckMode.TRANSACTED) as session:
        producer = session.producer(name)
        for number in range(4):
            producer.send(f"m{number}")
        session.commit()
    assert depths(broker) == found


@pytest.mark.parametrize("protocol", ["vm", "stomp", "amqp"])
@pytest.mark.parametrize("name", ["orders", "ordersQueue", "orders::ordersQueue", "many::many.1", "same", "new"])
def test_who_consumes_by_any_of_its_names_gets_what_was_sent_before(
    broker: EmbeddedBroker, protocol: str, name: str
) -> None:
    with redelivery.connect(url(broker, protocol)) as connection, connection.session() as session:
        session.producer(name).send("before")
        message = session.consumer(name).receive(timeout=5)
        assert message is not None
        assert message.body == "before"


def test_a_queue_with_a_filter_gets_what_it_matches(broker: EmbeddedBroker) -> None:
    broker.send("topic://some", "blue", properties={"colour": "blue"})
    broker.send("topic://some", "red", properties={"colour": "red"})
    assert [message.body for message in broker.messages("some::some.red")] == ["red"]


@pytest.mark.parametrize("protocol", ["stomp", "amqp"])
def test_copies_and_the_brokers_own_letters_are_in_the_queue_of_the_dead_letter_address(
    broker: EmbeddedBroker, protocol: str
) -> None:
    for strategy in (SharedDeadLetterStrategy("dead"), redelivery.BrokerDeadLetterStrategy(configured=True)):
        if protocol == "stomp" and not isinstance(strategy, SharedDeadLetterStrategy):
            continue  # it has no word for it
        with (
            redelivery.connect(
                url(broker, protocol),
                redelivery_policy=RedeliveryPolicy(maximum_redeliveries=0),
                dead_letter_strategy=strategy,
            ) as connection,
            connection.session(AckMode.TRANSACTED) as session,
        ):
            session.producer("orders").send("poison")
            session.commit()
            consumer = session.consumer("orders")
            assert consumer.receive(timeout=5) is not None
            session.rollback()
            assert consumer.receive(timeout=0.1) is None
        assert [message.body for message in broker.messages("dead::deadQueue")] == ["poison"]
        with redelivery.connect(broker.vm_url) as connection, connection.session() as session:
            assert session.consumer("deadQueue").receive(timeout=5) is not None


def test_a_client_in_the_brokers_own_words_that_says_anycast_makes_a_second_queue(broker: EmbeddedBroker) -> None:
    with Raw(broker.stomp_url) as raw:
        for _ in range(4):
            raw.ok("SEND", b"x", destination="orders")
    assert broker.queue_depth("orders::ordersQueue") == 4
    with Raw(broker.stomp_url) as raw:
        for _ in range(4):
            raw.ok("SEND", b"x", **{"destination": "orders", "destination-type": "ANYCAST"})
    assert broker.queue_depth("orders::ordersQueue") == 6
    with redelivery.connect(broker.vm_url) as connection, connection.session() as session:
        assert len(session.consumer("orders").receive_many(4, timeout=0.2)) == 2


HORNETQ = """<configuration xmlns="urn:hornetq"><queues>
<queue name="jms.queue.orders"><address>jms.queue.orders</address></queue>
<queue name="jms.queue.audit"><address>jms.queue.orders</address></queue>
<queue name="jms.queue.dead"><address>jms.queue.letters</address></queue>
</queues><address-settings><address-setting match="jms.queue.orders">
<dead-letter-address>jms.queue.letters</dead-letter-address><max-delivery-attempts>1</max-delivery-attempts>
</address-setting></address-settings></configuration>"""


def test_in_hornetq_each_queue_of_an_address_gets_it(tmp_path: Path) -> None:
    file = tmp_path / "hornetq-configuration.xml"
    file.write_text(HORNETQ)
    with EmbeddedBroker(config=str(file), stomp_port=0) as broker:
        broker.send("orders", "x")
        assert {name: broker.queue_depth(name) for name in ("orders", "audit")} == {"orders": 1, "audit": 1}
        with (
            redelivery.connect(
                broker.stomp_url,
                redelivery_policy=RedeliveryPolicy(maximum_redeliveries=0),
                dead_letter_strategy=SharedDeadLetterStrategy("letters"),
            ) as connection,
            connection.session(AckMode.TRANSACTED) as session,
        ):
            consumer = session.consumer("orders")
            assert consumer.receive(timeout=5) is not None
            session.rollback()
            assert consumer.receive(timeout=0.1) is None
        assert broker.queue_depth("dead") == 1
