"""Artemis' addresses whose queues have other names, for a user who may not ask the management for them."""

from __future__ import annotations

from typing import Any, Final
from uuid import uuid4

import pytest
from tests.promises.real.addressed import AT_ONCE, SENDS, Artemis, fail, frame, holds, restricted

import redelivery
from redelivery import (
    AckMode,
    InvalidDestinationError,
    JMSError,
    SecurityError,
    SharedDeadLetterStrategy,
    UnsupportedError,
)

pytest.importorskip("proton")

pytestmark = [pytest.mark.short_form, pytest.mark.timeout(150), pytest.mark.together("addresses of artemis")]

NOT_ASKED: Final[list[tuple[str, dict[str, int] | str]]] = [
    ("same", {"same": 4}),
    ("orders::ordersQueue", {"ordersQueue": 4}),
    ("multi::multi.2", {"multi.2": 4}),
    ("new.address2::its.queue2", {"its.queue2": 4}),
    # what may be there cannot be seen, and one that is made might get a part of the messages
    *((each, "sees no queue of that name") for each in ("orders", "named.many", "multi", "both", "empty", "new.name")),
    ("many.2", "sees no queue of that name"),
    # addresses that get no queues by their names
    ("closed.orders", {"closed.its": 4}),
    ("closed.same", {"closed.same": 4}),
    ("closed.each", {"closed.each": 4}),
    ("closed.orders::closed.its", {"closed.its": 4}),
    ("closed.new", "Destination does not exist"),
    # or not by this user, who may consume or not
    ("bare.same", {"bare.same": 4}),
    ("bare.each", {"bare.each": 4}),
    ("bare.orders::bare.its", {"bare.its": 4}),
    ("bare.orders", "CREATE_DURABLE_QUEUE.*policies="),
    ("bare.orders::no", "CREATE_DURABLE_QUEUE.*policies="),
    ("bare.new", "CREATE_ADDRESS.*policies="),
    ("bare.sent.same", {"bare.sent.same": 4}),
    ("bare.sent.orders", "CREATE_DURABLE_QUEUE.*policies="),
]


def test_a_send_of_who_may_not_ask_reaches_a_queue_that_is_there_or_is_refused(broker: Artemis) -> None:
    """And makes none of an address' own name beside those that it has."""
    with redelivery.connect(restricted(broker)) as connection, connection.session() as session:
        for name, found in NOT_ASKED:
            producer = session.producer(name)
            for number in range(4):
                if isinstance(found, str):
                    with pytest.raises(JMSError, match=found):
                        producer.send(f"m{number}")
                else:
                    producer.send(f"m{number}")
            holds(broker, name, {} if isinstance(found, str) else found)
            broker.empty()


LOOKED_AT: Final = ("same", "closed.same", "closed.each", "bare.same", "bare.each", "bare.each::bare.each")


@pytest.mark.parametrize("name", LOOKED_AT)
def test_who_may_not_ask_takes_nothing_from_a_queue_that_it_looks_at(broker: Artemis, name: str) -> None:
    """A MULTICAST queue whose name is said whole heeds no selector of a STOMP subscription."""
    queue = name.rpartition("::")[2]
    with redelivery.connect(broker.urls["amqp"]) as connection, connection.session() as session:
        for number in range(50):
            session.producer(f"{queue}::{queue}").send(f"m{number}")
    with redelivery.connect(restricted(broker)) as connection, connection.session() as session:
        session.producer(name).send("more")
    holds(broker, name, {queue: 51})
    with redelivery.connect(broker.urls["amqp"]) as connection, connection.session() as session:
        consumer = session.consumer(f"{queue}::{queue}")
        found = [consumer.receive(timeout=30) for _ in range(51)]
    assert [each and (each.body, each.redelivered) for each in found] == [
        *((f"m{number}", False) for number in range(50)),
        ("more", False),
    ]


