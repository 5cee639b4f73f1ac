"""What is not the application's doing: a lost connection, a dead letter that cannot be written, a cancelled receive."""

from __future__ import annotations

import pytest
from tests.client.ledger.fakes import AT_ONCE, JUST, Rig, policy

from redelivery.model.modes import AckMode

MODES = pytest.mark.parametrize("mode", list(AckMode), ids=lambda mode: mode.name)
BOTH = pytest.mark.parametrize("non_blocking", [False, True], ids=["blocking", "non-blocking"])


@MODES
@BOTH
def test_a_lost_connection_makes_it_forget_everything(mode: AckMode, non_blocking: bool) -> None:
    """kill-*: all goes back to the broker, nothing is acknowledged, counted or waited for."""
    rig = Rig(mode, non_blocking=non_blocking)
    orders = rig.consumer(policy(delay=1))
    rig.deliver(orders, "waits", "held", "unseen")
    rig.receive(orders)
    rig.rollback()
    rig.advance(1)
    rig.receive(orders)
    rig.ledger.transport_lost()
    assert rig.ledger.covered() == ()
    assert rig.ledger.take_orders() == []
    assert rig.ledger.next_deadline() == float("inf")
    rig.done.clear()
    rig.rollback()
    rig.advance(10)
    assert rig.receive(orders) is None
    assert rig.done == []


def test_objects_from_before_the_loss_acknowledge_nothing() -> None:
    """A stale ack id acknowledges another message on some brokers: never send one."""
    rig = Rig(AckMode.INDIVIDUAL)
    orders = rig.consumer()
    rig.deliver(orders, "m1")
    rig.receive(orders)
    rig.ledger.transport_lost()
    assert not rig.acknowledge("m1")


@pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.DUPS_OK], ids=lambda mode: mode.name)
def test_a_listener_that_returns_after_the_loss_acknowledges_nothing(mode: AckMode) -> None:
    rig = Rig(mode)
    orders = rig.consumer()
    rig.deliver(orders, "m1")
    rig.receive(orders)
    rig.ledger.transport_lost()
    assert not rig.consumed("m1")
    rig.listener_failed(orders)
    assert rig.done == []


@MODES
def test_a_message_that_was_put_back_is_next_and_uncounted(mode: AckMode) -> None:
    """JMS 3.1, `receiveBody`: receiveBody with the wrong type is as if not called; so is a cancelled receive."""
    rig = Rig(mode)
    orders = rig.consumer(policy(0))
    rig.deliver(orders, "m1", "m2")
    assert rig.receive(orders) == "m1"
    rig.put_back("m1")
    rig.rollback()
    assert (rig.redeliveries("m1"), rig.done) == ([0], [])
    assert rig.receive_all(orders) == ["m1", "m2"]


def test_a_redelivered_message_that_was_put_back_keeps_its_count() -> None:
    rig = Rig(AckMode.AUTO)
    orders = rig.consumer(AT_ONCE)
    rig.deliver(orders, "m1")
    rig.receive(orders)
    rig.listener_failed(orders)
    rig.receive(orders)
    rig.put_back("m1")
    assert (rig.receive(orders), rig.redeliveries("m1")) == ("m1", [1])


def test_putting_back_ends_a_close_that_waited_for_it() -> None:
    rig = Rig(AckMode.AUTO)
    orders = rig.consumer()
    rig.deliver(orders, "m1")
    rig.receive(orders)
    rig.close_consumer(orders)
    rig.put_back("m1")
    assert rig.detached(orders)
    assert rig.released == ["m1"]


@MODES
def test_putting_back_after_the_loss_is_harmless(mode: AckMode) -> None:
    rig = Rig(mode)
    orders = rig.consumer()
    rig.deliver(orders, "m1")
    rig.receive(orders)
    rig.ledger.transport_lost()
    rig.put_back("m1")
    assert rig.receive(orders) is None


