"""Artemis' management by Jolokia, asked of a real one, and the commands that look into queues by it over STOMP."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from tests.client.shell import eventually
from tests.run.commands import CliRunner, Result

import redelivery
from redelivery import (
    ConnectError,
    InvalidDestinationError,
    JMSError,
    Message,
    MessageFormatError,
    ProtocolError,
    Queue,
    SecurityError,
    Topic,
    UnsupportedError,
)
from redelivery.cli.app import app
from redelivery.operate.management.artemis import ArtemisManagement
from redelivery.operate.management.interface import ManagedQueue
from redelivery.operate.management.opening import management_of
from redelivery.testing.brokers.real import RealBroker

HEADERS = (
    *("message_id", "destination", "reply_to", "correlation_id", "timestamp", "priority", "persistent", "type"),
    *("group_id", "expiration", "body", "raw_body", "dead_letter", "delivery_count"),
)
POLICY = "RedeliveryPolicy {destination = null, collisionAvoidanceFactor = 0.15, maximumRedeliveries = 6, " + "x" * 300
CAUSE = f"Delivery[1] exceeds redelivery policy limit:{POLICY}" + "}, cause:ValueError: no "


class Site:
    """The broker over STOMP, its management beside it, and commands."""

    def __init__(self, broker: RealBroker) -> None:
        self.broker = broker
        self.http = broker.http_url.replace("//", "//admin:admin@")
        self.url = broker.stomp_url
        self.connection = redelivery.connect(self.url, management=self.http)
        found = management_of(self.connection)
        assert isinstance(found, ArtemisManagement)
        self.management = found
        self.queue = f"or\"ders*?=ü:#1\\'{uuid4().hex[:8]}"

    def send(self, *bodies: Any, queue: str = "", **how: Any) -> None:
        with self.connection.session() as session:
            for each in bodies:
                session.producer(Queue(queue or self.queue)).send(each, **how)

    def fail(self, *names: str) -> None:
        """Put letters on the queue, as this library's copies are."""
        for name in names:
            said = {"originalDestination": f"queue://{self.queue}.back", "dlqDeliveryFailureCause": CAUSE + name}
            self.send(f"order of {name}", properties=said)

    def received(self, queue: str = "") -> list[Message]:
        found: list[Message] = []
        with self.connection.session("client") as session:
            consumer = session.consumer(Queue(queue or self.queue))
            while (message := consumer.receive(timeout=0.2 if found else 1)) is not None:
                found.append(message)
            session.acknowledge()
        return found

    def run(self, *arguments: str, code: int = 0, management: str | None = "") -> Result:
        """A command, and the exit code that it must have; ``management``: "": the right one; None: none."""
        environment = {"REDELIVERY_URL": self.url}
        if management is not None:
            environment["REDELIVERY_MANAGEMENT"] = management or self.http
        done = CliRunner(env=environment).invoke(app, arguments)
        assert done.exit_code == code, (done.output, done.exception)
        return done


@pytest.fixture
def site(redelivery_artemis: RealBroker) -> Iterator[Site]:
    made = Site(redelivery_artemis)
    yield made
    made.connection.close()


def test_queues_are_listed_as_they_are(site: Site) -> None:
    site.send("a", "b")
    found = site.management.queue(site.queue)
    assert found is not None
    assert (found.name, found.address, found.kind) == (site.queue, site.queue, "anycast")
    assert (found.durable, found.auto_delete) == (True, False)
    assert (found.ready, found.unacknowledged, found.consumers) == (2, 0, 0)
    assert found.settings["deadLetterAddress"] == "DLQ"
    assert site.queue in [each.name for each in site.management.queues()]
    assert site.management.queue(f"{site.queue}::{site.queue}") is not None
    assert site.management.queue("other::" + site.queue) is None
    assert site.management.queue(site.queue[:-1]) is None
    assert not site.management.cost(found).says
    assert site.management.name.startswith("ActiveMQ Artemis 2.")
    with site.connection.session("client") as session:
        consumer = session.consumer(Queue(site.queue))
        assert consumer.receive(timeout=5) is not None
        found = site.management.queue(site.queue)
        assert found is not None
        assert (found.consumers, found.messages) == (1, 2)
    assert len(site.received()) == 2


def test_a_look_shows_what_would_be_received_in_its_order_and_takes_nothing(site: Site) -> None:
    site.send("the moon", properties={"tenant": "eu", "long": "y" * 500}, correlation_id="c/1", priority=7)
    site.send("x" * 256, "zwölf", None, b"\x00\xff\\", b"", reply_to="queue://back", group_id="g", persistent=False)
    site.send("two\nlines, + 3 more", type="order", ttl=900)
    looks = [list(site.management.browse(site.queue)) for _ in range(2)]
    assert [each.body for each in site.management.browse(site.queue, 2)] == ["the moon", "x" * 256]
    received = site.received()
    assert len(received) == 7
    for seen in looks:
        for name in (*HEADERS, "properties"):
            assert [getattr(each, name) for each in seen] == [getattr(each, name) for each in received], name
    assert list(site.management.browse(site.queue)) == []


