"""The operator's story on each broker: find, understand, group, edit, replay, export, purge, and undo that."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final
from uuid import uuid4

import pytest
from tests.cli.brokers import LOOKED_AT
from tests.conformance.foreign import Foreign, mapping, section, string
from tests.run.commands import CliRunner, Result
from tests.run.forms import brief

import redelivery
from redelivery import Message, RedeliveryPolicy, SharedDeadLetterStrategy
from redelivery.broker import EmbeddedBroker
from redelivery.cli.app import app

SITES: Final = (*LOOKED_AT, "stomp-rabbitmq", "amqp-rabbitmq", "stomp-rabbitmq4", "amqp-rabbitmq4")
SHORT: Final = ("amqp-embedded", "stomp-activemq", "amqp-artemis", "stomp-rabbitmq4")  # in the short form
LETTERS: Final = 40 if brief() else 5000
FOREIGN: Final = 4  # letters of another client, of each cause one
WAIT: Final = 60.0 if brief() else 300.0
_CAUSE: Final = "Delivery[1] exceeds redelivery policy limit:RedeliveryPolicy, cause:"
_RELEASE: Final = "shop 2.4"
_SHOP: Final = """
def ask_bank(order):
    raise TimeoutError("bank")

def add_prices(order):
    raise TypeError(f"order {order} has no price")

def find_article(order):
    raise LookupError(f"no article 'A{order}'")

def check_customer(order):
    raise PermissionError("customer is blocked")
"""
_STEPS: Final = ("ask_bank", "add_prices", "find_article", "check_customer")
_shop: Final[dict[str, Any]] = {"__name__": "shop"}
exec(compile(_SHOP, "/app/shop.py", "exec"), _shop)  # noqa: S102  # what is below tests/ is no application
_FIX: Final = "def fix(letter):\n    letter['body']['price'] = 5\n    return letter\n"


def failure(number: int) -> Exception:
    """The exception with which an order fails, raised where it is."""
    try:
        _shop[_STEPS[number % 4]](number)
    except Exception as error:  # noqa: BLE001  # any of the four
        return error
    raise AssertionError(number)


class Story:
    """A broker by one protocol, the queue of orders, and that of its dead letters."""

    def __init__(self, name: str, url: str, management: str | None) -> None:
        self._protocol, _, self._broker = name.partition("-")
        self.url, self._management = url, management
        self.orders = f"story.{uuid4().hex[:10]}"
        self.letters = f"{self.orders}.DLQ"
        self.handled: Counter[int] = Counter()
        self._changed = threading.Condition()

    def connect(self, **options: Any) -> redelivery.Connection:
        return redelivery.connect(self.url, management=self._management, **options)

    def run(self, *arguments: str, code: int = 0) -> Result:
        """A command, and the exit code that it must have."""
        environment = {"REDELIVERY_URL": self.url, "REDELIVERY_MANAGEMENT": self._management}
        done = CliRunner(env=environment).invoke(app, ["dlq", *arguments])
        assert done.exit_code == code, (done.output, done.exception)
        return done

    def fail(self) -> None:
        """Let as many orders fail, of four causes in turn; a few letters of one cause are another client's."""
        at_once, strategy = RedeliveryPolicy(maximum_redeliveries=0), SharedDeadLetterStrategy(self.letters)
        options = {"redelivery_policy": at_once, "dead_letter_strategy": strategy, "application": _RELEASE}
        with self.connect(**options) as connection:
            with connection.session() as session:
                for number in range(LETTERS - FOREIGN):
                    session.producer(self.orders).send_async(json.dumps({"order": number, "price": None}))
            with connection.session("client") as session:
                consumer = session.consumer(self.orders, prefetch=1)
                for _ in range(LETTERS - FOREIGN):
                    message = consumer.receive(timeout=WAIT)
                    assert message is not None
                    number = json.loads(message.body)["order"]
                    session.recover(failure(number))
                assert consumer.receive(timeout=0.1) is None
        self._send_foreign()

    def _send_foreign(self) -> None:
        for number in range(LETTERS - FOREIGN, LETTERS):
            error = failure(number)
            said = {
                "originalDestination": f"queue://{self.orders}",
                "dlqDeliveryFailureCause": f"{_CAUSE}{type(error).__name__}: {error.args[0]}",
            }
            body = json.dumps({"order": number, "price": None}).encode()
            if self._protocol == "stomp":
                head = "".join(f"{name}:{value.replace(':', chr(92) + 'c')}\n" for name, value in said.items())
                Foreign("stomp", self._broker, self.url).send(self.letters, head.encode() + b"\n" + body)
            else:
                pairs = [string(each.encode()) for item in said.items() for each in item]
                named = section(0x73, b"\xc0" + bytes([9, 1]) + b"\xa1\x06" + b"raw-%02d" % (number % 100))
                letter = named + section(0x74, mapping(*pairs)) + section(0x77, string(body))
                Foreign("amqp", self._broker, self.url).send(self.letters, letter)

    @contextmanager
    def consumer(self, *, repaired: bool) -> Iterator[None]:
        """The shop's consumer, which fails again or is repaired."""

        def handle(message: Message) -> None:
            number = json.loads(message.body)["order"]
            if not repaired:
                raise TimeoutError("bank")
            with self._changed:
                self.handled[number] += 1
                self._changed.notify_all()

        policy, strategy = RedeliveryPolicy(maximum_redeliveries=0), SharedDeadLetterStrategy(self.letters)
        with self.connect(redelivery_policy=policy, dead_letter_strategy=strategy) as connection:
            connection.listener_container(self.orders, handle, ack_mode="client").start()
            yield

    def wait_for(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.handled.total() >= count, WAIT), self.handled.total()

    def found(self) -> int:
        """The number of letters that ``dlq queues`` finds; RabbitMQ counts every few seconds."""
        until = monotonic() + 15
        while True:
            said = json.loads(self.run("queues", "--queue", self.letters, "--json").stdout)["queues"]
            (count,) = (each["letters"] for each in said if each["name"] == self.letters)
            if count == LETTERS or monotonic() > until:
                return int(count)
            sleep(0.5)

    def groups(self) -> dict[str, tuple[int, str]]:
        """The groups by the type of their exception: how many letters, and the fingerprint."""
        found = json.loads(self.run("groups", self.letters, "--json", "--yes").stdout)
        return {each["exception"].partition(":")[0]: (each["count"], each["fingerprint"]) for each in found}

    def steps(self) -> dict[str, tuple[int, str]]:
        """The groups by the function that raised, which passports name: how many letters, and the release."""
        found = json.loads(self.run("groups", self.letters, "--by", "fingerprint", "--json", "--yes").stdout)
        return {str(each["frame"]): (each["count"], each["release"]) for each in found}


