"""Artemis' addresses whose queues have other names: where dead letters and what has expired go."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Final

import pytest
from tests.cli.brokers import run
from tests.client.shell import eventually
from tests.promises.real.addressed import AT_ONCE, Artemis, fail, holds

import redelivery
from redelivery import AckMode, DeadLetterStrategyMap, IndividualDeadLetterStrategy, Queue, SharedDeadLetterStrategy
from redelivery.policies.brokers.formats import read_content

pytest.importorskip("proton")

pytestmark = [pytest.mark.short_form, pytest.mark.timeout(150), pytest.mark.together("addresses of artemis")]


@pytest.mark.parametrize("url", ["stomp", "amqp"])
def test_copies_go_to_the_queue_of_the_address_and_the_console_brings_them_home(broker: Artemis, url: str) -> None:
    for dead in ("dead", "deadQueue") if url == "stomp" else ("dead",):
        with redelivery.connect(
            broker.urls[url], redelivery_policy=AT_ONCE, dead_letter_strategy=SharedDeadLetterStrategy(dead)
        ) as connection:
            for name in ("orders::ordersQueue", "same"):
                fail(connection, name, to=name.partition("::")[0])
        holds(broker, "dead", {"deadQueue": 2})
        broker.ask("queue.deadQueue", "retryMessages")
        eventually(lambda: broker.depths() == {"ordersQueue": 1, "same": 1})
        for name in ("ordersQueue", "same"):
            broker.ask(f"queue.{name}", "removeAllMessages")


@pytest.mark.parametrize("url", ["stomp", "amqp"])
def test_a_client_that_does_what_the_file_says_writes_where_the_broker_would(broker: Artemis, url: str) -> None:
    with redelivery.connect(broker.urls[url], policies=broker.policies) as connection:
        for _ in range(4):
            fail(connection, "orders::ordersQueue", to="orders")
        holds(broker, "dead", {"deadQueue": 4})
    broker.ask("queue.deadQueue", "retryMessages")
    eventually(lambda: broker.depths() == {"ordersQueue": 4})


@pytest.mark.parametrize("url", ["stomp", "amqp"])
def test_letters_are_replayed_and_moved_by_each_name_of_their_queue(
    broker: Artemis, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    strategy = SharedDeadLetterStrategy("dead")
    with redelivery.connect(broker.urls[url], redelivery_policy=AT_ONCE, dead_letter_strategy=strategy) as connection:
        for name in ("dead", "deadQueue", "dead::deadQueue") if url == "amqp" else ("deadQueue",):
            for _ in range(2):
                fail(connection, "orders::ordersQueue", to="orders")
            assert broker.depths() == {"deadQueue": 2}
            run(broker.urls[url], "dlq", "replay", name, "--limit", "1", "--yes")
            assert (name, broker.depths()) == (name, {"deadQueue": 1, "ordersQueue": 1})
            run(broker.urls[url], "dlq", "move", name, "--to", "late::lateQueue", "--yes")
            assert (name, broker.depths()) == (name, {"lateQueue": 1, "ordersQueue": 1})
            broker.empty()


@pytest.mark.parametrize("url", ["stomp", "amqp"])
def test_each_queue_s_consumer_has_a_dead_letter_of_its_own(broker: Artemis, url: str) -> None:
    """Artemis drops a second message with the same duplicate id."""
    strategy = SharedDeadLetterStrategy("dead")
    with (
        redelivery.connect(broker.urls[url], redelivery_policy=AT_ONCE, dead_letter_strategy=strategy) as connection,
        connection.session(AckMode.TRANSACTED) as session,
    ):
        session.producer("topic://multi").send("poison")
        session.commit()
        for name in ("multi::multi.1", "multi::multi.2"):
            with session.consumer(name) as consumer:
                assert consumer.receive(timeout=10) is not None
                session.rollback()
                assert consumer.receive(timeout=0.1) is None
    assert broker.depths() == {"deadQueue": 2}


@pytest.mark.parametrize("url", ["stomp", "amqp"])
def test_an_individual_dead_letter_queue_is_that_of_the_address(broker: Artemis, url: str) -> None:
    strategy = IndividualDeadLetterStrategy(queue_prefix="own.")
    with redelivery.connect(broker.urls[url], redelivery_policy=AT_ONCE, dead_letter_strategy=strategy) as connection:
        fail(connection, "orders::ordersQueue", to="orders")
    assert broker.depths() == {"own.orders": 1}


@pytest.mark.parametrize("url", ["stomp", "amqp"])
def test_what_fails_at_the_dead_letter_address_is_not_copied_there_again(broker: Artemis, url: str) -> None:
    strategy = SharedDeadLetterStrategy("dead")
    with redelivery.connect(broker.urls[url], redelivery_policy=AT_ONCE, dead_letter_strategy=strategy) as connection:
        fail(connection, "dead::deadQueue", to="dead")
    assert broker.depths() == {}


@pytest.mark.parametrize(("name", "to"), [("ordersQueue", "orders"), ("orders", "orders")])
def test_a_client_obeys_the_file_by_each_name_of_a_queue(broker: Artemis, name: str, to: str) -> None:
    with redelivery.connect(broker.urls["stomp"], policies=broker.policies) as connection:
        fail(connection, name, to=to)
    assert broker.depths() == {"deadQueue": 1}


def test_over_amqp_artemis_makes_the_dead_letter_queue_itself(broker: Artemis) -> None:
    with redelivery.connect(broker.urls["amqp"], policies=broker.policies) as connection:
        fail(connection, "auto.amqp")
        eventually(lambda: broker.depths().get("auto.amqp.DLQ") == 1)
        with connection.session() as session:
            message = session.consumer("DLA::auto.amqp.DLQ").receive(timeout=10)
            assert message is not None
            assert message.dead_letter is not None
            assert message.dead_letter.origin == Queue("auto.amqp")


def test_over_stomp_a_letter_waits_for_the_queue_that_artemis_makes_with_its_own_first_one(broker: Artemis) -> None:
    with (
        redelivery.connect(broker.urls["stomp"], policies=broker.policies) as connection,
        redelivery.connect(broker.urls["amqp"], policies=broker.policies) as other,
        connection.session(AckMode.TRANSACTED) as session,
    ):
        session.producer("auto.stomp").send("ours", properties={"whose": "ours"})
        session.commit()
        consumer = session.consumer("auto.stomp", selector="whose = 'ours'")
        for _ in range(2):
            assert consumer.receive(timeout=10) is not None
            session.rollback()
        assert consumer.receive(timeout=0.2) is None
        assert broker.depths() == {"auto.stomp": 1}  # nothing was made, and nothing is lost
        fail(other, "auto.stomp")
        eventually(lambda: consumer.receive(timeout=0.1) is None and broker.depths().get("auto.stomp.DLQ") == 2)
        assert broker.depths() == {"auto.stomp": 0, "auto.stomp.DLQ": 2}


WILDFLY: Final = """<server xmlns="urn:jboss:domain:20.0"><profile>
<subsystem xmlns="urn:jboss:domain:messaging-activemq:13.0"><server name="default">
<address-setting name="#" max-delivery-attempts="9" dead-letter-address="jms.queue.DLQ"/>
<address-setting name="jms.queue.orders" max-delivery-attempts="2" dead-letter-address="jms.queue.Lost"/>
<jms-queue name="orders" entries="java:/jms/queue/orders"/><jms-queue name="Lost" entries="java:/jms/queue/Lost"/>
</server></subsystem></profile></server>"""


@pytest.mark.parametrize("user", ["", "restricted"])
@pytest.mark.parametrize("url", ["stomp", "amqp"])
def test_a_client_of_wildfly_names_its_addresses_and_does_what_its_file_says(
    broker: Artemis, url: str, user: str
) -> None:
    """Its queues have the addresses `jms.queue.…`, which no JNDI says to clients of STOMP and AMQP."""
    policies = read_content(WILDFLY.encode(), "standalone-full.xml")
    strategies = DeadLetterStrategyMap(  # that of AMQP leaves it to the broker, which has another file here
        {"queue://jms.queue.orders": SharedDeadLetterStrategy(Queue("jms.queue.Lost"))},
        queues=policies.dead_letter_strategies.queues,
    )
    given: dict[str, Any] = {"policies": policies}
    if url == "amqp":
        given = {"redelivery_policies": policies.redelivery_policies, "dead_letter_strategies": strategies}
    name = broker.urls[url].replace("://", f"://{user}:{user}@" if user else "://")
    orders = Queue("jms.queue.orders")
    with redelivery.connect(name, **given) as connection, connection.session(AckMode.TRANSACTED) as session:
        session.producer(orders).send("poison")
        session.commit()
        consumer = session.consumer(orders)
        for count in (1, 2):
            message = consumer.receive(timeout=10)
            assert message is not None
            assert message.redelivered == (count > 1)
            session.rollback()
        assert consumer.receive(timeout=0.2) is None
    holds(broker, "jms.queue.orders", {"jms.queue.Lost": 1})


@pytest.mark.parametrize("url", ["stomp", "amqp"])
def test_what_expires_goes_to_the_queue_of_the_expiry_address(broker: Artemis, url: str) -> None:
    with (
        redelivery.connect(broker.urls[url], policies=broker.policies) as connection,
        connection.session(AckMode.CLIENT) as session,
    ):
        consumer = session.consumer("auto.late")  # holds it, unseen, until it has expired
        session.producer("auto.late").send("late", ttl=0.3)
        time.sleep(0.4)  # Artemis' clock
        assert consumer.receive(timeout=0.1) is None
        eventually(lambda: broker.depths() == {"auto.late": 0, "lateQueue": 1})
