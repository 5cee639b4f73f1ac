"""Switches that go in pairs, a queue's and a topic's: given values that differ, each decides about its own."""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import pytest
from tests.policies.readers.documents import address_settings, classic, policy_entries, read

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.model.destinations import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
from redelivery.policies.brokers.artemis.rules import ArtemisRules
from redelivery.policies.brokers.classic.rules import ClassicRules, DiscardingPlugin
from redelivery.policies.connection_url import parse_connection_url
from redelivery.policies.dead_letters import (
    BrokerDeadLetterStrategy,
    CopyTo,
    DeadLetterStrategy,
    Discard,
    DiscardingDeadLetterStrategy,
    IndividualDeadLetterStrategy,
    SharedDeadLetterStrategy,
)
from redelivery.policies.prefetch import PrefetchPolicy
from redelivery.policies.reconnect import ReconnectPolicy
from redelivery.policies.redelivery import RedeliveryPolicy

BOTH_WAYS = pytest.mark.parametrize(("one", "other"), [(True, False), (False, True)])
NAMES = {"queue_prefix": "Q.", "topic_prefix": "T.", "queue_suffix": ".q", "topic_suffix": ".t"}


def copy(strategy: DeadLetterStrategy, original: Destination) -> Destination:
    decision = strategy.decide(original, persistent=True, expired=False, native_available=False)
    assert isinstance(decision, CopyTo)
    return decision.destination


def individual(attributes: str) -> DeadLetterStrategy:
    """As a broker's file says it."""
    strategy = f"<deadLetterStrategy><individualDeadLetterStrategy {attributes}/></deadLetterStrategy>"
    found = classic(policy_entries(f'<policyEntry queue=">">{strategy}</policyEntry>')).rules
    assert isinstance(found, ClassicRules)
    return found.dead_letters_for(Queue("orders.eu")).strategy


def written(value: object) -> str:
    return str(value).lower()


@pytest.mark.promise("seen-classic-topic")
@pytest.mark.parametrize(("queues", "topics"), list(product((True, False), repeat=2)))
def test_a_queue_or_a_topic_of_dead_letters(queues: bool, topics: bool) -> None:
    options: dict[str, Any] = {"use_queue_for_queue_messages": queues, "use_queue_for_topic_messages": topics}
    file = f'useQueueForQueueMessages="{written(queues)}" useQueueForTopicMessages="{written(topics)}"'
    for strategy in (IndividualDeadLetterStrategy(**options), individual(file)):
        assert type(copy(strategy, Queue("orders"))) is (Queue if queues else Topic)
        assert type(copy(strategy, Topic("news"))) is (Queue if topics else Topic)


def test_prefixes_and_suffixes() -> None:
    file = 'queuePrefix="Q." topicPrefix="T." queueSuffix=".q" topicSuffix=".t"'
    for strategy in (IndividualDeadLetterStrategy(**NAMES), individual(file)):  # type: ignore[arg-type]  # texts all
        assert copy(strategy, Queue("orders")).name == "Q.orders.q"
        assert copy(strategy, Topic("news")).name == "T.news.t"


@pytest.mark.promise("classic-expired", "classic-non-persistent")
@BOTH_WAYS
@pytest.mark.parametrize("kind", [BrokerDeadLetterStrategy, SharedDeadLetterStrategy, IndividualDeadLetterStrategy])
def test_what_has_expired_and_what_is_not_persistent(kind: Any, one: bool, other: bool) -> None:
    strategies = [kind(process_expired=one, process_non_persistent=other)]
    if kind is IndividualDeadLetterStrategy:
        strategies.append(individual(f'processExpired="{written(one)}" processNonPersistent="{written(other)}"'))
    for strategy in strategies:
        expired = strategy.decide(Queue("q"), persistent=True, expired=True, native_available=False)
        weak = strategy.decide(Queue("q"), persistent=False, expired=False, native_available=False)
        assert isinstance(expired, CopyTo if one else Discard)
        assert isinstance(weak, CopyTo if other else Discard)


@BOTH_WAYS
def test_temporary_queues_and_topics_whose_dead_letters_are_dropped(one: bool, other: bool) -> None:
    attributes = f'dropAll="false" dropTemporaryQueues="{written(one)}" dropTemporaryTopics="{written(other)}"'
    found = classic(f"<plugins><discardingDLQBrokerPlugin {attributes}/></plugins>").rules
    assert isinstance(found, ClassicRules)
    (read_plugin,) = found.plugins
    assert isinstance(read_plugin, DiscardingPlugin)
    made = DiscardingPlugin(drop_all=False, drop_temporary_queues=one, drop_temporary_topics=other)
    shared = SharedDeadLetterStrategy()
    for plugin in (made, read_plugin):
        for temporary, drops in ((TemporaryQueue("a"), one), (TemporaryTopic("b"), other), (Queue("c"), False)):
            assert (plugin.applied_to(shared, temporary) is not shared) is drops


def test_discarding_of_what_is_named_and_what_has_expired() -> None:
    strategy = DiscardingDeadLetterStrategy("orders", SharedDeadLetterStrategy("others"), drop_expired=False)
    decisions = [
        strategy.decide(Queue(name), persistent=True, expired=expired, native_available=False)
        for name, expired in product(("orders", "bills"), (False, True))
    ]
    assert [isinstance(each, Discard) for each in decisions] == [True, False, False, False]


