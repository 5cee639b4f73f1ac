"""Artemis' addresses whose queues have other names: what a SEND reaches, and no queue that nobody reads."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any, Final
from uuid import uuid4

import pytest
from tests.client.shell import eventually
from tests.differential.files import text_of
from tests.promises.real.started import ARTEMIS, running, setting

import redelivery
from redelivery import (
    AckMode,
    Connection,
    InvalidDestinationError,
    Queue,
    RedeliveryPolicy,
    SharedDeadLetterStrategy,
)
from redelivery.policies.brokers.formats import read_content
from redelivery.testing.brokers.spec import Site

pytest.importorskip("proton")
from proton import Message
from proton.utils import BlockingConnection

pytestmark = [pytest.mark.short_form, pytest.mark.timeout(150)]

SETTINGS: Final = (
    setting("named.#", dead_letter_address="dead", max_delivery_attempts=2)
    + setting("orders", dead_letter_address="dead", max_delivery_attempts=2)
    + setting("gone.#", max_delivery_attempts=1)
    + setting(
        "auto.#",
        dead_letter_address="DLA",
        max_delivery_attempts=2,
        auto_create_dead_letter_resources="true",
        dead_letter_queue_prefix="",
        dead_letter_queue_suffix=".DLQ",
        expiry_address="late",
    )
)
ADDRESSES: Final = """
<address name="dead"><anycast><queue name="deadQueue"/></anycast></address>
<address name="late"><anycast><queue name="lateQueue"/></anycast></address>
<address name="orders"><anycast><queue name="ordersQueue"/></anycast></address>
<address name="named.many"><anycast><queue name="many.1"/><queue name="many.2"/></anycast></address>
<address name="multi"><multicast><queue name="multi.1"/><queue name="multi.2"/></multicast></address>
<address name="both"><anycast><queue name="both.one"/></anycast>
<multicast><queue name="both.all"/></multicast></address>
<address name="empty"><anycast/></address>
<address name="same"><anycast><queue name="same"/></anycast></address>
<address name="each"><multicast><queue name="each"/></multicast></address>
"""
QUEUES: Final = {
    *("deadQueue", "lateQueue", "ordersQueue", "many.1", "many.2", "multi.1", "multi.2", "both.one", "both.all"),
    *("same", "each"),
}
AT_ONCE: Final = RedeliveryPolicy(maximum_redeliveries=0)


def file(site: Site) -> str:
    usual = text_of("artemis", site.host, site.ports)
    text = usual.replace("</address-settings>", f"{SETTINGS}</address-settings>")
    return text[: text.index("<addresses>")] + f"<addresses>{ADDRESSES}</addresses></core></configuration>"


class Artemis:
    """The broker: its URLs, and what its management says."""

    def __init__(self, host: str, ports: dict[str, int], text: str) -> None:
        self.urls = {each: f"{each}://{host}:{ports[each]}" for each in ("stomp", "amqp")}
        self.policies = read_content(text.encode(), "broker.xml")
        self._connection = BlockingConnection(self.urls["amqp"])
        self._answers = self._connection.create_receiver(None, dynamic=True)
        self._questions = self._connection.create_sender("activemq.management")

    def close(self) -> None:
        self._connection.close()

    def ask(self, resource: str, operation: str, *arguments: Any) -> Any:
        """What an operation of its management returns."""
        named = {"_AMQ_ResourceName": resource, "_AMQ_OperationName": operation}
        back = self._answers.link.remote_source.address
        self._questions.send(Message(properties=named, body=json.dumps(list(arguments)), reply_to=back))
        answer = self._answers.receive(10)
        self._answers.accept()
        return (json.loads(answer.body or "[]") or [None])[0]

    def depths(self) -> dict[str, int]:
        """The messages in each queue, of those that hold some or that the file does not make."""
        wanted = json.dumps({"field": "", "operation": "", "value": "", "sortField": "", "sortOrder": ""})
        said: list[Any] = []

        def listed() -> bool:
            """Artemis answers with an error where a queue that it lists ends meanwhile."""
            with suppress(ValueError):
                said.extend(json.loads(self.ask("broker", "listQueues", wanted, 1, 200))["data"])
                return True
            return False

        eventually(listed)
        rows = said
        found = {row["name"]: int(row["messageCount"]) for row in rows if row["durable"] == "true"}
        return {name: count for name, count in found.items() if (count or name not in QUEUES) and name[:1] != "$"}

    def empty(self) -> None:
        """Remove what tests have sent, and the queues that they made."""
        while found := self.depths():
            for name in found:
                self.ask(f"queue.{name}", "removeAllMessages")
                if name not in QUEUES:
                    self.ask("broker", "destroyQueue", name)


@pytest.fixture(scope="module")
def broker() -> Iterator[Artemis]:
    texts: list[str] = []

    def text(site: Site) -> str:
        texts.append(file(site))
        return texts[-1]

    with running(ARTEMIS, text) as started, closing(Artemis(started.host, dict(started.ports), texts[-1])) as found:
        yield found


@pytest.fixture(autouse=True)
def emptied(broker: Artemis) -> None:
    broker.empty()


def frame(broker: Artemis, *frames: str) -> None:
    """Write frames of STOMP, and wait for the receipt of the last one."""
    host, _, port = broker.urls["stomp"].removeprefix("stomp://").rpartition(":")
    with socket.create_connection((host, int(port)), timeout=10) as wire:
        wire.sendall(b"CONNECT\naccept-version:1.2\nhost:x\n\n\0" + "".join(f"{each}\0" for each in frames).encode())
        received = b""
        while b"receipt-id" not in received and b"ERROR" not in received:
            received += wire.recv(65536)


FRAMES: Final = [
    ("destination:orders", {"ordersQueue": 1}),
    ("destination:orders\\c\\cordersQueue", {"ordersQueue": 1}),
    ("destination:multi", {"multi.1": 1, "multi.2": 1}),
    ("destination:both", {"both.one": 1, "both.all": 1}),
    ("destination:unknown", {}),  # an address without a queue is made: it is gone, and answered
    ("destination:ordersQueue\ndestination-type:ANYCAST", {}),  # likewise
    ("destination:multi\\c\\cmulti.1\ndestination-type:ANYCAST", {}),  # likewise
    ("destination:unknown2\ndestination-type:ANYCAST", {"unknown2": 1}),
    ("destination:unknown3\\c\\cits", {"its": 1}),
]


def test_what_a_frame_of_stomp_reaches(broker: Artemis) -> None:
    for headers, found in FRAMES:
        frame(broker, f"SEND\n{headers}\npersistent:true\nreceipt:1\n\nx")
        assert (headers, broker.depths()) == (headers, found)
        broker.empty()


def test_a_frame_that_says_anycast_makes_a_second_queue(broker: Artemis) -> None:
    sent = "SEND\ndestination:orders\ndestination-type:ANYCAST\npersistent:true\nreceipt:{}\n\nx"
    for number in range(4):
        frame(broker, sent.format(number))
    assert broker.depths() == {"orders": 2, "ordersQueue": 2}


SENDS: Final = [
    ("orders", {"ordersQueue": 4}),
    ("ordersQueue", {"ordersQueue": 4}),
    ("orders::ordersQueue", {"ordersQueue": 4}),
    ("named.many", {"many.1": 2, "many.2": 2}),
    ("named.many::many.1", {"many.1": 4}),
    ("multi::multi.2", {"multi.2": 4}),
    ("multi.1", {"multi.1": 4}),
    ("multi", {"multi.1": 4, "multi.2": 4}),  # Artemis sends what follows to multi::multi.2 to both, too
    ("both", {"both.one": 4}),
    ("each", {"each": 4}),
    ("same", {"same": 4}),
    ("empty", {"empty": 4}),
    ("new.queue", {"new.queue": 4}),
    ("new.address::its.queue", {"its.queue": 4}),
]


@pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.TRANSACTED])
def test_a_send_over_stomp_reaches_the_queues_of_the_address(broker: Artemis, mode: AckMode) -> None:
    with redelivery.connect(broker.urls["stomp"]) as connection, connection.session(mode) as session:
        for name, found in SENDS:
            producer = session.producer(name)
            for number in range(4):
                producer.send(f"m{number}")
            if session.transacted:
                session.commit()
            assert (name, broker.depths()) == (name, found)
            broker.empty()


CONSUMED: Final = ("orders", "ordersQueue", "orders::ordersQueue", "multi::multi.1", "multi.1", "both", "each", "new")


def test_a_consumer_over_stomp_gets_what_was_sent_before(broker: Artemis) -> None:
    with redelivery.connect(broker.urls["stomp"]) as connection, connection.session() as session:
        for name in CONSUMED:
            session.producer(name).send("before")
            with session.consumer(name) as consumer:
                message = consumer.receive(timeout=10)
            assert message is not None, name
            assert message.body == "before"
        assert broker.depths() == {"new": 0}


@pytest.mark.parametrize("name", ["named.many", "multi"])
def test_a_consumer_of_an_address_of_several_queues_must_name_one(broker: Artemis, name: str) -> None:
    with (
        redelivery.connect(broker.urls["stomp"]) as connection,
        connection.session() as session,
        pytest.raises(InvalidDestinationError, match=f"consume one of them: {name}::"),
    ):
        session.consumer(name)
    assert broker.depths() == {}


def fail(connection: Connection, name: str, *, to: str | None = None) -> None:
    """A message that fails for good."""
    with connection.session(AckMode.TRANSACTED) as session:
        session.producer(to or name).send("poison", properties={"n": "1"})
        session.commit()
        consumer = session.consumer(name)
        assert consumer.receive(timeout=10) is not None
        session.rollback()
        while consumer.receive(timeout=0.1) is not None:
            session.rollback()


@pytest.mark.parametrize("url", ["stomp", "amqp"])
def test_copies_go_to_the_queue_of_the_address_and_the_console_brings_them_home(broker: Artemis, url: str) -> None:
    for dead in ("dead", "deadQueue") if url == "stomp" else ("dead",):
        with redelivery.connect(
            broker.urls[url], redelivery_policy=AT_ONCE, dead_letter_strategy=SharedDeadLetterStrategy(dead)
        ) as connection:
            for name in ("orders::ordersQueue", "same"):
                fail(connection, name, to=name.partition("::")[0])
        assert broker.depths() == {"deadQueue": 2}
        broker.ask("queue.deadQueue", "retryMessages")
        eventually(lambda: broker.depths() == {"ordersQueue": 1, "same": 1})
        for name in ("ordersQueue", "same"):
            broker.ask(f"queue.{name}", "removeAllMessages")


@pytest.mark.parametrize("url", ["stomp", "amqp"])
def test_a_client_that_does_what_the_file_says_writes_where_the_broker_would(broker: Artemis, url: str) -> None:
    with redelivery.connect(broker.urls[url], policies=broker.policies) as connection:
        for _ in range(4):
            fail(connection, "orders::ordersQueue", to="orders")
        assert broker.depths() == {"deadQueue": 4}
    broker.ask("queue.deadQueue", "retryMessages")
    eventually(lambda: broker.depths() == {"ordersQueue": 4})


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


def test_who_may_not_ask_the_management_gets_one_warning(
    redelivery_artemis: Any, caplog: pytest.LogCaptureFixture
) -> None:
    queues = [f"allowed.addresses.{uuid4().hex}" for _ in range(2)]
    url = redelivery_artemis.stomp_url.replace("://", "://restricted:restricted@")
    with redelivery.connect(url) as connection, connection.session() as session:
        for queue in queues:
            session.producer(queue).send("x")
            assert session.consumer(queue).receive(timeout=10) is not None
    assert sum("activemq.management (permission `manage`)" in each.message for each in caplog.records) == 1
