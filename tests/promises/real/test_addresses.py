"""Artemis' addresses whose queues have other names: what a SEND reaches, and no queue that nobody reads."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest
from tests.cli.brokers import run
from tests.client.shell import eventually
from tests.differential.files import text_of
from tests.promises.real.started import ARTEMIS, running, setting

import redelivery
from redelivery import (
    AckMode,
    Connection,
    DeadLetterStrategyMap,
    IndividualDeadLetterStrategy,
    InvalidDestinationError,
    JMSError,
    Queue,
    RedeliveryPolicy,
    SecurityError,
    SharedDeadLetterStrategy,
)
from redelivery.policies.brokers.formats import read_content
from redelivery.testing.brokers.spec import Site

pytest.importorskip("proton")
from proton import Message, symbol
from proton.reactor import SenderOption
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
        holds(broker, headers, found)
        broker.empty()


def test_a_frame_that_says_anycast_makes_a_second_queue(broker: Artemis) -> None:
    sent = "SEND\ndestination:orders\ndestination-type:ANYCAST\npersistent:true\nreceipt:{}\n\nx"
    for number in range(4):
        frame(broker, sent.format(number))
    holds(broker, "orders", {"orders": 2, "ordersQueue": 2})


def holds(broker: Artemis, name: str, found: dict[str, int]) -> None:
    """Check what a send to that name has left; a busy Artemis counts what it has confirmed a little later."""
    with suppress(AssertionError):
        eventually(lambda: broker.depths() == found)
    assert (name, broker.depths()) == (name, found)


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
            holds(broker, name, found)
            broker.empty()


LOST_OVER_AMQP: Final = ("ordersQueue", "lost", "lost::lost.1")


def test_what_a_link_of_amqp_confirms_and_loses(broker: Artemis) -> None:
    """What is sent to a queue's own name on another address, and to queues of a topic's kind."""
    for address in LOST_OVER_AMQP:
        connection = BlockingConnection(broker.urls["amqp"])
        with closing(connection):
            connection.create_sender(address, options=[OfAQueue()]).send(Message("x", durable=True))
        assert (address, broker.depths()) == (address, {})


class OfAQueue(SenderOption):  # type: ignore[misc]  # proton has no types
    """The target is a queue's."""

    def apply(self, sender: Any) -> None:
        sender.target.capabilities.put_object(symbol("queue"))


OVER_AMQP: Final = [*SENDS, ("each::each", {"each": 4})]


@pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.TRANSACTED])
@pytest.mark.parametrize("user", ["", "restricted"])
def test_a_send_over_amqp_reaches_the_queues_of_the_address(broker: Artemis, mode: AckMode, user: str) -> None:
    """Who may not ask the management has the file."""
    given: dict[str, Any] = {"policies": broker.policies} if user else {}
    url = broker.urls["amqp"].replace("://", f"://{user}:{user}@" if user else "://")
    with redelivery.connect(url, **given) as connection, connection.session(mode) as session:
        for name, found in OVER_AMQP:
            producer = session.producer(name)
            for number in range(4):
                producer.send(f"m{number}")
            if session.transacted:
                session.commit()
            holds(broker, name, found)
            broker.empty()


def test_a_send_over_amqp_makes_a_queue_beside_the_subscriptions_of_a_topic(broker: Artemis) -> None:
    with (
        redelivery.connect(broker.urls["amqp"]) as connection,
        connection.session() as session,
        session.consumer("topic://news.of.both"),
    ):
        session.producer("news.of.both").send("for the queue")
        message = session.consumer("news.of.both").receive(timeout=10)
        assert message is not None
        assert message.body == "for the queue"


def test_a_dead_letter_over_amqp_reaches_a_queue_by_its_own_name(broker: Artemis) -> None:
    for name, found in (("deadQueue", "deadQueue"), ("multi::multi.2", "multi.2")):
        letters = SharedDeadLetterStrategy(name)
        with redelivery.connect(
            broker.urls["amqp"], redelivery_policy=AT_ONCE, dead_letter_strategy=letters
        ) as connection:
            fail(connection, "same")
        holds(broker, name, {found: 1})
        broker.empty()


