"""Letters that brokers have made themselves of what other clients sent, rejected or let expire: no run loses one.

Each is moved, replayed and put back; the receipt finds it at each place, and it says what it said before.
"""

from __future__ import annotations

import json
import time
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pytest
from starlette.testclient import TestClient
from tests.broker.raw_stomp import Raw
from tests.cli.brokers import bodies, run
from tests.conformance.foreign import Foreign, mapping, section, string
from tests.run.again import may_hide

import redelivery
from redelivery.testing.brokers.real import RealBroker
from redelivery.web.application import console
from redelivery.web.asked import ConsoleSettings
from redelivery.web.sites import sites_of

SITES: Final = (
    *("stomp-activemq", "amqp-activemq", "amqp-artemis", "stomp-artemis"),
    *("stomp-rabbitmq", "stomp-rabbitmq4", "amqp-rabbitmq4", "amqp-qpid"),
)
SHORT: Final = ("stomp-activemq", "amqp-artemis", "stomp-rabbitmq", "amqp-rabbitmq4")
_LOGINS: Final = {"artemis": "admin:admin", "rabbitmq": "guest:guest", "rabbitmq4": "guest:guest"}
_WAIT: Final = 10


class BrokersLetters:
    """A broker by one protocol, a queue, and the queue to which it dead-letters what is rejected there, or expires."""

    def __init__(self, name: str, broker: RealBroker) -> None:
        self.protocol, _, self._broker = name.partition("-")
        self._real = broker
        self.url = getattr(broker, f"{self.protocol}_url")
        self.origin = f"own.{uuid4().hex[:10]}"
        self.letters, self.expired = {
            "activemq": ("ActiveMQ.DLQ", "ActiveMQ.DLQ"),
            "artemis": ("DLQ", "ExpiryQueue"),
            "qpid": (f"{self.origin}.DLQ",) * 2,
        }.get(self._broker, (f"{self.origin}.dead",) * 2)
        self.ours = () if self.letters.startswith(self.origin) else ("--where", f"story = '{self.origin}'")
        self.made = ["expired", "rejected"]
        self.environment = {}
        if login := _LOGINS.get(self._broker):
            http = broker.http_url.rpartition("@")[2].removeprefix("http://")
            self.environment = {"REDELIVERY_MANAGEMENT": f"http://{login}@{http}"}

    def make(self) -> None:
        """Let the broker make a letter of what is rejected, and one of what expires."""
        if "rabbitmq" in self._broker:
            self._make_by_pika()
        elif self.protocol == "stomp":
            self._make_by_stomp()
        else:
            self._make_by_amqp()

    def _make_by_pika(self) -> None:
        import pika

        with closing(pika.BlockingConnection(pika.URLParameters(self._real.amqp_url))) as connection:
            channel = connection.channel()
            channel.queue_declare(self.letters, durable=True)
            dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": self.letters}
            channel.queue_declare(self.origin, durable=True, arguments=dead)
            said = pika.BasicProperties(headers={"story": self.origin, "tenant": "eu", "n": 5}, delivery_mode=2)
            channel.basic_publish("", self.origin, b"rejected", said)
            method, _, _ = next(channel.consume(self.origin, inactivity_timeout=_WAIT))
            channel.basic_reject(method.delivery_tag, requeue=False)
            channel.cancel()
            said.expiration = "1"
            channel.basic_publish("", self.origin, b"expired", said)

    def _make_by_stomp(self) -> None:
        queue = ("/queue/" if self._broker == "activemq" else "") + self.origin
        login: dict[str, Any] = {} if self._broker == "activemq" else {"login": "admin", "passcode": "admin"}
        said = {"destination": queue, "story": self.origin, "tenant": "eu", "persistent": "true"}
        if self._broker == "artemis":
            said["destination-type"] = "ANYCAST"
        with closing((raw := Raw(self.url, **login)).socket):
            raw.ok("SEND", b"rejected", **said)
            raw.ok("SEND", b"expired", **said, expires=str(int(time.time() * 1000) + 50))
        time.sleep(0.06)
        for _ in range(10 if self._broker == "artemis" else 1):  # which counts, and has no NACK that rejects
            with closing((raw := Raw(self.url, **login)).socket):
                raw.subscribe(queue)
                frame = raw.next()
                if self._broker == "activemq":
                    raw.ok("NACK", id=frame.headers["ack"])

    def _make_by_amqp(self) -> None:
        from proton.utils import BlockingConnection

        foreign, said = Foreign("amqp", self._broker, self.url), (b"story", self.origin.encode(), b"tenant", b"eu")
        with redelivery.connect(self.url) as connection, connection.session() as session:
            if self._broker == "artemis":
                session.declare(self.origin)
            if self._broker == "qpid":
                session.declare(self.letters, arguments={"minimumMessageTtl": 3_600_000})  # or it expires there, too
                bound = {"alternateBinding": {"destination": self.letters}, "expiryPolicy": "ROUTE_TO_ALTERNATE"}
                session.declare(self.origin, arguments={"maximumDeliveryAttempts": 2, **bound})
        to = b"\x40\x40" + string(foreign._address(self.origin).encode())  # else nothing says on Classic where it was
        own = section(0x73, b"\xc0" + bytes([len(to) + 1, 3]) + to) + section(0x74, mapping(*map(string, said)))
        durable = section(0x70, b"\xc0\x02\x01\x41")
        foreign.send(self.origin, durable + own + section(0x77, string(b"rejected")))
        soon = section(0x70, b"\xc0\x05\x03\x41\x40\x52\x32")
        foreign.send(self.origin, soon + own + section(0x77, string(b"expired")))
        time.sleep(0.06)
        with closing(BlockingConnection(self.url, allowed_mechs="PLAIN ANONYMOUS", timeout=_WAIT)) as connection:
            receiver = connection.create_receiver(foreign._address(self.origin))
            for _ in range(2 if self._broker == "qpid" else 1):  # which counts, and rejects by its maximum
                receiver.receive(_WAIT)
                receiver.fetcher.unsettled[0].local.failed = True
                receiver.release() if self._broker == "qpid" else receiver.reject()

    def dlq(self, *words: str, code: int = 0) -> str:
        """The output of a command of `redelivery dlq`."""
        return str(run(self.url, "dlq", *words, "--yes", code=code, env=self.environment).stdout)

    def listed(self, queue: str, count: int) -> list[dict[str, Any]]:
        """So many letters of a queue, as soon as they are there."""
        until = time.monotonic() + 40
        while True:
            done = run(self.url, "dlq", "ls", queue, *self.ours, "--json", "--yes", code=None, env=self.environment)
            found = [json.loads(line) for line in done.stdout.splitlines()]
            if len(found) == count or time.monotonic() > until:
                assert len(found) == count, done.output
                return found
            time.sleep(0.3)


