"""Looking into RabbitMQ's queues from the command line: by its management, over both protocols and on all versions."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from tests.conformance.foreign import Foreign
from tests.run.commands import CliRunner, Result
from tests.run.rabbitmq import SITES, ManagedSite, broker_of

import redelivery
from redelivery import BrokerDeadLetterStrategy, InvalidDestinationError, Queue, RedeliveryPolicy
from redelivery.cli.app import app
from redelivery.testing.brokers.real import RealBroker

CROSSWISE = SITES[:1] + SITES[-1:]  # each protocol and each version once
CAUSE = "Delivery[1] exceeds redelivery policy limit:RedeliveryPolicy, cause:ValueError: no "


class Site(ManagedSite):
    """With a queue, its dead letters, and commands."""

    def __init__(self, broker: RealBroker, protocol: str) -> None:
        super().__init__(broker, protocol)
        self.api, self.version = self.management.api, self.management.version
        end = "ü" if protocol == "stomp" or self.version >= (4,) else ""  # RabbitMQ 3 takes no such name over AMQP
        self.origin = f"or/ders.{uuid4().hex[:8]}%" + end
        self.letters = f"{self.origin}.DLQ"

    @property
    def counts(self) -> bool:
        """Whether a look at a quorum queue counts as a delivery."""
        return self.version < (4, 3)

    def make(self, kind: str, **arguments: Any) -> None:
        for name in (self.origin, self.letters):
            self.api.declare_queue(name, arguments={"x-queue-type": kind, **arguments})

    def fail(self, *names: str) -> None:
        """Put letters on the queue, as this library's copies are."""
        with self.connection.session() as session:
            for name in names:
                said = {"originalDestination": f"queue://{self.origin}", "dlqDeliveryFailureCause": CAUSE + name}
                session.producer(Queue(self.letters)).send(f"order of {name}", properties=said)

    def run(self, *arguments: str, code: int = 0, management: str | None = "", **options: Any) -> Result:
        """A command, and the exit code that it must have; ``management``: "": the right one; None: none."""
        environment = {"REDELIVERY_URL": self.url}
        if management is not None:
            environment["REDELIVERY_MANAGEMENT"] = management or self.http
        done = CliRunner(env=environment).invoke(app, arguments, **options)
        assert done.exit_code == code, (done.output, done.exception)
        return done

    def received(self, queue: str) -> list[tuple[Any, int]]:
        return [(each.body, each.delivery_count) for each in self.messages(queue)]

    def close(self) -> None:
        for each in (self.origin, self.letters):
            with suppress(InvalidDestinationError):
                self.api.delete_queue(each)
        self.connection.close()


@pytest.fixture(params=SITES)
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    made = Site(*broker_of(request))
    yield made
    made.close()


DRY_RUN = ("dlq", "replay", "--dry-run")
LOOKS = [("browse",), ("dlq", "groups"), ("dlq", "ls"), ("dlq", "show"), ("dlq", "export"), DRY_RUN]


@pytest.mark.parametrize("site", CROSSWISE, indirect=True)
def test_without_the_option_each_command_names_it(site: Site) -> None:
    site.fail("a")
    ways = [*LOOKS, ("dlq", "replay", "--group", "abc", "--yes"), ("dlq", "replay", "--canary", "1", "--yes")]
    for words in ways:
        done = site.run(*words, site.letters, code=1, management=None)
        assert "lets nobody look into a queue over" in done.stderr
        assert "--management http://guest:guest@host:15672" in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert [body for body, _ in site.received(site.letters)] == ["order of a"]


