"""What outcomes mean over AMQP to a broker that obeys Artemis' file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import proton
import pytest
from proton import symbol
from tests.broker.amqp.amqp_client import MODIFIED, REJECTED, RELEASED, Peer
from tests.policies.readers.documents import address_settings, written

import redelivery
from redelivery.broker import EmbeddedBroker

CLASSIC = '<broker xmlns="http://activemq.apache.org/schema/core"/>'
BROKER_J = """{"name": "b", "virtualhostnodes": [{"name": "h", "virtualhosts": [{"name": "h", "type": "TestMemory",
    "queues": [{"name": "q", "maximumDeliveryAttempts": 1, "alternateBinding": {"destination": "DLA"}},
    {"name": "DLA"}]}]}]}"""
ADDRESSES = '<addresses><address name="DLA"><anycast><queue name="DLA"/></anycast></address></addresses>'


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    values: dict[str, object] = {"redelivery_delay": 1, "max_delivery_attempts": 3, "dead_letter_address": "DLA"}
    text = address_settings(**{"#": values}).replace("</core>", f"{ADDRESSES}</core>")
    with EmbeddedBroker("rules", config=written(tmp_path, "broker.xml", text), amqp_port=0) as running:
        running.send("q", "m")
        yield running


def test_failures_are_counted_up_to_the_dead_letter(broker: EmbeddedBroker) -> None:
    with Peer(broker.amqp_url) as client:
        client.receiver("q")
        for count in range(3):
            delivery, message = client.one()
            assert message.delivery_count == count
            client.settle(delivery, MODIFIED, failed=True)
        client.receiver("DLA")
        _, letter = client.one()
        assert letter.delivery_count == 0
        assert letter.properties["_AMQ_ORIG_QUEUE"] == "q"


def test_a_release_is_not_counted(broker: EmbeddedBroker) -> None:
    with Peer(broker.amqp_url) as client:
        client.receiver("q")
        for _ in range(5):
            delivery, message = client.one()
            assert message.delivery_count == 0
            client.settle(delivery, RELEASED)


@pytest.mark.parametrize(("of", "counts"), [("activemq", [0, 0, 0]), ("hornetq", [0, 1, 2])])
def test_modified_without_delivery_failed_is_a_failure_on_hornetq_only(
    tmp_path: Path, of: str, counts: list[int]
) -> None:
    text = address_settings(**{"#": {"max_delivery_attempts": 5}}).replace("urn:activemq", f"urn:{of}")
    with EmbeddedBroker("modified", config=written(tmp_path, "broker.xml", text), amqp_port=0) as running:
        running.send("q", "m")
        with Peer(running.amqp_url) as client:
            client.receiver("q")
            for count in counts:
                delivery, message = client.one()
                assert message.delivery_count == count
                client.settle(delivery, MODIFIED)


def test_a_rejected_message_is_a_dead_letter_at_once(broker: EmbeddedBroker) -> None:
    with Peer(broker.amqp_url) as client:
        client.receiver("q")
        client.settle(client.one()[0], REJECTED)
    broker.wait_for("DLA", 1)


def test_a_closed_link_counts_nothing_and_a_lost_connection_does(broker: EmbeddedBroker) -> None:
    with Peer(broker.amqp_url) as client:
        for _ in range(5):
            link = client.receiver("q")
            assert client.one()[1].delivery_count == 0
            client.end(link)
    for count in range(3):
        client = Peer(broker.amqp_url)
        client.receiver("q")
        assert client.one()[1].delivery_count == count
        client.drop()
    broker.wait_for("DLA", 1)


@pytest.mark.parametrize("failed", [False, True])
def test_what_is_undeliverable_here_goes_to_another_link_and_is_kept_for_one(
    broker: EmbeddedBroker, failed: bool
) -> None:
    with Peer(broker.amqp_url) as client:
        first = client.receiver("q")
        client.settle(client.one()[0], MODIFIED, failed=failed, undeliverable=True)
        assert client.quiet()
        assert broker.queue_depth("q") == 1
        client.receiver("q")
        delivery, message = client.one()
        assert (message.body, message.delivery_count) == ("m", int(failed))
        client.settle(delivery, MODIFIED, undeliverable=True)
        assert client.quiet()
        client.end(first)
        client.receiver("q")  # what its consumer refused is forgotten with it
        assert client.one()[1].delivery_count == int(failed)


SENT = {"body": "bad", "durable": True, "ttl": 3600.0, "properties": {"n": 5}, "annotations": {symbol("x-opt-own"): 7}}


def letter_of(client: Peer, queue: str) -> proton.Message:
    """What was sent over AMQP fails there."""
    client.send(client.sender("q"), {**SENT, "address": "q"})
    client.receiver("q")
    client.settle(client.one()[0], REJECTED)
    client.receiver(queue)
    return client.one()[1]


def test_artemis_notes_the_origin_of_what_came_over_amqp_in_annotations(tmp_path: Path) -> None:
    settings = address_settings(**{"#": {"dead_letter_address": "DLA"}}).replace("</core>", f"{ADDRESSES}</core>")
    config = written(tmp_path, "broker.xml", settings)
    with EmbeddedBroker("rules", config=config, amqp_port=0) as broker, Peer(broker.amqp_url) as client:
        letter = letter_of(client, "DLA")
        number = letter.annotations.pop(symbol("x-opt-ORIG-MESSAGE-ID"))
        assert (type(number), number) == (int, 1)  # an AMQP long, as proton reads it; Artemis' own number of a message
        assert letter.annotations == {"x-opt-own": 7, "x-opt-ORIG-QUEUE": "q", "x-opt-ORIG-ADDRESS": "q"}
        assert (letter.address, letter.properties, letter.ttl, letter.durable) == ("DLA", {"n": 5}, 0, True)
        broker.send("other", "m")  # by another protocol, it is in properties
        client.receiver("other")
        client.settle(client.one()[0], REJECTED)
        _, letter = client.one()
        assert letter.properties["_AMQ_ORIG_ADDRESS"] == "other"
        assert letter.properties["_AMQ_ORIG_ROUTING_TYPE"] == 1
        assert "originalDestination" not in letter.properties


@pytest.mark.parametrize(
    ("text", "name", "queue"), [(CLASSIC, "activemq.xml", "ActiveMQ.DLQ"), (BROKER_J, "b.json", "DLA")]
)
def test_classic_and_broker_j_leave_what_came_over_amqp_as_it_came(
    tmp_path: Path, text: str, name: str, queue: str
) -> None:
    config = written(tmp_path, name, text)
    with EmbeddedBroker("rules", config=config, amqp_port=0) as broker, Peer(broker.amqp_url) as client:
        letter = letter_of(client, queue)
        assert (letter.address, letter.properties, letter.annotations) == ("q", {"n": 5}, {"x-opt-own": 7})
        assert (letter.delivery_count, letter.durable) == (0, True)
        assert 3590 < letter.ttl <= 3600


def test_a_client_reads_the_origin_all_the_same(tmp_path: Path) -> None:
    settings = address_settings(**{"#": {"dead_letter_address": "DLQ"}}).replace("</core>", f"{ADDRESSES}</core>")
    for name, text, queue in (
        ("broker.xml", settings.replace("DLA", "DLQ"), "DLQ"),
        ("a.xml", CLASSIC, "ActiveMQ.DLQ"),
    ):
        config = written(tmp_path, name, text)
        with EmbeddedBroker("rules", config=config, amqp_port=0) as broker:
            with Peer(broker.amqp_url) as client:
                letter_of(client, queue)
            with redelivery.connect(broker.amqp_url) as connection, connection.session() as session:
                message = session.consumer(queue).receive(5)
                assert message is not None
                assert message.dead_letter is not None
                assert message.dead_letter.origin == redelivery.Queue("q")
