"""What the doctor says of RabbitMQ's rules and reports, without a broker."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.policies.readers.documents import read

from redelivery.model.capabilities import Capabilities, ConnectionMetaData
from redelivery.operate.doctor.configured import check_rules
from redelivery.operate.doctor.findings import Finding
from redelivery.operate.doctor.rabbitmq.reported import Feature, Reported, check_reported
from redelivery.operate.management.interface import ManagedQueue
from redelivery.operate.management.rabbitmq import RabbitManagement
from redelivery.policies.redelivery import RedeliveryPolicy
from redelivery.transports.management.address import ManagementAddress


def found(*queues: dict[str, Any], version: str = "4.0.5", client: int | None = None, **more: Any) -> list[Finding]:
    named = [{"vhost": "/", "durable": True, **each} for each in queues]
    policies = read(json.dumps({"rabbitmq_version": version, "queues": named, **more}))
    policy = None if client is None else RedeliveryPolicy(maximum_redeliveries=client)
    return list(check_rules(policies, (), client=policy, of_others=False))


def queue(name: str = "q", kind: str = "quorum", **arguments: Any) -> dict[str, Any]:
    given = {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}
    return {"name": name, "arguments": {"x-queue-type": kind, **given}}


def what(findings: list[Finding], check: str) -> list[tuple[str, str]]:
    return [(each.level, each.what) for each in findings if each.check == check]


@pytest.mark.parametrize(
    ("version", "arguments", "expected"),
    [
        ("4.0.5", {}, ("error", "queue://q: a message is removed after 21 failures (no dead-letter-exchange is set)")),
        ("4.3.6", {"delivery_limit": 2}, ("error", "queue://q: a message is removed after 3 failures (no dead")),
        ("4.0.5", {"delivery_limit": -1}, ("warning", "queue://q: a message is redelivered without a limit")),
        ("3.13.7", {}, ("warning", "queue://q: a message is redelivered without a limit")),
    ],
)
def test_a_quorum_queue_without_a_dead_letter_exchange(
    version: str, arguments: dict[str, Any], expected: tuple[str, str]
) -> None:
    findings = found(queue(**arguments), version=version)
    ((level, said),) = what(findings, "removed") + what(findings, "no-limit")
    assert (level, said.startswith(expected[1])) == (expected[0], True)


@pytest.mark.parametrize(
    ("client", "limit", "dead", "expected"),
    [
        (4, 2, True, ("warning", "the client's policy allows 5 deliveries, and the broker sends it to dead after 3")),
        (4, 2, False, ("error", "the client's policy allows 5 deliveries, and the broker removes it after 3")),
        (-1, 9, True, ("warning", "the client's policy allows any number of deliveries, and the broker sends it to")),
        (
            25,
            None,
            True,
            ("warning", "the client's policy allows 26 deliveries, and the broker sends it to dead after 21"),
        ),
        (2, 2, True, None),
        (6, -1, True, None),
    ],
)
def test_a_client_that_would_try_more_often_than_the_broker_lets_it(
    client: int, limit: int | None, dead: bool, expected: tuple[str, str] | None
) -> None:
    arguments: dict[str, Any] = {} if limit is None else {"delivery_limit": limit}
    routed: dict[str, Any] = {"dead_letter_exchange": "", "dead_letter_routing_key": "dead"} if dead else {}
    said = what(found(queue(**arguments, **routed), queue("dead", "classic"), client=client), "client-limit")
    if expected is None:
        assert said == []
    else:
        ((level, text),) = said
        assert (level, text.partition(": ")[2].startswith(expected[1])) == (expected[0], True)


def test_a_classic_queue_with_any_limit_is_none_without_and_one_for_dead_letters_needs_no_exchange() -> None:
    routed: dict[str, Any] = {"dead_letter_exchange": "", "dead_letter_routing_key": "dead"}
    findings = found(
        queue("plain", "classic", **routed),
        queue("long", "classic", max_length=10, **routed),
        queue("old", "classic", message_ttl=1000, **routed),
        queue("dead", "classic"),
        queue("events", "stream"),
    )
    assert [each.partition(" without")[0] for _, each in what(findings, "no-limit")] == [
        "queue://plain: a classic queue"
    ]
    assert what(findings, "removed") == []


def test_dead_letters_that_are_lost_on_their_way_are_errors() -> None:
    around = [queue(delivery_limit=2, dead_letter_exchange="", dead_letter_routing_key="wait")]
    around.append(queue("wait", "classic", message_ttl=5000, dead_letter_exchange="", dead_letter_routing_key="q"))
    ((level, said),) = what(found(*around), "removed")
    assert (level, "RabbitMQ drops what goes round" in said) == ("error", True)
    least = {"dead_letter_strategy": "at-least-once", "overflow": "reject-publish", "dead_letter_exchange": "dlx"}
    ((level, said),) = what(found(queue(**least), exchanges=[]), "unbound")
    assert (level, "exchange 'dlx' is not there: dead letters stay" in said) == ("error", True)


def test_what_the_management_reports() -> None:
    reported = Reported((Feature("amqp_address_v1", "permitted_by_default"),), 2, {"events": 1})
    findings = list(check_reported(reported, guest_is_said=False))
    assert [(each.check, each.what) for each in findings] == [
        ("deprecated", "the deprecated feature amqp_address_v1 is in use (permitted by default)"),
        ("credentials", "2 connections are of the user guest"),
        ("stream", "queue://events is a stream, and 1 consumer reads it as a queue"),
    ]
    assert {each.level for each in findings} == {"warning"}
    assert [each.check for each in check_reported(reported, guest_is_said=True)] == ["deprecated", "stream"]


@pytest.mark.parametrize(
    ("argument", "policy", "limit"), [(-1, 3, 3), (5, -1, 5), (-1, -2, None), (5, 3, 3), (None, None, 20), (0, 9, 0)]
)
def test_a_limit_below_0_gives_way_to_any_other(argument: int | None, policy: int | None, limit: int | None) -> None:
    address = ManagementAddress("http", "localhost", 1, "", "http://localhost:1", None, None)
    management = RabbitManagement(address, ConnectionMetaData("RabbitMQ", "4.0.5", "AMQP 1.0", Capabilities()))
    vars(management)["_overview"] = {"rabbitmq_version": "4.0.5"}
    arguments = {} if argument is None else {"x-delivery-limit": argument}
    settings = {} if policy is None else {"delivery-limit": policy}
    queue = ManagedQueue("q", "quorum", arguments=arguments, settings=settings)
    assert management.delivery_limit(queue) == limit
