"""The embedded broker with ActiveMQ Classic's file: what the dead-letter strategies and the discarding plug-in say."""

from __future__ import annotations

import logging

import pytest
from tests.broker.engine.bench import Box
from tests.broker.rules.failing import Bench
from tests.broker.rules.test_classic_rules import entry, give_up
from tests.policies.readers.documents import classic, policy_entries

from redelivery.broker.engine.subscriptions import Subscription
from redelivery.model.destinations import SubscriptionName, TemporaryQueue, TemporaryTopic, Topic


def subscribed(bench: Bench, named: SubscriptionName | None, topic: str = "news") -> Box:
    box = Box()
    subscription = Subscription(Topic(topic), box, prefetch=10, named=named, client_id="c" if named else None)
    bench.engine.subscribe(subscription)
    bench.engine.start(subscription, bench.now)
    return box


def test_what_a_dead_letter_says_and_when_it_expires() -> None:
    strategy = '<sharedDeadLetterStrategy processNonPersistent="true" expiration="{}"/>'
    for expiration, said in ((0, {"originalExpiration": "1500000"}), (5000, {})):
        bench = Bench(classic(entry(strategy.format(expiration))))
        bench.send(persistent=False, expiration=1_500_000)
        _, box = bench.consumer()
        bench.engine.poison(bench.taken(box), "it was bad", bench.now)
        (letter,) = bench.letters("ActiveMQ.DLQ")
        assert letter.expiration == (bench.now + expiration if expiration else 0)
        assert letter.persistent
        assert letter.message_id == "ID:m"
        expected = {"dlqDeliveryFailureCause": "it was bad", "originalDeliveryMode": "NON_PERSISTENT", **said}
        assert dict(letter.properties) == expected
        assert str(letter.original_destination) == "queue://q"


def test_a_strategy_that_discards() -> None:
    bench = Bench(classic(entry("<discarding/>")))
    bench.send()
    assert give_up(bench) == 1
    assert bench.letters("ActiveMQ.DLQ") == []


def test_only_durable_subscriptions_to_a_topic_have_dead_letters_which_may_be_apart() -> None:
    strategy = (
        '<individualDeadLetterStrategy topicPrefix="DLT." topicSuffix=".end" destinationPerDurableSubscriber="{}"/>'
    )
    named = SubscriptionName("daily", durable=True, shared=False)
    for apart, queue in (("false", "DLT.news.end"), ("true", "DLT.news.c:daily.end")):
        bench = Bench(classic(entry(strategy.format(apart), 'topic=">"')))
        durable, other = subscribed(bench, named), subscribed(bench, None)
        bench.send("topic://news")
        for box in (durable, other):
            bench.engine.poison(bench.taken(box), "bad", bench.now)
        assert [name for name in bench.engine.queues if name.startswith("DLT")] == [queue]
        assert len(bench.letters(queue)) == 1


EMPTY = '<policyEntry topic="{}"/>'
SHARED = "<deadLetterStrategy><sharedDeadLetterStrategy/></deadLetterStrategy>"


@pytest.mark.parametrize(
    "file",
    [
        "",
        policy_entries(EMPTY.format(">")),
        policy_entries(EMPTY.format("news") + EMPTY.format("other")),
        entry("<sharedDeadLetterStrategy/>", 'topic=">"'),
    ],
    ids=["no entry", "an entry without a strategy", "the same for one topic", "a strategy"],
)
def test_one_message_that_two_durable_subscriptions_refuse_is_one_dead_letter(file: str) -> None:
    bench = Bench(classic(file))
    names = [SubscriptionName(name, durable=True, shared=False) for name in ("first", "second")]
    boxes = [subscribed(bench, named) for named in names]
    bench.send("topic://news")
    for box in boxes:
        bench.engine.poison(bench.taken(box), "bad", bench.now)
    assert len(bench.letters("ActiveMQ.DLQ")) == 1


def test_an_audit_is_of_one_strategy() -> None:
    """Destinations without one share the default; an entry's own one knows nothing of it."""
    own = f'<policyEntry queue="own">{SHARED}</policyEntry>'
    bench = Bench(classic(policy_entries(f'<policyEntry queue="empty"/>{own}')))
    for queue, letters in (("none", 1), ("empty", 1), ("own", 2)):
        bench.send(queue)
        give_up(bench, queue)
        assert len(bench.letters("ActiveMQ.DLQ")) == letters


@pytest.mark.parametrize("dropped", [True, False])
def test_the_discarding_plug_in_drops_the_dead_letters_of_temporary_destinations(dropped: bool) -> None:
    said = str(dropped).lower()
    plugin = f'dropAll="false" dropTemporaryQueues="{said}" dropTemporaryTopics="{said}"'
    bench = Bench(classic(f"<plugins><discardingDLQBrokerPlugin {plugin}/></plugins>"))
    rules = bench.engine._state.config.rules
    assert rules is not None
    for destination in (TemporaryQueue("temp-queue://1"), TemporaryTopic("temp-topic://1")):
        assert (rules.rules_for(destination).dead_letter is None) is dropped
    temporary = TemporaryQueue("temp-queue://1")
    bench.engine.make_temporary(temporary)
    for queue, body in ((temporary, "m"), ("q", "kept")):
        bench.send(queue, body)
        _, box = bench.consumer(queue)
        bench.engine.poison(bench.taken(box), "it was bad", bench.now)
    assert [each.body for each in bench.letters("ActiveMQ.DLQ")] == (["kept"] if dropped else ["m", "kept"])


def test_the_discarding_plug_in_reports_every_so_many(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(
        classic('<plugins><discardingDLQBrokerPlugin dropOnly="q" dropAll="false" reportInterval="2"/></plugins>')
    )
    with caplog.at_level(logging.WARNING):
        for number in range(5):
            bench.send(body=str(number))
            give_up(bench)
    assert [line.split(" messages")[0] for line in caplog.messages] == ["2", "4"]
