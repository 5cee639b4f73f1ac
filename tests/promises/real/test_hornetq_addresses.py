"""HornetQ's addresses whose queues have other names: a SEND goes to an address, a SUBSCRIBE takes from a queue."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from tests.broker.raw_stomp import Raw
from tests.promises.real.started import HORNETQ, running, setting

import redelivery
from redelivery import AckMode, InvalidDestinationError, Queue, RedeliveryPolicy, SharedDeadLetterStrategy
from redelivery.policies.brokers.formats import read_content
from redelivery.testing.brokers.spec import Site

pytestmark = [pytest.mark.short_form, pytest.mark.timeout(120), pytest.mark.together("addresses of hornetq")]

QUEUES: Final = {"ordersQueue": "orders", "one": "many", "two": "many", "deadQueue": "dead"}
AT_ONCE: Final = RedeliveryPolicy(maximum_redeliveries=0)


def file(_: Site | None = None) -> str:
    made = "".join(
        f'<queue name="jms.queue.{queue}"><address>jms.queue.{address}</address></queue>'
        for queue, address in QUEUES.items()
    )
    settings = setting("jms.queue.#", dead_letter_address="jms.queue.dead", max_delivery_attempts=2)
    inside = f"<queues>{made}</queues><address-settings>{settings}</address-settings>"
    return f'<configuration xmlns="urn:hornetq">{inside}</configuration>'


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running(HORNETQ, file) as broker:
        yield f"stomp://{broker.host}:{broker.ports['stomp']}"


def taken(url: str, queue: str, number: int) -> list[str]:
    """The bodies on a queue, by raw frames."""
    with Raw(url) as client:
        client.subscribe(f"jms.queue.{queue}", ack="auto")
        found = [each.body.decode() for each in client.messages(number)]
        assert client.is_quiet()
        return found


def test_each_queue_of_the_address_gets_a_raw_frame(url: str) -> None:
    with Raw(url) as client:
        client.ok("SEND", b"raw", destination="jms.queue.many", persistent="true")
    assert [taken(url, each, 1) for each in ("one", "two")] == [["raw"], ["raw"]]


@pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.TRANSACTED])
def test_a_queue_named_with_its_address_is_sent_to_and_consumed(url: str, mode: AckMode) -> None:
    with redelivery.connect(url) as connection, connection.session(mode) as session:
        session.producer("orders::ordersQueue").send("both")
        session.producer("orders").send("address")
        if session.transacted:
            session.commit()
        for name, body in (("orders::ordersQueue", "both"), ("ordersQueue", "address")):
            with session.consumer(name, prefetch=1) as consumer:
                message = consumer.receive(timeout=10)
                assert message is not None
                assert (message.body, message.destination) == (body, Queue("orders"))
                if session.transacted:
                    session.commit()


def test_what_one_name_cannot_do_is_refused(url: str) -> None:
    with redelivery.connect(url) as connection, connection.session() as session:
        with pytest.raises(InvalidDestinationError):
            session.consumer("orders")
        with pytest.raises(InvalidDestinationError):
            session.producer("ordersQueue").send("x")


def test_each_queue_s_consumer_has_a_dead_letter_of_its_own(url: str) -> None:
    """The broker drops a second message with the same duplicate id."""
    strategy = SharedDeadLetterStrategy("dead")
    with redelivery.connect(url, redelivery_policy=AT_ONCE, dead_letter_strategy=strategy) as connection:
        fail(connection, "many", ("many::one", "two"))
    assert taken(url, "deadQueue", 2) == ["poison", "poison"]


def test_the_file_s_own_strategy_is_right_by_each_name(url: str) -> None:
    policies = read_content(file().encode(), "hornetq-configuration.xml")
    with redelivery.connect(url, policies=policies) as connection:
        fail(connection, "orders", ("orders::ordersQueue",), deliveries=2)
        fail(connection, "orders", ("ordersQueue",), deliveries=2)
        with connection.session() as session:
            consumer = session.consumer("dead::deadQueue")
            for _ in range(2):
                letter = consumer.receive(timeout=10)
                assert letter is not None
                assert letter.properties["_HQ_ORIG_QUEUE"] == "jms.queue.ordersQueue"
                assert letter.dead_letter is not None
                assert letter.dead_letter.origin == Queue("orders")


def fail(connection: redelivery.Connection, address: str, queues: tuple[str, ...], deliveries: int = 1) -> None:
    with connection.session(AckMode.TRANSACTED) as session:
        session.producer(address).send("poison")
        session.commit()
        for queue in queues:
            with session.consumer(queue) as consumer:
                for _ in range(deliveries):
                    assert consumer.receive(timeout=10) is not None
                    session.rollback()
                assert consumer.receive(timeout=0.3) is None
