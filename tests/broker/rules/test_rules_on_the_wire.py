"""`EmbeddedBroker(config="broker.xml")`, as clients of each protocol meet it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest
from tests.broker.raw_stomp import Raw
from tests.policies.readers.documents import address_settings, read, written

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.model.errors import ConfigError
from redelivery.operate.doctor.doctor import examine

promise = pytest.mark.promise

ADDRESSES = '<addresses><address name="DLA"><anycast><queue name="DLA"/></anycast></address></addresses>'
SETTINGS = {"redelivery_delay": 100, "max_delivery_attempts": 3, "dead_letter_address": "DLA"}
CLASSIC = '<broker xmlns="http://activemq.apache.org/schema/core"/>'
HORNETQ = '<configuration xmlns="urn:hornetq"/>'
QPID = (
    "<broker><maximumDeliveryCount>3</maximumDeliveryCount><deadLetterQueues>true</deadLetterQueues>"
    "<virtualhosts/></broker>"
)
BROKER_J = '{"name": "b", "virtualhostnodes": []}'
RABBITMQ = '{"rabbit_version": "3.10", "queues": [], "exchanges": [], "policies": []}'


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
    ("text", "name", "poisons"),
    [
        (artemis(), "artemis", False),
        (HORNETQ, "hornetq", False),
        (CLASSIC, "activemq", True),
        (QPID, "qpid", False),
        (BROKER_J, "qpid", False),
        (RABBITMQ, "rabbitmq", False),
    ],
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


@pytest.mark.parametrize("text", [artemis(), HORNETQ], ids=["artemis", "hornetq"])
def test_what_a_closed_consumer_had_is_flagged_as_redelivered_to_the_same_connection(tmp_path: Path, text: str) -> None:
    """Which the client remembers, as at the real one, whose UNSUBSCRIBE releases it as new."""
    with (
        broker(tmp_path, text, stomp_port=0) as running,
        redelivery.connect(running.stomp_url) as connection,
        connection.session("transacted") as session,
    ):
        running.send("orders", "a")
        for redelivered in (False, True):
            with session.consumer("orders") as consumer:
                message = consumer.receive(timeout=5)
                assert message is not None
                assert (message.body, message.redelivered) == ("a", redelivered)
            session.rollback()


@promise("qpid-rollback-only")
@promise("qpid-maximum")
@pytest.mark.parametrize("mode", ["transacted", "client"])
def test_qpid_counts_what_a_client_rolls_back_or_recovers(
    tmp_path: Path, mode: Literal["transacted", "client"]
) -> None:
    """Its session redelivers by itself; what it releases at its end has failed once."""
    pytest.importorskip("proton")
    with broker(tmp_path, QPID, amqp_port=0) as running:
        running.send("q", "m")
        for count in (1, 2, 3):
            with redelivery.connect(running.amqp_url) as connection, connection.session(mode) as session:
                message = session.consumer("q").receive(2)
                assert message is not None
                assert message.delivery_count == count
                if mode == "transacted":
                    session.rollback()
                else:
                    session.recover()
        running.wait_for("q_DLQ", 1)
        assert running.queue_depth("q") == 0


@promise("qpid-stock-ticker")
@pytest.mark.parametrize(("maximum", "seen"), [(0, ["1", *["?"] * 11]), (3, ["1", "?", "?", "?", "2"])])
def test_a_message_that_no_client_understands_blocks_it_for_ever_unless_there_is_a_maximum(
    tmp_path: Path, maximum: int, seen: list[str]
) -> None:
    """A stock ticker reads texts, one at a time, and rolls back what it cannot read: a BytesMessage among them."""
    pytest.importorskip("proton")
    from tests.broker.amqp.amqp_client import ACCEPTED, MODIFIED, Peer

    found: list[str] = []
    text = QPID.replace("<maximumDeliveryCount>3", f"<maximumDeliveryCount>{maximum}")
    with broker(tmp_path, text, amqp_port=0) as running, Peer(running.amqp_url) as client:
        for body in ("1", b"\0", "2"):
            running.send("ticks", body)
        link = client.receiver("ticks", "queue", credit=1)
        while len(found) < len(seen):
            delivery, message = client.one()
            readable = isinstance(message.body, str)
            found.append(message.body if readable else "?")
            client.settle(delivery, ACCEPTED if readable else MODIFIED, failed=not readable)
            link.flow(1)
        running.wait_for("ticks_DLQ", 1 if maximum else 0)
        running.wait_for("ticks", 0 if maximum else 2)
    assert found == seen


@promise("qpid-depth")
def test_the_doctor_warns_of_what_lies_in_a_dead_letter_queue(tmp_path: Path) -> None:
    with broker(tmp_path, QPID, stomp_port=0) as running:
        assert running.stomp_url is not None
        running.send("q_DLQ", "lost")
        report = examine(running.stomp_url, read(QPID), queues=["q"], watch=0)
    said = [each.what for each in report.findings if each.check == "dead-letters"]
    assert "1 dead letter is in q_DLQ, and nobody reads them" in said


@promise("qpid-rollback-only")
def test_qpid_does_not_count_the_loss_of_a_connection(tmp_path: Path) -> None:
    pytest.importorskip("proton")
    from tests.broker.amqp.amqp_client import Peer

    with broker(tmp_path, QPID, amqp_port=0) as running:
        running.send("q", "m")
        for _ in range(5):
            with Peer(running.amqp_url) as client:
                client.receiver("q", "queue", credit=1)
                _, message = client.one()
                assert message.delivery_count == 0
        running.wait_for("q", 1)
        assert running.queue_depth("q_DLQ") == 0


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
