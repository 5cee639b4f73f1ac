"""When a message has failed once too often, and what its dead letter says (ActiveMQ's rollback, per message)."""

from __future__ import annotations

from typing import cast

import pytest
from tests.client.ledger.fakes import AT_ONCE, JUST, Rig, policy

from redelivery.model.destinations import Queue
from redelivery.model.modes import AckMode
from redelivery.policies.redelivery import RedeliveryPolicy


@pytest.mark.parametrize(
    ("limit", "deliveries"),
    [(0, 1), (1, 2), (2, 3), (6, 7)],
    ids=["max 0 poisons the first rollback", "max 1", "max 2", "the default, seven deliveries"],
)
@pytest.mark.parametrize("non_blocking", [False, True])
def test_a_limit_of_n_allows_n_plus_1_deliveries(limit: int, deliveries: int, non_blocking: bool) -> None:
    rig = Rig(non_blocking=non_blocking)
    orders = rig.consumer(policy(limit, delay=1))
    rig.deliver(orders, "m1")
    for count in range(1, deliveries + 1):
        assert rig.poisoned == []
        assert rig.receive(orders) == "m1"
        assert rig.messages["m1"].redeliveries == count - 1
        rig.rollback()
        rig.advance(1)
    assert rig.poisoned == ["m1"]
    assert rig.receive(orders) is None


def test_a_limit_of_minus_1_never_poisons() -> None:
    rig = Rig()
    orders = rig.consumer(policy(-1, delay=0))
    rig.deliver(orders, "m1", wire_count=50)
    for _ in range(200):
        assert rig.receive(orders) == "m1"
        rig.rollback()
    assert rig.poisoned == []


def test_the_default_limit_is_six_redeliveries() -> None:
    rig = Rig()
    orders = rig.consumer(RedeliveryPolicy())
    rig.deliver(orders, "m1")
    shown = 0
    while rig.receive(orders) is not None:
        shown += 1
        rig.rollback()
        rig.advance(1)
    assert (shown, rig.poisoned) == (7, ["m1"])


@pytest.mark.parametrize(
    ("wire_count", "poisoned"), [(1, False), (2, False), (3, True)], ids=["new", "at the limit", "over it"]
)
def test_the_count_of_the_wire_and_the_local_one_are_one_number(wire_count: int, poisoned: bool) -> None:
    rig = Rig()
    orders = rig.consumer(policy(2, delay=0))
    rig.deliver(orders, "m1", wire_count=wire_count)
    rig.receive(orders)
    rig.rollback()
    assert rig.poisoned == (["m1"] if poisoned else [])


def test_each_message_of_a_batch_is_poisoned_by_its_own_count() -> None:
    """Java poisons the whole batch, or nothing of it, by the newest one's count."""
    rig = Rig()
    orders = rig.consumer(policy(1, delay=0))
    rig.deliver(orders, "old", wire_count=2)
    rig.deliver(orders, "new")
    rig.deliver(orders, "old too", wire_count=2)
    rig.receive_all(orders)
    rig.rollback()
    assert rig.poisoned == ["old", "old too"]
    assert rig.receive_all(orders) == ["new"]


def test_an_innocent_newest_message_is_not_dead_lettered_for_an_exhausted_older_one() -> None:
    """nonblocking-innocent-poisoned: Java dead-letters m2 on its first failure and strands m1."""
    rig = Rig(non_blocking=True)
    orders = rig.consumer(policy(1, delay=1))
    rig.deliver(orders, "m1", "m2")
    assert rig.receive(orders) == "m1"
    rig.rollback()
    assert rig.receive(orders) == "m2"
    rig.advance(1)
    assert rig.receive(orders) == "m1"
    rig.rollback()
    assert rig.poisoned == ["m1"]
    rig.advance(1)
    assert rig.receive_all(orders) == ["m2"]


def test_consumers_of_one_session_follow_their_own_policies() -> None:
    """two-consumers-different-policies."""
    rig = Rig()
    strict = rig.consumer(policy(0), queue="qa")
    patient = rig.consumer(policy(1), queue="qb")
    rig.deliver(strict, "a")
    rig.deliver(patient, "b")
    rig.receive_all(strict, patient)
    rig.rollback()
    assert rig.poisoned == ["a"]
    rig.advance(1)
    assert (rig.receive_all(strict), rig.receive_all(patient)) == ([], ["b"])


