"""The wait before a redelivery, blocking: at the head, in order, and only its own consumer stands still."""

from __future__ import annotations

import pytest
from tests.client.ledger.fakes import JUST, Rig, policy

from redelivery.model.modes import AckMode


def test_a_rolled_back_batch_comes_again_at_the_head_and_in_order() -> None:
    """batch-order: three of five."""
    rig = Rig()
    orders = rig.consumer(policy(delay=1))
    rig.deliver(orders, "m1", "m2", "m3", "m4", "m5")
    assert [rig.receive(orders) for _ in range(3)] == ["m1", "m2", "m3"]
    rig.rollback()
    rig.advance(1)
    assert rig.receive_all(orders) == ["m1", "m2", "m3", "m4", "m5"]
    assert rig.redeliveries("m1", "m2", "m3", "m4", "m5") == [1, 1, 1, 0, 0]


@pytest.mark.parametrize("late", [JUST, 0.1], ids=["just before", "a tenth before"])
def test_nothing_comes_before_the_delay_is_over_and_it_comes_exactly_then(late: float) -> None:
    rig = Rig()
    orders = rig.consumer(policy(delay=1))
    rig.deliver(orders, "m1", "m2")
    rig.receive(orders)
    rig.rollback()
    assert rig.receive(orders) is None
    rig.advance(1 - late)
    assert rig.receive(orders) is None
    rig.advance(late)
    assert rig.receive_all(orders) == ["m1", "m2"]


def test_prefetched_messages_wait_behind_the_batch() -> None:
    """Head-of-line blocking, and their counts stay as they were."""
    rig = Rig()
    orders = rig.consumer(policy(delay=1))
    rig.deliver(orders, "m1", "m2")
    rig.receive(orders)
    rig.rollback()
    assert rig.receive_all(orders) == []
    assert rig.redeliveries("m2") == [0]


def test_a_message_that_arrives_during_the_delay_waits_behind_the_batch() -> None:
    """send-during-delay."""
    rig = Rig()
    orders = rig.consumer(policy(delay=1))
    rig.deliver(orders, "m1")
    rig.receive(orders)
    rig.rollback()
    rig.deliver(orders, "m2")
    assert rig.receive_all(orders) == []
    rig.advance(1)
    assert rig.receive_all(orders) == ["m1", "m2"]


def test_only_the_consumer_with_the_failure_stands_still() -> None:
    """listener-two-consumers."""
    rig = Rig(AckMode.INDIVIDUAL)
    qa, qb = rig.consumer(policy(delay=1), queue="qa"), rig.consumer(policy(delay=1), queue="qb")
    rig.deliver(qa, "a1", "a2")
    rig.deliver(qb, "b1", "b2")
    rig.receive(qa)
    rig.listener_failed(qa)
    assert rig.receive_all(qb) == ["b1", "b2"]
    assert rig.receive_all(qa) == []


def test_a_rollback_over_two_consumers_gives_each_its_own_back() -> None:
    """two-consumers-one-session-two-queues."""
    rig = Rig()
    qa, qb = rig.consumer(policy(delay=1), queue="qa"), rig.consumer(policy(delay=2), queue="qb")
    rig.deliver(qa, "a1", "a2")
    rig.deliver(qb, "b1", "b2")
    assert [rig.receive(each) for each in (qa, qb, qa, qb)] == ["a1", "b1", "a2", "b2"]
    rig.rollback()
    rig.advance(1)
    assert (rig.receive_all(qa), rig.receive_all(qb)) == (["a1", "a2"], [])
    rig.advance(1)
    assert rig.receive_all(qb) == ["b1", "b2"]


def test_a_consumer_that_received_nothing_is_not_stopped_by_a_rollback() -> None:
    rig = Rig()
    qa, qb = rig.consumer(policy(delay=1), queue="qa"), rig.consumer(policy(delay=1), queue="qb")
    rig.deliver(qa, "a1")
    rig.deliver(qb, "b1")
    rig.receive(qa)
    rig.rollback()
    assert rig.receive(qb) == "b1"


@pytest.mark.parametrize("counts", [(1, 3), (3, 1)], ids=["newest waits longest", "newest waits shortest"])
def test_the_batch_waits_the_delay_of_its_newest_message(counts: tuple[int, int]) -> None:
    """Back-off 1, 2, 4: the count of the newest decides, whatever the older ones would wait."""
    rig = Rig()
    orders = rig.consumer(policy(delay=1, use_exponential_back_off=True, back_off_multiplier=2))
    for name, count in zip(("older", "newest"), counts, strict=True):
        rig.deliver(orders, name, wire_count=count)
    rig.receive_all(orders)
    rig.rollback()
    delay = {1: 1.0, 3: 4.0}[counts[1]]
    rig.advance(delay - JUST)
    assert rig.receive_all(orders) == []
    rig.advance(JUST)
    assert rig.receive_all(orders) == ["older", "newest"]


