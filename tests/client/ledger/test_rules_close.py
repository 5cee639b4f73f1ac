"""Closing a consumer or the session with work pending (JMS 3.1, `Session.close`, ActiveMQ's close without commit)."""

from __future__ import annotations

import pytest
from tests.client.ledger.fakes import AT_ONCE, Rig, policy

from redelivery.client.ledger import Detach, Poison
from redelivery.model.modes import AckMode

LATE = pytest.mark.parametrize("mode", [AckMode.TRANSACTED, AckMode.CLIENT], ids=lambda mode: mode.name)


class TestConsumer:
    """Its detach waits for what it delivered: an earlier one loses the acknowledgements on some brokers."""

    @pytest.mark.parametrize("mode", list(AckMode), ids=lambda mode: mode.name)
    def test_with_nothing_delivered_it_goes_at_once_and_gives_the_unseen_back(self, mode: AckMode) -> None:
        """close-prefetched, consumer-close-unreceived: uncounted."""
        rig = Rig(mode)
        orders = rig.consumer()
        rig.deliver(orders, "m1", "m2")
        rig.close_consumer(orders)
        assert rig.released == ["m1", "m2"]
        assert rig.detached(orders)
        assert rig.redeliveries("m1", "m2") == [0, 0]

    @LATE
    def test_with_something_delivered_it_waits_for_the_commit(self, mode: AckMode) -> None:
        """client-ack-after-consumer-close: what it delivered can still be acknowledged."""
        rig = Rig(mode)
        orders = rig.consumer()
        rig.deliver(orders, "m1", "m2")
        rig.receive(orders)
        rig.close_consumer(orders)
        assert not rig.detached(orders)
        assert rig.commit() == ["m1"]
        assert rig.detached(orders)
        assert rig.released == ["m2"]

    @LATE
    def test_delivery_is_off_meanwhile(self, mode: AckMode) -> None:
        rig = Rig(mode)
        orders = rig.consumer()
        rig.deliver(orders, "m1", "m2")
        rig.receive(orders)
        rig.close_consumer(orders)
        assert rig.receive(orders) is None
        rig.deliver(orders, "m3")
        assert rig.receive(orders) is None

    @LATE
    def test_what_it_delivered_goes_back_to_the_broker_when_rolled_back(self, mode: AckMode) -> None:
        """consumer-close-rollback, client-recover-after-consumer-close."""
        rig = Rig(mode)
        orders = rig.consumer(policy(delay=1))
        rig.deliver(orders, "m1", "m2")
        rig.receive(orders)
        rig.close_consumer(orders)
        rig.rollback()
        assert rig.detached(orders)
        assert rig.released == ["m2"]
        assert (rig.acknowledged, rig.poisoned, rig.parked) == ([], [], [])
        assert rig.ledger.next_deadline() == float("inf")

    @LATE
    def test_a_rollback_after_its_close_may_dead_letter_and_does_so_before_the_detach(self, mode: AckMode) -> None:
        """consumer-close-rollback-poison."""
        rig = Rig(mode)
        orders = rig.consumer(policy(0))
        rig.deliver(orders, "m1")
        rig.receive(orders)
        rig.close_consumer(orders)
        rig.rollback()
        assert [type(order) for order in rig.done] == [Poison, Detach]

    @LATE
    def test_it_waits_for_its_own_deliveries_only(self, mode: AckMode) -> None:
        rig = Rig(mode)
        qa, qb = rig.consumer(queue="qa"), rig.consumer(queue="qb")
        rig.deliver(qa, "a1")
        rig.deliver(qb, "b1", "b2")
        rig.receive(qa)
        rig.close_consumer(qb)
        assert rig.detached(qb)
        assert not rig.detached(qa)
        assert rig.commit() == ["a1"]
        assert not rig.detached(qa)

    def test_individual_waits_for_each_that_is_unacknowledged(self) -> None:
        """individual-consumer-close; ActiveMQ releases them at once."""
        rig = Rig(AckMode.INDIVIDUAL)
        orders = rig.consumer()
        rig.deliver(orders, "m1", "m2", "m3", "m4")
        for _ in range(3):
            rig.receive(orders)
        rig.acknowledge("m2")
        rig.close_consumer(orders)
        assert rig.acknowledge("m1")
        assert not rig.detached(orders)
        assert rig.acknowledge("m3")
        assert rig.acknowledged == ["m2", "m1", "m3"]
        assert rig.released == ["m4"]
        assert rig.detached(orders)

    def test_individual_gives_them_back_with_a_recover(self) -> None:
        rig = Rig(AckMode.INDIVIDUAL)
        orders = rig.consumer()
        rig.deliver(orders, "m1", "m2")
        rig.receive_all(orders)
        rig.close_consumer(orders)
        rig.acknowledge("m1")
        rig.rollback()
        assert rig.detached(orders)
        assert not rig.acknowledge("m2")

    def test_individual_leaves_the_other_consumers_alone(self) -> None:
        rig = Rig(AckMode.INDIVIDUAL)
        qa, qb = rig.consumer(queue="qa"), rig.consumer(queue="qb")
        rig.deliver(qa, "a1")
        rig.deliver(qb, "b1")
        rig.receive_all(qa, qb)
        rig.close_consumer(qa)
        assert rig.acknowledge("b1")

    @pytest.mark.parametrize("non_blocking", [False, True], ids=["blocking", "non-blocking"])
    @pytest.mark.parametrize("mode", list(AckMode), ids=lambda mode: mode.name)
    def test_during_a_redelivery_delay_it_drops_the_local_wait(self, mode: AckMode, non_blocking: bool) -> None:
        """consumer-close-during-delay: the broker redelivers at once, counted, because it was seen."""
        rig = Rig(mode, non_blocking=non_blocking)
        orders = rig.consumer(policy(delay=60))
        rig.deliver(orders, "seen", "unseen")
        rig.receive(orders)
        rig.rollback()
        rig.close_consumer(orders)
        assert rig.detached(orders)
        assert rig.ledger.next_deadline() == float("inf")
        assert rig.parked == rig.unparked
        assert rig.released == ["unseen"], "what was seen goes back with the detach, not as never seen"

    @LATE
    def test_a_deferred_close_releases_as_unseen_only_what_was_not_seen(self, mode: AckMode) -> None:
        rig = Rig(mode, non_blocking=True)
        orders = rig.consumer(policy(delay=1))
        rig.deliver(orders, "m1", "m2", "m3")
        rig.receive(orders)
        rig.rollback()
        assert rig.receive(orders) == "m2"
        rig.close_consumer(orders)
        rig.advance(1)
        rig.ledger.tick(rig.now)
        rig.commit()
        assert rig.detached(orders)
        assert rig.released == ["m3"]

    @pytest.mark.parametrize("mode", list(AckMode), ids=lambda mode: mode.name)
    def test_after_it_nothing_is_dispatched(self, mode: AckMode) -> None:
        rig = Rig(mode)
        orders = rig.consumer()
        rig.deliver(orders, "m1", "m2")
        rig.receive(orders)
        rig.close_consumer(orders)
        assert rig.receive(orders) is None
        assert rig.ledger.take(orders, rig.now) is None


