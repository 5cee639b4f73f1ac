"""A command that takes from a queue that is not there says so, and makes none where a protocol can leave it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import uuid4

import pytest
from tests.cli.brokers import run
from tests.run.console import Answer, serving
from tests.run.rabbitmq import SITES, ManagedSite, broker_of

from redelivery.broker import EmbeddedBroker
from redelivery.testing.brokers.real import RealBroker

TAKING = {
    "replay": ("dlq", "replay", "{}", "--yes"),
    "replay of some": ("dlq", "replay", "{}", "--yes", "--limit", "3", "--where", "tenant = 'eu'"),
    "move": ("dlq", "move", "{}", "--to", "{}.other", "--yes"),
    "purge": ("dlq", "purge", "{}", "--yes", "--keep"),
    "receive": ("receive", "{}", "--timeout", "0.1"),
}
each_command = pytest.mark.parametrize("command", list(TAKING.values()), ids=list(TAKING))


def missing(url: str, command: tuple[str, ...]) -> str:
    """Run a command that names a queue that is not there, whose name this returns."""
    name = f"mis/sing.{uuid4().hex[:8]}"
    done = run(url, *(each.format(name) for each in command), code=1)
    assert f"queue://{name}: " in done.stderr
    assert "no such queue" in done.stderr
    assert "resume" not in done.stderr
    return name


@pytest.fixture(params=SITES)
def site(request: pytest.FixtureRequest) -> Iterator[ManagedSite]:
    made = ManagedSite(*broker_of(request))
    yield made
    made.connection.close()


@each_command
def test_rabbitmq_makes_none_without_its_management(site: ManagedSite, command: tuple[str, ...]) -> None:
    name = missing(site.url, command)
    assert site.management.queue(name) is None


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_rabbitmq_gives_the_letters_of_a_queue_that_is_there_without_its_management(
    site: ManagedSite, kind: str
) -> None:
    three = ("--limit", "3")  # or each waits whether more come
    api, name = site.management.api, f"the/re.{uuid4().hex[:8]}%"
    for each in (name, f"{name}.other"):
        api.declare_queue(each, arguments={"x-queue-type": kind, "x-max-length": 99})
    try:
        with site.connection.session() as session:
            for body in "abc":
                session.producer(name).send(body, properties={"originalDestination": "queue://gone"})
        assert run(site.url, "dlq", "replay", name, "--to", f"{name}.other", "--yes", *three).stdout == "3 replayed\n"
        assert run(site.url, "dlq", "move", f"{name}.other", "--to", name, "--yes", *three).stdout == "3 moved\n"
        assert run(site.url, "receive", name).stdout == "a\n"
        assert run(site.url, "dlq", "purge", name, "--yes", "--limit", "2").stdout == "2 taken away\n"
    finally:
        for each in (name, f"{name}.other"):
            api.delete_queue(each)


@each_command
def test_artemis_makes_none_over_stomp(redelivery_artemis: RealBroker, command: tuple[str, ...]) -> None:
    name = missing(redelivery_artemis.stomp_url, command)
    assert name not in run(redelivery_artemis.amqp_url, "dlq", "queues", "--json", code=None).stdout


@pytest.mark.parametrize("protocol", ["stomp", "amqp"])
@pytest.mark.parametrize("command", list(TAKING.values())[:-1], ids=list(TAKING)[:-1])
def test_a_browser_does_not_make_it_where_a_management_says_that_it_is_not_there(
    protocol: str, command: tuple[str, ...]
) -> None:
    if protocol == "amqp":
        pytest.importorskip("proton")

    def answer(_: Mapping[str, str], body: Any) -> Answer:
        queues = "destinationType=Queue" in body["mbean"]
        return 200, json.dumps({"status": 200, "value": {} if queues else {"b": {"BrokerVersion": "5.18.3"}}}).encode()

    ports: dict[str, Any] = {f"{protocol}_port": 0}
    with serving(answer) as (port, _), EmbeddedBroker(f"missing-{uuid4().hex}", **ports) as broker:
        management = f"http://admin:admin@127.0.0.1:{port}"
        options = ("--dialect", "activemq", "--management", management)
        name = missing(broker.urls[protocol], (*command, *options))
        assert name not in broker.core.call(lambda engine, _now: set(engine.queues))
