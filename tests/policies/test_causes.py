"""The texts of dlqDeliveryFailureCause, as ActiveMQ's own client writes them (recorded from activemq-client 5.18)."""

from __future__ import annotations

import pytest

from redelivery.model.errors import ConfigError
from redelivery.policies.activemq.causes import (
    MAX_CAUSE,
    delivery_cause,
    describe_cause,
    dispatch_cause,
    expired_cause,
    policy_of,
)
from redelivery.policies.destinations.redelivery_map import RedeliveryPolicyMap
from redelivery.policies.redelivery import RedeliveryPolicy


class Half:
    def random(self) -> float:
        return 0.5


def policy(**options: object) -> RedeliveryPolicy:
    return RedeliveryPolicy.from_activemq(options)


TAIL = "preDispatchCheck = true}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            delivery_cause(1, policy(maximumRedeliveries=0, initialRedeliveryDelay=20, redeliveryDelay=20), None),
            "Delivery[1] exceeds redelivery policy limit:RedeliveryPolicy {destination = null, "
            "collisionAvoidanceFactor = 0.15, maximumRedeliveries = 0, maximumRedeliveryDelay = -1, "
            "initialRedeliveryDelay = 20, useCollisionAvoidance = false, useExponentialBackOff = false, "
            f"backOffMultiplier = 5.0, redeliveryDelay = 20, {TAIL}, cause:null",
        ),
        (
            delivery_cause(
                3,
                policy(
                    maximumRedeliveries=2,
                    initialRedeliveryDelay=40,
                    redeliveryDelay=40,
                    useExponentialBackOff=True,
                    backOffMultiplier=3,
                ),
                ValueError("fail m1 #3"),
            ),
            "Delivery[3] exceeds redelivery policy limit:RedeliveryPolicy {destination = null, "
            "collisionAvoidanceFactor = 0.15, maximumRedeliveries = 2, maximumRedeliveryDelay = -1, "
            "initialRedeliveryDelay = 40, useCollisionAvoidance = false, useExponentialBackOff = true, "
            f"backOffMultiplier = 3.0, redeliveryDelay = 40, {TAIL}, cause:ValueError: fail m1 #3",
        ),
        (
            dispatch_cause(
                3, "ID:c-1:1:1", policy(maximumRedeliveries=1, initialRedeliveryDelay=50, redeliveryDelay=50)
            ),
            "Dispatch[3] to ID:c-1:1:1 exceeds redelivery policy limit:RedeliveryPolicy {destination = null, "
            "collisionAvoidanceFactor = 0.15, maximumRedeliveries = 1, maximumRedeliveryDelay = -1, "
            "initialRedeliveryDelay = 50, useCollisionAvoidance = false, useExponentialBackOff = false, "
            f"backOffMultiplier = 5.0, redeliveryDelay = 50, {TAIL}",
        ),
        (expired_cause(1700000000000), "Message Expired. Expiration:1700000000000"),
    ],
)
def test_recorded_texts(text: str, expected: str) -> None:
    assert text == expected


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("queue://orders.*", "queue://orders.*"),
        ("orders.new", "orders.new"),
        ("queue://other,orders.new", "other,orders.new"),  # ActiveMQ writes a composite without its scheme
    ],
)
def test_the_policy_of_a_map_names_its_entry(key: str, shown: str) -> None:
    policies = RedeliveryPolicyMap({key: RedeliveryPolicy(maximum_redeliveries=2)})
    assert f"RedeliveryPolicy {{destination = {shown}, coll" in delivery_cause(
        3, policies.policy_for("orders.new"), None
    )
    assert "{destination = null," in delivery_cause(3, policies.policy_for("elsewhere"), None)


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class Outer:
    class InnerError(Exception):
        pass


@pytest.mark.parametrize(
    ("cause", "expected"),
    [
        (None, "null"),
        (ValueError("bad"), "ValueError: bad"),
        (KeyError("k"), "KeyError: 'k'"),
        (ValueError(), "ValueError"),
        (ConfigError("no"), "redelivery.ConfigError: no"),
        (Outer.InnerError("x"), f"{__name__}.Outer.InnerError: x"),
        (Unspeakable(), f"{__name__}.Unspeakable: <its text cannot be read: RuntimeError>"),
        (ValueError("two\r\nlines\0\x1b[31m"), "ValueError: two  lines  [31m"),
        (ValueError("half \ud800 pair"), "ValueError: half   pair"),
        (ValueError("Grüße 😀"), "ValueError: Grüße 😀"),
        ("said so", "said so"),
    ],
)
def test_causes(cause: BaseException | str | None, expected: str) -> None:
    assert describe_cause(cause) == expected


def test_a_long_cause_is_cut() -> None:
    text = describe_cause(ValueError("x" * 10_000_000))
    assert len(text) == MAX_CAUSE
    assert text.startswith("ValueError: xxx")
    assert text.endswith("…")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"maximumRedeliveries": 3, "useExponentialBackOff": "true", "redeliveryDelay": 12345, "backOffMultiplier": 2.5},
        {"useCollisionAvoidance": "true", "collisionAvoidancePercent": 50, "maximumRedeliveryDelay": 5000000},
        {"maximumRedeliveries": -1, "initialRedeliveryDelay": 0, "backOffMultiplier": 1e9},
    ],
    ids=str,
)
def test_a_cause_says_its_policy(options: dict[str, object]) -> None:
    limit = policy(**options)
    found = policy_of(f"java.lang.Throwable: {delivery_cause(4, limit, 'x')}")
    assert found is not None
    assert found.maximum_redeliveries == limit.maximum_redeliveries
    for n in (1, 2, 5):
        assert found.delay(n, Half()) == limit.delay(n, Half())


@pytest.mark.parametrize(
    "text",
    ["", "Message Expired. Expiration:1", "RedeliveryPolicy {}", "RedeliveryPolicy {collisionAvoidanceFactor = inf}"],
)
def test_a_cause_of_another_kind_says_none(text: str) -> None:
    assert policy_of(text) is None
