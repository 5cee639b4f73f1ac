"""What the application never sees: ActiveMQ's pre-dispatch check, and expired messages."""

from __future__ import annotations

import pytest
from tests.client.ledger.fakes import Rig, policy

from redelivery.model.modes import AckMode


class TestPreDispatchCheck:
    """The broker's own count alone is over the limit."""

    def test_a_message_over_the_limit_is_poisoned_unseen_and_the_next_one_comes(self) -> None:
        rig = Rig()
        orders = rig.consumer(policy(1), check_limit=True)
        rig.deliver(orders, "over", wire_count=3)
        rig.deliver(orders, "next")
        assert rig.receive(orders) == "next"
        assert rig.poisoned == ["over"]

    def test_one_at_the_limit_is_shown_and_its_rollback_is_poison(self) -> None:
        """predispatch-limit-not-over."""
        rig = Rig()
        orders = rig.consumer(policy(1), check_limit=True)
        rig.deliver(orders, "m1", wire_count=2)
        assert rig.receive(orders) == "m1"
        rig.rollback()
        assert rig.poisoned == ["m1"]

    def test_without_the_check_it_is_shown(self) -> None:
        """predispatch-off, and predispatch-auto-mode: only transacted sessions ask for the check (AMQ-5156)."""
        rig = Rig()
        orders = rig.consumer(policy(1))
        rig.deliver(orders, "m1", wire_count=9)
        assert rig.receive(orders) == "m1"
        rig.rollback()
        assert rig.poisoned == ["m1"]

    def test_no_limit_no_check(self) -> None:
        """predispatch-unlimited."""
        rig = Rig()
        orders = rig.consumer(policy(-1), check_limit=True)
        rig.deliver(orders, "m1", wire_count=99)
        assert rig.receive(orders) == "m1"

    @pytest.mark.parametrize("non_blocking", [False, True])
    def test_local_redeliveries_are_not_checked_before_dispatch(self, non_blocking: bool) -> None:
        """Only the count of the broker is; the local ones were judged at the rollback."""
        rig = Rig(non_blocking=non_blocking)
        orders = rig.consumer(policy(2, delay=0), check_limit=True)
        rig.deliver(orders, "m1", wire_count=2)
        shown = 0
        while rig.receive(orders):
            shown += 1
            rig.rollback()
        assert (shown, rig.poisoned) == (2, ["m1"])
        assert rig.causes[0].startswith("Delivery[3] ")

    def test_it_does_not_disturb_the_open_transaction(self) -> None:
        """predispatch-inside-transaction."""
        rig = Rig()
        orders = rig.consumer(policy(1, delay=0), check_limit=True)
        rig.deliver(orders, "m1")
        rig.deliver(orders, "m2", wire_count=3)
        rig.deliver(orders, "m3")
        assert rig.receive_all(orders) == ["m1", "m3"]
        rig.rollback()
        assert rig.poisoned == ["m2"]
        assert rig.receive_all(orders) == ["m1", "m3"]

    def test_its_cause_names_the_consumer(self) -> None:
        rig = Rig()
        limit = policy(1, delay=0)
        orders = rig.consumer(limit, check_limit=True)
        rig.deliver(orders, "m1", wire_count=4)
        rig.receive(orders)
        assert rig.causes == [f"Dispatch[3] to consumer 1 of queue://orders exceeds redelivery policy limit:{limit}"]

    def test_its_cause_says_where_a_listener_was_to_get_it(self) -> None:
        rig = Rig()
        limit = policy(1, delay=0)
        orders = rig.consumer(limit, check_limit=True)
        orders.listening = True
        rig.deliver(orders, "m1", wire_count=4)
        rig.receive(orders)
        text = f"listener dispatch[3] to consumer 1 of queue://orders exceeds redelivery policy limit:{limit}"
        assert rig.causes == [text]

    def test_what_the_brokers_redelivery_plugin_counted_is_shown(self) -> None:
        """Its property ``redeliveryDelay`` says that the count is the broker's own doing."""
        rig = Rig()
        orders = rig.consumer(policy(1), check_limit=True)
        rig.deliver(orders, "m1", wire_count=4, properties={"redeliveryDelay": 1000})
        assert rig.receive(orders) == "m1"

    def test_it_comes_before_the_first_dispatch_whatever_waits(self) -> None:
        rig = Rig()
        orders = rig.consumer(policy(0), check_limit=True)
        rig.deliver(orders, "m1", wire_count=2)
        rig.advance(3600)
        assert rig.receive(orders) is None
        assert rig.poisoned == ["m1"]


class TestExpiry:
    """ActiveMQ's consumerExpiryCheckEnabled, which is always on here."""

    @pytest.mark.parametrize("mode", list(AckMode), ids=lambda mode: mode.name)
    def test_a_message_that_expired_while_prefetched_is_not_shown(self, mode: AckMode) -> None:
        """expired-prefetched."""
        rig = Rig(mode)
        orders = rig.consumer()
        expires = rig.wall + 100
        rig.deliver(orders, "short", expires=expires)
        rig.deliver(orders, "long")
        rig.advance(0.2)
        assert rig.receive(orders) == "long"
        assert rig.poisoned == ["short"]
        assert rig.causes == [f"Message Expired. Expiration:{expires}"]
        assert [order.expired for order in rig.done if hasattr(order, "expired")] == [True]

    def test_one_that_has_not_expired_yet_is_shown(self) -> None:
        rig = Rig()
        orders = rig.consumer()
        rig.deliver(orders, "m1", expires=rig.wall + 100)
        rig.advance(0.05)
        assert rig.receive(orders) == "m1"

    @pytest.mark.parametrize("non_blocking", [False, True])
    def test_one_that_expires_during_the_delay_is_not_shown_again(self, non_blocking: bool) -> None:
        """expired-during-delay, expired-during-delay-nonblocking."""
        rig = Rig(non_blocking=non_blocking)
        orders = rig.consumer(policy(delay=1))
        expires = rig.wall + 500
        rig.deliver(orders, "m1", expires=expires)
        rig.deliver(orders, "m2")
        rig.receive_all(orders)
        rig.rollback()
        rig.advance(1)
        assert rig.receive_all(orders) == ["m2"]
        assert rig.poisoned == ["m1"]
        assert rig.causes == [f"Message Expired. Expiration:{expires}"]

    def test_one_that_expires_in_hand_can_be_committed(self) -> None:
        """expired-in-hand."""
        rig = Rig()
        orders = rig.consumer()
        rig.deliver(orders, "m1", expires=rig.wall + 100)
        rig.receive(orders)
        rig.advance(1)
        assert rig.commit() == ["m1"]
        assert rig.poisoned == []

    def test_one_that_expires_in_hand_and_is_exhausted_is_dead_lettered_for_its_count(self) -> None:
        """expired-in-hand-poison."""
        rig = Rig()
        orders = rig.consumer(policy(0))
        rig.deliver(orders, "m1", expires=rig.wall + 100)
        rig.receive(orders)
        rig.advance(1)
        rig.rollback()
        assert rig.causes[0].startswith("Delivery[1] ")
        assert [order.expired for order in rig.done if hasattr(order, "expired")] == [False]

    def test_the_expired_do_not_count_as_held(self) -> None:
        rig = Rig(AckMode.CLIENT)
        orders = rig.consumer()
        rig.deliver(orders, "short", expires=rig.wall + 1)
        rig.deliver(orders, "long")
        rig.advance(1)
        rig.receive_all(orders)
        assert rig.commit() == ["long"]
