"""The wait before a redelivery, non-blocking: others overtake, the batch comes back at the tail."""

from __future__ import annotations

from tests.client.ledger.fakes import JUST, Rig, policy

from redelivery.model.modes import AckMode


def test_other_messages_overtake_and_the_batch_comes_at_the_tail_in_order() -> None:
    """batch-order-nonblocking."""
    rig = Rig(non_blocking=True)
    orders = rig.consumer(policy(delay=1))
    rig.deliver(orders, "m1", "m2", "m3", "m4", "m5")
    assert [rig.receive(orders) for _ in range(3)] == ["m1", "m2", "m3"]
    rig.rollback()
    assert rig.receive_all(orders) == ["m4", "m5"]
    rig.deliver(orders, "m6")
    rig.advance(1)
    assert rig.receive_all(orders) == ["m6", "m1", "m2", "m3"]


def test_nothing_comes_early_and_all_of_one_rollback_come_together() -> None:
    """One delay for the batch, that of its newest message."""
    rig = Rig(non_blocking=True)
    orders = rig.consumer(policy(delay=1, use_exponential_back_off=True, back_off_multiplier=2))
    rig.deliver(orders, "older", wire_count=3)
    rig.deliver(orders, "newest")
    rig.receive_all(orders)
    rig.rollback()
    rig.advance(1 - JUST)
    assert rig.receive_all(orders) == []
    rig.advance(JUST)
    assert rig.receive_all(orders) == ["older", "newest"]


def test_two_batches_come_in_the_order_in_which_their_waits_end() -> None:
    """nonblocking-two-batches."""
    rig = Rig(non_blocking=True)
    slow, quick = rig.consumer(policy(delay=3), queue="slow"), rig.consumer(policy(delay=1), queue="quick")
    rig.deliver(slow, "s")
    rig.deliver(quick, "q")
    rig.receive_all(slow, quick)
    rig.rollback()
    assert rig.ledger.next_deadline() == rig.now + 1
    rig.advance(1)
    assert rig.receive_all(slow, quick) == ["q"]
    assert rig.ledger.next_deadline() == rig.now + 2
    rig.advance(2)
    assert rig.receive_all(slow, quick) == ["s"]


def test_waits_that_end_together_keep_the_order_of_their_rollbacks() -> None:
    rig = Rig(non_blocking=True)
    orders = rig.consumer(policy(delay=1))
    rig.deliver(orders, "m1", "m2")
    for _ in range(2):
        rig.receive(orders)
        rig.rollback()
    rig.advance(1)
    assert rig.receive_all(orders) == ["m1", "m2"]


def test_a_delay_of_zero_appends_at_the_tail_at_once() -> None:
    rig = Rig(non_blocking=True)
    orders = rig.consumer(policy(delay=0))
    rig.deliver(orders, "m1", "m2")
    rig.receive(orders)
    rig.rollback()
    assert rig.receive_all(orders) == ["m2", "m1"]
    assert rig.parked == []


def test_delayed_deliveries_are_parked_and_unparked() -> None:
    """They must not count against the window."""
    rig = Rig(non_blocking=True)
    orders = rig.consumer(policy(delay=1))
    rig.deliver(orders, "m1", "m2")
    rig.receive_all(orders)
    rig.rollback()
    assert (rig.parked, rig.unparked) == (["m1", "m2"], [])
    rig.advance(1)
    rig.receive(orders)
    assert rig.unparked == ["m1", "m2"]


def test_a_commit_meanwhile_does_not_cover_what_waits() -> None:
    """client-ack-out-of-order-nonblocking: Java loses the acknowledge."""
    rig = Rig(AckMode.CLIENT, non_blocking=True)
    orders = rig.consumer(policy(delay=1))
    rig.deliver(orders, "m1", "m2")
    rig.receive(orders)
    rig.rollback()
    assert rig.receive(orders) == "m2"
    assert rig.commit() == ["m2"]
    rig.advance(1)
    assert rig.receive(orders) == "m1"
    assert rig.commit() == ["m1"]


def test_a_rollback_meanwhile_does_not_count_what_waits() -> None:
    rig = Rig(non_blocking=True)
    orders = rig.consumer(policy(1, delay=1))
    rig.deliver(orders, "m1", "m2")
    rig.receive(orders)
    rig.rollback()
    rig.receive(orders)
    rig.rollback()
    assert rig.redeliveries("m1", "m2") == [1, 1]
    assert rig.poisoned == []


class TestMaxDelayed:
    """So many wait beside the consumer; the rest waits in its way."""

    def test_beyond_it_a_batch_waits_blocking_at_the_head(self) -> None:
        rig = Rig(non_blocking=True, max_delayed=2)
        orders = rig.consumer(policy(delay=1))
        rig.deliver(orders, "m1", "m2", "m3", "m4")
        rig.receive(orders)
        rig.receive(orders)
        rig.rollback()
        rig.advance(0.5)
        assert rig.receive(orders) == "m3"
        rig.rollback()
        assert rig.parked == ["m1", "m2"]
        assert rig.receive(orders) is None
        rig.advance(0.5)
        assert rig.receive(orders) is None
        rig.advance(0.5)
        assert rig.receive_all(orders) == ["m3", "m4", "m1", "m2"]

    def test_the_room_is_there_again_when_the_wait_is_over(self) -> None:
        rig = Rig(non_blocking=True, max_delayed=1)
        orders = rig.consumer(policy(-1, delay=1))
        rig.deliver(orders, "m1")
        for _ in range(3):
            assert rig.receive(orders) == "m1"
            rig.rollback()
            rig.advance(1)
        assert rig.parked == [*rig.unparked, "m1"] == ["m1", "m1", "m1"]

    def test_it_counts_over_all_consumers_of_the_session(self) -> None:
        rig = Rig(non_blocking=True, max_delayed=1)
        qa, qb = rig.consumer(policy(delay=1), queue="qa"), rig.consumer(policy(delay=1), queue="qb")
        rig.deliver(qa, "a1", "a2")
        rig.deliver(qb, "b1", "b2")
        rig.receive(qa)
        rig.receive(qb)
        rig.rollback()
        assert (rig.receive(qa), rig.receive(qb)) == ("a2", None)


def test_an_exhausted_message_leaves_and_the_others_have_passed() -> None:
    """nonblocking-max-exceeded-single."""
    rig = Rig(non_blocking=True)
    orders = rig.consumer(policy(1, delay=1))
    rig.deliver(orders, "m1", "m2", "m3")
    shown = []
    for _ in range(3):
        while (name := rig.receive(orders)) is not None:
            shown.append(name)
            if name == "m1":
                rig.rollback()
            else:
                rig.commit()
        rig.advance(1)
    assert shown == ["m1", "m2", "m3", "m1"]
    assert rig.poisoned == ["m1"]