def test_letters_of_a_classic_queue_are_seen_and_stay(site: Site) -> None:
    site.fail("chair", "chair", "table")
    groups = json.loads((done := site.run("dlq", "groups", site.letters, "--json")).stdout)
    assert [(each["count"], each["origin"]) for each in groups] == [(n, f"queue://{site.origin}") for n in (2, 1)]
    assert "what is looked at is marked as redelivered" in done.stderr
    listed = [json.loads(line) for line in site.run("dlq", "ls", site.letters, "--json").stdout.splitlines()]
    assert [each["body"] for each in listed] == ["order of chair", "order of chair", "order of table"]
    assert listed[0]["dead_letter"]["exception"] == "ValueError: no chair"
    shown = site.run("dlq", "show", site.letters, listed[2]["message_id"]).stdout
    assert "body: order of table" in shown
    exported = site.run("dlq", "export", site.letters, "--limit", "2").stdout.splitlines()
    assert [json.loads(each)["body"] for each in exported] == ["order of chair", "order of chair"]
    browsed = site.run("browse", site.letters, "--where", "dlqDeliveryFailureCause LIKE '%table'").stdout
    assert browsed.splitlines()[0].endswith("order of table")
    assert len(browsed.splitlines()) == 1
    group = groups[0]["fingerprint"]
    assert site.run("dlq", "replay", site.letters, "--group", group, "--dry-run").stdout.startswith("would replay 2 le")
    site.run("dlq", "replay", site.letters, "--where", "dlqDeliveryFailureCause LIKE '%table'", "--yes")
    assert [body for body, _ in site.received(site.origin)] == ["order of table"]
    assert [body for body, _ in site.received(site.letters)] == ["order of chair", "order of chair"]


def test_a_look_that_counts_is_asked_for_and_a_command_needs_one(site: Site) -> None:
    site.make("quorum", **{"x-delivery-limit": 9})
    site.fail("a", "b", "c")
    looks = 0
    for words in LOOKS:
        if site.counts:
            done = site.run(*words, site.letters, code=2)
            assert "counts as a delivery of every message that it shows" in done.stderr
            assert "delivery 10 that is released deletes it, as there is no dead-letter exchange" in done.stderr
            assert "add --yes to look all the same" in done.stderr
        else:
            assert site.run(*words, site.letters).stderr == ""
            looks += 1
        if words[0] == "browse" or "--dry-run" not in words:
            site.run(*words, site.letters, "--yes")
            looks += 1
    if site.counts:
        assert site.api.get(site.letters, 99)[0]["properties"]["headers"]["x-delivery-count"] == looks
    assert [body for body, _ in site.received(site.letters)] == ["order of a", "order of b", "order of c"]


@pytest.mark.parametrize("site", CROSSWISE, indirect=True)
def test_a_replay_of_all_looks_only_where_that_is_free(site: Site) -> None:
    site.make("quorum", **{"x-delivery-limit": 9})
    site.fail("a", "b")
    done = site.run("dlq", "replay", site.letters, "--yes")
    assert "counts as a delivery" not in done.stderr
    assert done.stdout == "2 replayed\n"
    assert [body for body, _ in site.received(site.origin)] == ["order of a", "order of b"]


def test_what_the_broker_dead_lettered_says_so(site: Site) -> None:
    """Also on RabbitMQ 3 over AMQP, which shows nothing of it to a consumer; and with the time, also over STOMP."""
    site.api.declare_queue(site.letters)
    dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": site.letters}
    site.api.declare_queue(site.origin, arguments=dead)
    with (
        redelivery.connect(
            site.url,
            redelivery_policy=RedeliveryPolicy(maximum_redeliveries=0),
            dead_letter_strategy=BrokerDeadLetterStrategy(configured=True),
        ) as connection,
        connection.session("client") as session,
    ):
        session.producer(Queue(site.origin)).send("the moon")
        consumer = session.consumer(Queue(site.origin))
        assert consumer.receive(timeout=5) is not None
        session.recover(LookupError("no such article"))
        assert consumer.receive(timeout=0.3) is None
    (listed,) = site.run("dlq", "ls", site.letters, "--json").stdout.splitlines()
    letter = json.loads(listed)["dead_letter"]
    assert (letter["origin"], letter["cause"], letter["expired"]) == (f"queue://{site.origin}", "rejected", False)
    assert letter["at"] is not None
    site.run("dlq", "replay", site.letters, "--yes")
    assert [body for body, _ in site.received(site.origin)] == ["the moon"]


