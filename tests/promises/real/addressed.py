"""A real Artemis whose addresses have queues of other names, by its own file, and what is left in them."""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from typing import Any, Final

import pytest
from tests.client.shell import eventually
from tests.differential.files import text_of
from tests.promises.real.started import setting

from redelivery import AckMode, Connection, RedeliveryPolicy
from redelivery.policies.brokers.formats import read_content
from redelivery.testing.brokers.spec import Site

pytest.importorskip("proton")
from proton import Message, ProtonException
from proton.utils import BlockingConnection

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
    + setting("closed.#", auto_create_queues="false", auto_create_addresses="false")
)
ADDRESSES: Final = """
<address name="dead"><anycast><queue name="deadQueue"/></anycast></address>
<address name="late"><anycast><queue name="lateQueue"/></anycast></address>
<address name="orders"><anycast><queue name="ordersQueue"/></anycast></address>
<address name="named.many"><anycast><queue name="many.1"/><queue name="many.2"/></anycast></address>
<address name="multi"><multicast><queue name="multi.1"/><queue name="multi.2"/></multicast></address>
<address name="lost"><multicast><queue name="lost.1"/></multicast></address>
<address name="jms.queue.orders"><anycast><queue name="jms.queue.orders"/></anycast></address>
<address name="jms.queue.Lost"><anycast><queue name="jms.queue.Lost"/></anycast></address>
<address name="both"><anycast><queue name="both.one"/></anycast>
<multicast><queue name="both.all"/></multicast></address>
<address name="empty"><anycast/></address>
<address name="same"><anycast><queue name="same"/></anycast></address>
<address name="each"><multicast><queue name="each"/></multicast></address>
<address name="closed.orders"><anycast><queue name="closed.its"/></anycast></address>
<address name="closed.same"><anycast><queue name="closed.same"/></anycast></address>
<address name="closed.each"><multicast><queue name="closed.each"/></multicast></address>
<address name="closed.empty"><anycast/></address>
<address name="bare.orders"><anycast><queue name="bare.its"/></anycast></address>
<address name="bare.same"><anycast><queue name="bare.same"/></anycast></address>
<address name="bare.sent.orders"><anycast><queue name="bare.sent.its"/></anycast></address>
<address name="bare.sent.same"><anycast><queue name="bare.sent.same"/></anycast></address>
<address name="bare.each"><multicast><queue name="bare.each"/></multicast></address>
"""
QUEUES: Final = {
    *("deadQueue", "lateQueue", "ordersQueue", "many.1", "many.2", "multi.1", "multi.2", "both.one", "both.all"),
    *("bare.sent.its", "bare.sent.same", "lost.1", "jms.queue.orders", "jms.queue.Lost"),
    *("same", "each", "closed.its", "closed.same", "closed.each", "bare.its", "bare.same", "bare.each"),
}
# Of the user `restricted`, who may ask the management nothing: what he may do, by address.
PERMISSIONS: Final = {
    "#": {"createDurableQueue", "createNonDurableQueue", "createAddress", "consume", "send"},
    "bare.#": {"consume", "send"},
    "bare.sent.#": {"send"},
}
AT_ONCE: Final = RedeliveryPolicy(maximum_redeliveries=0)


def security() -> str:
    every = [*PERMISSIONS["#"], "deleteDurableQueue", "deleteNonDurableQueue", "deleteAddress", "browse", "manage"]
    return "".join(
        f'<security-setting match="{match}">'
        + "".join(
            f'<permission type="{each}" roles="everything{",restricted" if each in allowed else ""}"/>'
            for each in every
        )
        + "</security-setting>"
        for match, allowed in PERMISSIONS.items()
    )


def file(site: Site) -> str:
    usual = text_of("artemis", site.host, site.ports)
    text = usual.replace("</address-settings>", f"{SETTINGS}</address-settings>")
    text = text.replace(
        "<security-enabled>false</security-enabled>", f"<security-settings>{security()}</security-settings>"
    )
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
        """The broker may have closed it meanwhile: nobody sends its heartbeats between two questions."""
        self._connection.timeout = 2
        with suppress(ProtonException):
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


def frame(broker: Artemis, *frames: str, user: str = "") -> str:
    """What is said to frames of STOMP, until the receipt of the last one."""
    host, _, port = broker.urls["stomp"].removeprefix("stomp://").rpartition(":")
    with socket.create_connection((host, int(port)), timeout=10) as wire:
        login = f"login:{user}\npasscode:{user}\n" if user else ""
        before = f"CONNECT\naccept-version:1.2\nhost:x\n{login}\n\0"
        wire.sendall((before + "".join(f"{each}\0" for each in frames)).encode())
        received = b""
        while b"receipt-id" not in received and b"ERROR" not in received:
            received += wire.recv(65536)
    return received.decode()


def holds(broker: Artemis, name: str, found: dict[str, int]) -> None:
    """Check what a send to that name has left; a busy Artemis counts what it has confirmed a little later."""
    with suppress(AssertionError):
        eventually(lambda: broker.depths() == found, within=30)
    seen = broker.depths()
    assert seen == found, f"{name}: {seen}, and not {found}"


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


def restricted(broker: Artemis) -> str:
    """The URL of a user who may not ask the management."""
    return broker.urls["stomp"].replace("://", "://restricted:restricted@")