def test_the_newest_of_those_that_come_again_decides_where_the_newest_was_poisoned() -> None:
    """The rules are silent here; a dead-lettered message waits for nothing."""
    rig = Rig()
    orders = rig.consumer(policy(2, delay=1, use_exponential_back_off=True, back_off_multiplier=2))
    rig.deliver(orders, "again")
    rig.deliver(orders, "exhausted", wire_count=3)
    rig.receive_all(orders)
    rig.rollback()
    assert rig.poisoned == ["exhausted"]
    rig.advance(1)
    assert rig.receive_all(orders) == ["again"]


def test_delays_follow_each_messages_own_count_and_nothing_is_stored_between_rollbacks() -> None:
    """AMQ-8617: a fresh message starts with the initial delay, whatever its consumer went through before."""
    rig = Rig()
    orders = rig.consumer(
        policy(
            -1, initial_redelivery_delay=0.5, redelivery_delay=9, use_exponential_back_off=True, back_off_multiplier=3
        )
    )
    rig.deliver(orders, "m1")
    for delay in (0.5, 1.5, 4.5):
        assert rig.receive(orders) == "m1"
        rig.rollback()
        rig.advance(delay - JUST)
        assert rig.receive(orders) is None
        rig.advance(JUST)
    rig.receive(orders)
    rig.commit()
    rig.deliver(orders, "m2")
    rig.receive(orders)
    rig.rollback()
    rig.advance(0.5)
    assert rig.receive(orders) == "m2"


def test_a_delay_of_zero_is_at_once_and_still_at_the_head() -> None:
    """batch-order-zero-delay."""
    rig = Rig()
    orders = rig.consumer(policy(delay=0))
    rig.deliver(orders, "m1", "m2", "m3")
    rig.receive(orders)
    rig.receive(orders)
    rig.rollback()
    assert rig.receive_all(orders) == ["m1", "m2", "m3"]


@pytest.mark.parametrize("mode", list(AckMode), ids=lambda mode: mode.name)
def test_with_nothing_held_nothing_happens_not_even_a_delay(mode: AckMode) -> None:
    """rollback-nothing-received, client-recover-nothing."""
    rig = Rig(mode)
    orders = rig.consumer(policy(0, delay=60))
    rig.deliver(orders, "m1")
    rig.rollback()
    assert rig.done == []
    assert rig.receive(orders) == "m1"
    assert rig.redeliveries("m1") == [0]


def test_a_second_rollback_right_after_the_first_changes_nothing() -> None:
    """rollback-twice."""
    rig = Rig()
    orders = rig.consumer(policy(delay=1))
    rig.deliver(orders, "m1")
    rig.receive(orders)
    rig.rollback()
    rig.advance(0.5)
    rig.rollback()
    assert rig.redeliveries("m1") == [1]
    rig.advance(0.5)
    assert rig.receive(orders) == "m1"


def test_what_was_committed_does_not_come_again() -> None:
    """commit-then-rollback."""
    rig = Rig()
    orders = rig.consumer(policy(delay=0))
    rig.deliver(orders, "m1", "m2", "m3")
    rig.receive(orders)
    assert rig.commit() == ["m1"]
    rig.receive_all(orders)
    rig.rollback()
    assert rig.receive_all(orders) == ["m2", "m3"]


def test_a_batch_may_come_again_in_smaller_pieces() -> None:
    """rollback-then-commit-part."""
    rig = Rig()
    orders = rig.consumer(policy(delay=0))
    rig.deliver(orders, "m1", "m2", "m3")
    rig.receive_all(orders)
    rig.rollback()
    assert rig.receive(orders) == "m1"
    assert rig.commit() == ["m1"]
    assert rig.receive_all(orders) == ["m2", "m3"]
    rig.rollback()
    assert rig.receive_all(orders) == ["m2", "m3"]
    assert rig.redeliveries("m1", "m2", "m3") == [1, 2, 2]


class TestDeadline:
    """When a session must look again."""

    def test_it_is_the_end_of_the_wait(self) -> None:
        rig = Rig()
        orders = rig.consumer(policy(delay=1))
        rig.deliver(orders, "m1")
        rig.receive(orders)
        rig.rollback()
        assert rig.ledger.next_deadline() == rig.ledger.next_deadline(orders) == rig.now + 1

    def test_nothing_waits_nothing_is_due(self) -> None:
        rig = Rig()
        orders = rig.consumer(policy(delay=1))
        rig.deliver(orders, "m1")
        assert rig.ledger.next_deadline() == float("inf")
        rig.receive(orders)
        assert rig.ledger.next_deadline() == float("inf")

    def test_a_wait_of_another_consumer_does_not_concern_this_one(self) -> None:
        rig = Rig()
        qa, qb = rig.consumer(policy(delay=1), queue="qa"), rig.consumer(policy(delay=1), queue="qb")
        rig.deliver(qa, "m1")
        rig.receive(qa)
        rig.rollback()
        assert rig.ledger.next_deadline(qb) == float("inf")

    def test_a_wait_that_is_over_is_no_deadline_any_more_though_nobody_receives(self) -> None:
        """Or a session that waits for its other consumer would never sleep again (listener-removed-during-delay)."""
        rig = Rig()
        orders = rig.consumer(policy(delay=1))
        rig.deliver(orders, "m1")
        rig.receive(orders)
        rig.rollback()
        rig.advance(1)
        rig.ledger.tick(rig.now)
        assert rig.ledger.next_deadline() > rig.now