def test_a_wildcard_consumer_uses_the_policy_of_each_messages_real_queue() -> None:
    """Java uses the entry of the consumer's own pattern for all (policy-wildcard-consumer)."""
    policies = {"orders.eu": policy(0), "orders.us": policy(3, delay=2)}
    rig = Rig()
    orders = rig.consumer(lambda delivery: policies[cast(Queue, delivery.header("destination")).name], queue="orders.*")
    rig.deliver(orders, "eu", queue="orders.eu")
    rig.deliver(orders, "us", queue="orders.us")
    rig.receive_all(orders)
    rig.rollback()
    assert rig.poisoned == ["eu"]
    rig.advance(2 - JUST)
    assert rig.receive_all(orders) == []
    rig.advance(JUST)
    assert rig.receive_all(orders) == ["us"]


def test_poison_during_a_rollback_leaves_no_delay_behind() -> None:
    """Nothing is redelivered, so nothing waits: the next message follows at once."""
    rig = Rig()
    orders = rig.consumer(policy(0, delay=60))
    rig.deliver(orders, "bad", "good")
    rig.receive(orders)
    rig.rollback()
    assert rig.receive(orders) == "good"


def test_recover_poisons_as_rollback_does() -> None:
    rig = Rig(AckMode.CLIENT)
    orders = rig.consumer(policy(1, delay=0))
    rig.deliver(orders, "m1", wire_count=2)
    rig.receive(orders)
    rig.rollback()
    assert rig.poisoned == ["m1"]


class TestCause:
    """The exact texts of dlqDeliveryFailureCause."""

    LIMIT = (
        "RedeliveryPolicy {destination = null, collisionAvoidanceFactor = 0.15, maximumRedeliveries = 1, "
        "maximumRedeliveryDelay = -1, initialRedeliveryDelay = 0, useCollisionAvoidance = false, "
        "useExponentialBackOff = false, backOffMultiplier = 5.0, redeliveryDelay = 0, preDispatchCheck = true}"
    )

    def poison(self, *causes: BaseException | None) -> list[str]:
        rig = Rig()
        orders = rig.consumer(policy(1, delay=0))
        rig.deliver(orders, "m1")
        for cause in causes:
            assert rig.receive(orders) == "m1"
            rig.rollback(cause)
        return rig.causes

    def test_without_a_cause_it_says_null(self) -> None:
        assert self.poison(None, None) == [f"Delivery[2] exceeds redelivery policy limit:{self.LIMIT}, cause:null"]

    def test_it_names_the_failure_of_this_attempt_and_not_of_the_one_before(self) -> None:
        """Java is one attempt late (listener-transacted-rollback-throw)."""
        (cause,) = self.poison(ValueError("first"), KeyError("second"))
        assert cause == f"Delivery[2] exceeds redelivery policy limit:{self.LIMIT}, cause:KeyError: 'second'"

    def test_an_earlier_cause_stands_where_the_last_rollback_had_none(self) -> None:
        (cause,) = self.poison(ValueError("first"), None)
        assert cause.endswith(", cause:ValueError: first")

    def test_the_count_is_the_redelivery_that_will_not_be(self) -> None:
        rig = Rig()
        orders = rig.consumer(AT_ONCE)
        rig.deliver(orders, "m1", wire_count=9)
        rig.receive(orders)
        rig.rollback()
        assert rig.causes[0].startswith("Delivery[9] exceeds redelivery policy limit:RedeliveryPolicy {")

    def test_causes_of_different_messages_are_kept_apart(self) -> None:
        rig = Rig(AckMode.AUTO)
        orders = rig.consumer(policy(1, delay=0))
        rig.deliver(orders, "m1", "m2")
        for name in ("m1", "m1", "m2", "m2"):
            assert rig.receive(orders) == name
            rig.listener_failed(orders, ValueError(name))
        assert [cause.rpartition(", cause:")[2] for cause in rig.causes] == ["ValueError: m1", "ValueError: m2"]
