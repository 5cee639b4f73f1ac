"""A listener that raises, by mode (JMS 3.1, `MessageListener`, ActiveMQ's MessageConsumer), and one that recovers."""

from __future__ import annotations

import pytest
from tests.client.ledger.fakes import AT_ONCE, JUST, Rig, policy

from redelivery.model.modes import AckMode

ONE_BY_ONE = pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.DUPS_OK], ids=lambda mode: mode.name)


@ONE_BY_ONE
@pytest.mark.parametrize("non_blocking", [False, True])
def test_its_message_comes_again_after_the_delay(mode: AckMode, non_blocking: bool) -> None:
    """listener-auto-throw-once, listener-auto-throw-nonblocking."""
    rig = Rig(mode, non_blocking=non_blocking)
    orders = rig.consumer(policy(delay=1))
    rig.deliver(orders, "m1", "m2")
    rig.receive(orders)
    rig.listener_failed(orders)
    if non_blocking:
        assert rig.receive(orders) == "m2"
        rig.consumed("m2")
    rig.advance(1 - JUST)
    assert rig.receive(orders) is None
    rig.advance(JUST)
    assert (rig.receive(orders), rig.redeliveries("m1")) == ("m1", [1])
    assert "m1" not in rig.acknowledged


@ONE_BY_ONE
def test_one_that_always_fails_is_dead_lettered_with_its_last_failure(mode: AckMode) -> None:
    """listener-auto-throw-always, listener-dups-ok-poison."""
    rig = Rig(mode)
    orders = rig.consumer(policy(2, delay=0))
    rig.deliver(orders, "m1", "m2")
    for attempt in range(3):
        assert rig.receive(orders) == "m1"
        rig.listener_failed(orders, RuntimeError(f"attempt {attempt}"))
    assert rig.poisoned == ["m1"]
    assert rig.causes[0].startswith("Delivery[3] ")
    assert rig.causes[0].endswith("cause:RuntimeError: attempt 2")
    assert rig.receive(orders) == "m2"


@ONE_BY_ONE
def test_recover_inside_a_listener_that_returns_is_no_acknowledgement(mode: AckMode) -> None:
    """listener-auto-recover."""
    rig = Rig(mode)
    orders = rig.consumer(AT_ONCE)
    rig.deliver(orders, "m1")
    rig.receive(orders)
    rig.rollback()
    assert not rig.consumed("m1")
    assert (rig.receive(orders), rig.redeliveries("m1")) == ("m1", [1])
    assert rig.acknowledged == []


@ONE_BY_ONE
def test_recover_inside_a_listener_that_raises_is_counted_once(mode: AckMode) -> None:
    """listener-auto-recover-throw."""
    rig = Rig(mode)
    orders = rig.consumer(policy(1, delay=1))
    rig.deliver(orders, "m1")
    rig.receive(orders)
    rig.rollback()
    rig.listener_failed(orders)
    assert (rig.redeliveries("m1"), rig.poisoned) == ([1], [])
    rig.advance(1)
    assert rig.receive(orders) == "m1"


@ONE_BY_ONE
def test_recover_that_poisons_inside_a_listener_is_the_end_of_the_message(mode: AckMode) -> None:
    rig = Rig(mode)
    orders = rig.consumer(policy(0))
    rig.deliver(orders, "m1")
    rig.receive(orders)
    rig.rollback()
    assert not rig.consumed("m1")
    rig.listener_failed(orders)
    assert rig.poisoned == ["m1"]


def test_individual_rolls_back_all_unacknowledged_of_that_consumer() -> None:
    """individual-listener-throw: not only the one that failed."""
    rig = Rig(AckMode.INDIVIDUAL)
    orders, other = rig.consumer(policy(delay=1)), rig.consumer(policy(delay=1), queue="other")
    rig.deliver(orders, "m1", "m2", "m3", "m4")
    rig.deliver(other, "o1")
    assert [rig.receive(each) for each in (orders, other, orders, orders)] == ["m1", "o1", "m2", "m3"]
    rig.acknowledge("m2")
    rig.listener_failed(orders)
    assert rig.redeliveries("m1", "m2", "m3", "o1") == [1, 0, 1, 0]
    assert rig.acknowledge("o1")
    rig.advance(1)
    assert rig.receive_all(orders) == ["m1", "m3", "m4"]


def test_individual_waits_once_for_all_of_them_the_delay_of_the_newest() -> None:
    rig = Rig(AckMode.INDIVIDUAL)
    orders = rig.consumer(policy(delay=1, use_exponential_back_off=True, back_off_multiplier=2))
    rig.deliver(orders, "m1", wire_count=3)
    rig.deliver(orders, "m2")
    rig.receive_all(orders)
    rig.listener_failed(orders)
    assert rig.ledger.next_deadline(orders) == rig.now + 1


@pytest.mark.parametrize("mode", [AckMode.TRANSACTED, AckMode.CLIENT], ids=lambda mode: mode.name)
def test_elsewhere_the_next_message_is_delivered_and_a_rollback_takes_both(mode: AckMode) -> None:
    """listener-transacted-throw: the ledger is not notified, the message stays unacknowledged."""
    rig = Rig(mode)
    orders = rig.consumer(AT_ONCE)
    rig.deliver(orders, "m1", "m2")
    assert rig.receive_all(orders) == ["m1", "m2"]
    rig.rollback()
    assert rig.receive_all(orders) == ["m1", "m2"]


@ONE_BY_ONE
def test_two_consumers_one_fails_the_other_goes_on(mode: AckMode) -> None:
    """listener-two-consumers."""
    rig = Rig(mode)
    qa, qb = rig.consumer(policy(delay=1), queue="qa"), rig.consumer(policy(delay=1), queue="qb")
    rig.deliver(qa, "a1")
    rig.deliver(qb, "b1", "b2")
    rig.receive(qa)
    rig.listener_failed(qa)
    assert rig.receive(qa) is None
    for name in ("b1", "b2"):
        assert rig.receive(qb) == name
        assert rig.consumed(name)


@ONE_BY_ONE
def test_one_that_closes_its_consumer_and_raises_gives_the_message_back(mode: AckMode) -> None:
    """listener-close-throw-inside: Java's close acknowledges it, which loses it."""
    rig = Rig(mode)
    orders = rig.consumer(policy(delay=1))
    rig.deliver(orders, "m1")
    rig.receive(orders)
    rig.close_consumer(orders)
    assert not rig.detached(orders)
    rig.listener_failed(orders)
    assert rig.detached(orders)
    assert rig.acknowledged == []


@ONE_BY_ONE
def test_one_that_closes_its_consumer_and_returns_acknowledges(mode: AckMode) -> None:
    """listener-close-inside."""
    rig = Rig(mode)
    orders = rig.consumer()
    rig.deliver(orders, "m1", "m2")
    rig.receive(orders)
    rig.close_consumer(orders)
    assert rig.consumed("m1")
    assert (rig.acknowledged, rig.released) == (["m1"], ["m2"])
    assert rig.detached(orders)
