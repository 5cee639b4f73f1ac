"""The queues that the embedded broker makes for dead letters with Artemis' file, and what fails in them."""

from __future__ import annotations

import pytest
from tests.broker.engine.bench import Box
from tests.broker.rules.failing import Bench
from tests.broker.rules.test_artemis_rules import artemis
from tests.policies.readers.documents import address_settings, read

from redelivery.broker.engine.subscriptions import Subscription
from redelivery.model.destinations import Queue

promise = pytest.mark.promise


@promise("seen-artemis-suffix")
@promise("artemis-auto-create")
@promise("artemis-example-auto-create")
def test_a_queue_for_the_dead_letters_of_each_address() -> None:
    policies = artemis(
        dead_letter_address="DLA",
        max_delivery_attempts=1,
        auto_create_dead_letter_resources="true",
        dead_letter_queue_prefix="",
        dead_letter_queue_suffix=".DLQ",
    )
    bench = Bench(policies)
    for queue in ("orders", "stocks"):
        bench.send(queue, queue)
        bench.fail(queue)
    assert [each.body for each in bench.letters("DLA::stocks.DLQ")] == ["stocks"]
    assert [each.body for each in bench.letters("DLA::orders.DLQ")] == ["orders"]
    assert [each.body for each in bench.letters("stocks.DLQ")] == ["stocks"]  # its own name finds it too


@promise("artemis-auto-created")
def test_a_queue_that_was_made_for_dead_letters_is_consumed_and_browsed_by_its_own_name() -> None:
    bench = Bench(artemis(dead_letter_address="DLA", max_delivery_attempts=1, auto_create_dead_letter_resources="true"))
    bench.send("orders")
    bench.fail("orders")
    browser = Subscription(Queue("DLQ.orders"), shown := Box(), prefetch=10)
    bench.engine.browse(browser)
    bench.engine.start(browser, bench.now)
    assert shown[0].message.body == "m"
    _, box = bench.consumer("DLQ.orders")
    bench.engine.acknowledge((bench.taken(box),), bench.now)
    assert bench.engine.depth("DLA::DLQ.orders") == 0
    bench.send("orders", "next")
    bench.fail("orders")
    assert bench.taken(box).message.body == "next"


@promise("seen-artemis-early")
def test_a_queue_of_that_name_on_another_address_loses_the_dead_letters() -> None:
    bench = Bench(artemis(dead_letter_address="DLA", max_delivery_attempts=1, auto_create_dead_letter_resources="true"))
    _, box = bench.consumer("DLQ.orders")
    bench.send("orders")
    bench.fail("orders")
    assert box == []
    assert bench.engine.depth("DLA::DLQ.orders") == 0


@promise("artemis-auto-created")
def test_a_queue_that_was_made_for_dead_letters_is_deleted_when_it_is_empty_and_nobody_consumes_it() -> None:
    bench = Bench(artemis(dead_letter_address="DLA", max_delivery_attempts=1, auto_create_dead_letter_resources="true"))
    bench.send("orders")
    bench.fail("orders")
    consumer, box = bench.consumer("DLA::DLQ.orders")
    bench.engine.acknowledge((bench.taken(box),), bench.now)
    assert "DLA::DLQ.orders" in bench.engine.queues
    bench.engine.unsubscribe(consumer, bench.now, all_seen=False)
    assert "DLA::DLQ.orders" not in bench.engine.queues


@promise("seen-artemis-again")
def test_what_fails_in_a_queue_of_dead_letters_gets_one_more_queue_and_stays_there() -> None:
    bench = Bench(artemis(dead_letter_address="DLA", max_delivery_attempts=1, auto_create_dead_letter_resources="true"))
    bench.send("orders")
    bench.fail("orders")
    bench.fail("DLA::DLQ.orders")
    (letter,) = bench.letters("DLA::DLQ.DLA")
    assert letter.properties["_AMQ_ORIG_ADDRESS"] == "DLA"
    assert letter.properties["_AMQ_ORIG_QUEUE"] == "DLQ.orders"
    assert bench.fail("DLA::DLQ.DLA", most=5) == 5
    assert len(bench.letters("DLA::DLQ.DLA")) == 1
    assert [name for name in bench.engine.queues if bench.engine.depth(name)] == ["DLA::DLQ.DLA"]


def test_the_settings_of_its_address_count_for_a_queue_that_is_named_with_it() -> None:
    values: dict[str, dict[str, object]] = {
        "orders": {
            "max_delivery_attempts": 1,
            "dead_letter_address": "DLA",
            "auto_create_dead_letter_resources": "true",
        },
        "DLA": {"max_delivery_attempts": 3, "redelivery_delay": 400},
    }
    bench = Bench(read(address_settings(**values)))
    bench.send("orders")
    bench.fail("orders")
    assert bench.fail("DLA::DLQ.orders") == 3
    assert bench.waits == [400, 400]
