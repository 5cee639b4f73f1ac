"""The embedded broker with Artemis' or HornetQ's send-to-dla-on-no-route: what no subscription to a topic wants."""

from __future__ import annotations

from typing import Any

import pytest
from tests.broker.engine.bench import Box
from tests.broker.rules.failing import Bench
from tests.broker.rules.test_artemis_rules import addresses, artemis, hornetq
from tests.broker.rules.test_classic_strategies import subscribed
from tests.policies.readers.documents import classic

from redelivery.broker.engine.subscriptions import Subscription
from redelivery.model.destinations import Topic
from redelivery.model.selectors.selector import Selector

KEPT = {"send_to_dla_on_no_route": "true", "dead_letter_address": "DLA"}


def test_it_is_a_dead_letter_without_a_queue_that_it_came_from() -> None:
    bench = Bench(artemis("news", inside=addresses("DLA"), **KEPT))
    bench.send("topic://news", expiration=bench.now + 1000)
    bench.send("topic://other", "gone")
    (letter,) = bench.letters("DLA")
    assert letter.expiration == 0
    assert {name: letter.properties[name] for name in ("_AMQ_ORIG_ADDRESS", "_AMQ_ORIG_QUEUE")} == {
        "_AMQ_ORIG_ADDRESS": "news",
        "_AMQ_ORIG_QUEUE": None,
    }


def test_it_is_none_where_a_subscription_wants_it_or_a_queue_takes_it() -> None:
    bench = Bench(artemis(inside=addresses("DLA"), **KEPT))
    box = subscribed(bench, None)
    bench.send("topic://news")
    bench.send("news")
    assert [each.message.body for each in box] == ["m"]
    assert bench.letters("DLA") == []


def test_a_selector_that_does_not_match_is_no_route() -> None:
    bench = Bench(artemis(inside=addresses("DLA"), **KEPT))
    box = Box()
    subscription = Subscription(Topic("news"), box, prefetch=10)
    bench.engine.subscribe(subscription, selector=Selector("colour = 'red'"))
    bench.engine.start(subscription, bench.now)
    bench.send("topic://news")
    assert box == []
    assert len(bench.letters("DLA")) == 1


def test_a_queue_is_made_for_it_where_the_file_says_so() -> None:
    bench = Bench(artemis(auto_create_dead_letter_resources="true", **KEPT))
    bench.send("topic://news")
    assert len(bench.letters("DLA::DLQ.news")) == 1


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"send_to_dla_on_no_route": "true"},
        {"dead_letter_address": "DLA"},
        {**KEPT, "dead_letter_address": "nobody"},
    ],
    ids=["nothing", "no address", "not set", "no queue"],
)
def test_otherwise_it_is_gone(values: dict[str, Any]) -> None:
    bench = Bench(artemis(inside=addresses("DLA"), **values))
    bench.send("topic://news")
    assert bench.engine.queues.keys() <= {"DLA"}
    assert bench.letters("DLA") == []
    assert bench.engine._state.memory_used == 0


def test_a_dead_letter_that_no_subscription_wants_is_gone() -> None:
    bench = Bench(hornetq("#", send_to_dla_on_no_route="true", dead_letter_address="jms.topic.dead"))
    bench.send("dead")  # a queue of the topic's name
    bench.send("topic://news")
    assert bench.engine.depth("dead") == 1
    assert list(bench.engine.queues) == ["dead"]


def test_other_brokers_have_no_such_setting() -> None:
    bench = Bench(classic(""))
    bench.send("topic://news")
    assert list(bench.engine.queues) == []