@pytest.fixture
def site(request: pytest.FixtureRequest) -> BrokersLetters:
    protocol, _, broker = request.param.partition("-")
    if protocol == "amqp" or broker == "artemis":
        pytest.importorskip("proton", reason="AMQP is missing")
    return BrokersLetters(request.param, request.getfixturevalue(f"redelivery_{broker}"))


def said_by(letters: list[dict[str, Any]]) -> list[Any]:
    """What letters say, as far as it must be the same when they are put back; a broker may give no cause."""
    said = []
    for each in letters:
        why = each["dead_letter"]
        cause = why["cause"] or ("expired" if why["expired"] else None)
        said.append(
            (each["body"], each["properties"]["tenant"], why["origin"], cause, why["exception"], why["expired"])
        )
    return sorted(said, key=str)


@pytest.mark.parametrize(
    "site", [pytest.param(each, marks=() if each in SHORT else pytest.mark.long_form) for each in SITES], indirect=True
)
def test_a_letter_of_the_brokers_own_is_proved_and_put_back(site: BrokersLetters, receipts: Path) -> None:
    site.make()
    one = site.letters == site.expired
    places = {site.letters: len(site.made)} if one else {site.letters: 1, site.expired: 1}
    for queue, count in places.items():
        before = site.listed(queue, count)
        assert {each["dead_letter"]["origin"] for each in before} == {f"queue://{site.origin}"}
        for words in (("move", queue, "--to", f"{site.origin}.kept"), ("replay", queue), ("purge", queue, "--keep")):
            assert site.dlq(*words, *site.ours).startswith(f"{count} ")
            receipt = str(max(receipts.glob(f"*-{words[0]}-*"), key=lambda each: each.stat().st_mtime_ns))
            where = "gone" if words[0] == "purge" else "unread"
            assert json.loads(site.dlq("verify", receipt, "--json"))[where] == count
            assert site.dlq("undo", receipt) == f"{count} put back\n"
            assert json.loads(site.dlq("verify", receipt, "--json"))["undone"] == count
            assert said_by(site.listed(queue, count)) == said_by(before)
        site.dlq("replay", queue, *site.ours)
    assert sorted(map(_text, bodies(site.url, site.origin, timeout=2))) == site.made


@may_hide
def test_what_hornetq_has_given_up_goes_home_unseen(redelivery_hornetq: RealBroker, receipts: Path) -> None:
    """Nobody can look into its queues: what is meant is named by a selector."""
    origin, url = f"own.{uuid4().hex[:10]}", redelivery_hornetq.stomp_url
    ours, queue = ("--where", f"story = '{origin}'"), f"jms.queue.{origin}"
    with closing((raw := Raw(url)).socket):
        raw.ok("SEND", b"rejected", destination=queue, story=origin, persistent="true")
    for _ in range(10):  # which it counts, and has no NACK that rejects
        with closing((raw := Raw(url)).socket):
            raw.subscribe(queue)
            assert raw.next().body == b"rejected"
    moved = run(url, "dlq", "move", "DLQ", "--to", f"{origin}.kept", *ours, "--yes", code=None)
    assert moved.stdout == "1 moved\n", moved.output
    assert run(url, "dlq", "replay", f"{origin}.kept", "--yes").stdout == "1 replayed\n"
    assert list(map(_text, bodies(url, origin, timeout=2))) == ["rejected"]
    refused = run(url, "dlq", "verify", str(min(receipts.iterdir())), code=1).stderr
    assert "its JMX console shows them" in refused