def test_who_may_not_ask_over_amqp_gets_one_warning(broker: Artemis, caplog: pytest.LogCaptureFixture) -> None:
    url = broker.urls["amqp"].replace("://", "://restricted:restricted@")
    with redelivery.connect(url) as connection:
        for name in ("same", "orders", "orders::ordersQueue"):
            with connection.session() as session:
                session.producer(name).send("x")
    holds(broker, "same, orders", {"same": 1, "ordersQueue": 2})
    assert sum("permission `manage`" in each.message for each in caplog.records) == 1


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


def restricted(broker: Artemis) -> str:
    """The URL of a user who may not ask the management."""
    return broker.urls["stomp"].replace("://", "://restricted:restricted@")


NOT_ASKED: Final[list[tuple[str, dict[str, int] | str]]] = [
    ("same", {"same": 4}),
    ("orders::ordersQueue", {"ordersQueue": 4}),
    ("multi::multi.2", {"multi.2": 4}),
    ("new.address2::its.queue2", {"its.queue2": 4}),
    # what may be there cannot be seen, and one that is made might get a part of the messages
    *((each, "sees no queue of that name") for each in ("orders", "named.many", "multi", "both", "empty", "new.name")),
    ("deadQueue", "sees no queue of that name"),
    # addresses that get no queues by their names
    ("closed.orders", {"closed.its": 4}),
    ("closed.same", {"closed.same": 4}),
    ("closed.each", {"closed.each": 4}),
    ("closed.orders::closed.its", {"closed.its": 4}),
    ("closed.new", "Destination does not exist"),
    # or not by this user, who may consume or not
    ("bare.same", {"bare.same": 4}),
    ("bare.each", {"bare.each": 4}),
    ("bare.orders::bare.its", {"bare.its": 4}),
    ("bare.orders", "CREATE_DURABLE_QUEUE.*policies="),
    ("bare.orders::no", "CREATE_DURABLE_QUEUE.*policies="),
    ("bare.new", "CREATE_ADDRESS.*policies="),
    ("bare.sent.same", {"bare.sent.same": 4}),
    ("bare.sent.orders", "CREATE_DURABLE_QUEUE.*policies="),
]


def test_a_send_of_who_may_not_ask_reaches_a_queue_that_is_there_or_is_refused(broker: Artemis) -> None:
    """And makes none of an address' own name beside those that it has."""
    with redelivery.connect(restricted(broker)) as connection, connection.session() as session:
        for name, found in NOT_ASKED:
            producer = session.producer(name)
            for number in range(4):
                if isinstance(found, str):
                    with pytest.raises(JMSError, match=found):
                        producer.send(f"m{number}")
                else:
                    producer.send(f"m{number}")
            holds(broker, name, {} if isinstance(found, str) else found)
            broker.empty()


BY_THE_FILE: Final = (
    "orders",
    "ordersQueue",
    "named.many",
    "multi::multi.2",
    "multi.1",
    "multi",
    "both",
    "each",
    "same",
)


def test_the_file_says_to_who_may_not_ask_which_queues_an_address_has(broker: Artemis) -> None:
    strategies = broker.policies.dead_letter_strategies
    for given in ({"policies": broker.policies}, {"dead_letter_strategies": strategies}):
        with redelivery.connect(restricted(broker), **given) as connection, connection.session() as session:
            for name, found in SENDS:
                if name in (*BY_THE_FILE, "new.queue"):
                    producer = session.producer(name)
                    for number in range(4):
                        producer.send(f"m{number}")
                    holds(broker, name, found)
                    broker.empty()
            with pytest.raises(InvalidDestinationError, match="consume one of them: multi::"):
                session.consumer("multi")


