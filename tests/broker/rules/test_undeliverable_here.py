"""``modified`` with undeliverable-here (AMQP 1.0 §3.4.5): that consumer is not given the message again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.broker.engine.bench import Box
from tests.broker.rules.failing import Bench
from tests.broker.rules.test_artemis_rules import addresses, artemis, hornetq
from tests.broker.rules.test_counting_rules import broker_j

from redelivery.broker.engine.rules.rules import Manner
from redelivery.broker.engine.subscriptions import Dispatch, Subscription
from redelivery.model.destinations import destination
from redelivery.model.selectors.selector import Selector
from redelivery.policies.brokers.policies import BrokerPolicies


def refuse(bench: Bench, dispatch: Dispatch, *, failed: bool = False) -> None:
    dispatch.seen = failed
    bench.engine.poison(dispatch, "not here", bench.now, Manner.UNDELIVERABLE)


def bodies(box: Box) -> list[tuple[object, int]]:
    return [(each.message.body, each.count) for each in box]


@pytest.mark.parametrize("rules", [artemis, broker_j], ids=["artemis", "broker-j"])
@pytest.mark.parametrize("failed", [False, True])
def test_another_consumer_is_given_it_and_it_is_kept_until_one_comes(
    rules: Callable[[], BrokerPolicies], failed: bool
) -> None:
    bench = Bench(rules())
    bench.send(body="1")
    _, first = bench.consumer()
    refuse(bench, first.pop(), failed=failed)
    bench.send(body="2")
    assert bodies(first) == [("2", 1)]  # and not what it cannot deliver
    assert bench.engine.depth("q") == 2
    _, second = bench.consumer()
    assert bodies(second) == [("1", 1 + failed)]
    refuse(bench, second.pop(), failed=failed)
    assert (bodies(first), bodies(second)) == ([("2", 1)], [])
    _, third = bench.consumer()
    assert bodies(third) == [("1", 1 + 2 * failed)]


@pytest.mark.parametrize("rules", [artemis, broker_j], ids=["artemis", "broker-j"])
def test_it_is_forgotten_when_the_consumer_ends(rules: Callable[[], BrokerPolicies]) -> None:
    bench = Bench(rules())
    bench.send()
    subscription, box = bench.consumer()
    refuse(bench, box.pop())
    bench.engine.unsubscribe(subscription, bench.now, all_seen=False)
    assert bodies(bench.consumer()[1]) == [("m", 1)]


def test_on_artemis_it_waits_as_what_is_released_or_has_failed() -> None:
    policies = artemis(
        inside=addresses("DLA"),
        dead_letter_address="DLA",
        redelivery_delay=700,
        redelivery_delay_multiplier=2,
        max_redelivery_delay=9000,
        max_delivery_attempts=3,
    )
    bench = Bench(policies)
    bench.send()
    boxes = [bench.consumer()[1] for _ in range(6)]
    for failed in (False, False, True, True, True):
        (box,) = [each for each in boxes if each]
        boxes.remove(box)  # nothing comes there any more
        refuse(bench, box.pop(), failed=failed)
        bench.await_next(next((each for each in boxes if each), boxes[0]))
    assert [each for each in bench.waits if each] == [700, 700, 700, 1400]
    assert [each.body for each in bench.letters("DLA")] == ["m"]


def test_hornetq_counts_it_and_redelivers_there() -> None:
    bench = Bench(hornetq("#", max_delivery_attempts=3))
    bench.send()
    _, box = bench.consumer()
    for count, manner in enumerate((Manner.UNDELIVERABLE, Manner.REJECTED), start=1):
        assert bodies(box) == [("m", count)]
        bench.engine.poison(box.pop(), None, bench.now, manner)
    refuse(bench, box.pop())
    assert box == []
    assert bench.engine.depth("q") == 0


def test_a_selector_still_chooses_and_the_rest_of_the_queue_goes_on() -> None:
    bench = Bench(artemis())
    box = Box()
    subscription = Subscription(destination("q"), box, prefetch=1)
    bench.engine.subscribe(subscription, selector=Selector("colour = 'red'"))
    bench.engine.start(subscription, bench.now)
    for body, colour in (("1", "red"), ("2", "blue"), ("3", "red")):
        bench.send(body=body, properties={"colour": colour})
    refuse(bench, box.pop())
    assert bodies(box) == [("3", 1)]
    bench.engine.acknowledge((box.pop(),), bench.now)
    assert box == []
    assert bodies(bench.consumer()[1]) == [("1", 1), ("2", 1)]


def test_a_message_of_a_group_goes_to_another_consumer() -> None:
    bench = Bench(artemis())
    boxes = [bench.consumer()[1] for _ in range(2)]
    for body in ("1", "2"):
        bench.send(body=body, group_id="g")
    (owner,) = [each for each in boxes if each]
    (other,) = [each for each in boxes if not each]
    refuse(bench, owner.pop(0))
    assert bodies(other) == [("1", 1)]
    assert bodies(owner) == [("2", 1)]


def test_what_a_consumer_has_refused_and_others_took_is_not_remembered() -> None:
    bench = Bench(artemis())
    subscription, box = bench.consumer()
    for number in range(1100):
        bench.send(body=str(number))
        refuse(bench, box.pop())
        other, taker = bench.consumer()
        bench.engine.acknowledge((taker.pop(),), bench.now)
        bench.engine.unsubscribe(other, bench.now, all_seen=False)
    assert len(bench.engine.queues["q"].cursors[subscription].refused) < 100


def test_a_consumer_with_a_selector_that_comes_later_finds_what_was_in_flight_for_long() -> None:
    """Places of messages that have left are forgotten now and then, and some of those come back."""
    bench = Bench(artemis())
    red = Selector("colour = 'red'")
    subscription, box = Subscription(destination("q"), Box(), prefetch=10_000), Box()
    bench.engine.subscribe(subscription, selector=red)
    bench.engine.start(subscription, bench.now)
    for number in range(1500):
        bench.send(body=str(number), properties={"colour": "red"})
    blue = Subscription(destination("q"), Box(), prefetch=1)
    bench.engine.subscribe(blue, selector=Selector("colour = 'blue'"))
    bench.engine.unsubscribe(subscription, bench.now, all_seen=False)
    late = Subscription(destination("q"), box, prefetch=10_000)
    bench.engine.subscribe(late, selector=red)
    bench.engine.start(late, bench.now)
    assert len(box) == 1500