@may_hide
def test_what_expired_on_hornetq_goes_home_unseen(redelivery_hornetq: RealBroker) -> None:
    """Nobody can look into its queues; who receives such a letter sees where it was, and that it expired."""
    origin, url = f"expiring.{uuid4().hex[:10]}", redelivery_hornetq.stomp_url
    said = {"destination": f"jms.queue.{origin}", "story": origin, "tenant": "eu", "persistent": "true"}
    with closing((raw := Raw(url)).socket):
        for body in (b"one", b"two"):
            raw.ok("SEND", body, **said, expires=str(int(time.time() * 1000) + 50))
    selector = f"story = '{origin}'"
    with redelivery.connect(url) as connection, connection.session("client") as session:
        letter = session.consumer("ExpiryQueue", selector=selector).receive(timeout=_WAIT)
        assert letter is not None
        assert letter.dead_letter is not None
        assert (letter.dead_letter.origin, letter.dead_letter.expired) == (redelivery.Queue(origin), True)
        assert letter.dead_letter.at is not None
    assert "lets nobody look into a queue" in run(url, "dlq", "ls", "ExpiryQueue", code=1).stderr
    moved = run(url, "dlq", "move", "ExpiryQueue", "--to", f"{origin}.kept", "--where", selector, "--yes", code=None)
    assert moved.stdout == "2 moved\n", moved.output
    assert run(url, "dlq", "replay", f"{origin}.kept", "--yes").stdout == "2 replayed\n"
    with redelivery.connect(url) as connection, connection.session() as session:
        consumer = session.consumer(origin)
        found = [message for _ in range(2) if (message := consumer.receive(timeout=_WAIT)) is not None]
    assert [(each.body, each.expiration, each.properties["tenant"]) for each in found] == [
        ("one", None, "eu"),  # for ever, or it would expire again
        ("two", None, "eu"),
    ]


def _text(body: str | bytes) -> str:
    return body if isinstance(body, str) else body.decode()


@pytest.mark.parametrize("site", ["amqp-rabbitmq"], indirect=True)
def test_a_letter_that_cannot_be_received_whole_stays(site: BrokersLetters) -> None:
    """RabbitMQ 3 hands on no headers of AMQP 0-9-1 over AMQP 1.0."""
    site.make()
    before = site.listed(site.letters, 2)
    for words in (("move", "--to", f"{site.origin}.kept"), ("replay", "--to", site.origin), ("purge", "--keep")):
        command = (words[0], site.letters, *words[1:], "--yes")
        done = run(site.url, "dlq", *command, code=1, env=site.environment)
        assert "n, story, tenant would be lost; connect by stomp://, which gets them; nothing was moved" in done.stderr
    assert said_by(site.listed(site.letters, 2)) == said_by(before)
    assert site.dlq("purge", site.letters).startswith("2 ")


def test_letters_that_were_sent_over_amqp_are_shown_over_stomp(redelivery_activemq: RealBroker, receipts: Path) -> None:
    """Classic closes the connection at an ACK of one; a browser needs none."""
    pytest.importorskip("proton", reason="AMQP is missing")
    queue, said = f"own.{uuid4().hex[:10]}.DLQ", {"originalDestination": "queue://own", "dlqDeliveryFailureCause": "c"}
    url = redelivery_activemq.stomp_url
    for each, count in ((redelivery_activemq.amqp_url, 2), (url, 250)):
        with redelivery.connect(each) as connection, connection.session("transacted") as session:
            for _ in range(count):
                session.producer(queue).send("x", properties=said)
            session.commit()
    seen = json.loads(run(url, "dlq", "queues", "--queue", queue, "--json").stdout)["queues"]
    assert [each["letters"] for each in seen if each["name"] == queue] == [252]
    (group,) = json.loads(run(url, "dlq", "groups", queue, "--json").stdout)
    assert group["count"] == 252
    listed = [json.loads(line) for line in run(url, "dlq", "ls", queue, "--json").stdout.splitlines()]
    assert len(listed) == 252
    for each in (listed[0], listed[-1]):
        assert "queue://own" in run(url, "dlq", "show", queue, each["message_id"]).stdout
    settings = ConsoleSettings(sites_of([(url, {})]), receipts, receipts, queues=(redelivery.Queue(queue),))
    (site,) = settings.sites
    with TestClient(console(settings), base_url="http://127.0.0.1") as client:
        pages = [client.get(f"/{site}/{each}", params={"queue": queue}) for each in ("", "groups", "letters")]
    assert [each.status_code for each in pages] == [200] * 3
    assert all(queue in each.text for each in pages)
    refused = run(url, "dlq", "replay", queue, "--to", "own", "--yes", code=1).stderr
    assert "use amqp://" in refused
    assert json.loads(run(url, "dlq", "groups", queue, "--json").stdout)[0]["count"] == 252
    assert run(redelivery_activemq.amqp_url, "dlq", "purge", queue, "--yes").stdout == "252 taken away\n"
