"""Consumers and browsers with selectors: what each is given, and that nobody stands in another one's way."""

from __future__ import annotations

from typing import Any

import pytest
from tests.broker.engine.bench import Bench, Box

from redelivery.broker.engine.entries import Entry
from redelivery.broker.engine.queues import REMEMBERED_GROUPS
from redelivery.broker.engine.subscriptions import Subscription
from redelivery.model.destinations import Queue
from redelivery.model.selectors.selector import Selector

RED: dict[str, Any] = {"properties": {"colour": "red"}}
BLUE: dict[str, Any] = {"properties": {"colour": "blue"}}


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The bodies of what selectors were asked about, once for each name in them."""
    bodies: list[object] = []
    value_of = Entry.value_of

    def noted(entry: Entry, name: str) -> Any:
        bodies.append(entry.message.body)
        return value_of(entry, name)

    monkeypatch.setattr(Entry, "value_of", noted)
    return bodies


def test_each_gets_what_it_selects_and_the_rest_stays(bench: Bench) -> None:
    _, red = bench.consumer(selector="colour = 'red'")
    bench.send("a", **BLUE)
    bench.send("b", **RED)
    bench.send("c")
    _, late = bench.consumer(selector="colour = 'blue' OR colour = 'green'")
    assert (red.bodies(), late.bodies()) == (["b"], ["a"])
    assert bench.held("q") == ["a", "b", "c"]
    _, rest = bench.consumer()
    assert rest.bodies() == ["c"]


def test_a_head_that_nobody_selects_blocks_nobody(bench: Bench) -> None:
    bench.send("stuck", **BLUE)
    bench.send("a", "b", "c", "d", **RED)
    _, one = bench.consumer(prefetch=1, selector="colour = 'red'")
    _, other = bench.consumer(prefetch=2, selector="colour = 'red'")
    assert (one.bodies(), other.bodies()) == (["a"], ["b", "c"])
    bench.engine.acknowledge(other.take(), 0)
    assert other.bodies() == ["d"]
    _, all_of_them = bench.consumer()
    assert all_of_them.bodies() == ["stuck"]


def test_a_full_consumer_with_a_selector_holds_up_nobody(bench: Bench) -> None:
    _, full = bench.consumer(prefetch=1, selector="colour = 'red'")
    _, free = bench.consumer(prefetch=2)
    bench.send("a", "b", "c", **RED)
    assert sorted(full.bodies() + free.bodies()) == ["a", "b", "c"]  # type: ignore[type-var]  # they are strings


def test_consumers_take_turns(bench: Bench) -> None:
    boxes = [bench.consumer(selector="colour = 'red'")[1] for _ in range(3)]
    bench.send(*map(str, range(9)), **RED)
    assert [len(box) for box in boxes] == [3, 3, 3]


def test_what_is_released_is_given_at_its_old_place(bench: Bench) -> None:
    for body, colour in (("a", RED), ("x", BLUE), ("b", RED), ("c", RED)):
        bench.send(body, **colour)
    one, box = bench.consumer(prefetch=2, selector="colour = 'red'")
    assert box.bodies() == ["a", "b"]
    bench.engine.stop(one)
    bench.engine.release(box.take(), 0)
    bench.engine.start(one, 0)
    assert box.bodies() == ["a", "b"], "before c, which nobody has looked at"
    bench.engine.acknowledge(box.take()[:1], 0)
    assert box.bodies() == ["c"]


def test_what_another_one_releases_is_seen_by_who_had_passed_it(bench: Bench) -> None:
    taker, took = bench.consumer(prefetch=3)
    bench.send("a", "b", **RED)
    _, picky = bench.consumer(selector="colour = 'red'")
    bench.send("x", **BLUE)
    bench.send("c", **RED)
    assert (took.bodies(), picky.bodies()) == (["a", "b", "x"], ["c"])
    bench.engine.unsubscribe(taker, 0, all_seen=False)
    assert picky.bodies() == ["c", "a", "b"]
    assert [entry.message.body for entry in bench.engine.queues["q"].pending.values()] == ["x"]


def test_what_was_not_looked_at_comes_before_what_was_released_behind_it(bench: Bench) -> None:
    for number in (1, 2, 3):
        bench.send(str(number), properties={"n": number})
    _, all_of_them = bench.consumer(prefetch=1, selector="n > 0")
    third, box = bench.consumer(selector="n = 3")
    bench.engine.stop(third)
    bench.engine.release(box.take(), 0)
    for body in ("1", "2", "3"):
        assert all_of_them.bodies() == [body]
        bench.engine.acknowledge(all_of_them.take(), 0)


def test_a_selector_sees_the_count_of_the_next_delivery(bench: Bench) -> None:
    """A way to get what keeps failing out of the way of the rest (ActiveMQ's PropertyExpression)."""
    first, box = bench.consumer(prefetch=1, selector="JMSXDeliveryCount < 3")
    _, sick = bench.consumer(selector="JMSXDeliveryCount >= 3")
    bench.send("bad", "good")
    for _ in range(2):
        (dispatch,) = box.take()
        assert dispatch.message.body == "bad"
        bench.engine.mark_seen([dispatch], 0)
        bench.engine.stop(first)
        (unseen,) = box.take()
        bench.engine.release([dispatch, unseen], 0)
        bench.engine.start(first, 0)
    assert box.bodies() == ["good"]
    assert [(dispatch.message.body, dispatch.count) for dispatch in sick] == [("bad", 3)]


def test_headers_and_the_origin_of_a_dead_letter_can_be_selected(bench: Bench) -> None:
    fields: dict[str, Any] = {
        "priority": 7,
        "persistent": False,
        "correlation_id": "c",
        "type": "t",
        "timestamp": 5,
        "group_id": "g",
    }
    bench.send("m", group_sequence=2, properties={"n": 1}, **fields)
    condition = (
        "JMSPriority = 7 AND JMSDeliveryMode = 'NON_PERSISTENT' AND JMSMessageID = 'ID:1' AND JMSTimestamp + 1 = 6L "
        "AND JMSCorrelationID = 'c' AND JMSType = 't' AND JMSXGroupID = 'g' AND JMSXGroupSeq = 2 "
        "AND JMSXDeliveryCount = 1 AND n = 1 AND originalDestination IS NULL"
    )
    _, box = bench.consumer(selector=condition)
    assert box.bodies() == ["m"]
    bench.send("p")
    _, plain = bench.consumer(selector="JMSDeliveryMode = 'PERSISTENT' AND JMSType IS NULL AND JMSXGroupID IS NULL")
    bench.engine.poison(plain.take()[0], "why", 0)
    _, dead = bench.consumer("ActiveMQ.DLQ", selector="originalDestination = 'queue://q' AND JMSXDeliveryCount = 1")
    assert dead.bodies() == ["p"]


def test_a_subscriber_of_a_topic_gets_what_it_selects(bench: Bench) -> None:
    _, red = bench.consumer("topic://t", selector="colour = 'red'")
    _, all_of_them = bench.consumer("topic://*")
    bench.send("a", to="topic://t", **BLUE)
    bench.send("b", to="topic://t", **RED)
    assert (red.bodies(), all_of_them.bodies()) == (["b"], ["a", "b"])
    bench.engine.acknowledge([*red.take(), *all_of_them.take()], 0)
    assert bench.engine.memory_used == 0, "what it does not select is not kept for it"


def test_a_pattern_with_a_selector_looks_into_each_queue(bench: Bench) -> None:
    bench.send("a", to="q.one", **RED)
    bench.send("b", to="q.one", **BLUE)
    _, box = bench.consumer("q.>", selector="colour = 'red'")
    bench.send("c", to="q.two", **RED)
    bench.send("d", to="q.two", **BLUE)
    assert box.bodies() == ["a", "c"]


def test_a_browser_is_shown_what_it_selects(bench: Bench) -> None:
    bench.send("a", **BLUE)
    bench.send("b", "c", **RED)
    bench.consumer(prefetch=2)
    box = Box()
    browser = Subscription(Queue("q"), box, prefetch=100)
    bench.engine.browse(browser, selector=Selector("colour = 'red'"))
    bench.engine.start(browser, 0)
    assert box.bodies()[:-1] == ["b", "c"]


def test_what_has_expired_is_not_given_and_blocks_nothing(bench: Bench) -> None:
    bench.send("x", **BLUE)
    bench.send("late", expiration=10, **RED)
    bench.send("a", **RED)
    _, box = bench.consumer(now=20, selector="colour = 'red'")
    assert box.bodies() == ["a"]
    assert bench.held("ActiveMQ.DLQ") == ["late"]


class TestGroups:
    def send(self, bench: Bench, bodies: str, group: str | None = "g", **fields: Any) -> None:
        bench.send(*bodies, group_id=group, **fields)

    def test_a_group_stays_with_the_first_that_selects_it(self, bench: Bench) -> None:
        one, first = bench.consumer(prefetch=1, selector="colour = 'red'")
        _, second = bench.consumer(prefetch=5, selector="colour = 'red'")
        self.send(bench, "abc", **RED)
        assert (first.bodies(), second.bodies()) == (["a"], [])
        bench.engine.unsubscribe(one, 0, all_seen=False)
        assert second.bodies() == ["a", "b", "c"]

    def test_its_owner_is_not_given_what_it_does_not_select(self, bench: Bench) -> None:
        """Nor does that wait for the owner: in turn it sticks to one of those that select it."""
        _, red = bench.consumer(selector="colour = 'red'")
        _, blue = bench.consumer(selector="colour = 'blue'")
        other, also_blue = bench.consumer(selector="colour = 'blue'")
        self.send(bench, "ab", **RED)
        self.send(bench, "cd", **BLUE)
        self.send(bench, "e", **RED)
        assert red.bodies() == ["a", "b", "e"]
        assert sorted([blue.bodies(), also_blue.bodies()]) == [[], ["c", "d"]]
        bench.engine.unsubscribe(other, 0, all_seen=False)
        assert blue.bodies() == ["c", "d"]

    def test_the_last_message_of_a_group_frees_it(self, bench: Bench) -> None:
        _, red = bench.consumer(selector="colour = 'red'")
        self.send(bench, "a", **RED)
        self.send(bench, "b", group_sequence=-1, **RED)
        assert red.bodies() == ["a", "b"]
        assert not bench.engine.queues["q"].groups

    def test_groups_that_were_silent_for_long_are_forgotten(self, bench: Bench) -> None:
        bench.consumer(prefetch=10_000, selector="colour = 'red'")
        for number in range(REMEMBERED_GROUPS + 5):
            self.send(bench, "a", f"g{number}", **RED)
        assert len(bench.engine.queues["q"].groups) == REMEMBERED_GROUPS


class TestNothingIsLookedAtTwice:
    def test_an_arrival_does_not_look_through_the_backlog(self, bench: Bench, looked_at: list[object]) -> None:
        bench.send(*map(str, range(2_000)), **BLUE)
        _, box = bench.consumer(selector="colour = 'red'")
        assert len(looked_at) == 2_000
        looked_at.clear()
        for number in range(10):
            bench.send(f"b{number}", **BLUE)
            bench.send(f"r{number}", **RED)
            bench.engine.acknowledge(box.take(), 0)
        assert len(looked_at) == 20
        assert len(bench.held("q")) == 2_010

    def test_a_release_looks_at_what_is_released(self, bench: Bench, looked_at: list[object]) -> None:
        bench.send("r", **RED)
        bench.send(*map(str, range(2_000)), **BLUE)
        consumer, box = bench.consumer(prefetch=5, selector="colour = 'red'")
        looked_at.clear()
        for _ in range(10):
            bench.engine.stop(consumer)
            bench.engine.release(box.take(), 0)
            bench.engine.start(consumer, 0)
            assert box.bodies() == ["r"]
        assert set(looked_at) == {"r"}

    def test_a_consumer_that_is_full_looks_at_nothing(self, bench: Bench, looked_at: list[object]) -> None:
        _, box = bench.consumer(prefetch=1, selector="colour = 'red'")
        bench.send("a", **RED)
        looked_at.clear()
        bench.send(*map(str, range(100)), **RED)
        assert looked_at == []
        bench.engine.acknowledge(box.take(), 0)
        assert looked_at == ["0"]

    def test_what_has_left_is_not_kept(self, bench: Bench) -> None:
        """Neither of what arrived nor of what was released is there more than a bounded rest."""
        _, stuck = bench.consumer(prefetch=1, selector="colour = 'red'")
        bench.send("first", **RED)
        taker, box = bench.consumer(prefetch=1)
        for number in range(5_000):
            bench.send(str(number), **RED)
            bench.engine.stop(taker)
            bench.engine.release(box.take(), 0)
            bench.engine.start(taker, 0)
            bench.engine.acknowledge(box.take(), 0)
        queue = bench.engine.queues["q"]
        (cursor,) = queue.cursors.values()
        assert stuck.bodies() == ["first"]
        assert len(queue.arrived) < 1_100
        assert len(cursor._returned) < 1_100
        assert len(cursor._heap) < 1_100

    def test_without_selectors_nothing_is_noted(self, bench: Bench) -> None:
        picky, _ = bench.consumer(selector="colour = 'red'")
        bench.send("a", **BLUE)
        queue = bench.engine.queues["q"]
        assert queue.arrived
        bench.engine.unsubscribe(picky, 0, all_seen=False)
        bench.send("b")
        assert not queue.arrived
        assert not queue.cursors
