"""Which messages an acknowledgement covers, and that nothing else is ever acknowledged."""

from __future__ import annotations

import pytest
from tests.client.ledger.fakes import AT_ONCE, Rig, policy

from redelivery.model.modes import AckMode


def test_client_covers_all_consumers_of_the_session() -> None:
    """JMS 3.1, `Message.acknowledge`."""
    rig = Rig(AckMode.CLIENT)
    qa, qb = rig.consumer(queue="qa"), rig.consumer(queue="qb")
    rig.deliver(qa, "a1", "a2")
    rig.deliver(qb, "b1")
    assert [rig.receive(each) for each in (qa, qb)] == ["a1", "b1"]
    assert rig.commit() == ["a1", "b1"]
    rig.rollback()
    assert rig.receive(qa) == "a2"


def test_client_covers_what_was_delivered_later_than_the_message_too() -> None:
    """client-ack-covers-later."""
    rig = Rig(AckMode.CLIENT)
    orders = rig.consumer()
    rig.deliver(orders, "m1", "m2", "m3")
    rig.receive_all(orders)
    assert rig.commit() == ["m1", "m2", "m3"]
    rig.rollback()
    assert rig.receive(orders) is None


def test_client_does_not_cover_what_was_only_prefetched() -> None:
    rig = Rig(AckMode.CLIENT)
    orders = rig.consumer()
    rig.deliver(orders, "m1", "m2")
    rig.receive(orders)
    assert rig.commit() == ["m1"]
    assert rig.receive(orders) == "m2"


@pytest.mark.parametrize("non_blocking", [False, True])
def test_client_a_stale_object_during_the_delay_has_no_effect(non_blocking: bool) -> None:
    """client-stale-ack-after-recover."""
    rig = Rig(AckMode.CLIENT, non_blocking=non_blocking)
    orders = rig.consumer(policy(delay=1))
    rig.deliver(orders, "m1")
    rig.receive(orders)
    rig.rollback()
    assert rig.commit() == []
    rig.advance(1)
    assert rig.receive(orders) == "m1"


def test_client_acknowledging_twice_is_harmless() -> None:
    """client-ack-twice."""
    rig = Rig(AckMode.CLIENT)
    orders = rig.consumer()
    rig.deliver(orders, "m1")
    rig.receive(orders)
    assert [rig.commit(), rig.commit()] == [["m1"], []]


@pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.DUPS_OK], ids=lambda mode: mode.name)
def test_auto_acknowledges_when_the_listener_has_returned_and_not_before(mode: AckMode) -> None:
    """JMS 3.1, §6.2.10."""
    rig = Rig(mode)
    orders = rig.consumer()
    rig.deliver(orders, "m1", "m2")
    rig.receive(orders)
    assert (rig.acknowledged, rig.done) == ([], [])
    assert rig.consumed("m1")
    assert rig.acknowledged == ["m1"]
    assert not rig.consumed("m1")


@pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.DUPS_OK], ids=lambda mode: mode.name)
def test_auto_recover_after_the_acknowledgement_brings_nothing_back(mode: AckMode) -> None:
    """recover-auto, dups-ok-recover."""
    rig = Rig(mode)
    orders = rig.consumer()
    rig.deliver(orders, "m1")
    rig.receive(orders)
    rig.consumed("m1")
    rig.rollback()
    assert rig.receive(orders) is None


@pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.DUPS_OK], ids=lambda mode: mode.name)
def test_auto_receive_takes_a_message_for_good(mode: AckMode) -> None:
    """A receive acknowledges before it returns, so what it takes is never redelivered from here."""
    rig = Rig(mode)
    orders = rig.consumer()
    rig.deliver(orders, "m1")
    assert rig.ledger.take(orders, rig.now) is rig.messages["m1"]
    rig.rollback()
    assert (rig.receive(orders), rig.redeliveries("m1")) == (None, [0])


def test_auto_receive_sees_neither_expired_nor_waiting_messages() -> None:
    rig = Rig(AckMode.AUTO)
    orders = rig.consumer(policy(delay=1))
    rig.deliver(orders, "expired", expires=rig.wall)
    rig.deliver(orders, "m1")
    rig.receive(orders)
    rig.listener_failed(orders)
    assert rig.poisoned == ["expired"]
    assert rig.ledger.take(orders, rig.now) is None
    rig.advance(1)
    assert rig.ledger.take(orders, rig.now) is rig.messages["m1"]


