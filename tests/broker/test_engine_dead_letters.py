"""What the broker makes of poison and expiry: ActiveMQ's dead letters."""

from __future__ import annotations

from typing import Any

import pytest
from tests.broker.engine.bench import Box

from redelivery.broker.engine.config import BrokerConfig
from redelivery.broker.engine.engine import Engine
from redelivery.broker.engine.stored import StoredMessage
from redelivery.broker.engine.subscriptions import Subscription
from redelivery.model.destinations import Queue, destination
from redelivery.model.errors import ConfigError
from redelivery.policies.brokers.artemis.bound import BoundQueue
from redelivery.policies.brokers.artemis.rules import ArtemisRules
from redelivery.policies.dead_letters import (
    BrokerDeadLetterStrategy,
    DiscardingDeadLetterStrategy,
    IndividualDeadLetterStrategy,
    SharedDeadLetterStrategy,
)
from redelivery.policies.files.places import Place

FILTERED = ArtemisRules(queues=(BoundQueue("q", "q", "anycast", "> 1", Place("b.xml", 3, 2)),))


def engine_with(**config: Any) -> Engine:
    return Engine(BrokerConfig(**config))


def consume(engine: Engine, name: str, now: int = 0, prefetch: int = 100) -> tuple[Subscription, Box]:
    box = Box()
    subscription = Subscription(destination(name), box, prefetch=prefetch)
    engine.subscribe(subscription)
    engine.start(subscription, now)
    return subscription, box


def send(engine: Engine, name: str, message_id: str = "ID:1", now: int = 0, **fields: Any) -> None:
    engine.send(StoredMessage(message_id=message_id, destination=destination(name), body="m", **fields), now)


def poison(engine: Engine, name: str, cause: str | None = "Delivery[7] exceeds", now: int = 0, **fields: Any) -> None:
    send(engine, name, now=now, **fields)
    subscription, box = consume(engine, name, now)
    engine.poison(box[-1], cause, now)
    engine.unsubscribe(subscription, now, all_seen=False)


def letters(engine: Engine, name: str = "ActiveMQ.DLQ") -> list[StoredMessage]:
    return [entry.message for entry in engine.entries(name)]


def test_a_dead_letter_says_where_it_comes_from_and_why() -> None:
    engine = engine_with()
    poison(engine, "orders", properties={"colour": "red"}, expiration=9000, priority=7, group_id="g")
    (letter,) = letters(engine)
    assert letter.message_id == "ID:1"
    assert letter.destination == Queue("ActiveMQ.DLQ")
    assert letter.original_destination == Queue("orders")
    assert letter.properties == {
        "colour": "red",
        "dlqDeliveryFailureCause": "Delivery[7] exceeds",
        "originalExpiration": "9000",
    }
    assert (letter.expiration, letter.persistent, letter.priority, letter.group_id) == (0, True, 7, "g")
    assert engine.depth("orders") == 0


def test_without_a_cause_there_is_no_such_property() -> None:
    engine = engine_with()
    poison(engine, "orders", cause=None)
    assert letters(engine)[0].properties == {"originalExpiration": "0"}


def test_its_count_begins_again() -> None:
    engine = engine_with()
    send(engine, "orders")
    lost, _ = consume(engine, "orders")
    engine.unsubscribe(lost, 0, all_seen=True)
    _, box = consume(engine, "orders")
    assert box[0].count == 2
    engine.poison(box[0], None, 0)
    _, dead = consume(engine, "ActiveMQ.DLQ")
    assert dead[0].count == 1


@pytest.mark.promise("classic-non-persistent")
def test_a_non_persistent_message_is_dropped_unless_asked_for() -> None:
    engine = engine_with()
    poison(engine, "orders", persistent=False)
    assert letters(engine) == []
    engine = engine_with(dead_letter_strategy=SharedDeadLetterStrategy(process_non_persistent=True))
    poison(engine, "orders", persistent=False)
    (letter,) = letters(engine)
    assert letter.persistent
    assert letter.properties["originalDeliveryMode"] == "NON_PERSISTENT"


def test_poison_on_the_dead_letter_queue_itself_is_the_end() -> None:
    engine = engine_with()
    poison(engine, "ActiveMQ.DLQ")
    assert engine.depth("ActiveMQ.DLQ") == 0
    assert engine.memory_used == 0


@pytest.mark.promise("classic-individual")
def test_one_queue_per_destination_and_from_there_to_the_shared_one() -> None:
    engine = engine_with(dead_letter_strategies={"individual.>": IndividualDeadLetterStrategy(queue_prefix="DLQ.")})
    poison(engine, "individual.q")
    assert [letter.original_destination for letter in letters(engine, "DLQ.individual.q")] == [Queue("individual.q")]
    subscription, box = consume(engine, "DLQ.individual.q")
    engine.poison(box[0], "again", 0)
    engine.unsubscribe(subscription, 0, all_seen=False)
    assert [letter.original_destination for letter in letters(engine)] == [Queue("DLQ.individual.q")]


