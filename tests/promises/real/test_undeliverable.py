"""Queues that Artemis makes for dead letters, and what a consumer that cannot read a message meets on Broker-J."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.broker.raw_stomp import Raw
from tests.client.shell import eventually
from tests.differential.files import text_of
from tests.promises.real.started import ARTEMIS, artemis_with, running, setting

import redelivery
from redelivery.operate.doctor.management import artemis_queues
from redelivery.operate.doctor.observed import ObservedQueue
from redelivery.testing.brokers.spec import Site
from redelivery.testing.brokers.specs import qpid

promise = pytest.mark.promise
pytestmark = [pytest.mark.long_form, pytest.mark.timeout(150)]
AUTO = {"dead_letter_address": "AUTO", "auto_create_dead_letter_resources": "true", "max_delivery_attempts": 1}
SCAN = "<address-queue-scan-period>100</address-queue-scan-period>"


def scanning(text: Callable[[Site], str]) -> Callable[[Site], str]:
    """So that queues which can be deleted are, soon."""
    return lambda site: text(site).replace("<acceptors>", f"{SCAN}<acceptors>")


def at_the_address(connection: redelivery.Connection) -> list[ObservedQueue]:
    return [each for each in artemis_queues(connection).values() if each.address == "AUTO"]


@promise("artemis-auto-created")
@promise("artemis-auto-create")
@pytest.mark.parametrize(
    ("protocol", "name", "deleted"),
    [("amqp", "DLQ.auto", True), ("stomp", "DLQ.auto", False), ("amqp", "AUTO::DLQ.auto", False)],
)
def test_artemis_reads_a_queue_made_for_dead_letters_by_its_name_and_deletes_it(
    protocol: str, name: str, deleted: bool
) -> None:
    """By its bare name where a queue is asked for; else that is a topic of its own, which is empty."""
    pytest.importorskip("proton")
    from tests.broker.amqp.amqp_client import ACCEPTED, MODIFIED, Peer

    settings = setting("auto", **AUTO) + setting("AUTO", auto_delete_queues=str(deleted).lower())
    with running(ARTEMIS, scanning(artemis_with(settings, "auto"))) as broker:
        url = f"amqp://{broker.host}:{broker.ports['amqp']}"
        with redelivery.connect(url) as connection:
            with Peer(url) as client:
                client.send(client.sender("auto", "queue"), {"body": "bad", "durable": True})
                client.receiver("auto", "queue", credit=1)
                client.settle(client.one()[0], MODIFIED, failed=True)
                client.flush()
                eventually(
                    lambda: [(each.name, each.messages) for each in at_the_address(connection)] == [("DLQ.auto", 1)]
                )
                if protocol == "amqp":
                    link = client.receiver(name, *(() if "::" in name else ("queue",)), credit=1)
                    delivery, message = client.one()
                    assert message.body == "bad"
                    client.settle(delivery, ACCEPTED)
                    client.end(link)
                client.connection.close()
                client.flush()
            if protocol == "stomp":
                with Raw(f"stomp://{broker.host}:{broker.ports['stomp']}") as stomp:
                    stomp.subscribe(name, ack="auto", **{"subscription-type": "ANYCAST"})
                    assert b"bad" in stomp.next().body
            eventually(lambda: not any(each.messages for each in at_the_address(connection)))
            if deleted:
                eventually(lambda: at_the_address(connection) == [])
            else:
                assert [each.name for each in at_the_address(connection)] == ["DLQ.auto"]


@promise("seen-artemis-early")
def test_artemis_loses_dead_letters_where_a_queue_of_that_name_has_another_address() -> None:
    pytest.importorskip("proton")
    from tests.broker.amqp.amqp_client import MODIFIED, Peer

    with running(ARTEMIS, artemis_with(setting("auto", **AUTO), "auto")) as broker:
        url = f"amqp://{broker.host}:{broker.ports['amqp']}"
        with redelivery.connect(url) as connection, Peer(url) as client:
            client.receiver("DLQ.auto", "queue", credit=1)
            client.send(client.sender("auto", "queue"), {"body": "bad", "durable": True})
            client.receiver("auto", "queue", credit=1)
            client.settle(client.one()[0], MODIFIED, failed=True)
            client.flush()
            eventually(lambda: artemis_queues(connection)["auto"].depth <= 0)
            assert at_the_address(connection) == []
            assert client.quiet()


@promise("qpid-stock-ticker")
@pytest.mark.parametrize(("queue", "seen"), [("j.off", ["1", *["?"] * 11]), ("j.three", ["1", "?", "?", "?", "2"])])
def test_broker_j_delivers_what_a_consumer_cannot_read_for_ever_unless_there_is_a_maximum(
    queue: str, seen: list[str]
) -> None:
    pytest.importorskip("proton")
    from tests.broker.amqp.amqp_client import ACCEPTED, MODIFIED, Peer

    found: list[str] = []
    with (
        running(qpid.SPEC, lambda site: text_of("broker-j", site.host, site.ports)) as broker,
        Peer(f"amqp://{broker.host}:{broker.ports['amqp']}") as client,
    ):
        sender = client.sender(queue)
        client.send(sender, *({"body": body, "durable": False} for body in ("1", b"\0", "2")))
        link = client.receiver(queue, credit=1)
        while len(found) < len(seen):
            delivery, message = client.one()
            readable = isinstance(message.body, str)
            found.append(message.body if readable else "?")
            client.settle(delivery, ACCEPTED if readable else MODIFIED, failed=not readable)
            link.flow(1)
            client.flush()
    assert found == seen