class TestPoisonFailed:
    """The dead-letter queue refuses: the message stays unacknowledged and unseen, and is tried again."""

    def exhausted(self, rig: Rig, delay: float = 2.0) -> None:
        self.orders = rig.consumer(policy(0, delay=delay))
        rig.deliver(self.orders, "bad", "good")
        rig.receive(self.orders)
        rig.dead_letter_queue_is_down = True
        rig.rollback(ValueError("broken"))
        assert rig.poisoned == ["bad"]

    @BOTH
    def test_it_is_tried_again_after_its_delay_and_never_shown_again(self, non_blocking: bool) -> None:
        rig = Rig(non_blocking=non_blocking)
        self.exhausted(rig)
        rig.advance(2 - JUST)
        assert "bad" not in rig.receive_all(self.orders)
        assert rig.poisoned == ["bad"]
        rig.dead_letter_queue_is_down = False
        rig.advance(JUST)
        assert "bad" not in rig.receive_all(self.orders)
        assert rig.poisoned == ["bad", "bad"]
        rig.advance(100)
        rig.receive_all(self.orders)
        assert rig.poisoned == ["bad", "bad"]

    def test_it_is_due_then(self) -> None:
        rig = Rig()
        self.exhausted(rig)
        assert rig.ledger.next_deadline() == rig.now + 2

    def test_without_a_delay_it_is_not_tried_in_a_busy_loop(self) -> None:
        rig = Rig()
        self.exhausted(rig, delay=0)
        rig.receive_all(self.orders)
        assert rig.poisoned == ["bad"]
        assert rig.ledger.next_deadline() > rig.now

    def test_it_is_not_acknowledged_by_a_commit_in_the_meantime(self) -> None:
        rig = Rig()
        self.exhausted(rig)
        assert rig.commit() == []

    def test_it_is_not_counted_again(self) -> None:
        rig = Rig()
        self.exhausted(rig)
        rig.rollback()
        rig.advance(2)
        rig.receive(self.orders)
        assert rig.redeliveries("bad") == [1]
        assert rig.causes[0] == rig.causes[1]

    def test_the_cause_of_a_pre_dispatch_check_is_the_same_at_the_next_try(self) -> None:
        rig = Rig()
        orders = rig.consumer(policy(0), check_limit=True)
        rig.deliver(orders, "m1", wire_count=3)
        rig.dead_letter_queue_is_down = True
        rig.receive(orders)
        rig.advance(60)
        rig.receive(orders)
        first, second = rig.causes
        assert first.startswith("Dispatch[2] to consumer 1 of queue://orders ")
        assert second == first

    def test_one_that_expires_before_the_next_try_is_still_dead_lettered_for_its_count(self) -> None:
        """As expired-in-hand-poison; a strategy that drops the expired would lose it otherwise."""
        rig = Rig()
        orders = rig.consumer(policy(0))
        rig.deliver(orders, "m1", expires=rig.wall + 100)
        rig.receive(orders)
        rig.dead_letter_queue_is_down = True
        rig.rollback()
        rig.advance(60)
        rig.receive(orders)
        first, second = rig.causes
        assert first.startswith("Delivery[1] ")
        assert second == first

    def test_an_expired_one_is_tried_again_as_expired(self) -> None:
        rig = Rig()
        orders = rig.consumer(policy(6, delay=1))
        rig.deliver(orders, "m1", expires=rig.wall)
        rig.dead_letter_queue_is_down = True
        for _ in range(3):
            rig.receive(orders)
            rig.advance(60)
        assert rig.poisoned == ["m1", "m1", "m1"]
        assert set(rig.causes) == {f"Message Expired. Expiration:{rig.messages['m1'].expires}"}

    def test_at_a_close_it_goes_back_to_the_broker_unacknowledged(self) -> None:
        rig = Rig()
        self.exhausted(rig)
        rig.close_consumer(self.orders)
        assert rig.detached(self.orders)
        assert rig.acknowledged == []

    def test_of_a_consumer_that_is_closed_it_goes_back_with_the_detach(self) -> None:
        rig = Rig()
        orders = rig.consumer(policy(0))
        rig.deliver(orders, "bad")
        rig.receive(orders)
        rig.close_consumer(orders)
        rig.dead_letter_queue_is_down = True
        rig.rollback()
        assert rig.detached(orders)
        assert rig.ledger.next_deadline() == float("inf")


@BOTH
def test_others_of_its_queue_go_on_while_it_waits_to_be_dead_lettered(non_blocking: bool) -> None:
    rig = Rig(non_blocking=non_blocking)
    orders = rig.consumer(policy(delay=0.1))
    rig.dead_letter_queue_is_down = True
    rig.deliver(orders, "held")
    rig.deliver(orders, "expired", expires=rig.wall - 1)
    rig.deliver(orders, "good")
    assert rig.receive_all(orders) == ["held", "good"]
    failed = rig.now
    rig.rollback()
    assert rig.ledger.next_deadline() == failed + 0.1
    rig.advance(0.1)
    assert rig.receive_all(orders) == ["held", "good"]
    assert rig.poisoned == ["expired"]
    rig.advance(0.9)
    assert rig.receive(orders) is None
    assert rig.poisoned == ["expired", "expired"]