def test_a_consumer_of_who_may_not_ask_makes_no_queue_beside_those_of_the_address(broker: Artemis) -> None:
    with redelivery.connect(broker.urls["stomp"]) as connection, connection.session() as session:
        session.producer("orders").send("before")
    with redelivery.connect(restricted(broker)) as connection, connection.session() as session:
        for name in ("orders", "new.consumed", "bare.orders"):
            with pytest.raises(SecurityError, match="policies="):
                session.consumer(name)
        with session.consumer("orders::ordersQueue") as consumer:
            message = consumer.receive(timeout=10)
            assert message is not None
            assert message.body == "before"
    assert broker.depths() == {}


def test_a_dead_letter_of_who_may_not_ask_stays_where_no_queue_for_it_can_be_seen(
    broker: Artemis, caplog: pytest.LogCaptureFixture
) -> None:
    letters = SharedDeadLetterStrategy("dead")
    with (
        redelivery.connect(restricted(broker), redelivery_policy=AT_ONCE, dead_letter_strategy=letters) as connection,
        connection.session(AckMode.TRANSACTED) as session,
    ):
        session.producer("same").send("poison")
        session.commit()
        consumer = session.consumer("same")
        assert consumer.receive(timeout=10) is not None
        session.rollback()
        assert consumer.receive(timeout=0.2) is None
    holds(broker, "same", {"same": 1})
    assert any("not dead-lettered" in each.message and "policies=" in each.message for each in caplog.records)
    broker.empty()
    with redelivery.connect(restricted(broker), policies=broker.policies) as connection:
        fail(connection, "orders::ordersQueue", to="orders")
    holds(broker, "dead", {"deadQueue": 1})


DURABLE: Final = "subscription-type:MULTICAST\ndurable-subscription-name:x\n"
REFUSED: Final = [
    ("orders::", "", "AMQ229216"),  # who may make a queue there: one without a name is refused
    ("bare.orders::", "", "AMQ229213"),  # who may not
    ("closed.orders::", "", "AMQ339016"),  # where none is made
    ("same", DURABLE, "receipt-id"),  # a queue of that name
    ("orders", DURABLE, "AMQ339016"),  # there is none
    ("multi", DURABLE, "AMQ339016"),  # that of a topic wants a client id
]


def test_what_a_frame_of_stomp_is_refused_says_what_is_there(broker: Artemis) -> None:
    for name, headers, said in REFUSED:
        destination = name.replace(":", "\\c")
        subscribe = f"SUBSCRIBE\ndestination:{destination}\nid:1\nselector:1=0\nreceipt:1\n{headers}\n"
        assert said in frame(broker, subscribe, user="restricted"), name
    assert broker.depths() == {}


def test_where_the_broker_makes_no_queue_a_send_to_one_that_is_not_there_is_refused(broker: Artemis) -> None:
    """Artemis confirms it, and it is gone."""
    frame(broker, "SEND\ndestination:closed.orders\\c\\cno\npersistent:true\nreceipt:1\n\nx")
    with redelivery.connect(broker.urls["stomp"]) as connection, connection.session() as session:
        for name in ("closed.orders::no", "closed.empty", "closed.new"):
            with pytest.raises(InvalidDestinationError, match="what is sent would be lost"):
                session.producer(name).send("x")
        session.producer("closed.orders").send("x")
    holds(broker, "closed.orders", {"closed.its": 1})


def test_who_may_not_ask_the_management_gets_one_warning(
    redelivery_artemis: Any, caplog: pytest.LogCaptureFixture
) -> None:
    queues = [f"allowed.addresses.{uuid4().hex}" for _ in range(2)]
    with redelivery.connect(redelivery_artemis.stomp_url) as connection, connection.session() as session:
        for queue in queues:
            session.consumer(queue).close()
    url = redelivery_artemis.stomp_url.replace("://", "://restricted:restricted@")
    with redelivery.connect(url) as connection, connection.session() as session:
        for queue in queues:
            session.producer(queue).send("x")
            assert session.consumer(queue).receive(timeout=10) is not None
    assert sum("activemq.management (permission `manage`)" in each.message for each in caplog.records) == 1
