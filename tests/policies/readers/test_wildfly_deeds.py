"""What is made of a WildFly file: conversions, an embedded broker, a simulation, the names for a client."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from tests.broker.rules.failing import Bench
from tests.policies.readers.documents import read, written
from tests.policies.readers.test_wildfly_file import ALL, JBOSS, WHOLE, hornetq, setting, standalone, subsystem

import redelivery
from redelivery import BrokerDeadLetterStrategy, Queue, SharedDeadLetterStrategy, Topic
from redelivery.broker import EmbeddedBroker
from redelivery.operate.convert import convert
from redelivery.operate.diff import diff
from redelivery.operate.simulate import simulate
from redelivery.policies.dead_letters import CopyTo


def test_a_migration_to_artemis_drops_the_prefixes_and_keeps_numbers_and_queues() -> None:
    found = convert(read(WHOLE), "artemis")
    artemis = read(found.text)
    assert (artemis.format, [each.partition(" (")[0] for each in found.lost]) == (
        "artemis",
        ["an address-setting is for queues and topics alike: jms.queue.cargo becomes cargo", "not read: divert d"],
    )
    before, after = read(WHOLE).explain("cargo"), artemis.explain("cargo")
    assert (before.maximum, before.delays) == (after.maximum, after.delays)
    assert (after.dead_letter, after.expired) == ("DLQ", "ExpiryQueue")
    assert '<address name="DLQ">' in found.text
    assert "AND" not in found.text
    assert diff(artemis, read(convert(artemis, "wildfly").text))


def test_a_conversion_to_wildfly_makes_the_queues_of_dead_letters_and_says_what_it_does_not_have() -> None:
    text = 'addressSettings."#".deadLetterAddress=DLQ\naddressSettings."#".noExpiry=true\nmaxRedeliveryRecords=1'
    found = convert(read(text, "broker.properties"), "wildfly")
    assert '<jms-queue name="DLQ" entries="java:/jms/queue/DLQ" />' in found.text
    assert found.lost == ("#: WildFly has no no-expiry (here true)", "WildFly has no max-redelivery-records (here 1)")
    assert read(found.text).explain("x").dead_letter == "jms.queue.DLQ"


@pytest.mark.parametrize("version", ["13.0", "hornetq"])
def test_the_embedded_broker_under_the_file_dead_letters_to_the_jms_queue_and_loses_without_one(version: str) -> None:
    values = {"dead_letter_address": "jms.queue.DLQ", "max_delivery_attempts": 3, "redelivery_delay": 500}
    attributes = " ".join(f'{name.replace("_", "-")}="{value}"' for name, value in values.items())
    for queue, letters in (('<jms-queue name="DLQ" entries="d"/>', 1), ("", 0)):
        text = standalone(subsystem(f'<address-setting name="#" {attributes}/>{queue}'))
        if version == "hornetq":
            text = hornetq(setting("#", **values), queue)
        bench = Bench(read(text))
        bench.send("orders")
        assert bench.fail("orders") == 3
        assert bench.waits == [500, 500]
        assert len(bench.letters("DLQ")) == letters
        prefix = "_HQ_" if version == "hornetq" else "_AMQ_"
        for each in bench.letters("DLQ"):
            assert (
                each.properties[f"{prefix}ORIG_ADDRESS"] == each.properties[f"{prefix}ORIG_QUEUE"] == "jms.queue.orders"
            )


@pytest.mark.parametrize("config", [WHOLE, hornetq(setting("#", dead_letter_address="jms.queue.DLQ"))])
def test_an_embedded_broker_starts_under_the_file_and_a_client_receives_from_it(tmp_path: Path, config: str) -> None:
    with (
        EmbeddedBroker("wildfly", config=written(tmp_path, "standalone.xml", config)) as broker,
        redelivery.connect(broker.vm_url) as connection,
        connection.session() as session,
        session.consumer("orders") as consumer,
    ):
        broker.send("orders", "hello")
        message = consumer.receive(timeout=5)
        assert message is not None
        assert message.body == "hello"


def test_it_is_simulated_as_any_other_file() -> None:
    assert [each.at for each in simulate(read(WHOLE), "cargo").attempts] == [0.0, 30.0, 90.0, 190.0]


NAMED: Final = standalone(
    subsystem(
        f"{ALL}"
        '<address-setting name="jms.queue.orders" max-delivery-attempts="2" dead-letter-address="jms.queue.Lost"/>'
        '<address-setting name="jms.queue.slow.#" max-delivery-attempts="7"/>'
        '<address-setting name="jms.topic.news" max-delivery-attempts="5"/>'
        '<jms-queue name="orders"/><jms-queue name="Lost"/><jms-queue name="DLQ"/><jms-topic name="news"/>'
    )
)
NAMES_OF_ONE: Final = [
    (Queue("orders"), Queue("jms.queue.orders"), 2, "jms.queue.Lost"),
    (Queue("slow.one"), Queue("jms.queue.slow.one"), 7, "jms.queue.DLQ"),
    (Queue("other"), Queue("jms.queue.other"), 10, "jms.queue.DLQ"),
    (Topic("news"), Topic("jms.topic.news"), 5, "jms.queue.DLQ"),
]


def test_a_client_finds_an_entry_by_the_name_of_jms_and_by_that_of_the_address() -> None:
    """Clients of STOMP and AMQP name the address, since WildFly's Artemis has no other name."""
    found = read(NAMED, "standalone-full.xml")
    for destinations in NAMES_OF_ONE:
        *names, attempts, target = destinations
        for name in names:
            assert found.redelivery_policies.policy_for(name).maximum_redeliveries == attempts - 1, name
            winner = found.redelivery_policies.explain(name).winner
            assert getattr(winner, "value", found.redelivery_policies.default).maximum_redeliveries == attempts - 1
            strategy = found.dead_letter_strategies.strategy_for(name)
            assert isinstance(strategy, BrokerDeadLetterStrategy), name
            assert strategy.otherwise == SharedDeadLetterStrategy(Queue(target)), name
            explained = found.explain(name)
            assert (explained.maximum, explained.dead_letter) == (attempts, target), name


def test_the_queues_of_wildfly_have_the_names_of_their_addresses() -> None:
    queues = read(NAMED, "standalone-full.xml").dead_letter_strategies.queues
    assert queues is not None
    assert ("jms.queue.orders", "jms.queue.orders", True) in [
        (each.name, each.address, each.anycast) for each in queues
    ]


def test_the_names_of_hornetq_in_wildfly_are_those_of_jms() -> None:
    """Over STOMP its dialect writes `jms.queue.` before each of them."""
    found = read(JBOSS, "standalone.xml")
    assert [each.key for each in found.redelivery_policies.entries] == ["queue://orders.eu"]
    strategy = found.dead_letter_strategies.strategy_for("orders.eu")
    decision = strategy.decide(Queue("x"), persistent=True, expired=False, native_available=False)
    assert isinstance(decision, CopyTo)
    assert decision.destination == Queue("DLQ")