@pytest.mark.parametrize("who", ["may ask", "has the file", "may not ask"])
def test_a_selector_that_the_broker_would_not_heed_is_refused(
    broker: Artemis, who: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Of a MULTICAST queue over STOMP, unless its address may have queues of both kinds; raw frames show it, too."""
    given: dict[str, Any] = {"policies": broker.policies} if who == "has the file" else {}
    url = broker.urls["stomp"] if who == "may ask" else restricted(broker)
    with redelivery.connect(broker.urls["amqp"]) as connection, connection.session() as session:
        for name in ("bare.each", "both::both.all", "same"):
            for number in "12":
                session.producer(name).send(number, properties={"n": number})
    with redelivery.connect(url, **given) as connection, connection.session() as session:
        if who != "may not ask":
            for name in ("closed.each", "closed.each::closed.each", "bare.each", "bare.each::bare.each"):
                with pytest.raises(UnsupportedError, match=r"heeds no selector .* selected by .n = '2'"):
                    session.consumer(name, selector="n = '2'")
                session.consumer(name).close()
        else:
            with session.consumer("bare.each::bare.each", selector="n = '2'") as consumer:
                assert consumer.receive(timeout=10) is not None
            assert "whether it is a MULTICAST queue" in caplog.text
        for name in ("both::both.all", "same"):
            with session.consumer(name, selector="n = '2'") as consumer:
                found = consumer.receive(timeout=10), consumer.receive(timeout=0.2)
                assert [each and each.body for each in found] == ["2", None]
    broker.empty()


BY_THE_FILE: Final = (
    "orders",
    "ordersQueue",
    "named.many",
    "multi::multi.2",
    "multi.1",
    "multi",
    "both",
    "each",
    "same",
)


def test_the_file_says_to_who_may_not_ask_which_queues_an_address_has(broker: Artemis) -> None:
    strategies = broker.policies.dead_letter_strategies
    for given in ({"policies": broker.policies}, {"dead_letter_strategies": strategies}):
        with redelivery.connect(restricted(broker), **given) as connection, connection.session() as session:
            for name, found in SENDS:
                if name in (*BY_THE_FILE, "new.queue"):
                    producer = session.producer(name)
                    for number in range(4):
                        producer.send(f"m{number}")
                    holds(broker, name, found)
                    broker.empty()
            with pytest.raises(InvalidDestinationError, match="consume one of them: multi::"):
                session.consumer("multi")


def test_a_consumer_of_who_may_not_ask_makes_no_queue_beside_those_of_the_address(broker: Artemis) -> None:
    with redelivery.connect(broker.urls["stomp"]) as connection, connection.session() as session:
        session.producer("orders").send("before")
    with redelivery.connect(restricted(broker)) as connection, connection.session() as session:
        for name in ("orders", "new.consumed", "bare.orders"):
            with pytest.raises(SecurityError, match="policies="):
                session.consumer(name)
        with session.consumer("orders::ordersQueue") as consumer:
            message = consumer.receive(timeout=10)
            assert message is not None
            assert message.body == "before"
    assert broker.depths() == {}


def test_a_dead_letter_of_who_may_not_ask_stays_where_no_queue_for_it_can_be_seen(
    broker: Artemis, caplog: pytest.LogCaptureFixture
) -> None:
    letters = SharedDeadLetterStrategy("dead")
    with (
        redelivery.connect(restricted(broker), redelivery_policy=AT_ONCE, dead_letter_strategy=letters) as connection,
        connection.session(AckMode.TRANSACTED) as session,
    ):
        session.producer("same").send("poison")
        session.commit()
        consumer = session.consumer("same")
        assert consumer.receive(timeout=10) is not None
        session.rollback()
        assert consumer.receive(timeout=0.2) is None
    holds(broker, "same", {"same": 1})
    assert any("not dead-lettered" in each.message and "policies=" in each.message for each in caplog.records)
    broker.empty()
    with redelivery.connect(restricted(broker), policies=broker.policies) as connection:
        fail(connection, "orders::ordersQueue", to="orders")
    holds(broker, "dead", {"deadQueue": 1})


DURABLE: Final = "subscription-type:MULTICAST\ndurable-subscription-name:x\n"
REFUSED: Final = [
    ("orders::", "", "AMQ229216"),  # who may make a queue there: one without a name is refused
    ("bare.orders::", "", "AMQ229213"),  # who may not
    ("closed.orders::", "", "AMQ339016"),  # where none is made
    ("same", DURABLE, "receipt-id"),  # a queue of that name
    ("orders", DURABLE, "AMQ339016"),  # there is none
    ("multi", DURABLE, "AMQ339016"),  # that of a topic wants a client id
]


def test_what_a_frame_of_stomp_is_refused_says_what_is_there(broker: Artemis) -> None:
    for name, headers, said in REFUSED:
        destination = name.replace(":", "\\c")
        subscribe = f"SUBSCRIBE\ndestination:{destination}\nid:1\nselector:1=0\nreceipt:1\n{headers}\n"
        assert said in frame(broker, subscribe, user="restricted"), name
    assert broker.depths() == {}


def test_where_the_broker_makes_no_queue_a_send_to_one_that_is_not_there_is_refused(broker: Artemis) -> None:
    """Artemis confirms it, and it is gone."""
    frame(broker, "SEND\ndestination:closed.orders\\c\\cno\npersistent:true\nreceipt:1\n\nx")
    with redelivery.connect(broker.urls["stomp"]) as connection, connection.session() as session:
        for name in ("closed.orders::no", "closed.empty", "closed.new"):
            with pytest.raises(InvalidDestinationError, match="what is sent would be lost"):
                session.producer(name).send("x")
        session.producer("closed.orders").send("x")
    holds(broker, "closed.orders", {"closed.its": 1})


def test_who_may_not_ask_the_management_gets_one_warning(
    redelivery_artemis: Any, caplog: pytest.LogCaptureFixture
) -> None:
    queues = [f"allowed.addresses.{uuid4().hex}" for _ in range(2)]
    with redelivery.connect(redelivery_artemis.stomp_url) as connection, connection.session() as session:
        for queue in queues:
            session.consumer(queue).close()
    url = redelivery_artemis.stomp_url.replace("://", "://restricted:restricted@")
    with redelivery.connect(url) as connection, connection.session() as session:
        for queue in queues:
            session.producer(queue).send("x")
            assert session.consumer(queue).receive(timeout=10) is not None
    assert sum("activemq.management (permission `manage`)" in each.message for each in caplog.records) == 1