def test_one_message_id_is_dead_lettered_once() -> None:
    """A composite send poisoned in both queues gives one dead letter."""
    engine = engine_with()
    poison(engine, "a")
    poison(engine, "b")
    assert [letter.original_destination for letter in letters(engine)] == [Queue("a")]


@pytest.mark.promise("classic-discarding")
def test_a_discarding_strategy_drops() -> None:
    engine = engine_with(dead_letter_strategy=DiscardingDeadLetterStrategy())
    poison(engine, "orders")
    assert letters(engine) == []
    assert engine.memory_used == 0


def test_a_strategy_may_give_dead_letters_a_life_span() -> None:
    engine = engine_with(dead_letter_strategy=SharedDeadLetterStrategy(expiration=2.5))
    poison(engine, "orders", now=1000, expiration=5000)
    (letter,) = letters(engine)
    assert letter.expiration == 3500
    assert "originalExpiration" not in letter.properties


def test_poison_on_a_topic_is_only_forgotten() -> None:
    engine = engine_with()
    _, box = consume(engine, "topic://news")
    send(engine, "topic://news")
    engine.poison(box[0], "cause", 0)
    assert letters(engine) == []
    assert engine.memory_used == 0


def test_a_waiting_message_expires_by_the_clock() -> None:
    engine = engine_with()
    send(engine, "orders", expiration=1500)
    assert engine.next_deadline() == 1500
    engine.tick(1499)
    assert engine.depth("orders") == 1
    engine.tick(1500)
    assert engine.depth("orders") == 0
    (letter,) = letters(engine)
    assert letter.properties == {
        "dlqDeliveryFailureCause": "Message Expired. Expiration:1500",
        "originalExpiration": "1500",
    }
    assert engine.next_deadline() is None


def test_an_expired_message_is_not_dispatched_though_no_tick_came() -> None:
    engine = engine_with()
    send(engine, "orders", "ID:1", expiration=1500)
    send(engine, "orders", "ID:2")
    _, box = consume(engine, "orders", now=2000)
    assert [dispatch.message.message_id for dispatch in box] == ["ID:2"]
    assert [letter.message_id for letter in letters(engine)] == ["ID:1"]


def test_a_message_in_hand_does_not_expire_but_does_when_it_comes_back() -> None:
    engine = engine_with()
    send(engine, "orders", expiration=1500)
    subscription, box = consume(engine, "orders")
    engine.tick(2000)
    assert engine.depth("orders") == 1
    engine.unsubscribe(subscription, 2000, all_seen=True)
    assert engine.next_deadline() == 1500
    engine.tick(2000)
    assert engine.depth("orders") == 0
    assert len(letters(engine)) == 1
    assert len(box) == 1


@pytest.mark.promise("classic-expired")
def test_process_expired_false_drops_the_expired_only() -> None:
    engine = engine_with(dead_letter_strategy=SharedDeadLetterStrategy(process_expired=False))
    send(engine, "orders", "ID:1", expiration=1500)
    engine.tick(2000)
    poison(engine, "orders")
    assert [letter.properties.get("dlqDeliveryFailureCause") for letter in letters(engine)] == ["Delivery[7] exceeds"]


def test_dead_letters_are_delivered_to_who_waits_for_them() -> None:
    engine = engine_with()
    _, dead = consume(engine, "ActiveMQ.DLQ")
    poison(engine, "orders")
    assert len(dead) == 1


def test_acknowledged_messages_do_not_stay_in_memory_until_they_would_have_expired() -> None:
    engine = engine_with()
    _, box = consume(engine, "orders", prefetch=1)
    for number in range(5000):
        send(engine, "orders", f"ID:{number}", expiration=10_000_000)
        engine.acknowledge([box.pop()], 0)
    assert len(engine._state.deadlines._expiring) <= 1025


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"dead_letter_strategy": "DLQ"}, "dead_letter_strategy='DLQ'"),
        ({"dead_letter_strategies": {"a.>": None}}, r"dead_letter_strategies\['a.>'\]"),
        ({"dead_letter_strategy": BrokerDeadLetterStrategy()}, "the broker itself"),
        ({"memory_limit": -1}, "memory_limit=-1"),
        ({"memory_limit": True}, "memory_limit=True"),
        ({"rules": FILTERED}, r"^b\.xml:3:2: the filter of the queue 'q': the selector is not valid at character 1"),
    ],
)
def test_a_bad_configuration_is_named(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        BrokerConfig(**arguments)


def test_users() -> None:
    assert BrokerConfig().admits(None, None)
    config = BrokerConfig(users={"ann": "secret"})
    assert config.admits("ann", "secret")
    assert not config.admits("ann", "Secret")
    assert not config.admits("bob", "secret")
    assert not config.admits(None, None)
    assert "secret" not in repr(config)
