"""`redelivery unsubscribe`: a durable subscription goes with what it holds; one in use, or not there, is an error."""

from __future__ import annotations

from uuid import uuid4

import pytest
from tests.cli.brokers import run, url
from tests.conformance.pairs import KINDS

import redelivery
from redelivery import InvalidDestinationError

__all__ = ["url"]
DURABLE = (
    "stomp-embedded",
    "amqp-embedded",
    "stomp-activemq",
    "amqp-activemq",
    "stomp-artemis",
    "amqp-artemis",
    "amqp-qpid",
)
SHARED = ("stomp-embedded", "amqp-embedded", "amqp-artemis", "amqp-qpid")
REFUSED = ("stomp-rabbitmq", "amqp-rabbitmq", "stomp-rabbitmq4", "amqp-rabbitmq4", "stomp-hornetq", "amqp-hornetq")


@pytest.fixture
def name() -> str:
    return f"audit-{uuid4().hex[:8]}"


def make(url: str, name: str, topic: str, client_id: str | None) -> None:
    """The subscription, with a message that nobody has taken."""
    given = {} if client_id is None else {"client_id": client_id}
    with redelivery.connect(url, **given) as connection, connection.session() as session:  # type: ignore[arg-type]  # a str
        kind = session.shared_durable_consumer if client_id is None else session.durable_consumer
        kind(topic, name).close()
        session.producer(topic).send("kept")


@pytest.mark.parametrize("url", DURABLE, indirect=True)
@pytest.mark.parametrize("own", [True, False], ids=["own-id", "name"])
def test_one_of_a_client_id(url: str, name: str, own: bool) -> None:
    client_id = f"c-{name}" if own else name
    given = ("--client-id", client_id) if own else ()
    make(url, name, f"topic://news.{name}", client_id)
    done = run(url, "unsubscribe", name, *given, "--yes")
    assert done.output == f"the subscription {name} of client id {client_id} is removed\n"
    with redelivery.connect(url, client_id=client_id) as connection, connection.session() as session:
        assert session.durable_consumer(f"topic://news.{name}", name).receive(timeout=0.5) is None, "it is a new one"
    run(url, "unsubscribe", name, *given, "--yes")


@pytest.mark.parametrize("url", [each for each in DURABLE if each != "stomp-artemis"], indirect=True)
def test_one_that_is_not_there(url: str, name: str) -> None:
    done = run(url, "unsubscribe", name, "--yes", code=2)
    assert done.stderr.startswith("redelivery unsubscribe: ")
    assert name in done.stderr


@pytest.mark.parametrize("url", DURABLE, indirect=True)
def test_one_that_is_in_use(url: str, name: str) -> None:
    topic = f"topic://news.{name}"
    with redelivery.connect(url, client_id=name) as connection, connection.session() as session:
        consumer = session.durable_consumer(topic, name)
        done = run(url, "unsubscribe", name, "--yes", code=1)
        assert "stop the query, or the application, that consumes it" in done.stderr
        session.producer(topic).send("goes on")
        message = consumer.receive(timeout=20)
        assert message is not None
        consumer.close()
        session.unsubscribe(name)


@pytest.mark.parametrize("url", SHARED, indirect=True)
def test_a_shared_one(url: str, name: str) -> None:
    topic = f"topic://news.{name}"
    make(url, name, topic, None)
    done = run(url, "unsubscribe", name, "--shared", "--yes", code=None)
    if done.exit_code:
        assert "with --topic" in done.stderr
        done = run(url, "unsubscribe", name, "--shared", "--topic", topic.removeprefix("topic://"), "--yes")
    assert done.output.startswith(f"the subscription {name} is removed")
    with redelivery.connect(url) as connection, connection.session() as session:
        with pytest.raises((InvalidDestinationError, redelivery.UnsupportedError)):
            session.unsubscribe(name)
        assert session.shared_durable_consumer(topic, name).receive(timeout=0.5) is None, "it is a new one"
    run(url, "unsubscribe", name, "--shared", "--topic", topic, "--yes")


@pytest.mark.parametrize("url", ["amqp-embedded", "amqp-artemis", "amqp-qpid"], indirect=True)
def test_a_shared_one_in_use(url: str, name: str) -> None:
    topic = f"topic://news.{name}"
    with redelivery.connect(url) as connection, connection.session() as session:
        consumer = session.shared_durable_consumer(topic, name)
        done = run(url, "unsubscribe", name, "--shared", "--topic", topic, "--yes", code=None)
        assert "removed, unless another connection consumes it" in done.output if not done.exit_code else done.stderr
        session.producer(topic).send("goes on")
        assert consumer.receive(timeout=20) is not None, "it stays"
        consumer.close()
        session.unsubscribe(name)


@pytest.mark.parametrize("url", [each for each in REFUSED if each in KINDS], indirect=True)
def test_a_broker_that_has_none_says_so(url: str, name: str) -> None:
    assert "has no durable subscriptions" in run(url, "unsubscribe", name, "--yes", code=1).stderr


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((), "add --yes"),
        (("--topic", "news", "--yes"), "--topic has no effect without --shared"),
        (("--yes", "--client-id", ""), "of the client id ''"),
    ],
    ids=["not-asked", "topic", "empty-id"],
)
@pytest.mark.parametrize("url", ["stomp-embedded"], indirect=True)
def test_what_is_wrong_is_said(url: str, name: str, given: tuple[str, ...], said: str) -> None:
    done = run(url, "unsubscribe", name, *given, code=2)
    assert said in done.stderr
