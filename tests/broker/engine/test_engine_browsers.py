"""The engine's rules for browsers: copies of what a queue holds, then its end."""

from __future__ import annotations

import pytest
from tests.broker.engine.bench import Bench, Box

from redelivery.broker.engine.stored import END_OF_QUEUE
from redelivery.broker.engine.subscriptions import Subscription
from redelivery.broker.engine.transactions import Transaction
from redelivery.model.destinations import Destination, Queue, TemporaryQueue, Topic
from redelivery.model.errors import InvalidDestinationError, JMSError, UnsupportedError


def browse(bench: Bench, prefetch: int = 100, now: int = 0) -> tuple[Subscription, Box]:
    box = Box()
    browser = Subscription(Queue("q"), box, prefetch=prefetch)
    bench.engine.browse(browser)
    bench.engine.start(browser, now)
    return browser, box


def ended(box: Box) -> bool:
    return box[-1].message is END_OF_QUEUE


def test_it_sees_what_waits_and_what_is_held_in_order_then_the_end(bench: Bench) -> None:
    bench.send("a", "b", "c")
    consumer, held = bench.consumer(prefetch=1)
    bench.engine.mark_seen([held[0]], 0)
    bench.engine.unsubscribe(consumer, 0, all_seen=False)
    bench.consumer(prefetch=1)
    _, box = browse(bench)
    assert ended(box)
    assert [(dispatch.message.body, dispatch.count) for dispatch in box[:-1]] == [("a", 2), ("b", 1), ("c", 1)]


def test_whatever_becomes_of_a_copy_changes_nothing(bench: Bench) -> None:
    bench.send("a", "b", "c", "d", "e")
    browser, box = browse(bench)
    used = bench.engine.memory_used
    transaction = Transaction()
    bench.engine.acknowledge([box[0]], 0)
    bench.engine.enlist(transaction, [box[1]], 0)
    bench.engine.commit(transaction, 0)
    bench.engine.poison(box[2], "no", 0)
    bench.engine.release([box[3]], 0)
    bench.engine.unsubscribe(browser, 0, all_seen=True)
    assert (bench.held("q"), bench.held("ActiveMQ.DLQ"), bench.engine.memory_used) == (list("abcde"), [], used)
    _, consumed = bench.consumer()
    assert [(dispatch.message.body, dispatch.count) for dispatch in consumed] == [(each, 1) for each in "abcde"]


def test_its_window_moves_with_its_acknowledgements_and_the_end_has_a_place_in_it(bench: Bench) -> None:
    bench.send("a", "b", "c")
    _, box = browse(bench, prefetch=2)
    assert box.bodies() == ["a", "b"]
    bench.engine.acknowledge(box.take(), 0)
    assert (box[0].message.body, ended(box)) == ("c", True)


def test_what_comes_or_goes_meanwhile_is_not_seen_to(bench: Bench) -> None:
    bench.send("a", "b")
    _, box = browse(bench, prefetch=1)
    _, consumed = bench.consumer()
    bench.engine.acknowledge(consumed.take(), 0)
    bench.send("c")
    seen = []
    while not ended(box):
        seen += box.bodies()
        bench.engine.acknowledge(box.take(), 0)
    assert seen == ["a", "b"]
    assert consumed.bodies() == ["c"]


def test_what_has_expired_is_not_shown(bench: Bench) -> None:
    bench.send("gone", now=0, expiration=10)
    bench.send("a", "going", now=0, expiration=30)
    bench.send("b")
    _, box = browse(bench, prefetch=1, now=20)
    assert box.bodies() == ["a"]
    bench.engine.acknowledge(box.take(), 40)
    assert box.bodies() == ["b"]
    bench.engine.acknowledge(box.take(), 40)
    assert ended(box)


def test_a_delayed_message_is_not_shown_before_its_time(bench: Bench) -> None:
    bench.send("later", now=0, delivery_time=50)
    assert ended(browse(bench, now=10)[1])
    bench.engine.tick(50)
    assert browse(bench, now=50)[1][0].message.body == "later"


def test_looking_makes_no_queue_and_a_queue_that_is_made_later_is_not_its_affair(bench: Bench) -> None:
    _, box = browse(bench)
    assert "q" not in bench.engine.queues
    bench.send("a")
    assert (len(box), ended(box)) == (1, True)
    assert not bench.engine.queues["q"].consumers


@pytest.mark.parametrize(
    ("place", "error"),
    [
        (Topic("t"), InvalidDestinationError),
        (Queue("q.>"), UnsupportedError),
        (TemporaryQueue("temp-queue://gone"), InvalidDestinationError),
    ],
)
def test_what_it_cannot_browse_it_refuses(bench: Bench, place: Destination, error: type[JMSError]) -> None:
    with pytest.raises(error):
        bench.engine.browse(Subscription(place, Box(), prefetch=1))
