"""The engine's rules for queues, one by one; the clock is a number."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.broker.engine.bench import Bench, Box

from redelivery.broker.engine.config import BrokerConfig
from redelivery.broker.engine.stored import StoredMessage
from redelivery.broker.engine.subscriptions import CreditSubscription, Subscription
from redelivery.broker.engine.transactions import Transaction
from redelivery.model.destinations import Queue, TemporaryQueue
from redelivery.model.errors import (
    IllegalStateError,
    InvalidDestinationError,
    ResourceAllocationError,
    UnsupportedError,
)


def test_messages_come_in_order_and_count_one(bench: Bench) -> None:
    bench.send("a", "b")
    _, box = bench.consumer()
    bench.send("c")
    assert box.bodies() == ["a", "b", "c"]
    assert [dispatch.count for dispatch in box] == [1, 1, 1]


def test_acknowledged_messages_are_forgotten(bench: Bench) -> None:
    _, box = bench.consumer()
    bench.send("a", "b", "c")
    bench.engine.acknowledge([box[1]], 0)
    assert bench.held("q") == ["a", "c"]
    assert bench.engine.memory_used == 200


def test_the_window_is_filled_and_no_more(bench: Bench) -> None:
    _, box = bench.consumer(prefetch=2)
    bench.send("a", "b", "c", "d")
    assert box.bodies() == ["a", "b"]
    bench.engine.acknowledge([box[0]], 0)
    assert box.bodies() == ["a", "b", "c"]


def test_a_prefetch_of_zero_never_delivers(bench: Bench) -> None:
    _, box = bench.consumer(prefetch=0)
    bench.send("a")
    assert box == []


def test_what_the_application_has_seen_does_not_fill_the_window(bench: Bench) -> None:
    """A batch larger than the prefetch never stalls."""
    _, box = bench.consumer(prefetch=2)
    bench.send(*(str(number) for number in range(500)))
    at = 0
    while at < len(box):
        bench.engine.mark_seen([box[at]], 0)
        at += 1
    assert at == 500
    assert bench.engine.depth("q") == 500


def test_consumers_take_turns(bench: Bench) -> None:
    _, first = bench.consumer()
    _, second = bench.consumer()
    bench.send("a", "b", "c", "d")
    assert first.bodies() == ["a", "c"]
    assert second.bodies() == ["b", "d"]


def test_what_a_lost_consumer_held_comes_back_at_the_head_in_order_and_counted(bench: Bench) -> None:
    lost, box = bench.consumer(prefetch=3)
    bench.send("a", "b", "c", "d", "e")
    assert box.bodies() == ["a", "b", "c"]
    bench.engine.acknowledge([box[1]], 0)
    bench.engine.unsubscribe(lost, 0, all_seen=True)
    _, box = bench.consumer()
    assert box.bodies() == ["a", "c", "d", "e"]
    assert [dispatch.count for dispatch in box] == [2, 2, 2, 1]


def test_an_orderly_close_counts_only_what_was_seen(bench: Bench) -> None:
    closed, box = bench.consumer()
    bench.send("a", "b", "c")
    bench.engine.mark_seen([box[0]], 0)
    bench.engine.unsubscribe(closed, 0, all_seen=False)
    _, box = bench.consumer()
    assert [(dispatch.message.body, dispatch.count) for dispatch in box] == [("a", 2), ("b", 1), ("c", 1)]


def test_two_consumers_release_into_one_order(bench: Bench) -> None:
    one, _ = bench.consumer(prefetch=2)
    two, _ = bench.consumer(prefetch=2)
    bench.send("a", "b", "c", "d", "e")
    bench.engine.unsubscribe(two, 0, all_seen=False)
    bench.engine.unsubscribe(one, 0, all_seen=False)
    _, box = bench.consumer()
    assert box.bodies() == ["a", "b", "c", "d", "e"]


def test_messages_go_to_another_consumer_at_once_when_one_is_lost(bench: Bench) -> None:
    lost, _ = bench.consumer()
    _, box = bench.consumer()
    bench.send("a", "b")
    bench.engine.unsubscribe(lost, 0, all_seen=True)
    assert box.bodies() == ["b", "a"]


def test_released_messages_come_back_uncounted(bench: Bench) -> None:
    subscription, box = bench.consumer(prefetch=2)
    bench.send("a", "b", "c")
    bench.engine.stop(subscription)
    bench.engine.release(box.take(), 0)
    assert box == []
    bench.engine.start(subscription, 0)
    assert [(dispatch.message.body, dispatch.count) for dispatch in box] == [("a", 1), ("b", 1)]


def test_a_stale_or_repeated_answer_is_refused_and_changes_nothing(bench: Bench) -> None:
    lost, box = bench.consumer()
    bench.send("a", "b")
    stale, other = box.take()
    with pytest.raises(IllegalStateError, match="twice"):
        bench.engine.acknowledge([other, other], 0)
    bench.engine.unsubscribe(lost, 0, all_seen=True)
    with pytest.raises(IllegalStateError, match=r"ID:1 is not .*held"):
        bench.engine.acknowledge([stale], 0)
    with pytest.raises(IllegalStateError):
        bench.engine.poison(stale, None, 0)
    assert bench.held("q") == ["a", "b"]


def test_a_wildcard_consumer_takes_from_queues_that_come_later_too(bench: Bench) -> None:
    bench.send("a", to="orders.eu")
    _, box = bench.consumer("orders.>")
    bench.send("b", to="orders.us.new")
    bench.send("c", to="invoices")
    assert box.bodies() == ["a", "b"]
    assert bench.engine.depth("orders.eu") == 1


def test_a_star_stands_for_one_word(bench: Bench) -> None:
    _, box = bench.consumer("orders.*")
    bench.send("a", to="orders.eu")
    bench.send("b", to="orders.eu.new")
    assert box.bodies() == ["a"]


def test_a_group_sticks_to_its_consumer_even_while_that_one_is_full(bench: Bench) -> None:
    first, one = bench.consumer(prefetch=1)
    _, two = bench.consumer()
    bench.send("g1", "g2", "g3", group_id="g")
    bench.send("x")
    assert one.bodies() == ["g1"]
    assert two.bodies() == ["x"]
    bench.engine.acknowledge(one.take(), 0)
    assert one.bodies() == ["g2"]
    bench.engine.unsubscribe(first, 0, all_seen=False)
    assert two.bodies() == ["x", "g2", "g3"]


def test_a_group_stays_in_order_when_two_consumers_get_room_at_once(bench: Bench) -> None:
    _, two = bench.consumer(prefetch=1)
    bench.send("g1", group_id="g")
    _, one = bench.consumer(prefetch=2)
    bench.send("x")
    bench.send("g2", group_id="g")  # waits for `two` only, as `one` has room
    bench.send("y")
    bench.send("g3", group_id="g")  # waits for anybody, as nobody has room
    assert (one.bodies(), two.bodies()) == (["x", "y"], ["g1"])
    bench.engine.acknowledge(one.take() + two.take(), 0)
    assert (one.bodies(), two.bodies()) == ([], ["g2"])
    bench.engine.acknowledge(two.take(), 0)
    assert two.bodies() == ["g3"]


def test_the_room_of_a_released_message_is_for_what_waits_for_that_consumer(bench: Bench) -> None:
    bench.send("g1", group_id="g")
    bench.send("x")
    bench.send("y")
    _, one = bench.consumer(prefetch=1)
    _, _ = bench.consumer(prefetch=1)
    bench.send("g2", group_id="g")
    bench.engine.acknowledge(one.take(), 0)
    assert one.bodies() == ["y"]
    _, three = bench.consumer(prefetch=1)  # looks at g2, which is for `one`
    bench.engine.release(one.take(), 0)
    assert (one.bodies(), three.bodies()) == (["g2"], ["y"])


def test_a_group_sequence_of_minus_one_ends_the_group(bench: Bench) -> None:
    _, one = bench.consumer()
    _, two = bench.consumer()
    bench.send("g1", group_id="g")
    bench.send("g2", group_id="g", group_sequence=-1)
    bench.send("g3", "g4", group_id="g")
    assert (one.bodies(), two.bodies()) == (["g1", "g2"], ["g3", "g4"])


def test_a_new_group_goes_to_who_has_the_fewest_as_on_classic(bench: Bench) -> None:
    _, one = bench.consumer()
    _, two = bench.consumer()
    for group in "abab":
        bench.send(group, group_id=group)
    bench.send("a, closed", group_id="a", group_sequence=-1)
    bench.send("a again", group_id="a")  # `one` has none now, though it is not its turn
    assert (one.bodies(), two.bodies()) == (["a", "a", "a, closed", "a again"], ["b", "b"])
    third, three = bench.consumer()
    bench.send("c", group_id="c")
    assert three.bodies() == ["c"]
    bench.engine.unsubscribe(third, 0, all_seen=False)
    bench.send("d", group_id="d")
    assert {*one.bodies()[4:], *two.bodies()[2:]} == {"c", "d"}


def test_a_delayed_message_comes_when_it_is_due(bench: Bench) -> None:
    _, box = bench.consumer()
    bench.send("later", delivery_time=2000)
    bench.send("sooner", delivery_time=1000)
    assert bench.engine.next_deadline() == 1000
    assert bench.engine.depth("q") == 0
    bench.engine.tick(1000)
    assert box.bodies() == ["sooner"]
    assert bench.engine.next_deadline() == 2000
    bench.engine.tick(2500)
    assert box.bodies() == ["sooner", "later"]
    assert bench.engine.next_deadline() is None


def test_a_full_broker_refuses_and_takes_again_when_there_is_room() -> None:
    bench = Bench(BrokerConfig(memory_limit=250))
    _, box = bench.consumer(prefetch=1)
    bench.send("a", "b")
    with pytest.raises(ResourceAllocationError, match="limit of 250 bytes"):
        bench.send("c")
    bench.engine.acknowledge(box.take(), 0)
    bench.send("c")
    assert bench.held("q") == ["b", "c"]


def test_no_local_on_a_queue_is_refused_clearly(bench: Bench) -> None:
    with pytest.raises(UnsupportedError, match="no_local"):
        bench.engine.subscribe(Subscription(Queue("q"), Box(), prefetch=1, no_local=True))


def test_a_queue_that_is_empty_and_unused_is_forgotten(bench: Bench) -> None:
    for number in range(100):
        name = f"reply.{number}"
        subscription, box = bench.consumer(name)
        bench.send("a", to=name)
        bench.engine.acknowledge(box, 0)
        bench.engine.unsubscribe(subscription, 0, all_seen=False)
        bench.send("b", to=name, expiration=10)
    bench.engine.tick(20)
    assert list(bench.engine.queues) == ["ActiveMQ.DLQ"]


def test_credit_is_used_up_by_messages_and_by_nothing_else(bench: Bench) -> None:
    box = Box()
    consumer = CreditSubscription(Queue("q"), box)
    bench.engine.subscribe(consumer)
    bench.engine.start(consumer, 0)
    bench.send("a", "b", "c", "d")
    assert box == []
    bench.engine.grant(consumer, 2, 0)
    assert box.bodies() == ["a", "b"]
    bench.engine.acknowledge(box.take(), 0)
    assert box == []
    bench.engine.grant(consumer, 1, 0)
    assert box.bodies() == ["c"]
    bench.engine.release(box.take(), 0)
    bench.engine.grant(consumer, 1, 0)
    assert box.bodies() == ["c"]


def test_a_temporary_queue_goes_with_what_it_holds(bench: Bench) -> None:
    here = TemporaryQueue("temp-queue://1")
    with pytest.raises(InvalidDestinationError, match="does not exist"):
        bench.engine.send(_to(bench, here), 0)
    bench.engine.make_temporary(here)
    _, everything = bench.consumer(">")
    box = Box()
    subscription = Subscription(here, box, prefetch=1)
    bench.engine.subscribe(subscription)
    bench.engine.start(subscription, 0)
    for _ in range(3):
        bench.engine.send(_to(bench, here), 0)
    transaction = Transaction()
    bench.engine.enlist_send(transaction, _to(bench, here))
    assert (len(box), bench.engine.depth(here.name), everything) == (1, 3, [])
    bench.engine.drop_temporary(here)
    bench.engine.commit(transaction, 0)
    assert bench.engine.depth(here.name) == 1
    bench.engine.unsubscribe(subscription, 0, all_seen=False)
    assert (bench.engine.memory_used, list(bench.engine.queues)) == (0, [])
    with pytest.raises(InvalidDestinationError, match="does not exist"):
        bench.engine.enlist_send(Transaction(), _to(bench, here))


def _to(bench: Bench, destination: TemporaryQueue) -> StoredMessage:
    return replace(bench.message("m"), destination=destination)


def test_what_an_exclusive_consumer_has_no_room_for_waits_until_it_leaves(bench: Bench) -> None:
    subscription = Subscription(Queue("q"), Box(), prefetch=1, exclusive=True)
    bench.engine.subscribe(subscription)
    bench.engine.start(subscription, 0)
    _, plain = bench.consumer()
    bench.send("a", "b", "c", group_id="g")
    assert plain.bodies() == []
    (held,) = subscription.in_flight.values()
    bench.engine.acknowledge([held], 0)
    (held,) = subscription.in_flight.values()
    bench.engine.acknowledge([held], 0)
    bench.engine.acknowledge(list(subscription.in_flight.values()), 0)
    bench.send("d")
    bench.engine.stop(subscription)  # its window is shut, and it holds only what it has
    bench.engine.acknowledge(list(subscription.in_flight.values()), 0)
    bench.send("e")
    assert plain.bodies() == []
    bench.engine.unsubscribe(subscription, 0, all_seen=False)
    assert plain.bodies() == ["e"]