def test_what_came_over_amqp_has_its_types(site: Site) -> None:
    pytest.importorskip("proton", reason="AMQP is missing")
    queue = "o" + uuid4().hex
    with redelivery.connect(site.broker.amqp_url) as connection, connection.session() as session:
        producer = session.producer(Queue(queue))
        said = {"n": 5, "new": True, "f": 1.5, "t": "eu", "long": "y" * 999}
        producer.send("zwölf", properties=said, correlation_id="c", reply_to=Queue("back"), priority=7)
        producer.send(b"\x00\xff\\x41}", type="order", group_id="g")
        producer.send(None)
        producer.send({"a": 1})
    seen = list(site.management.browse(queue))
    received = site.received(queue)
    assert seen[0].properties == said
    for name in HEADERS:
        assert [getattr(each, name) for each in seen[:3]] == [getattr(each, name) for each in received[:3]], name
    assert seen[3].message_id == received[3].message_id
    with pytest.raises(MessageFormatError, match="is of a kind that the broker's management does not show"):
        _ = seen[3].body


def test_a_body_that_is_not_shown_whole_is_no_body(site: Site) -> None:
    bodies = ("x" * 300, b"y" * 300, "z" * 200_000)
    site.send(*bodies)
    seen = list(site.management.browse(site.queue))
    for each in seen:
        with pytest.raises(MessageFormatError, match=r"set management-message-attribute-size-limit to -1 .* amqp://"):
            _ = each.body
    exported = [json.loads(line) for line in site.run("dlq", "export", site.queue).stdout.splitlines()]
    assert all("management-message-attribute-size-limit" in each["unreadable"] for each in exported)
    assert [each.body for each in site.received()] == list(bodies)


def test_properties_that_are_shown_cut_are_whole_or_refused(site: Site) -> None:
    """The broker counts messages by their whole values; who cannot be told from another one is not guessed."""
    causes = [f"{'c' * 400}{number:03}" for number in range(200)]
    with site.connection.session() as session:
        producer = session.producer(Queue(site.queue))
        for each in causes:  # several within a millisecond
            producer.send("same", properties={"cause": each}, persistent=False)
        producer.send("confirmed, and so are those before it")
    with pytest.raises(UnsupportedError, match=r"of the property cause of message .* the first 256 char"):
        list(site.management.browse(site.queue))
    said = site.run("dlq", "groups", site.queue, code=1).stderr
    assert "set management-message-attribute-size-limit to -1" in said
    assert len(site.received()) == 201
    with site.connection.session("transacted") as session:
        producer = session.producer(Queue(site.queue))
        for number, each in enumerate(causes):
            producer.send("same", properties={"cause": each, "of": f"it's {number}", "not": "a name"})
        session.commit()
    assert [each.properties["cause"] for each in site.management.browse(site.queue)] == causes
    site.send("the broker counts the first 200 only", properties={"cause": "d" * 400})
    assert len(list(site.management.browse(site.queue, 200))) == 200
    with pytest.raises(UnsupportedError, match="of the property cause of message"):
        list(site.management.browse(site.queue))
    site.send("and of the 202nd nothing is cut")
    assert len(site.received()) == 202


def test_letters_are_seen_by_each_command_and_stay(site: Site) -> None:
    site.fail("chair", "chair", "table")
    groups = json.loads((done := site.run("dlq", "groups", site.queue, "--json")).stdout)
    assert [(each["count"], each["origin"]) for each in groups] == [(n, f"queue://{site.queue}.back") for n in (2, 1)]
    assert done.stderr == ""
    listed = [json.loads(line) for line in site.run("dlq", "ls", site.queue, "--json").stdout.splitlines()]
    assert [each["body"] for each in listed] == ["order of chair", "order of chair", "order of table"]
    assert listed[0]["dead_letter"]["exception"] == "ValueError: no chair"
    assert "body: order of table" in site.run("dlq", "show", site.queue, listed[2]["message_id"]).stdout
    exported = site.run("dlq", "export", site.queue, "--limit", "2").stdout.splitlines()
    assert [json.loads(each)["body"] for each in exported] == ["order of chair", "order of chair"]
    assert len(site.run("browse", site.queue).stdout.splitlines()) == 3
    group = groups[0]["fingerprint"]
    dry = site.run("dlq", "replay", site.queue, "--group", group, "--dry-run").stdout
    assert dry.startswith("would replay 2 le")
    site.run("dlq", "replay", site.queue, "--group", group, "--yes")
    assert [each.body for each in site.received(site.queue + ".back")] == ["order of chair", "order of chair"]
    assert [each.body for each in site.received()] == ["order of table"]


