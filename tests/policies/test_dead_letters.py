"""Dead-letter strategies: who gets the copy, and when there is none (ActiveMQ's policies of the same names)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from redelivery.model.destinations import Queue, Topic
from redelivery.model.errors import ConfigError
from redelivery.policies.dead_letters import (
    BrokerDeadLetterStrategy,
    CopyTo,
    DeadLetterStrategy,
    Decision,
    Discard,
    DiscardingDeadLetterStrategy,
    IndividualDeadLetterStrategy,
    Native,
    SharedDeadLetterStrategy,
)

ORDERS, NEWS, DLQ = Queue("orders"), Topic("news"), Queue("ActiveMQ.DLQ")


def decide(
    strategy: DeadLetterStrategy,
    original: Queue | Topic = ORDERS,
    *,
    persistent: bool = True,
    expired: bool = False,
    native: bool = False,
) -> Decision:
    return strategy.decide(original, persistent=persistent, expired=expired, native_available=native)


@pytest.mark.parametrize(
    ("configured", "native", "expected"),
    [
        (None, True, Native()),
        (None, False, CopyTo(DLQ)),
        (True, True, Native()),
        (True, False, Native()),
        (False, True, CopyTo(DLQ)),
        (False, False, CopyTo(DLQ)),
    ],
)
def test_the_broker_dead_letters_where_it_surely_can(configured: bool | None, native: bool, expected: Decision) -> None:
    assert decide(BrokerDeadLetterStrategy(configured), native=native) == expected


def test_what_the_broker_could_not_honour_is_copied() -> None:
    # Classic drops a non-persistent message that is poisoned, and knows nothing of our expiration
    keep = BrokerDeadLetterStrategy(process_non_persistent=True)
    assert decide(keep, persistent=False, native=True) == CopyTo(DLQ)
    assert decide(keep, persistent=True, native=True) == Native()
    assert decide(BrokerDeadLetterStrategy(expiration=5), native=True) == CopyTo(DLQ, 5.0)
    assert decide(BrokerDeadLetterStrategy(True, expiration=5), native=True) == Native()


def test_a_native_broker_follows_its_own_rule_for_non_persistent_messages() -> None:
    assert decide(BrokerDeadLetterStrategy(), persistent=False, native=True) == Native()


def test_shared() -> None:
    assert decide(SharedDeadLetterStrategy(), native=True) == CopyTo(DLQ)
    assert decide(SharedDeadLetterStrategy("my.dlq")) == CopyTo(Queue("my.dlq"))
    assert decide(SharedDeadLetterStrategy("topic://dead")) == CopyTo(Topic("dead"))
    assert decide(SharedDeadLetterStrategy(Queue("d")), NEWS) == CopyTo(Queue("d"))


@pytest.mark.parametrize(
    ("options", "queue_copy", "topic_copy"),
    [
        ({}, Queue("ActiveMQ.DLQ.Queue.orders"), Queue("ActiveMQ.DLQ.Topic.news")),
        (
            {"queue_prefix": "DLQ.", "topic_prefix": "", "queue_suffix": ".q", "topic_suffix": ".dead"},
            Queue("DLQ.orders.q"),
            Queue("news.dead"),
        ),
        (
            {"use_queue_for_queue_messages": False, "use_queue_for_topic_messages": False},
            Topic("ActiveMQ.DLQ.Queue.orders"),
            Topic("ActiveMQ.DLQ.Topic.news"),
        ),
    ],
)
def test_individual(options: dict[str, Any], queue_copy: Queue, topic_copy: Topic) -> None:
    strategy = IndividualDeadLetterStrategy(**options)
    assert decide(strategy, ORDERS, native=True) == CopyTo(queue_copy)
    assert decide(strategy, NEWS) == CopyTo(topic_copy)


@pytest.mark.promise("classic-expired", "classic-non-persistent")
@pytest.mark.parametrize(
    "strategy", [BrokerDeadLetterStrategy(), SharedDeadLetterStrategy(), IndividualDeadLetterStrategy()]
)
def test_expired_and_non_persistent_messages(strategy: Any) -> None:
    kind = type(strategy)
    assert isinstance(decide(strategy, expired=True), CopyTo)
    assert decide(kind(process_expired=False), expired=True) == Discard("it has expired, and process_expired is False")
    assert isinstance(decide(kind(process_expired=False), expired=False), CopyTo)
    copies = kind is not BrokerDeadLetterStrategy  # by its name: other clients send non-persistently without a word
    assert isinstance(decide(strategy, persistent=False), CopyTo) is copies
    non_persistent = decide(kind(process_non_persistent=False), persistent=False)
    assert isinstance(non_persistent, Discard)
    assert "process_non_persistent" in non_persistent.reason
    assert isinstance(decide(kind(process_non_persistent=True), persistent=False), CopyTo)


def test_process_expired_false_counts_before_the_broker_is_asked() -> None:
    assert isinstance(decide(BrokerDeadLetterStrategy(True, process_expired=False), expired=True, native=True), Discard)


@pytest.mark.parametrize(("given", "seconds"), [(None, None), (0, None), (2.5, 2.5), (timedelta(minutes=1), 60.0)])
def test_the_copys_expiration(given: Any, seconds: float | None) -> None:
    assert decide(SharedDeadLetterStrategy(expiration=given)) == CopyTo(DLQ, seconds)


@pytest.mark.parametrize(
    ("strategy", "original"),
    [
        (SharedDeadLetterStrategy(), DLQ),
        (BrokerDeadLetterStrategy(), DLQ),
        (IndividualDeadLetterStrategy(queue_prefix="", use_queue_for_queue_messages=True), ORDERS),
    ],
)
def test_a_dead_letter_is_never_copied_back_to_where_it_came_from(
    strategy: DeadLetterStrategy, original: Queue
) -> None:
    decision = decide(strategy, original)
    assert isinstance(decision, Discard)
    assert str(original) in decision.reason
    assert not decision.discarded


def test_a_topic_that_is_called_like_the_dead_letter_queue_is_another_place() -> None:
    assert decide(SharedDeadLetterStrategy(), Topic("ActiveMQ.DLQ")) == CopyTo(DLQ)


def test_discarding_drops_everything_by_default_and_is_counted() -> None:
    decision = decide(DiscardingDeadLetterStrategy(), native=True)
    assert decision == Discard("messages of queue://orders are discarded", True, 1000)
    assert decide(DiscardingDeadLetterStrategy(report_interval=0)) == Discard(
        "messages of queue://orders are discarded", discarded=True, report_interval=0
    )


@pytest.mark.parametrize(
    ("expressions", "name", "dropped"),
    [
        (("test",), "test", True),
        (("test",), "test.1", False),
        (("test",), "my.test", False),
        (("test.*",), "test.1", True),
        ((r"test\.[0-9]{3}",), "test.123", True),
        ((r"test\.[0-9]{3}",), "test.1234", False),
        (("a", "b"), "b", True),
        (("a|b",), "ab", False),
        ("a b", "b", True),
        ("a b", "a b", False),
        (iter(["a", "b"]), "b", True),
    ],
)
def test_discarding_only_what_matches_as_a_whole(expressions: Any, name: str, dropped: bool) -> None:
    strategy = DiscardingDeadLetterStrategy(expressions, otherwise=SharedDeadLetterStrategy("rest"))
    decision = decide(strategy, Queue(name))
    assert decision == (
        Discard(f"messages of queue://{name} are discarded", True, 1000) if dropped else CopyTo(Queue("rest"))
    )


@pytest.mark.parametrize("expressions", [(), ("orders",)])
def test_discarding_may_leave_what_has_expired_to_the_other_strategy(expressions: tuple[str, ...]) -> None:
    other = SharedDeadLetterStrategy("rest")
    strategy = DiscardingDeadLetterStrategy(expressions, otherwise=other, drop_expired=False)
    assert isinstance(decide(strategy), Discard)
    assert decide(strategy, expired=True) == CopyTo(Queue("rest"))


@pytest.mark.parametrize("kind", [SharedDeadLetterStrategy, IndividualDeadLetterStrategy, DiscardingDeadLetterStrategy])
def test_another_strategy_may_decide_about_what_has_expired(kind: Any) -> None:
    other = IndividualDeadLetterStrategy(queue_prefix="EXP.", process_non_persistent=True)
    strategy = kind(for_expired=other)
    assert decide(strategy) == decide(kind())
    assert decide(strategy, expired=True) == decide(other, expired=True)
    assert isinstance(decide(strategy, expired=True, persistent=False), CopyTo)
    assert isinstance(decide(kind(for_expired=other, process_expired=False), expired=True), Discard)
    assert isinstance(decide(kind(for_expired=BrokerDeadLetterStrategy()), expired=True, native=True), Native)


def test_discarding_leaves_the_rest_to_the_broker_by_default() -> None:
    strategy = DiscardingDeadLetterStrategy(drop_only=("junk",))
    assert decide(strategy, native=True) == Native()
    assert decide(strategy, native=False) == CopyTo(DLQ)
    assert isinstance(decide(DiscardingDeadLetterStrategy(("junk",), process_expired=False), expired=True), Discard)


@pytest.mark.parametrize(
    ("kind", "options", "named"),
    [
        (SharedDeadLetterStrategy, {"dead_letter_queue": ""}, "dead_letter_queue="),
        (SharedDeadLetterStrategy, {"dead_letter_queue": "DLQ.>"}, "dead_letter_queue="),
        (SharedDeadLetterStrategy, {"dead_letter_queue": None}, "dead_letter_queue="),
        (SharedDeadLetterStrategy, {"process_expired": 1}, "process_expired="),
        (SharedDeadLetterStrategy, {"process_non_persistent": "no"}, "process_non_persistent="),
        (SharedDeadLetterStrategy, {"expiration": -1}, "expiration="),
        (SharedDeadLetterStrategy, {"for_expired": "EXP"}, "for_expired="),
        (BrokerDeadLetterStrategy, {"configured": "yes"}, "configured="),
        (IndividualDeadLetterStrategy, {"queue_prefix": None}, "queue_prefix="),
        (IndividualDeadLetterStrategy, {"queue_prefix": "DLQ.*."}, "queue_prefix"),
        (IndividualDeadLetterStrategy, {"topic_suffix": " "}, "topic_suffix"),
        (IndividualDeadLetterStrategy, {"use_queue_for_topic_messages": None}, "use_queue_for_topic_messages="),
        (DiscardingDeadLetterStrategy, {"drop_only": ("(",)}, r"drop_only: '\('"),
        (DiscardingDeadLetterStrategy, {"drop_only": (3,)}, "drop_only: 3"),
        (DiscardingDeadLetterStrategy, {"drop_only": 3}, "drop_only=3"),
        (DiscardingDeadLetterStrategy, {"otherwise": None}, "otherwise="),
        (DiscardingDeadLetterStrategy, {"report_interval": -1}, "report_interval="),
        (DiscardingDeadLetterStrategy, {"drop_expired": "no"}, "drop_expired="),
    ],
)
def test_a_bad_option_is_named(kind: Any, options: dict[str, object], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        kind(**options)


def test_strategies_are_values() -> None:
    assert BrokerDeadLetterStrategy() == BrokerDeadLetterStrategy()
    assert hash(DiscardingDeadLetterStrategy(["a"])) == hash(DiscardingDeadLetterStrategy(("a",)))
    assert DiscardingDeadLetterStrategy(["a"]) == DiscardingDeadLetterStrategy(("a",))
    frozen: Any = SharedDeadLetterStrategy()
    with pytest.raises(AttributeError):
        frozen.dead_letter_queue = "other"


def test_a_broker_without_a_word_for_poison_gets_a_copy_whatever_is_configured() -> None:
    decision = BrokerDeadLetterStrategy(configured=True).decide(
        Queue("orders"), persistent=True, expired=False, native_available=False, native_possible=False
    )
    assert decision == CopyTo(Queue("ActiveMQ.DLQ"))


@pytest.mark.parametrize(
    ("original", "address", "copy"),
    [
        ("orders::ordersQueue", "orders", "DLQ.orders"),
        ("orders::ordersQueue", "orders::ordersQueue", "DLQ.orders"),
        ("ordersQueue", "orders", "DLQ.ordersQueue"),
        ("orders::ordersQueue", None, "DLQ.orders::ordersQueue"),  # where a name is a name
    ],
)
def test_a_queue_that_is_named_with_its_address_has_the_dead_letter_queue_of_that(
    original: str, address: str | None, copy: str
) -> None:
    """A queue of its own name cannot be another address' as well, so the copy would be refused or lost."""
    strategy = IndividualDeadLetterStrategy(queue_prefix="DLQ.")
    found = strategy.decide(Queue(original), persistent=True, expired=False, native_available=False, address=address)
    assert found == CopyTo(Queue(copy))


@pytest.mark.parametrize("original", ["dead", "dead::deadQueue", "deadQueue"])
def test_a_queue_at_the_address_of_dead_letters_gets_no_copy_of_its_own(original: str) -> None:
    shared = SharedDeadLetterStrategy("dead")
    found = shared.decide(Queue(original), persistent=True, expired=False, native_available=False, address="dead")
    assert isinstance(found, Discard)
    topic = shared.decide(Topic("dead"), persistent=True, expired=False, native_available=False, address="dead")
    assert topic == CopyTo(Queue("dead"))
