"""What a container sets aside: uncounted, and others come first until it is recalled."""

from __future__ import annotations

from tests.client.ledger.fakes import Rig, policy

from redelivery.client.ledger import Park, Unpark
from redelivery.client.ledger.parking import dies, park, recall


def test_others_come_first_and_then_it_is_as_if_it_had_not_been() -> None:
    rig = Rig()
    orders = rig.consumer(policy(delay=1))
    rig.deliver(orders, "m1", "m2", "m3")
    for expected in ("m1", "m2"):
        assert rig.receive(orders) == expected
        park(rig.ledger)
        assert [type(order) for order in rig.ledger.take_orders()] == [Park]
    rig.deliver(orders, "m4")
    assert rig.ledger.next_deadline() == float("inf")
    rig.advance(1000)
    assert rig.receive(orders) == "m3"
    recall(rig.ledger)
    assert [type(order) for order in rig.ledger.take_orders()] == [Unpark] * 2
    assert rig.receive_all(orders) == ["m1", "m2", "m4"]
    assert {each.redeliveries for each in rig.ledger.held} == {0}


def test_it_is_the_brokers_again_where_its_consumer_is_closed() -> None:
    rig = Rig()
    orders = rig.consumer(policy(delay=1))
    rig.deliver(orders, "m1", "m2")
    rig.receive(orders)
    park(rig.ledger)
    rig.receive(orders)
    rig.ledger.close_consumer(orders)
    park(rig.ledger)
    assert not rig.ledger.delayed
    assert rig.ledger.delayed_count == 0
    assert not rig.ledger.consumers


def test_one_more_failure_would_dead_letter_it() -> None:
    rig = Rig()
    orders = rig.consumer(policy(1, 0.0))
    rig.deliver(orders, "m1")
    assert not dies(rig.ledger)
    rig.receive(orders)
    assert not dies(rig.ledger)
    rig.rollback()
    rig.receive(orders)
    assert dies(rig.ledger)
