"""What a conversion writes, on the broker that it is for: it starts with it, and reports the same rules."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import pytest
from tests.client.shell import eventually
from tests.differential.files import text_of
from tests.operate.test_conversion_losses import FULL, TTL
from tests.operate.test_conversions import SOURCES
from tests.operate.test_conversions_run import in_activemq, in_artemis, started
from tests.policies.readers.documents import classic, policy_entries, read
from tests.promises.real.started import running

import redelivery
from redelivery.operate.convert import convert
from redelivery.operate.doctor.broker_j import broker_j_rules
from redelivery.operate.doctor.management import artemis_queues, artemis_rules
from redelivery.policies.brokers.formats import read_content
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.testing.brokers.spec import BrokerSpec, Site
from redelivery.testing.brokers.specs import activemq, artemis, hornetq, qpid

pytest.importorskip("proton")
pytestmark = [pytest.mark.long_form, pytest.mark.timeout(150)]

Text = Callable[[Site], str]
INPUTS: Final = {**{name: source for name, (source, *_) in SOURCES.items()}, "full": FULL, "ttl": read(TTL)}


def for_broker_j(text: str) -> Text:
    """The same with ports and users."""

    def whole(site: Site) -> str:
        document: dict[str, Any] = json.loads(text_of("broker-j", site.host, site.ports)) | json.loads(text)
        return json.dumps(document | {"name": "qpid"})

    return whole


def converted(source: str, to: str) -> BrokerPolicies:
    return read_content(convert(INPUTS[source], to).text.encode(), "converted", format=to)


@pytest.mark.parametrize("source", ["hornetq", "activemq", "rabbitmq", "ttl", "wildfly", "artemis_properties"])
def test_artemis_has_the_settings_that_were_converted(source: str) -> None:
    text, names = convert(INPUTS[source], "artemis").text, ["orders", "q"]
    expected = converted(source, "artemis")
    with (
        started(artemis.SPEC, in_artemis, text) as broker,
        redelivery.connect(f"amqp://{broker.host}:{broker.ports['amqp']}") as connection,
    ):
        reported = artemis_rules(connection, names)
    for name in names:
        found, wanted = reported.settings_for(name), expected.rules.settings_for(name)  # type: ignore[attr-defined]  # Artemis'
        assert [found.delay(number) for number in (1, 2, 3)] == [wanted.delay(number) for number in (1, 2, 3)]
        assert (found.max_delivery_attempts, found.dead_letter_address, found.expiry_address) == (
            wanted.max_delivery_attempts,
            wanted.dead_letter_address,
            wanted.expiry_address,
        )


def test_expired_messages_of_classic_s_individual_strategy_get_a_queue_of_artemis_beside_the_dead_letters() -> None:
    entry = '<policyEntry queue="doc.>"><deadLetterStrategy><individualDeadLetterStrategy queuePrefix="D."/>'
    text = convert(classic(policy_entries(entry + "</deadLetterStrategy></policyEntry>")), "artemis").text
    letters = "D.doc.a"
    with (
        started(artemis.SPEC, in_artemis, text) as broker,
        redelivery.connect(f"amqp://{broker.host}:{broker.ports['amqp']}") as connection,
        connection.session() as session,
    ):
        for number in (1, 2):  # the second one finds the queue
            session.producer("doc.a").send(f"late {number}", ttl=0.1)
            eventually(lambda: getattr(artemis_queues(connection).get(letters), "messages", 0) == number)  # noqa: B023  # at once
        with session.consumer(f"ActiveMQ.DLA::{letters}") as consumer:
            assert [
                message.body for message in (consumer.receive(timeout=10), consumer.receive(timeout=10)) if message
            ] == ["late 1", "late 2"]


@pytest.mark.parametrize("source", ["artemis", "activemq", "qpid", "full"])
def test_hornetq_starts_with_what_was_converted(source: str) -> None:
    _takes(hornetq.SPEC, lambda _: convert(INPUTS[source], "hornetq").text, "stomp")


@pytest.mark.parametrize("source", ["artemis", "hornetq", "broker_j", "uri", "full"])
def test_classic_starts_with_what_was_converted(source: str) -> None:
    text = convert(INPUTS[source], "activemq").text
    _takes(activemq.SPEC, lambda site: in_activemq(text, site), "stomp")


@pytest.mark.parametrize("source", ["artemis", "activemq", "rabbitmq", "ttl"])
def test_broker_j_has_the_rules_that_were_converted(source: str) -> None:
    text, names = convert(INPUTS[source], "broker_j").text, ("orders", "q")
    expected = converted(source, "broker_j")
    with (
        running(qpid.SPEC, for_broker_j(text)) as broker,
        redelivery.connect(f"amqp://{broker.host}:{broker.ports['amqp']}") as connection,
    ):
        reported = broker_j_rules(connection, names)
    for name in (*names, "any.other"):
        wanted = expected.explain(name)
        assert (reported.maximum_for(name), reported.alternate_for(name)) == (wanted.maximum, wanted.dead_letter)


def test_a_client_dead_letters_what_is_not_persistent_on_a_broker_without_a_store() -> None:
    """Broker-J refuses a durable copy there: the copy is as its original, at once, and not tried again for ever."""
    from tests.broker.amqp.amqp_client import Peer

    expected = converted("artemis", "broker_j")
    with running(qpid.SPEC, for_broker_j(convert(INPUTS["artemis"], "broker_j").text)) as broker:
        url = f"amqp://{broker.host}:{broker.ports['amqp']}"
        with Peer(url) as client:
            client.send(client.sender("orders"), {"body": "bad", "durable": False})
        with (
            redelivery.connect(url, policies=expected) as connection,
            connection.session(redelivery.AckMode.TRANSACTED) as session,
            session.consumer("orders") as consumer,
        ):
            deliveries = 0
            while consumer.receive(timeout=2) is not None:
                deliveries += 1
                session.rollback()
            with connection.session() as other, other.consumer("D") as dead:
                letter = dead.receive(timeout=10)
        assert letter is not None
        assert (deliveries, letter.body, letter.persistent) == (5, "bad", False)


def _takes(spec: BrokerSpec, text: Text, protocol: str) -> None:
    with (
        running(spec, text) as broker,
        redelivery.connect(f"{protocol}://{broker.host}:{broker.ports[protocol]}") as connection,
        connection.session() as session,
    ):
        session.producer("orders").send("taken")