@pytest.mark.parametrize("numbers", list(permutations((1, 2, 3, 4), 4)))
def test_prefetch_by_kind_of_consumer(numbers: tuple[int, int, int, int]) -> None:
    names = ("queue", "topic", "durableTopic", "queueBrowser")
    query = "&".join(f"jms.prefetchPolicy.{name}Prefetch={number}" for name, number in zip(names, numbers, strict=True))
    parsed = parse_connection_url(f"stomp://h?{query}").prefetch
    assert parsed is not None
    for policy in (PrefetchPolicy(*numbers), parsed):
        assert numbers == (
            policy.for_destination(Queue("q")),
            policy.for_destination(Topic("t")),
            policy.for_destination(Topic("t"), durable=True),
            policy.for_destination(Queue("q"), browser=True),
        )


def test_an_address_for_dead_letters_and_one_for_what_has_expired() -> None:
    for one, other in ((True, False), (False, True)):
        file = address_settings(
            x={
                "auto_create_dead_letter_resources": written(one),
                "auto_create_expiry_resources": written(other),
                "dead_letter_address": "DEAD",
                "expiry_address": "EXPIRED",
                "dead_letter_queue_prefix": "d.",
                "dead_letter_queue_suffix": ".d",
                "expiry_queue_prefix": "e.",
                "expiry_queue_suffix": ".e",
                "min_expiry_delay": 1000,
                "max_expiry_delay": 2000,
            }
        )
        found = read(file).rules
        assert isinstance(found, ArtemisRules)
        settings = found.settings_for("x")
        assert (settings.auto_create_dead_letter_resources, settings.auto_create_expiry_resources) == (one, other)
        assert (settings.dead_letter_address, settings.expiry_address) == ("DEAD", "EXPIRED")
        assert (settings.dead_letter_queue_prefix, settings.expiry_queue_prefix) == ("d.", "e.")
        assert (settings.dead_letter_queue_suffix, settings.expiry_queue_suffix) == (".d", ".e")
        assert (settings.min_expiry_delay, settings.max_expiry_delay) == (1, 2)


@BOTH_WAYS
def test_attempts_at_the_start_and_after_a_loss(one: bool, other: bool) -> None:
    first, later = (2 if one else 3), (2 if other else 3)
    made = ReconnectPolicy(startup_maximum_attempts=first, maximum_attempts=later, randomize=one, priority_backup=other)
    names = {"startupMaxReconnectAttempts": first, "maxReconnectAttempts": later}
    parsed = ReconnectPolicy.from_activemq({**names, "randomize": one, "priorityBackup": other})
    for policy in (made, parsed):
        assert [policy.exhausted(n, startup=True) for n in (1, 2, 3)] == [n >= first for n in (1, 2, 3)]
        assert [policy.exhausted(n) for n in (1, 2, 3)] == [n >= later for n in (1, 2, 3)]
        assert (policy.randomize, policy.priority_backup) == (one, other)


@BOTH_WAYS
def test_back_off_and_collision_avoidance(one: bool, other: bool) -> None:
    names = {"useExponentialBackOff": one, "useCollisionAvoidance": other, "backOffMultiplier": 2}
    policy = RedeliveryPolicy.from_activemq({**names, "initialRedeliveryDelay": 1000, "redeliveryDelay": 1000})
    assert (policy.use_exponential_back_off, policy.use_collision_avoidance) == (one, other)

    class Highest:
        def random(self) -> float:
            return 0.999999

    second = policy.delay(2, Highest())
    assert second == pytest.approx({(True, False): 2.0, (False, True): 1.15}[one, other], abs=0.01)


@BOTH_WAYS
def test_what_the_embedded_broker_makes_of_them(one: bool, other: bool) -> None:
    """A message of a queue and one of a topic, each given up, end where its own switch says."""
    strategy = IndividualDeadLetterStrategy(
        use_queue_for_queue_messages=one,
        use_queue_for_topic_messages=other,
        **NAMES,  # type: ignore[arg-type]
    )
    with (
        EmbeddedBroker(f"switches-{one}") as broker,
        redelivery.connect(broker.vm_url, dead_letter_strategy=strategy) as connection,
        connection.session("client") as session,
    ):
        origins = Queue("orders"), Topic("news")
        letters = Queue("Q.orders.q"), Topic("T.news.t")
        targets = [
            Queue(each.name) if is_queue else Topic(each.name)
            for each, is_queue in zip(letters, (one, other), strict=True)
        ]
        reading = [session.consumer(each) for each in targets]
        failing = connection.session("client")
        consumers = [
            failing.consumer(each, redelivery_policy=RedeliveryPolicy(maximum_redeliveries=0)) for each in origins
        ]
        for origin, consumer, reader in zip(origins, consumers, reading, strict=True):
            with connection.session() as sending:
                sending.producer(origin).send(origin.name)
            assert consumer.receive(timeout=5) is not None
            failing.recover(cause=ValueError("bad"))
            letter = reader.receive(timeout=5)
            assert letter is not None
            assert letter.body == origin.name
