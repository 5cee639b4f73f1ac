"""The embedded broker with Artemis' or HornetQ's file: their documents' promises, and what the real brokers do."""

from __future__ import annotations

import pytest
from tests.broker.rules.failing import Bench
from tests.policies.readers.documents import ARTEMIS, address_settings, read
from tests.policies.test_address_settings import Signs

from redelivery.broker.engine.entries import Entry
from redelivery.broker.engine.rules.artemis import ArtemisBroker
from redelivery.broker.engine.rules.rules import Manner
from redelivery.broker.engine.stored import StoredMessage
from redelivery.model.destinations import Queue
from redelivery.model.values import Long
from redelivery.policies.brokers.artemis.rules import ArtemisRules
from redelivery.policies.brokers.policies import BrokerPolicies

promise = pytest.mark.promise


def artemis(match: str = "#", *, inside: str = "", **values: object) -> BrokerPolicies:
    text = address_settings(**{match: values})
    return read(text.replace("</core>", f"{inside}</core>"))


def hornetq(match: str, **values: object) -> BrokerPolicies:
    text = address_settings(**{match: values})
    return read(text.replace("urn:activemq:core", "urn:hornetq").replace("urn:activemq", "urn:hornetq"))


def addresses(*names: str) -> str:
    queues = "".join(f'<address name="{each}"><anycast><queue name="{each}"/></anycast></address>' for each in names)
    return f"<addresses>{queues}</addresses>"


@promise("artemis-growth")
@promise("artemis-example-1")
def test_example_1_waits_5_10_and_15_seconds() -> None:
    bench = Bench(artemis(redelivery_delay=5000, redelivery_delay_multiplier=2, max_redelivery_delay=15000))
    bench.send()
    assert bench.fail(most=5) == 5
    assert bench.waits == [5000, 10000, 15000, 15000, 15000]
    assert bench.counts == [1, 2, 3, 4, 5]


@promise("artemis-example-2")
def test_example_2_moves_the_delays_by_chance() -> None:
    rules = artemis(
        redelivery_delay=1000,
        redelivery_delay_multiplier=1,
        max_redelivery_delay=15000,
        redelivery_collision_avoidance_factor=0.5,
    ).rules
    assert isinstance(rules, ArtemisRules)
    broker = ArtemisBroker(rules, Signs(("-", 0.25), ("+", 0.75), ("-", 0.05)))
    entry = Entry(StoredMessage("ID:1", Queue("q")), 1, "q")
    delays = []
    for redeliveries in range(3):
        entry.redeliveries = redeliveries
        delays.append(broker.returned(entry, Manner.FAILED, seen=True).delay)
    assert delays == [875, 1375, 975]


@promise("artemis-two-remedies")
@promise("artemis-example-dead-letter")
def test_after_three_deliveries_the_message_is_at_the_dead_letter_address() -> None:
    policies = artemis(
        "exampleQueue",
        inside=addresses("deadLetterAddress"),
        redelivery_delay=100,
        dead_letter_address="deadLetterAddress",
        max_delivery_attempts=3,
    )
    bench = Bench(policies)
    bench.send("exampleQueue")
    assert bench.fail("exampleQueue") == 3
    assert bench.waits == [100, 100]
    (letter,) = bench.letters("deadLetterAddress")
    assert bench.engine.depth("exampleQueue") == 0
    assert letter.body == "m"


@promise("artemis-properties")
def test_a_dead_letter_says_where_it_comes_from_and_never_expires() -> None:
    policies = artemis(inside=addresses("DLA"), dead_letter_address="DLA", max_delivery_attempts=1)
    bench = Bench(policies)
    bench.send("orders", properties={"colour": "red"}, expiration=9_000_000)
    bench.fail("orders")
    (letter,) = bench.letters("DLA")
    assert dict(letter.properties) == {
        "colour": "red",
        "_AMQ_ORIG_ADDRESS": "orders",
        "_AMQ_ORIG_QUEUE": "orders",
        "_AMQ_ORIG_MESSAGE_ID": Long(1),  # the broker's first message
        "_AMQ_ORIG_ROUTING_TYPE": 1,
    }
    assert letter.expiration == 0
    (entry,) = bench.engine.entries("DLA")
    assert entry.redeliveries == 0  # its count begins anew


@promise("artemis-attempts-default")
@promise("artemis-removal")
def test_without_an_address_the_message_is_removed_after_ten_deliveries() -> None:
    bench = Bench(read(ARTEMIS.format("")))
    bench.send()
    assert bench.fail() == 10
    assert not any(bench.engine.depth(name) for name in bench.engine.queues)


@promise("seen-artemis-unbound")
def test_an_address_that_no_queue_is_bound_to_keeps_nothing() -> None:
    bench = Bench(artemis(dead_letter_address="DLA", max_delivery_attempts=2))
    bench.send()
    assert bench.fail() == 2
    assert bench.letters("DLA") == []


@promise("seen-artemis-total")
@promise("artemis-endless-address")
def test_minus_one_is_without_an_end() -> None:
    values = {"#": {"max_delivery_attempts": 3}, "q": {"max_delivery_attempts": -1}}
    bench = Bench(read(address_settings(**values)))
    bench.send()
    bench.send("other")
    assert bench.fail("q", most=50) == 50
    assert bench.fail("other") == 3