class TestReopen:
    """A new consumer of the same destination takes over what a deferred close still has."""

    @LATE
    def test_its_prefetched_messages_go_on_to_the_new_one(self, mode: AckMode) -> None:
        rig = Rig(mode)
        orders = rig.consumer(AT_ONCE)
        rig.deliver(orders, "m1", "m2")
        rig.receive(orders)
        rig.close_consumer(orders)
        rig.ledger.reopen(orders)
        assert rig.receive(orders) == "m2"
        assert rig.commit() == ["m1", "m2"]
        assert not rig.detached(orders)

    @LATE
    def test_what_it_delivered_before_comes_again_from_here(self, mode: AckMode) -> None:
        """client-consumer-close-reopen, with the message still unacknowledged in the session."""
        rig = Rig(mode)
        orders = rig.consumer(AT_ONCE)
        rig.deliver(orders, "m1", "m2")
        rig.receive(orders)
        rig.close_consumer(orders)
        rig.ledger.reopen(orders)
        rig.rollback()
        assert rig.receive_all(orders) == ["m1", "m2"]
        assert rig.redeliveries("m1", "m2") == [1, 0]


class TestSession:
    """Its close."""

    def test_transacted_counts_as_a_rollback_and_may_dead_letter(self) -> None:
        """session-close-poison: ``Delivery[n]`` during close."""
        rig = Rig()
        orders = rig.consumer(policy(2))
        rig.deliver(orders, "exhausted", wire_count=3)
        rig.deliver(orders, "again")
        rig.receive_all(orders)
        rig.close()
        assert rig.poisoned == ["exhausted"]
        assert rig.causes[0].startswith("Delivery[3] ")
        assert rig.causes[0].endswith(", cause:null")
        assert rig.redeliveries("again") == [1]

    def test_transacted_counts_all_its_consumers(self) -> None:
        """connection-close-two-sessions: Java reports only one of them."""
        rig = Rig()
        qa, qb = rig.consumer(policy(0), queue="qa"), rig.consumer(policy(0), queue="qb")
        rig.deliver(qa, "a")
        rig.deliver(qb, "b")
        rig.receive_all(qa, qb)
        rig.close()
        assert rig.poisoned == ["a", "b"]

    def test_transacted_does_not_count_what_waits_or_was_not_seen(self) -> None:
        """count-collapses-during-delay."""
        rig = Rig()
        orders = rig.consumer(policy(1, delay=1))
        rig.deliver(orders, "waits", "unseen")
        rig.receive(orders)
        rig.rollback()
        rig.close()
        assert rig.poisoned == []
        assert rig.redeliveries("waits", "unseen") == [1, 0]

    @pytest.mark.parametrize(
        "mode", [mode for mode in AckMode if mode != AckMode.TRANSACTED], ids=lambda mode: mode.name
    )
    def test_elsewhere_nothing_is_counted_acknowledged_or_dead_lettered(self, mode: AckMode) -> None:
        """JMS 3.1, `Session.close`: CLIENT does not acknowledge at close; kill-client: never poisoned."""
        rig = Rig(mode)
        orders = rig.consumer(policy(0))
        rig.deliver(orders, "m1", "m2")
        rig.receive(orders)
        rig.close()
        assert (rig.acknowledged, rig.poisoned) == ([], [])
        assert rig.redeliveries("m1", "m2") == [0, 0]

    @pytest.mark.parametrize("mode", list(AckMode), ids=lambda mode: mode.name)
    def test_after_it_nothing_is_dispatched(self, mode: AckMode) -> None:
        rig = Rig(mode)
        orders = rig.consumer()
        rig.deliver(orders, "m1", "m2")
        rig.receive(orders)
        rig.close()
        assert rig.receive(orders) is None

    def test_nothing_is_dispatched_when_a_wait_ends_after_it(self) -> None:
        rig = Rig(non_blocking=True)
        orders = rig.consumer(policy(delay=1))
        rig.deliver(orders, "m1")
        rig.receive(orders)
        rig.rollback()
        rig.close()
        rig.advance(1)
        assert rig.receive(orders) is None