@pytest.fixture
def story(request: pytest.FixtureRequest) -> Iterator[Story]:
    """Of the pair that the parameter names."""
    protocol, _, broker = request.param.partition("-")
    if protocol == "amqp":
        pytest.importorskip("proton", reason="AMQP is missing")
    if broker == "embedded":
        ports: dict[str, Any] = {f"{protocol}_port": 0}
        with EmbeddedBroker(f"story-{uuid4().hex}", **ports) as embedded:
            yield Story(request.param, embedded.urls[protocol], None)
        return
    real = request.getfixturevalue(f"redelivery_{broker}")
    url = getattr(real, f"{protocol}_url")
    yield Story(request.param, url, real.http_url if broker.startswith("rabbitmq") else None)


@pytest.mark.timeout(180 if brief() else 1200)
@pytest.mark.parametrize(
    "story", [pytest.param(each, marks=() if each in SHORT else pytest.mark.long_form) for each in SITES], indirect=True
)
def test_the_operators_story(story: Story, receipts: Path, tmp_path: Path) -> None:
    story.fail()
    quarter = LETTERS // 4
    assert story.found() == LETTERS

    assert {name: count for name, (count, _) in story.groups().items()} == dict.fromkeys(
        ("TimeoutError", "TypeError", "LookupError", "PermissionError"), quarter
    )
    assert story.steps() == {f"shop:{each}": (quarter, _RELEASE) for each in _STEPS}  # those without a passport, too
    listed = [json.loads(line) for line in story.run("ls", story.letters, "--json", "--yes").stdout.splitlines()]
    assert len(listed) == LETTERS
    shown = story.run("show", story.letters, listed[1]["message_id"], "--yes").stdout
    assert "TypeError: order 1 has no price" in shown
    assert f"queue://{story.orders}" in shown
    assert f"application: {_RELEASE}" in shown
    assert "frame: shop:add_prices" in shown

    fix = tmp_path / "fix.py"
    fix.write_text(_FIX)
    edited = story.groups()["TypeError"][1]
    done = story.run("edit", story.letters, "--group", edited, "--with", str(fix), "--yes")
    assert done.stdout.endswith(f"{quarter} edited and replayed\n")
    with story.consumer(repaired=True):
        story.wait_for(quarter)
    assert {number % 4 for number in story.handled} == {1}

    bank = story.groups()["TimeoutError"][1]
    with story.consumer(repaired=False):
        replay = ("replay", story.letters, "--group", bank, "--canary", "3", "--canary-wait", "2", "--yes")
        assert "came back within" in story.run(*replay, code=1).stderr
        until = monotonic() + 15  # the others of the canaries come back, too
        while story.groups()["TimeoutError"][0] < quarter and monotonic() < until:
            sleep(0.2)
    assert story.groups()["TimeoutError"][0] == quarter
    with story.consumer(repaired=True):
        done = story.run(*replay)
        assert done.stdout == f"{quarter} replayed\n"
        for sent in (3, 33, 333):
            assert (f"{sent} canaries sent" in done.stderr) == (sent < quarter)
        story.wait_for(2 * quarter)
    assert set(story.handled.values()) == {1}

    rest = tmp_path / "rest.jsonl"
    story.run("export", story.letters, "--output", str(rest), "--yes")
    assert len(rest.read_text(encoding="utf-8").splitlines()) == 2 * quarter
    before = story.groups()
    story.run("purge", story.letters, "--keep", "--yes")
    story.run("groups", story.letters, "--yes", code=1)
    purged = max(receipts.glob("*-purge-*"))
    assert story.run("undo", str(purged), "--yes").stdout == f"{2 * quarter} put back\n"
    assert story.groups() == before
    for each in receipts.iterdir():
        assert json.loads(story.run("verify", str(each), "--json", "--yes").stdout)["holds"]
    story.run("purge", story.letters, "--yes")