def test_the_filter_of_a_queue_on_the_dead_letter_address() -> None:
    queues = "".join(
        f'<queue name="of-{each}"><filter string="_AMQ_ORIG_ADDRESS = \'{each}\'"/></queue>' for each in ("a", "b")
    )
    inside = f'<addresses><address name="DLA"><multicast>{queues}</multicast></address></addresses>'
    bench = Bench(artemis(inside=inside, dead_letter_address="DLA", max_delivery_attempts=1))
    bench.send("a")
    bench.fail("a")
    assert len(bench.letters("DLA::of-a")) == 1
    assert bench.letters("DLA::of-b") == []


@promise("artemis-overtaking")
def test_later_messages_are_delivered_meanwhile() -> None:
    bench = Bench(artemis(redelivery_delay=1000))
    for body in ("1", "2", "3"):
        bench.send(body=body)
    _, box = bench.consumer()
    bench.engine.release((bench.taken(box),), bench.now)
    assert [each.message.body for each in box] == ["2", "3"]
    box.clear()
    bench.pass_time(999)
    assert box == []
    bench.pass_time(1)
    assert [(each.message.body, each.count) for each in box] == [("1", 2)]


@promise("seen-artemis-merge")
@promise("artemis-wildcards")
def test_settings_are_merged_field_by_field() -> None:
    values: dict[str, dict[str, object]] = {
        "orders.#": {"redelivery_delay": 200},
        "#": {"max_delivery_attempts": 2, "redelivery_delay": 7},
    }
    bench = Bench(read(address_settings(**values)))
    bench.send("orders.eu")
    assert bench.fail("orders.eu") == 2
    assert bench.waits == [200]


@pytest.mark.parametrize(
    ("manner", "deliveries"),
    [(Manner.CLOSED, 20), (Manner.DISCONNECTED, 3), (Manner.LOST, 3)],
    ids=lambda each: str(each),
)
def test_what_the_end_of_a_consumer_counts(manner: Manner, deliveries: int) -> None:
    bench = Bench(artemis(redelivery_delay=100, max_delivery_attempts=3))
    bench.send()
    assert bench.close(times=20, manner=manner) == deliveries
    assert bench.close(times=20, manner=manner, seen=False) == (20 if manner is Manner.CLOSED else 0)


def test_what_was_only_prefetched_is_not_counted() -> None:
    bench = Bench(artemis(redelivery_delay=100, max_delivery_attempts=3))
    bench.send()
    assert bench.close(times=20, manner=Manner.LOST, seen=False) == 20


def test_what_is_released_waits_and_does_not_count() -> None:
    bench = Bench(artemis(redelivery_delay=300, redelivery_delay_multiplier=2, max_delivery_attempts=2))
    bench.send()
    _, box = bench.consumer()
    for _ in range(5):
        dispatch = box.pop()
        assert dispatch.count == 1
        bench.engine.release((dispatch,), bench.now)
        assert bench.await_next(box)
    assert bench.waits == [300] * 5


def test_what_is_rejected_is_a_dead_letter_at_once() -> None:
    policies = artemis(inside=addresses("DLA"), dead_letter_address="DLA", redelivery_delay=1000)
    bench = Bench(policies)
    bench.send()
    assert bench.fail(manner=Manner.REJECTED) == 1
    assert len(bench.letters("DLA")) == 1


def test_nack_is_ack() -> None:
    bench = Bench(artemis(inside=addresses("DLA"), dead_letter_address="DLA"))
    bench.send()
    assert bench.fail(manner=Manner.NACKED) == 1
    assert bench.letters("DLA") == []


def test_times_to_live_and_where_the_expired_go() -> None:
    policies = artemis(
        inside=addresses("EXP"),
        expiry_address="EXP",
        min_expiry_delay=500,
        max_expiry_delay=1200,
        redelivery_delay=50_000,
    )
    bench = Bench(policies)
    for body, lives, kept in (("none", 0, 1200), ("short", 100, 500), ("long", 5000, 1200), ("fits", 800, 800)):
        bench.send(body=body, expiration=bench.now + lives if lives else 0)
        assert bench.engine.entries("q")[-1].message.expiration == bench.now + kept
    _, box = bench.consumer()
    bench.engine.release((bench.taken(box),), bench.now)  # it waits for its redelivery longer than it lives
    bench.pass_time(1200)
    (letter,) = bench.letters("EXP")
    assert letter.body == "none"
    assert letter.properties["_AMQ_ACTUAL_EXPIRY"] == bench.now


@promise("hornetq-example-growth")
@promise("hornetq-dead-letter")
@promise("hornetq-properties")
def test_hornetq_with_its_names_of_addresses() -> None:
    policies = hornetq(
        "jms.queue.exampleQueue",
        redelivery_delay=5000,
        redelivery_delay_multiplier=2,
        max_redelivery_delay=15000,
        dead_letter_address="jms.queue.deadLetterQueue",
        max_delivery_attempts=5,
    )
    bench = Bench(policies)
    bench.consumer("deadLetterQueue")  # so that there is such a queue
    bench.send("exampleQueue")
    assert bench.fail("exampleQueue") == 5
    assert bench.waits == [5000, 10000, 15000, 15000]
    (letter,) = bench.letters("deadLetterQueue")
    assert letter.properties["_HQ_ORIG_ADDRESS"] == letter.properties["_HQ_ORIG_QUEUE"] == "jms.queue.exampleQueue"