class TestIndividual:
    """ActiveMQ's INDIVIDUAL_ACKNOWLEDGE: that message and no other."""

    def test_it_covers_one(self) -> None:
        """individual-recover: the first and third return in order."""
        rig = Rig(AckMode.INDIVIDUAL)
        orders = rig.consumer(AT_ONCE)
        rig.deliver(orders, "m1", "m2", "m3")
        rig.receive_all(orders)
        assert rig.acknowledge("m2")
        assert rig.acknowledged == ["m2"]
        rig.rollback()
        assert rig.receive_all(orders) == ["m1", "m3"]

    def test_twice_is_harmless(self) -> None:
        """individual-ack-twice."""
        rig = Rig(AckMode.INDIVIDUAL)
        orders = rig.consumer()
        rig.deliver(orders, "m1")
        rig.receive(orders)
        assert [rig.acknowledge("m1"), rig.acknowledge("m1")] == [True, False]
        assert rig.acknowledged == ["m1"]

    def test_in_any_order(self) -> None:
        """individual-ack-reverse."""
        rig = Rig(AckMode.INDIVIDUAL)
        orders = rig.consumer()
        rig.deliver(orders, "m1", "m2", "m3")
        rig.receive_all(orders)
        assert all([rig.acknowledge("m3"), rig.acknowledge("m1"), rig.acknowledge("m2")])
        rig.rollback()
        assert rig.receive(orders) is None

    @pytest.mark.parametrize("non_blocking", [False, True])
    def test_a_stale_object_acknowledges_nothing_during_the_delay(self, non_blocking: bool) -> None:
        """individual-stale-ack-after-recover: Java removes it at the broker, and redelivers it all the same."""
        rig = Rig(AckMode.INDIVIDUAL, non_blocking=non_blocking)
        orders = rig.consumer(policy(delay=1))
        rig.deliver(orders, "m1")
        rig.receive(orders)
        rig.rollback()
        assert not rig.acknowledge("m1", redeliveries=0)
        assert not rig.acknowledge("m1", redeliveries=1)
        rig.advance(1)
        assert rig.receive(orders) == "m1"

    def test_a_stale_object_acknowledges_nothing_after_the_redelivery_either(self) -> None:
        rig = Rig(AckMode.INDIVIDUAL)
        orders = rig.consumer(AT_ONCE)
        rig.deliver(orders, "m1")
        rig.receive(orders)
        rig.rollback()
        rig.receive(orders)
        assert not rig.acknowledge("m1", redeliveries=0)
        assert rig.acknowledge("m1", redeliveries=1)


@pytest.mark.parametrize("mode", list(AckMode), ids=lambda mode: mode.name)
def test_first_delivery_is_counted_one_and_a_redelivery_two(mode: AckMode) -> None:
    """JMS 3.1, §3.5.11: the message object's count is the wire's plus the local redeliveries."""
    rig = Rig(mode)
    orders = rig.consumer(AT_ONCE)
    rig.deliver(orders, "m1")
    rig.receive(orders)
    assert rig.redeliveries("m1") == [0]
    rig.rollback()
    rig.receive(orders)
    assert rig.redeliveries("m1") == [1]


def test_a_commit_covers_each_message_in_the_order_in_which_it_was_dispatched() -> None:
    """Classic refuses ranges out of dispatch order; the seam gets the true order."""
    rig = Rig()
    qa, qb = rig.consumer(AT_ONCE, queue="qa"), rig.consumer(AT_ONCE, queue="qb")
    rig.deliver(qa, "a1", "a2")
    rig.deliver(qb, "b1", "b2")
    dispatched = [rig.receive(each) for each in (qb, qa, qa, qb)]
    assert rig.commit() == dispatched == ["b1", "a1", "a2", "b2"]


def test_a_commit_refused_by_the_broker_is_a_rollback() -> None:
    """JMS 3.1, `Session.rollback`: TransactionRolledBackError, and the deliveries are redelivered by the policy."""
    rig = Rig()
    orders = rig.consumer(policy(delay=1))
    rig.deliver(orders, "m1")
    rig.receive(orders)
    assert [str(each) for each in rig.ledger.covered()] == ["m1"]
    rig.rollback()
    rig.advance(1)
    assert (rig.receive(orders), rig.redeliveries("m1")) == ("m1", [1])
