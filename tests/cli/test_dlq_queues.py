"""`redelivery dlq queues`: every dead-letter queue, with its growth, its oldest letter and its top cause."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.cli.brokers import HIDDEN, LOOKED_AT, bodies, fail, run, url
from tests.run.rabbitmq import SITES, ManagedSite, broker_of

from redelivery.testing.brokers.real import RealBroker

__all__ = ["url"]  # a fixture
LISTED = ("amqp-artemis", "amqp-qpid")  # by the broker itself; the others show what is named
looked_at = pytest.mark.parametrize("url", LOOKED_AT, indirect=True)
embedded = pytest.mark.parametrize("url", LOOKED_AT[:2], indirect=True)


def listed(url: str, *arguments: str, **environment: Any) -> dict[str, Any]:
    found = json.loads(run(url, "dlq", "queues", "--json", *arguments, env=environment).stdout)
    return {each["name"]: each for each in found["queues"]}


@looked_at
def test_a_queue_of_any_name_is_there_with_its_growth(url: str, request: pytest.FixtureRequest) -> None:
    name = f"overview.{uuid4().hex[:8]}"
    pair = request.node.callspec.params["url"]
    named = () if pair in LISTED else ("--queue", name)
    fail(url, f"{name}.orders", name, ValueError("x"), ValueError("x"), KeyError("a"))
    first = listed(url, *named)[name]
    assert (first["letters"], first["grew"], first["known_by"]) == (3, None, "rules" if named else "content")
    assert (first["top"]["count"], first["top"]["exception"]) == (2, "ValueError: x")
    assert first["oldest"] == first["top"]["first"]
    fail(url, f"{name}.orders", name, ValueError("x"))
    second = listed(url, *named)[name]
    assert (second["letters"], second["grew"], second["since"] is None) == (4, 1, False)
    bodies(url, name)
    fail(url, f"{name}.orders", f"{name}.other", ValueError("x"))  # or none may be left, which is exit code 1
    assert listed(url, *named).get(name, {"letters": 0})["letters"] == 0
    bodies(url, f"{name}.other")


@embedded
def test_the_first_command_at_night_is_short(url: str) -> None:
    fail(url, "orders", "ActiveMQ.DLQ", ValueError("no 'price'"), ValueError("no 'sku'"))
    done = run(url, "dlq")
    head, row = done.stdout.splitlines()
    assert head.split() == ["letters", "queue", "more", "oldest", "top", "cause"]
    assert row.split()[:3] == ["2", "ActiveMQ.DLQ", "-"]
    assert "ValueError: no 'price' (2, group " in row
    assert "+0 since" in run(url, "dlq").stdout


@embedded
def test_a_file_names_the_queues(url: str, tmp_path: Path) -> None:
    file = tmp_path / "activemq.xml"
    policy = '<individualDeadLetterStrategy queuePrefix="late."/>'
    file.write_text(
        '<broker xmlns="http://activemq.apache.org/schema/core"><destinationPolicy><policyMap><policyEntries>'
        f'<policyEntry queue="bills"><deadLetterStrategy>{policy}</deadLetterStrategy></policyEntry>'
        "</policyEntries></policyMap></destinationPolicy></broker>"
    )
    fail(url, "bills", "late.bills", ValueError("x"))
    found = listed(url, "--config", str(file))
    assert (found["late.bills"]["letters"], found["late.bills"]["known_by"]) == (1, "rules")


@embedded
def test_a_look_that_was_cut_short_is_the_first_again(url: str, receipts: Path) -> None:
    fail(url, "orders", "ActiveMQ.DLQ", ValueError("x"))
    listed(url)
    file = receipts.parent / "looks.json"
    file.write_text(file.read_text()[:-5])
    assert listed(url)["ActiveMQ.DLQ"]["grew"] is None
    assert listed(url)["ActiveMQ.DLQ"]["grew"] == 0


@embedded
def test_queues_that_nobody_named_are_said_to_be_unseen(url: str) -> None:
    """As ActiveMQ Classic, which lists none over STOMP: an empty ActiveMQ.DLQ is not all that there is."""
    fail(url, "orders", "shop.DLQ", ValueError("x"))
    fail(url, "bills", "ActiveMQ.DLQ", ValueError("x"))
    assert "queues that nobody named" not in run(url, "dlq").stderr  # the embedded broker lists them
    blind = ("--dialect", "activemq")
    for command in (("dlq",), ("doctor",)):
        done = run(url, *command, *blind, code=None)
        assert "not checked: queues that nobody named: " in done.output
        assert "lists no queues over" in done.output
        assert "shop.DLQ" not in done.output
    assert "shop.DLQ" in run(url, "dlq", "--queue", "shop.DLQ", *blind).stdout


@pytest.mark.parametrize("url", HIDDEN[:2], indirect=True)
def test_a_broker_that_lists_none_names_the_way(url: str) -> None:
    assert "reports its queues over" in run(url, "dlq", code=1).stderr


@pytest.fixture(params=SITES[:1] + SITES[-1:])
def site(request: pytest.FixtureRequest) -> Iterator[ManagedSite]:
    made = ManagedSite(*broker_of(request))
    yield made
    made.connection.close()


def test_rabbitmq_lists_them_by_its_management(site: ManagedSite) -> None:
    name, api = f"overview.{uuid4().hex[:8]}", site.management.api
    try:
        api.declare_queue(f"{name}.dead", arguments={})
        api.declare_queue(name, arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"{name}.dead"})
        found = listed(site.url, REDELIVERY_MANAGEMENT=site.http)
        assert (found[f"{name}.dead"]["letters"], found[f"{name}.dead"]["known_by"]) == (0, "rules")
        assert name not in found
    finally:
        for each in (name, f"{name}.dead"):
            api.delete_queue(each)


def test_a_user_who_may_not_ask_artemis_reads_what_it_takes(redelivery_artemis: RealBroker) -> None:
    pytest.importorskip("proton", reason="AMQP is missing")
    url = redelivery_artemis.amqp_url.replace("amqp://", "amqp://restricted:restricted@")
    done = run(url, "dlq", "queues", code=1)
    assert "takes the permissions send and manage for the address activemq.management" in done.stderr