@pytest.mark.parametrize(
    ("site", "kind"), list(zip(SITES, ("classic", "quorum", "quorum", "classic"), strict=True)), indirect=["site"]
)
def test_a_canary_that_is_handled_lets_the_rest_go(site: Site, kind: str) -> None:
    site.make(kind)
    site.fail("a", "b", "c")
    taken: list[Any] = []
    done = threading.Event()

    def work() -> None:
        with redelivery.connect(site.url) as connection, connection.session() as session:
            consumer = session.consumer(Queue(site.origin))
            while not done.is_set():
                if (message := consumer.receive(timeout=0.1)) is not None:
                    taken.append(message.body)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        said = site.run("dlq", "replay", site.letters, "--canary", "1", "--canary-wait", "1.5", "--yes").stdout
        assert said.endswith("replayed\n")
        while len(taken) < 3:
            assert not done.wait(0.05)
    finally:
        done.set()
        worker.join(10)
    assert sorted(taken) == ["order of a", "order of b", "order of c"]
    assert site.received(site.letters) == []


def test_a_canary_that_nobody_takes_or_that_is_back_stops_it(site: Site) -> None:
    site.make("classic")
    site.fail("a", "b")
    waits = ("--canary", "1", "--canary-wait", "0.5", "--yes")
    said = site.run("dlq", "replay", site.letters, *waits, code=1).stderr
    assert "nobody took 1 of 1 within 0.5 s" in said
    assert [body for body, _ in site.received(site.origin)] == ["order of a"]
    said = site.run("dlq", "replay", site.letters, "--to", site.letters, *waits, code=1).stderr
    assert "1 of 1 came back" in said
    assert sorted(body for body, _ in site.received(site.letters)) == ["order of b"]


def test_what_is_wrong_is_said_in_a_line(site: Site) -> None:
    site.api.declare_queue(site.letters, arguments={"x-queue-type": "stream"})
    assert "is a stream, and a stream can only be consumed" in site.run("browse", site.letters, code=1).stderr
    assert "has no such queue" in site.run("browse", site.origin, code=1).stderr
    assert "a topic holds no messages" in site.run("browse", "topic://news", code=2).stderr
    host = f"127.0.0.1:{urlsplit(site.http).port}"
    amqp = urlsplit(site.broker.amqp_url).port
    wrong = (
        (f"http://guest:wrong@{host}", 1, "(401)"),
        (f"http://restricted:restricted@{host}", 1, "(401): give this user one of the tags"),
        (f"http://guest:guest@127.0.0.1:{amqp}", 1, "its management has a port of its own"),
        ("http://guest:guest@127.0.0.1:1", 1, "there is no management at http://guest:****@127.0.0.1:1"),
        (f"https://guest:guest@{host}", 1, "no TLS"),
        (f"amqp://guest:guest@{host}", 2, "is the broker's messaging, not its management"),
        (f"http://guest:guest@{host}/nowhere", 1, "is its path /nowhere right?"),
    )
    for url, code, words in wrong:
        said = site.run("browse", site.letters, code=code, management=url).stderr
        assert words in said
        assert "wrong" not in said
        assert len(said.splitlines()) == 1


