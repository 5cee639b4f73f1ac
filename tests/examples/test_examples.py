"""Each example runs as it is, on the embedded broker and, where there is one, on a real ActiveMQ."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import redelivery
from redelivery import RedeliveryPolicy, SharedDeadLetterStrategy
from redelivery.broker import EmbeddedBroker
from redelivery.testing.brokers.real import RealBroker

EXAMPLES = Path(__file__).parents[2] / "examples"

pytestmark = pytest.mark.in_turns("stomp_url")


def run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603  # our own example
        [sys.executable, "-W", "error", str(EXAMPLES / name), *arguments], capture_output=True, text=True, timeout=150
    )


def output(name: str, *arguments: str) -> list[str]:
    done = run(name, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.fixture(params=["embedded", "activemq"])
def stomp_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """STOMP on a broker: our own, and the real one."""
    if request.param == "embedded":
        with EmbeddedBroker("examples", stomp_port=0) as broker:
            yield broker.stomp_url
    else:
        real: RealBroker = request.getfixturevalue("activemq")
        yield real.stomp_url


CONSUMED = [
    "a chair, delivery 1: done",
    "a table, delivery 1: the bank did not answer",
    "a table, delivery 2: done",
    *(f"the moon, delivery {count}: no such article" for count in (1, 2, 3)),
    "a lamp, delivery 1: done",
    *(f"example.invoices: invoice for {article}" for article in ("a chair", "a table", "a lamp")),
    "example.DLQ: the moon",
]


def test_consume_transacted() -> None:
    assert output("consume_transacted.py") == CONSUMED


def test_consume_transacted_over_stomp(stomp_url: str) -> None:
    assert output("consume_transacted.py", stomp_url) == CONSUMED


LISTENED = [f"parcel {number}, delivery {2 if number == 5 else 1}: delivered" for number in range(1, 9)]


def test_listener_individual() -> None:
    assert sorted(output("listener_individual.py")) == LISTENED


def test_listener_individual_over_stomp(stomp_url: str) -> None:
    assert sorted(output("listener_individual.py", stomp_url)) == LISTENED


def test_dead_letter_replay(stomp_url: str) -> None:
    at_once = RedeliveryPolicy(maximum_redeliveries=0)
    letters = "example.replay.DLQ"
    with redelivery.connect(
        stomp_url, redelivery_policy=at_once, dead_letter_strategy=SharedDeadLetterStrategy(letters)
    ) as connection:
        with connection.session("transacted") as session:
            for article in ("a chair", "the moon"):
                session.producer("example.replay").send(article, properties={"colour": "red"})
            session.commit()
            consumer = session.consumer("example.replay")
            for _ in range(2):
                assert consumer.receive(timeout=10) is not None
                session.rollback(cause=LookupError("no such article"))
        said = output("dead_letter_replay.py", stomp_url, letters)
        assert said == [f"{article!r} goes back to queue://example.replay" for article in ("a chair", "the moon")]
        with connection.session() as session:
            consumer = session.consumer("example.replay")
            for article in ("a chair", "the moon"):
                message = consumer.receive(timeout=10)
                assert message is not None
                assert message.body == article
                assert message.properties["colour"] == "red"
                assert not [name for name in message.properties if name.startswith(("dlq", "original"))]
            assert session.consumer(letters).receive(timeout=0.3) is None


def test_dead_letter_replay_says_what_it_cannot_send_back(stomp_url: str) -> None:
    letters = "example.stray.DLQ"
    with redelivery.connect(stomp_url) as connection, connection.session() as session:
        session.producer(letters).send("a stray")
        done = run("dead_letter_replay.py", stomp_url, letters)
        assert done.stderr == "'a stray' does not say where it came from\n"
        stray = session.consumer(letters).receive(timeout=10)
        assert stray is not None
        assert stray.body == "a stray"


def test_dead_letter_replay_without_arguments_explains_itself() -> None:
    done = run("dead_letter_replay.py")
    assert done.returncode == 1
    assert "dead_letter_replay.py stomp://" in done.stderr


def test_test_your_handler() -> None:
    done = subprocess.run(  # noqa: S603  # our own example
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(EXAMPLES / "test_your_handler.py")],
        capture_output=True,
        text=True,
        timeout=150,
        cwd=EXAMPLES,
    )
    assert "4 passed" in done.stdout, done.stdout + done.stderr
