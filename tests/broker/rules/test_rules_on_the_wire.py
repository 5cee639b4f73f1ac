"""`EmbeddedBroker(config="broker.xml")`, as clients of each protocol meet it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.broker.raw_stomp import Raw
from tests.policies.readers.documents import address_settings, written

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.model.errors import ConfigError

promise = pytest.mark.promise

ADDRESSES = '<addresses><address name="DLA"><anycast><queue name="DLA"/></anycast></address></addresses>'
SETTINGS = {"redelivery_delay": 100, "max_delivery_attempts": 3, "dead_letter_address": "DLA"}
CLASSIC = '<broker xmlns="http://activemq.apache.org/schema/core"/>'
QPID = "<broker><maximumDeliveryCount>2</maximumDeliveryCount></broker>"


def artemis(**more: object) -> str:
    return address_settings(**{"#": {**SETTINGS, **more}}).replace("</core>", f"{ADDRESSES}</core>")


@contextmanager
def broker(folder: Path, text: str, **options: int) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker("rules", config=written(folder, "broker.xml", text), **options) as running:  # type: ignore[arg-type]  # ports
        yield running


def test_a_file_that_is_not_there_or_not_understood_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.xml"):
        EmbeddedBroker("rules", config="nowhere.xml")
    bad = written(tmp_path, "broker.xml", artemis(redelivery_delay="soon"))
    with pytest.raises(ConfigError, match=r"broker\.xml:\d+:\d+: .*redelivery-delay"):
        EmbeddedBroker("rules", config=bad)
    with pytest.raises(ConfigError, match="pass the name of a file"):
        EmbeddedBroker("rules", config=5)  # type: ignore[arg-type]  # on purpose


def test_a_clients_url_is_no_brokers_configuration() -> None:
    with pytest.raises(ConfigError, match="these are a client's"):
        EmbeddedBroker("rules", config="failover:(tcp://host:61616)?jms.redeliveryPolicy.maximumRedeliveries=3")


@pytest.mark.parametrize(
    ("text", "name", "poisons"), [(artemis(), "artemis", False), (CLASSIC, "activemq", True), (QPID, "qpid", False)]
)
@pytest.mark.parametrize("protocol", ["vm", "stomp", "amqp"])
def test_a_client_sees_whose_rules_they_are(tmp_path: Path, text: str, name: str, poisons: bool, protocol: str) -> None:
    ports = {}
    if protocol != "vm":
        ports = {f"{protocol}_port": 0}
        if protocol == "amqp":
            pytest.importorskip("proton")
    with (
        broker(tmp_path, text, **ports) as running,
        redelivery.connect(getattr(running, f"{protocol}_url")) as connection,
    ):
        assert connection.dialect == name
        assert connection.metadata.provider_name == "redelivery"
        assert connection.metadata.capabilities.native_poison is poisons


@pytest.mark.parametrize("protocol", ["vm", "stomp", "amqp"])
def test_a_session_of_ours_works_there(tmp_path: Path, protocol: str) -> None:
    """The client redelivers, and dead-letters by a copy, as on Artemis."""
    ports = {} if protocol == "vm" else {f"{protocol}_port": 0}
    if protocol == "amqp":
        pytest.importorskip("proton")
    policy = redelivery.RedeliveryPolicy(maximum_redeliveries=1, initial_redelivery_delay=0, redelivery_delay=0)
    with (
        broker(tmp_path, artemis(), **ports) as running,
        redelivery.connect(getattr(running, f"{protocol}_url"), redelivery_policy=policy) as connection,
        connection.session("transacted") as session,
    ):
        session.producer("orders").send("bad")
        session.commit()
        consumer = session.consumer("orders")
        for count in (1, 2):
            message = consumer.receive(2)
            assert message is not None
            assert message.delivery_count == count
            session.rollback(cause=ValueError("no"))
        running.wait_for("ActiveMQ.DLQ", 1)
        running.wait_for("orders", 0)


def test_over_stomp_the_end_of_a_connection_counts_and_waits(tmp_path: Path) -> None:
    with broker(tmp_path, artemis(redelivery_delay=1), stomp_port=0) as running:
        running.send("q", "m")
        for number in range(3):
            with Raw(running.stomp_url) as client:
                client.subscribe()
                message = client.next()
                assert message.headers.get("redelivered", "false") == ("true" if number else "false")
                client.ok("DISCONNECT")
        running.wait_for("DLA", 1)
        assert running.queue_depth("q") == 0


def test_over_stomp_an_ack_counts_at_once_and_nack_is_ack(tmp_path: Path) -> None:
    with broker(tmp_path, artemis(), stomp_port=0) as running, Raw(running.stomp_url) as client:
        running.send("q", "1")
        running.send("q", "2")
        client.subscribe()
        first, second = client.messages(2)
        client.ok("BEGIN", transaction="t")
        client.ok("ACK", id=first.headers["ack"], transaction="t")
        client.ok("ABORT", transaction="t")
        assert running.queue_depth("q") == 1
        client.ok("NACK", id=second.headers["ack"])
        assert running.queue_depth("q") == 0
        assert running.queue_depth("DLA") == 0


@promise("artemis-count-persistence")
@promise("hornetq-count-persistence")
@pytest.mark.parametrize("broker_of", ["activemq", "hornetq"])
def test_a_count_survives_a_kill_only_where_the_file_says_so(tmp_path: Path, broker_of: str) -> None:
    """persist-delivery-count-before-delivery: the broker is killed while the first delivery is under way."""
    asked = "<persist-delivery-count-before-delivery>true</persist-delivery-count-before-delivery>"
    for name, element, counts in (("without", "", 1), ("with", asked, 2)):
        text = artemis().replace("</core>", f"{element}</core>").replace("urn:activemq", f"urn:{broker_of}")
        config, store = written(tmp_path, f"{name}.xml", text), tmp_path / f"{name}.db"
        running = EmbeddedBroker("rules", config=config, store=store, stomp_port=0).start()
        running.send("q", "m")
        with Raw(running.stomp_url) as client:
            client.subscribe()
            client.next()
            running.kill()
        with (
            EmbeddedBroker("rules", config=config, store=store) as again,
            redelivery.connect(again.vm_url) as connection,
            connection.session() as session,
        ):
            message = session.consumer("q").receive(2)
            assert message is not None
            assert message.delivery_count == counts