@pytest.mark.parametrize("site", SITES[:2], indirect=True)
def test_at_a_terminal_it_asks(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.make("quorum", **{"x-delivery-limit": 9})
    site.fail("a")
    monkeypatch.setattr("redelivery.cli.parts.looking.at_terminal", lambda: True)
    done = site.run("browse", site.letters, code=1, input="n\n")
    assert "counts as a delivery of every message that it shows" in done.stderr
    assert "Look all the same? [y/N]" in done.stderr
    assert "order of a" not in done.stdout
    assert "order of a" in site.run("browse", site.letters, input="y\n").stdout
    assert site.received(site.letters) == [("order of a", 2)]


def test_an_edit_and_a_replay_are_proved_and_undone(site: Site, receipts: Path) -> None:
    site.make("classic")
    site.fail("ada", "bob", "cid")
    where = "dlqDeliveryFailureCause LIKE '%no bob'"
    site.run("dlq", "edit", site.letters, "--where", where, "--set", "body=x", "--yes")
    site.run("dlq", "replay", site.letters, "--yes")
    for file in sorted(receipts.iterdir(), key=lambda each: "edit" not in each.name):
        count = 1 if "edit" in file.name else 2
        proof = json.loads(site.run("dlq", "verify", str(file), "--json").stdout)
        assert (proof["letters"], proof["unread"], proof["holds"]) == (count, count, True)
        assert site.run("dlq", "undo", str(file)).stdout == f"{count} put back\n"
    letters = sorted(body for body, _ in site.received(site.letters))
    assert letters == [f"order of {name}" for name in ("ada", "bob", "cid")]


@pytest.mark.parametrize("site", CROSSWISE, indirect=True)
def test_a_proof_asks_before_it_looks_into_a_target_where_that_counts(site: Site, receipts: Path) -> None:
    site.api.declare_queue(site.origin, arguments={"x-queue-type": "quorum", "x-delivery-limit": 9})
    site.fail("a", "b")
    site.run("dlq", "replay", site.letters, "--yes")
    (file,) = receipts.iterdir()
    for command in ("verify", "undo", "resume"):
        if site.counts:
            done = site.run("dlq", command, str(file), code=2)
            assert f"queue://{site.origin}: " in done.stderr
            assert "counts as a delivery of every message that it shows" in done.stderr
            assert "add --yes to look all the same" in done.stderr
    if site.counts:
        assert not site.api.get(site.origin, 99)[0]["properties"]["headers"].get("x-delivery-count")
    proof = json.loads(site.run("dlq", "verify", str(file), "--json", "--yes").stdout)
    assert (proof["unread"], proof["holds"]) == (2, True)
    site.api.delete_queue(site.origin)
    proof = json.loads(site.run("dlq", "verify", str(file), "--json", "--yes").stdout)
    assert (proof["gone"], proof["holds"]) == (2, True)


@pytest.mark.parametrize("site", [each for each in SITES if each.startswith("stomp")], indirect=True)
def test_letters_without_an_id_and_bodies_that_cannot_be_read_are_put_back(site: Site, receipts: Path) -> None:
    site.letters = f"odd.{uuid4().hex}"
    site.fail("chair")
    Foreign("stomp", site.broker.name, site.url).send(site.letters, b"\nno \xff text", b"\nthe same", b"\nthe same")
    site.run("dlq", "purge", site.letters, "--keep", "--yes")
    (file,) = receipts.iterdir()
    verify = ("dlq", "verify", str(file), "--json")
    said = json.loads(site.run(*verify).stdout)
    assert (said["letters"], said["gone"], said["left"]) == (4, 4, 0)
    assert site.run("dlq", "undo", str(file)).stdout == "4 put back\n"
    said = json.loads(site.run(*verify).stdout)
    assert (said["letters"], said["undone"], said["left"]) == (4, 4, 0)
    assert [each.raw_body for each in site.messages(site.letters)] == [
        b"order of chair",
        b"no \xff text",
        b"the same",
        b"the same",
    ]


@pytest.mark.parametrize("site", [each for each in SITES if each.startswith("amqp")], indirect=True)
def test_without_its_management_a_run_is_gone_on_with(site: Site, receipts: Path) -> None:
    site.fail(*"abcdef")
    with pytest.MonkeyPatch.context() as patched:
        acknowledge, left = redelivery.Message.acknowledge, iter((False, False, True))

        def acknowledged(message: redelivery.Message) -> None:
            acknowledge(message)
            if next(left):
                raise redelivery.ResourceAllocationError("broken")

        patched.setattr(redelivery.Message, "acknowledge", acknowledged)
        site.run("dlq", "replay", site.letters, "--yes", code=1, management=None)
    (file,) = receipts.iterdir()
    site.run("dlq", "resume", str(file), management=None)
    assert sorted(body for body, _ in site.received(site.origin)) == [f"order of {each}" for each in "abcdef"]
    assert site.received(site.letters) == []
    assert "nothing is left to resume" in site.run("dlq", "resume", str(file), code=1, management=None).stderr
