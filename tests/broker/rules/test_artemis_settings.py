"""The embedded broker with Artemis' or HornetQ's file: what each setting means, and which of several counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.broker.rules.failing import Bench
from tests.broker.rules.test_artemis_rules import artemis, hornetq
from tests.policies.readers.documents import ARTEMIS, address_settings, read

from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.files.places import ConfigFileError

promise = pytest.mark.promise


@promise("artemis-redelivery-defaults")
def test_what_a_file_does_not_set_has_the_documents_default() -> None:
    bench = Bench(read(ARTEMIS.format("")))
    bench.send()
    assert bench.fail(most=5) == 5
    assert bench.waits == [0] * 5  # redelivery-delay is 0
    longest = Bench(artemis(redelivery_delay=100, redelivery_delay_multiplier=100, max_delivery_attempts=3))
    longest.send()
    longest.fail()
    assert longest.waits == [100, 1000]  # the maximum is ten times the delay


@promise("seen-artemis-delays")
@promise("seen-artemis-maximum")
@pytest.mark.parametrize("make", [artemis, hornetq])
def test_500_twice_at_most_1500(make: Callable[..., BrokerPolicies]) -> None:
    values = {"redelivery_delay": 500, "redelivery_delay_multiplier": 2}
    for more, waits in (({"max_redelivery_delay": 1500}, [500, 1000, 1500, 1500]), ({}, [500, 1000, 2000, 4000])):
        bench = Bench(make("#", max_delivery_attempts=5, **values, **more))
        bench.send()
        bench.fail()
        assert bench.waits == waits


@promise("seen-artemis-total")
def test_zero_is_endless_too() -> None:
    bench = Bench(artemis(max_delivery_attempts=0))
    bench.send()
    assert bench.fail(most=30) == 30


@promise("seen-artemis-order")
def test_the_order_of_patterns() -> None:
    values: dict[str, dict[str, object]] = {
        "orders.#": {"max_delivery_attempts": 2},
        "stock.#": {"max_delivery_attempts": 4},
        "stock.*": {"max_delivery_attempts": 3},
    }
    bench = Bench(read(address_settings(**values)))
    for queue, deliveries in (("orders", 2), ("stock.x", 3), ("stock.x.y", 4)):
        bench.send(queue)
        assert bench.fail(queue) == deliveries


@promise("artemis-example-setting")
@promise("hornetq-example-setting")
@pytest.mark.parametrize(("make", "match"), [(artemis, "exampleQueue"), (hornetq, "jms.queue.exampleQueue")])
def test_the_example_setting(make: Callable[..., BrokerPolicies], match: str) -> None:
    bench = Bench(
        make(match, redelivery_delay_multiplier=1.5, redelivery_delay=5000, max_redelivery_delay=50000, **_jitter(make))
    )
    bench.send("exampleQueue")
    bench.fail("exampleQueue", most=3)
    for wait, planned in zip(bench.waits, (5000, 7500, 11250), strict=True):
        assert abs(wait - planned) <= (0.15 * planned if make is artemis else 0)


def _jitter(make: Callable[..., BrokerPolicies]) -> dict[str, object]:
    return {"redelivery_collision_avoidance_factor": 0.15} if make is artemis else {}


@promise("seen-artemis-cap")
def test_the_maximum_comes_after_collision_avoidance() -> None:
    values: dict[str, Any] = {
        "redelivery_delay": 1000,
        "max_redelivery_delay": 1000,
        "redelivery_collision_avoidance_factor": 0.5,
    }
    bench = Bench(artemis(max_delivery_attempts=-1, **values))
    bench.send()
    bench.fail(most=100)
    assert max(bench.waits) == 1000
    assert min(bench.waits) < 1000


@promise("artemis-factor-range")
@promise("seen-artemis-refused")
def test_a_broker_with_a_factor_out_of_its_range_does_not_start() -> None:
    with pytest.raises(ConfigFileError, match="must be a finite number from 0 to 1"):
        artemis(redelivery_collision_avoidance_factor=1.5)


@promise("seen-hornetq-expiry")
def test_hornetq_gives_a_time_to_live_to_what_has_none() -> None:
    bench = Bench(hornetq("#", expiry_delay=300))
    bench.send()
    assert bench.engine.entries("q")[0].message.expiration == bench.now + 300


def test_queues_for_the_expired_messages_of_each_address_and_addresses_whose_messages_do_not_expire() -> None:
    values: dict[str, dict[str, object]] = {
        "#": {
            "expiry_address": "EXP",
            "auto_create_expiry_resources": "true",
            "expiry_queue_prefix": "late.",
            "expiry_queue_suffix": ".end",
        },
        "for.ever": {"no_expiry": "true"},
    }
    bench = Bench(read(address_settings(**values)))
    for queue in ("orders", "for.ever"):
        bench.send(queue, queue, expiration=bench.now + 100)
    bench.pass_time(101)
    assert [each.body for each in bench.letters("EXP::late.orders.end")] == ["orders"]
    assert [entry.message.expiration for entry in bench.engine.entries("for.ever")] == [0]


@pytest.mark.parametrize(("own", "lives"), [(0, 5000), (100, 100)])
def test_expiry_delay_is_for_what_has_no_time_to_live(own: int, lives: int) -> None:
    bench = Bench(artemis(expiry_delay=5000))
    bench.send(expiration=bench.now + own if own else 0)
    assert bench.engine.entries("q")[0].message.expiration == bench.now + lives
