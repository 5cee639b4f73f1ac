"""The pairs of protocol and broker on which a command is run, each once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from tests.run.commands import CliRunner, Result

import redelivery
from redelivery import RedeliveryPolicy, SharedDeadLetterStrategy
from redelivery.broker import EmbeddedBroker
from redelivery.cli.app import app

LOOKED_AT = ("stomp-embedded", "amqp-embedded", "stomp-activemq", "amqp-activemq", "amqp-artemis", "amqp-qpid")
HIDDEN = ("stomp-artemis", "stomp-hornetq", "stomp-rabbitmq", "amqp-rabbitmq")


@pytest.fixture
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Of the pair that the parameter names."""
    protocol, _, name = request.param.partition("-")
    if protocol == "amqp":
        pytest.importorskip("proton")
    if name != "embedded":
        yield getattr(request.getfixturevalue(f"redelivery_{name}"), f"{protocol}_url")
        return
    ports: dict[str, Any] = {f"{protocol}_port": 0}
    with EmbeddedBroker(f"cli-{uuid4().hex}", **ports) as broker:
        yield broker.urls[protocol]


@pytest.fixture
def emptied(request: pytest.FixtureRequest, url: str) -> Iterator[list[str]]:
    """The queues that are emptied at the end; an embedded broker is the test's own."""
    names: list[str] = []
    yield names
    if "embedded" not in request.node.callspec.params["url"]:
        for each in names:
            bodies(url, each)


def run(url: str, *arguments: str, code: int | None = 0, **options: Any) -> Result:
    """A command with this URL, and the exit code that it must have."""
    env = {"REDELIVERY_URL": url, **options.pop("env", {})}
    done = CliRunner(env=env).invoke(app, arguments, **options)
    assert code is None or done.exit_code == code, (done.output, done.exception)
    return done


def fail(url: str, queue: str, letters: str, *errors: Exception, policy: RedeliveryPolicy | None = None) -> None:
    """Let a message fail for each error, so that it is a dead letter; its body is its number."""
    at_once = policy or RedeliveryPolicy(maximum_redeliveries=0)
    strategy = SharedDeadLetterStrategy(letters)
    with (
        redelivery.connect(url, redelivery_policy=at_once, dead_letter_strategy=strategy) as connection,
        connection.session("client") as session,
    ):
        producer, consumer = session.producer(queue), session.consumer(queue, prefetch=1)
        for number, error in enumerate(errors):
            producer.send(str(number))
            for _ in range(at_once.maximum_redeliveries + 1):
                assert consumer.receive(timeout=10)
                session.recover(error)
        assert consumer.receive(timeout=0.1) is None


def bodies(url: str, queue: str, timeout: float = 0.5) -> list[Any]:
    """What is on a queue, which is emptied."""
    with redelivery.connect(url) as connection, connection.session() as session:
        return [each.body for each in session.consumer(queue).receive_many(1000, timeout)]