def test_what_the_broker_dead_lettered_says_so(site: Site) -> None:
    own = uuid4().hex
    site.send("late", ttl=0.05, properties={"own": own, "long": "y" * 300})
    time.sleep(0.1)
    assert site.received() == []  # by which the broker notices
    until = time.monotonic() + 5
    while not (seen := [each for each in site.management.browse("ExpiryQueue") if each.properties.get("own") == own]):
        assert time.monotonic() < until
    (late,) = seen
    with site.connection.session() as session:
        got = session.consumer(Queue("ExpiryQueue"), selector=f"own = '{own}'").receive(timeout=5)
    assert got is not None
    assert late.dead_letter is not None
    assert (late.dead_letter.origin, late.dead_letter.expired) == (Queue(site.queue), True)
    for name in HEADERS:
        assert getattr(late, name) == getattr(got, name), name


def test_a_subscription_of_a_topic_is_looked_into(site: Site) -> None:
    topic, name = Topic("news" + uuid4().hex), "s" + uuid4().hex
    with redelivery.connect(site.url, client_id=name, management=site.http) as connection:
        with connection.session() as session:
            session.durable_consumer(topic, "sub").close()
            session.producer(topic).send("hello")
        management = management_of(connection)
        assert management is not None
        found: list[ManagedQueue] = []

        def is_listed() -> bool:
            found[:] = [each for each in management.queues() if each.address == topic.name]
            return [(each.kind, each.ready, each.consumers) for each in found] == [("multicast", 1, 0)]

        eventually(is_listed)
        (queue,) = found
        for asked in (queue.name, f"{topic.name}::{queue.name}"):
            assert [each.body for each in management.browse(asked)] == ["hello"]
        with connection.session() as session:
            session.unsubscribe("sub")
        eventually(lambda: management.queue(queue.name) is None)


def test_a_canary_that_nobody_takes_stops_it(site: Site) -> None:
    site.fail("a", "b")
    waits = ("--canary", "1", "--canary-wait", "0.5", "--yes")
    assert "nobody took 1 of 1 within 0.5 s" in site.run("dlq", "replay", site.queue, *waits, code=1).stderr
    assert [each.body for each in site.received(site.queue + ".back")] == ["order of a"]
    assert [each.body for each in site.received()] == ["order of b"]


def test_without_the_option_each_command_names_both_ways(site: Site) -> None:
    for words in (("browse",), ("dlq", "groups"), ("dlq", "ls")):
        said = site.run(*words, site.queue, code=1, management=None).stderr
        assert "connect by amqp://, which has a browser, or name its management, --management http://" in said
        assert len(said.splitlines()) == 1


def test_the_doctor_sees_queues_and_settings_over_stomp(site: Site) -> None:
    site.fail("chair")
    done = CliRunner(env={"REDELIVERY_URL": site.url, "REDELIVERY_MANAGEMENT": site.http}).invoke(
        app, ["doctor", "--queue", site.queue, "--json"]
    )
    report = json.loads(done.stdout)
    found = {each["check"]: each["what"] for each in report["findings"] if site.queue in each["what"]}
    assert "(of 10)" in found["prefetch"]
    assert found["dead-letters"].startswith("1 dead letter is in")
    # other tests may have left more addresses on the broker than are asked for
    assert [each for each in report["unchecked"] if "clock" not in each and "by --queue" not in each] == []
    assert len(site.received()) == 1


def test_what_is_wrong_is_said_in_a_line(site: Site) -> None:
    host = f"127.0.0.1:{urlsplit(site.http).port}"
    stomp, amqp = urlsplit(site.url).port, urlsplit(site.broker.amqp_url).port
    site.send("a")
    wrong: tuple[tuple[str, type[JMSError], str], ...] = (
        (f"http://admin:wrong@{host}", SecurityError, "403|429"),
        (f"http://restricted:restricted@{host}", SecurityError, "403|429"),
        (f"http://admin:admin@127.0.0.1:{amqp}", JMSError, str(amqp)),
        (f"http://admin:admin@127.0.0.1:{stomp}", JMSError, str(stomp)),
        ("http://admin:admin@127.0.0.1:1", ConnectError, "there is no management at http://admin:****@127.0.0.1:1"),
        (f"http://admin:admin@{host}/nowhere", ProtocolError, "nowhere"),
    )
    for url, kind, words in wrong:
        with redelivery.connect(site.url, management=url, request_timeout=2) as connection:
            management = management_of(connection)
            assert management is not None
            with pytest.raises(kind, match=words.replace("*", r"\*")) as error:
                list(management.queues())
            assert "wrong" not in str(error.value)
        if kind is not JMSError:
            assert len(site.run("browse", site.queue, code=1, management=url).stderr.splitlines()) == 1
    for path in ("/console", "/console/", "/console/jolokia"):
        assert "a" in site.run("browse", site.queue, management=site.http + path).stdout
    with pytest.raises(InvalidDestinationError, match="there is no such queue"):
        list(site.management.browse(site.queue + "?"))
    assert "has no such queue" in site.run("browse", "no*" + site.queue, code=1).stderr
    site.received()
