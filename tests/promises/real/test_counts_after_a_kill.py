"""What a real broker still knows of the deliveries of a message when it starts again after a kill -9."""

from __future__ import annotations

import re
import subprocess
from typing import Any

import pytest
from tests.broker.raw_stomp import Raw
from tests.promises.real.started import ARTEMIS, HORNETQ, hornetq_with, running, setting, with_a_store

from redelivery.testing.brokers.native import NativeBroker

promise = pytest.mark.promise
pytestmark = [pytest.mark.long_form, pytest.mark.timeout(150)]
BEFORE_DELIVERY = "<persist-delivery-count-before-delivery>{}</persist-delivery-count-before-delivery>"
COUNT, SCHEDULED = "34", "36"  # Artemis' JournalRecordIds: UPDATE_DELIVERY_COUNT, SET_SCHEDULED_DELIVERY_TIME


def peer(broker: NativeBroker) -> Any:
    """An AMQP client; leave it as a context, which closes its socket."""
    pytest.importorskip("proton")
    from tests.broker.amqp.amqp_client import Peer

    return Peer(f"amqp://{broker.host}:{broker.ports['amqp']}")


def send(client: Any, queue: str = "counted") -> None:
    """Send a durable message: once it is accepted, what the broker wrote before is in its journal, too."""
    client.send(client.sender(queue, "queue"), {"body": "m", "durable": True})


def count_of_next(broker: NativeBroker) -> int:
    with peer(broker) as client:
        client.receiver("counted", "queue", credit=1)
        return int(client.one()[1].delivery_count)


@promise("artemis-count-persistence")
@pytest.mark.parametrize(("element", "count"), [("", 0), (BEFORE_DELIVERY.format("true"), 1)])
def test_artemis_keeps_the_count_of_a_delivery_only_where_its_file_says_so(element: str, count: int) -> None:
    text = with_a_store(lambda usual: usual.replace("<acceptors>", f"{element}<acceptors>"))
    with running(ARTEMIS, text) as broker:
        with peer(broker) as client:
            send(client)
            client.receiver("counted", "queue", credit=1)
            assert client.one()[1].delivery_count == 0
            send(client, "other")
            broker.kill()
        broker.start()
        assert count_of_next(broker) == count


@promise("hornetq-count-persistence")
@pytest.mark.parametrize(("element", "redelivered"), [("", "false"), (BEFORE_DELIVERY.format("true"), "true")])
def test_hornetq_keeps_the_count_of_a_delivery_only_where_its_file_says_so(element: str, redelivered: str) -> None:
    queue = "jms.queue.counted"
    with running(HORNETQ, hornetq_with(setting(queue), queue, more=element)) as broker:
        url = f"stomp://{broker.host}:{broker.ports['stomp']}"
        with Raw(url) as client:
            client.ok("SEND", b"m", destination=queue, persistent="true")
            client.subscribe(queue)
            assert client.next().headers.get("redelivered", "false") == "false"
            broker.kill()
        broker.start()
        with Raw(url) as client:
            client.subscribe(queue)
            assert client.next().headers.get("redelivered", "false") == redelivered


@promise("artemis-journal-records")
@pytest.mark.parametrize("records", [1, 10])
def test_a_redelivery_by_artemis_writes_two_records_and_no_more_than_its_file_allows(records: int) -> None:
    """What it has not written, it does not know after a kill: the count is that of the last record."""
    from tests.broker.amqp.amqp_client import MODIFIED

    def edit(text: str) -> str:
        text = text.replace("<max-redelivery-records>1<", f"<max-redelivery-records>{records}<")
        return text.replace("<redelivery-delay>0<", "<redelivery-delay>20<")

    failures = 4
    with running(ARTEMIS, with_a_store(edit)) as broker:
        with peer(broker) as client:
            send(client)
            link = client.receiver("counted", "queue", credit=1)
            for count in range(failures):
                delivery, message = client.one()
                assert message.delivery_count == count
                client.settle(delivery, MODIFIED, failed=True)
                link.flow(1)
            assert client.one()[1].delivery_count == failures
            send(client, "other")
            broker.kill()
        written = re.findall(r"operation@Update;.*userRecordType=(\d+)", journal(broker))
        expected = min(records, failures)
        assert (written.count(COUNT), written.count(SCHEDULED)) == (expected, expected)
        broker.start()
        assert count_of_next(broker) == expected


def journal(broker: NativeBroker) -> str:
    """What the command ``artemis data print`` says of a broker that does not run."""
    home, folder = ARTEMIS.source.fetch(), broker.folder
    folders = {"journal": "journal", "bindings": "bindings", "paging": "paging", "large-messages": "large-messages"}
    command = [
        "java",
        "-XX:TieredStopAtLevel=1",
        f"-Dartemis.home={home}",
        f"-Dartemis.instance={folder}",
        f"-Dartemis.instance.etc={folder}",
        "-cp",
        str(home / "lib" / "artemis-boot.jar"),
        "org.apache.activemq.artemis.boot.Artemis",
        "data",
        "print",
        *(each for name, place in folders.items() for each in (f"--{name}", str(folder / "data" / place))),
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=90)  # noqa: S603  # our own
    return done.stdout
