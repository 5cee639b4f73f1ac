"""Virtual hosts: by the path of the URL, or by ``vhost=``; refused by a broker that has none and would ignore it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any
from uuid import uuid4

import pytest
from tests.transports.scripted import TIMEOUT

import redelivery
from redelivery import ConfigError, JMSError
from redelivery.broker import EmbeddedBroker
from redelivery.testing.brokers.real import RealBroker

SECOND = "second"  # of the RabbitMQ of the tests; its user second may use no other one


def got(url: str, queue: str, **options: Any) -> object:
    """What is on a queue, which is emptied."""
    with redelivery.connect(url, **options) as connection, connection.session() as session:
        message = session.consumer(queue).receive(timeout=1)
        return None if message is None else message.body


def url_of(broker: RealBroker, protocol: str) -> str:
    if protocol == "amqp":
        pytest.importorskip("proton")
    return broker.urls[protocol]


@pytest.mark.parametrize("protocol", ["stomp", "amqp"])
def test_rabbitmq_has_several(redelivery_rabbitmq: RealBroker, protocol: str) -> None:
    if redelivery_rabbitmq.provider is None:
        pytest.skip("a broker that was started elsewhere has only what it was given")
    url, queue = url_of(redelivery_rabbitmq, protocol), f"vhost.{uuid4().hex}"
    alone = url.replace("guest:guest", f"{SECOND}:{SECOND}")
    ways: tuple[tuple[str, Any], ...] = ((f"{url}/{SECOND}", {}), (url, {"vhost": SECOND}), (f"{alone}/{SECOND}", {}))
    for there, options in ways:
        with redelivery.connect(there, **options) as connection, connection.session() as session:
            session.producer(queue).send("x")
            assert connection.dialect == "rabbitmq"
        for elsewhere in (url, f"{url}/%2F"):
            assert got(elsewhere, queue) is None
        assert got(url, queue, vhost=SECOND, dialect="rabbitmq") == "x"
    listed = f"failover:({url}/{SECOND})?maxReconnectAttempts=1"
    assert got(listed, queue) is None
    with pytest.raises(JMSError):
        got(f"{url}/nowhere", queue)


@pytest.mark.parametrize(
    ("name", "protocol", "says"),
    [
        ("rabbitmq", "stomp", "Virtual host '/' access denied"),
        ("rabbitmq", "amqp", "insufficient permissions for the virtual host, '/' unless the URL names another"),
        ("rabbitmq4", "stomp", "Virtual host '/' access denied"),
        ("rabbitmq4", "amqp", "user 'second' has no permission for its default virtual host, as a rule '/'"),
    ],
)
def test_rabbitmq_refuses_a_user(request: pytest.FixtureRequest, name: str, protocol: str, says: str) -> None:
    broker: RealBroker = request.getfixturevalue(f"redelivery_{name}")
    if broker.provider is None:
        pytest.skip("a broker that was started elsewhere has only what it was given")
    url = url_of(broker, protocol).replace("guest:guest", f"{SECOND}:{SECOND}")
    with pytest.raises(JMSError) as raised, redelivery.connect(url) as connection, connection.session() as session:
        session.consumer("orders").receive(timeout=5)
    assert says in str(raised.value)
    command = [sys.executable, "-m", "redelivery", "dlq", "purge", "orders", "--yes", "--url", url]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)  # noqa: S603  # ourselves
    first, *more = run.stderr.splitlines()
    assert run.returncode == 1
    assert first.startswith("redelivery dlq purge: ")
    assert says in first
    assert len(more) == ("moved before; once the cause is fixed" in run.stderr)


@pytest.mark.parametrize("protocol", ["stomp", "amqp"])
@pytest.mark.parametrize("name", ["activemq", "artemis", "hornetq", "embedded"])
def test_a_broker_without_any_refuses_one(request: pytest.FixtureRequest, name: str, protocol: str) -> None:
    if (name, protocol) == ("hornetq", "amqp"):
        pytest.skip("HornetQ's AMQP cannot be used")
    if protocol == "amqp":
        pytest.importorskip("proton")
    if name == "embedded":
        ports: dict[str, Any] = {f"{protocol}_port": 0}
        with EmbeddedBroker(f"vhost-{uuid4().hex}", **ports) as broker:
            refused(broker.urls[protocol])
    else:
        refused(url_of(request.getfixturevalue(f"redelivery_{name}"), protocol))


def refused(url: str) -> None:
    ways: tuple[tuple[str, Any], ...] = ((f"{url}/prod", {}), (url, {"vhost": "prod"}))
    for there, options in ways:
        with pytest.raises(ConfigError, match="has no virtual hosts: leave 'prod' out"):
            redelivery.connect(there, connect_timeout=TIMEOUT, **options)


def test_broker_j_takes_one(redelivery_qpid: RealBroker) -> None:
    assert got(f"{url_of(redelivery_qpid, 'amqp')}/default", f"vhost.{uuid4().hex}") is None


@pytest.mark.parametrize(
    ("url", "options", "says"),
    [
        ("amqp://h?amqp.vhost=a", {"vhost": "b"}, "given twice, as 'b' and as amqp.vhost"),
        ("stomp://h/b?wireFormat.host=a", {}, "given twice, as 'b' and as wireFormat.host"),
        ("vm://x", {"vhost": "b"}, "vm:// broker has no virtual hosts"),
        ("stomp://h", {"vhost": ""}, "vhost=''"),
        ("stomp://h", {"vhost": 5}, "vhost must be a str"),
    ],
)
def test_what_contradicts_itself_is_refused(url: str, options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        redelivery.connect(url, **options)
