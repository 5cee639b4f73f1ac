"""The doctor on RabbitMQ: what it says of queues, policies and exchanges that others have made, and of its users."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.policies.readers.documents import read
from tests.policies.readers.rabbitmq_site import Site, site, until
from tests.run.commands import CliRunner

import redelivery
from redelivery.cli.app import app
from redelivery.operate.doctor.doctor import examine
from redelivery.operate.doctor.findings import Report
from redelivery.testing.brokers.real import RealBroker

pytest.importorskip("proton")

DEAD = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}


def queue(name: str, kind: str = "quorum", durable: bool = True, **arguments: Any) -> dict[str, Any]:
    given = {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}
    return {"name": name, "durable": durable, "auto_delete": False, "arguments": {"x-queue-type": kind, **given}}


DEFINITIONS: dict[str, Any] = {
    "queues": [
        queue("no-exchange"),
        queue("limited", delivery_limit=2, dead_letter_exchange="", dead_letter_routing_key="dead"),
        queue("right", delivery_limit=5, dead_letter_exchange="", dead_letter_routing_key="dead"),
        queue("absent", delivery_limit=5, dead_letter_exchange="absent"),
        queue("unbound", delivery_limit=5, dead_letter_exchange="empty"),
        queue("no-queue", delivery_limit=5, dead_letter_exchange="", dead_letter_routing_key="nowhere"),
        queue("round", delivery_limit=5, dead_letter_exchange="", dead_letter_routing_key="wait"),
        queue("wait", "classic", message_ttl=600_000, dead_letter_exchange="", dead_letter_routing_key="round"),
        queue("plain", "classic"),
        queue("bounded", "classic", max_length=10, dead_letter_exchange="", dead_letter_routing_key="dead"),
        queue("by-policy", "classic", max_length=10),
        queue("dead", "classic", max_length_bytes=1_000_000),
        queue("events", "stream"),
    ],
    "exchanges": [{"name": "empty", "type": "topic", "durable": True, "auto_delete": False, "arguments": {}}],
    "policies": [
        {
            "name": "too-much",
            "pattern": "^by-policy$",
            "apply-to": "queues",
            "priority": 0,
            "definition": {"dead-letter-exchange": "", "dead-letter-routing-key": "dead", "delivery-limit": 3},
        }
    ],
}


@pytest.fixture(params=["rabbitmq", "rabbitmq4"], scope="module")
def at(request: pytest.FixtureRequest) -> Iterator[Site]:
    broker: RealBroker = request.getfixturevalue(f"redelivery_{request.param}")
    with site(broker, "doctor") as found:
        found.import_(DEFINITIONS)
        yield found


def examined(at: Site, protocol: str = "amqp", **options: Any) -> Report:
    url = at.broker.amqp_url if protocol == "amqp" else at.broker.stomp_url
    management = {"management": at.broker.http_url} if options.pop("managed", True) else {}
    return examine(url, options={"vhost": at.vhost, **management}, watch=0, **options)  # type: ignore[arg-type]  # all are str


def said(report: Report, check: str, level: str | None = None) -> list[str]:
    return [each.what for each in report.findings if each.check == check and level in (None, each.level)]


@pytest.mark.parametrize("protocol", ["amqp", "stomp"])
def test_all_queues_are_looked_at_over_http(at: Site, protocol: str) -> None:
    at.publish("", "dead", "a dead letter")
    waiting = "1 dead letter is in dead, and nobody reads them"
    until(lambda: waiting in said(examined(at, protocol), "dead-letters"))
    report = examined(at, protocol)
    assert at.get("dead", "ack_requeue_false") == ["a dead letter"]
    of_4 = at.broker.name == "rabbitmq4"
    removed = said(report, "removed", "error")
    if of_4:
        assert "queue://no-exchange: a message is removed after 21 failures (no dead-letter-exchange is set)" in removed
    else:
        assert "queue://no-exchange: a message is redelivered without a limit" in said(report, "no-limit")
    for name, why in (
        ("absent", "exchange 'absent' is not there"),
        ("unbound", "no binding of exchange 'empty' is there"),
        ("no-queue", "no queue 'nowhere' is there"),
    ):
        assert f"queue://{name}: a message is removed after 6 failures ({why}: dead letters are lost)" in removed
    assert any(each.startswith("queue://round: after 600 s in wait it would come back to round") for each in removed)
    assert len(removed) == (5 if of_4 else 4)
    assert any(each.startswith("queue://plain: a classic queue without any limit") for each in said(report, "no-limit"))
    assert "queue://plain: a message is removed when a client rejects it (no dead-letter-exchange is set)" in said(
        report, "removed", "warning"
    )
    assert said(report, "no-effect") == [
        "queue://by-policy: policy 'too-much' has no effect on a classic queue, which has no delivery-limit"
    ]
    of_names = ("queue://right", "queue://bounded:", "queue://dead:", "queue://events")
    assert [each for each in report.findings if each.what.startswith(of_names) and each.check != "prefetch"] == []
    assert "any other queue" not in str(report)
    few = 10 if at.version().startswith("4.0") else 100  # as the client's consumers have it
    charged = f"queue://right: a lost connection charges a delivery (of 6) to up to {few} prefetched messages"
    assert charged in said(report, "prefetch")
    assert [each for each in report.unchecked if "--management" in each] == []
    assert report.failed


def test_the_client_s_policy_is_compared_with_the_limit(at: Site) -> None:
    client = redelivery.policies.read("tcp://a:1?jms.redeliveryPolicy.maximumRedeliveries=4")
    report = examined(at, client=client)
    limits = said(report, "client-limit")
    assert "queue://limited: the client's policy allows 5 deliveries, and the broker sends it to dead after 3" in limits
    assert not any(each.startswith("queue://right") for each in limits)


def test_a_stream_that_is_read_as_a_queue_and_a_deprecated_feature_and_guest_are_said(at: Site) -> None:
    if at.broker.name == "rabbitmq":
        pytest.skip("what RabbitMQ 4 has: streams over AMQP 1.0, and a list of deprecated features")
    at.call("PUT", "queues", "transient", body=queue("transient", "classic", durable=False))
    with (
        redelivery.connect(at.broker.amqp_url, vhost=at.vhost) as connection,
        connection.session("client") as session,
        session.consumer("events"),
    ):
        until(
            lambda: said(examined(at), "stream") == ["queue://events is a stream, and 1 consumer reads it as a queue"]
        )
        report = examined(at)
    if at.version().startswith("4.0"):
        assert any("transient_nonexcl_queues is in use" in each for each in said(report, "deprecated"))
    assert any("guest" in each for each in said(report, "credentials"))


def test_without_its_management_the_option_is_named(at: Site) -> None:
    for protocol in ("amqp", "stomp"):
        unchecked = examined(at, protocol, managed=False).unchecked
        rules, *_, depths = unchecked
        assert rules.startswith("the broker's rules")
        assert "--management http://user:password@host:15672, or --config with its definitions" in rules
        assert "--management http://user:password@host:15672" in depths


def test_over_amqp_4_says_what_the_arguments_of_named_queues_say(at: Site) -> None:
    if at.broker.name == "rabbitmq":
        assert any("list_queues" in each for each in examined(at, managed=False, queues=["limited"]).unchecked)
        return
    at.publish("", "dead", "a dead letter")
    client = redelivery.policies.read("tcp://a:1?jms.redeliveryPolicy.maximumRedeliveries=4")
    asked = ["no-exchange", "limited", "plain", "dead", "not-there"]
    report = examined(at, managed=False, queues=asked, client=client)
    assert at.get("dead", "ack_requeue_false") == ["a dead letter"]
    unless = "unless a policy says otherwise"
    assert said(report, "removed", "warning")[0] == (
        f"queue://no-exchange: a message is removed after 21 failures (no dead-letter-exchange is set), {unless}"
    )
    assert said(report, "client-limit") == [
        f"queue://limited: the client's policy allows 5 deliveries, and the broker sends it to dead after 3, {unless}"
    ]
    assert any(each.startswith("queue://plain: a classic queue without any limit") for each in said(report, "no-limit"))
    assert said(report, "dead-letters") == ["1 dead letter is in dead, and nobody reads them"]
    assert not report.failed
    assert any("queues that nobody named by --queue: pass --management" in each for each in report.unchecked)


def test_the_command_takes_the_option(at: Site) -> None:
    where = ["--url", at.broker.stomp_url, "--vhost", at.vhost, "--management", at.broker.http_url]
    result = CliRunner().invoke(app, ["doctor", "--watch", "0", "--json", *where])
    found = json.loads(result.output)
    assert (result.exit_code, found["failed"]) == (1, True)
    assert any(each["what"].startswith("queue://absent: a message is removed") for each in found["findings"])


def test_definitions_say_the_same_without_a_broker_s_management(at: Site) -> None:
    definitions = at.call("GET", "definitions")
    report = examined(at, managed=False, config=read(json.dumps(definitions)))
    own = examined(at)
    for check in ("removed", "no-effect", "no-limit", "unbound"):
        assert {each for each in said(report, check) if "any other queue" not in each} == set(said(own, check))


def test_a_user_who_may_see_less_gets_what_it_may(at: Site) -> None:
    at.client.call("PUT", "/api/users/doctor", {"password": "doctor", "tags": "management"})
    try:
        at.call("PUT", "permissions", "doctor", body={"configure": "", "write": "", "read": ".*"})
        login = {"vhost": at.vhost, "username": "doctor", "password": "doctor", "management": at.broker.http_url}
        login["dialect"] = "rabbitmq"
        login["management"] = login["management"].replace("guest:guest", "doctor:doctor")
        report = examine(at.broker.amqp_url.replace("guest:guest@", ""), options=login, watch=0)  # type: ignore[arg-type]  # all are str
    finally:
        at.client.call("DELETE", "/api/users/doctor")
    assert any(each.startswith("queue://absent: a message is removed after 6") for each in said(report, "removed"))
