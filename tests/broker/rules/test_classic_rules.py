"""The embedded broker with ActiveMQ Classic's file: dead-letter strategies by entry, and its two plug-ins."""

from __future__ import annotations

import pytest
from tests.broker.rules.failing import Bench
from tests.policies.readers.documents import classic, policy_entries, read, redelivery_plugin

from redelivery.broker.engine.rules.rules import Manner
from redelivery.policies.files.places import ConfigFileError

promise = pytest.mark.promise


def entry(strategy: str, pattern: str = 'queue=">"') -> str:
    return policy_entries(f"<policyEntry {pattern}><deadLetterStrategy>{strategy}</deadLetterStrategy></policyEntry>")


def give_up(bench: Bench, queue: str = "q") -> int:
    return bench.fail(queue, manner=Manner.REJECTED)


@promise("classic-poison")
def test_what_only_fails_is_redelivered_without_a_limit() -> None:
    bench = Bench(classic(""))
    bench.send()
    assert bench.fail(most=50) == 50
    assert bench.waits == [0] * 50
    assert bench.letters("ActiveMQ.DLQ") == []


@promise("classic-individual")
def test_individual_queues_by_wildcard() -> None:
    bench = Bench(classic(entry('<individualDeadLetterStrategy queuePrefix="DLQ."/>', 'queue="orders.>"')))
    for queue in ("orders.eu", "stocks"):
        bench.send(queue, queue)
        give_up(bench, queue)
    assert [each.body for each in bench.letters("DLQ.orders.eu")] == ["orders.eu"]
    assert [each.body for each in bench.letters("ActiveMQ.DLQ")] == ["stocks"]


@promise("classic-expired")
@pytest.mark.parametrize("kept", [True, False])
def test_expired_messages(kept: bool) -> None:
    bench = Bench(classic(entry(f'<sharedDeadLetterStrategy processExpired="{str(kept).lower()}"/>')))
    bench.send(expiration=bench.now + 10)
    bench.pass_time(11)
    assert len(bench.letters("ActiveMQ.DLQ")) == kept


def test_the_cause_of_an_expired_message_is_written_as_classic_writes_it() -> None:
    bench = Bench(classic(""))
    bench.send(expiration=bench.now + 10, body="expired")
    bench.pass_time(11)
    bench.send(body="bad")
    give_up(bench)
    causes = [each.properties["dlqDeliveryFailureCause"] for each in bench.letters("ActiveMQ.DLQ")]
    assert causes == ["java.lang.Throwable: Message Expired. Expiration:1000010", "it was bad"]


@promise("classic-non-persistent")
@pytest.mark.parametrize("kept", [True, False])
def test_non_persistent_messages(kept: bool) -> None:
    bench = Bench(classic(entry(f'<sharedDeadLetterStrategy processNonPersistent="{str(kept).lower()}"/>')))
    bench.send(persistent=False)
    give_up(bench)
    assert len(bench.letters("ActiveMQ.DLQ")) == kept


@promise("seen-classic-whole-name")
@promise("classic-discarding")
def test_the_discarding_plug_in_drops_what_matches_as_a_whole() -> None:
    bench = Bench(classic('<plugins><discardingDLQBrokerPlugin dropAll="false" dropOnly="test.*[0-9]{3}"/></plugins>'))
    for queue in ("test.123", "test.12"):
        bench.send(queue, queue)
        give_up(bench, queue)
    assert [each.body for each in bench.letters("ActiveMQ.DLQ")] == ["test.12"]


def test_without_its_audit_a_message_may_be_a_dead_letter_twice() -> None:
    for audit, letters in ((True, 1), (False, 2)):
        bench = Bench(classic(entry(f'<sharedDeadLetterStrategy enableAudit="{str(audit).lower()}"/>')))
        for _ in range(2):
            bench.send()
            give_up(bench)
        assert len(bench.letters("ActiveMQ.DLQ")) == letters


@pytest.mark.parametrize(("depth", "producers", "letters"), [(1, 1, 4), (2, 1, 3), (1, 2, 3), (3, 1, 3)])
def test_an_audit_remembers_so_many_messages(depth: int, producers: int, letters: int) -> None:
    audit = f'<sharedDeadLetterStrategy maxAuditDepth="{depth}" maxProducersToAudit="{producers}"/>'
    bench = Bench(classic(entry(audit)))
    for body in ("1", "2", "1", "3"):
        bench.send(body=body)
        give_up(bench)
    assert len(bench.letters("ActiveMQ.DLQ")) == letters


@promise("classic-order")
def test_the_order_is_given_up() -> None:
    bench = Bench(classic(redelivery_plugin()))
    for body in ("1", "2"):
        bench.send("SpecialQueue", body)
    _, box = bench.consumer("SpecialQueue")
    bench.engine.poison(bench.taken(box), "bad", bench.now)
    assert [each.message.body for each in box] == ["2"]
    bench.pass_time(1000)
    assert [each.message.body for each in box] == ["2", "1"]


@promise("seen-classic-plugin-expired")
def test_what_expires_is_not_sent_again_by_the_plug_in() -> None:
    bench = Bench(classic(redelivery_plugin(dead=False)))
    bench.send("SpecialQueue", expiration=bench.now + 10)
    bench.pass_time(11)
    assert bench.engine.depth("SpecialQueue") == 0
    (letter,) = bench.letters("ActiveMQ.DLQ")
    assert not {"redeliveryDelay", "scheduledJobId"} & set(letter.properties)


@promise("seen-classic-plugin-endless")
def test_the_plug_in_sends_again_without_an_end() -> None:
    bench = Bench(classic(redelivery_plugin().replace('"4"', '"-1"')))
    bench.send("SpecialQueue")
    assert bench.fail("SpecialQueue", most=50, manner=Manner.REJECTED) == 50
    assert bench.letters("ActiveMQ.DLQ") == []


@promise("seen-classic-plugin-exponential")
def test_the_delays_of_the_plug_in_grow_to_a_maximum() -> None:
    growing = (
        'initialRedeliveryDelay="2000" useExponentialBackOff="true" backOffMultiplier="3" '
        'maximumRedeliveryDelay="15000"'
    )
    bench = Bench(classic(redelivery_plugin().replace('redeliveryDelay="10000"', growing)))
    bench.send("SpecialQueue")
    assert give_up(bench, "SpecialQueue") == 5
    assert bench.waits == [2000, 6000, 15000, 15000]


@promise("seen-classic-plugin-count")
@promise("classic-broker-redelivery")
def test_what_a_client_gives_up_is_sent_again_later() -> None:
    bench = Bench(classic(redelivery_plugin()))
    bench.send("SpecialQueue")
    assert give_up(bench, "SpecialQueue") == 5
    assert bench.waits == [1000, 10000, 10000, 10000]
    assert bench.counts == [1, 2, 3, 4, 5]
    (letter,) = bench.letters("ActiveMQ.DLQ")
    assert letter.properties["redeliveryDelay"] == 10000
    assert letter.properties["scheduledJobId"] == "ID:m"  # as the scheduler of the real one writes it


@promise("seen-classic-gone")
@promise("classic-fallback")
@pytest.mark.parametrize("falls_back", [True, False])
def test_what_has_no_policy_at_all(falls_back: bool) -> None:
    bench = Bench(classic(redelivery_plugin(fallback=falls_back)))
    bench.send("other")
    assert give_up(bench, "other") == 1
    assert len(bench.letters("ActiveMQ.DLQ")) == falls_back


@promise("classic-exceeded")
@pytest.mark.parametrize("sends", [True, False])
def test_what_has_used_up_its_policy(sends: bool) -> None:
    bench = Bench(classic(redelivery_plugin(dead=sends)))
    bench.send("SpecialQueue")
    assert give_up(bench, "SpecialQueue") == 5
    assert len(bench.letters("ActiveMQ.DLQ")) == sends


@promise("seen-classic-topic")
def test_a_dead_letter_may_go_to_a_topic_where_nobody_may_listen() -> None:
    strategy = '<individualDeadLetterStrategy queuePrefix="DLQ." useQueueForQueueMessages="false"/>'
    bench = Bench(classic(entry(strategy)))
    _, box = bench.consumer("topic://DLQ.q")
    bench.send()
    give_up(bench)
    assert [each.message.body for each in box] == ["m"]
    assert bench.letters("DLQ.q") == []


@promise("seen-classic-loop")
def test_what_fails_in_a_dead_letter_queue_goes_one_queue_on() -> None:
    bench = Bench(classic(entry('<individualDeadLetterStrategy queuePrefix="DLQ." enableAudit="false"/>')))
    bench.send()
    give_up(bench)
    give_up(bench, "DLQ.q")
    assert len(bench.letters("DLQ.DLQ.q")) == 1


@promise("classic-scheduler")
@promise("seen-classic-refused")
def test_a_broker_without_its_scheduler_does_not_start() -> None:
    text = redelivery_plugin()
    with pytest.raises(ConfigFileError, match="schedulerSupport"):
        read(f"<broker>{text}</broker>")
    with pytest.raises(ConfigFileError, match="1000"):
        classic(text.replace('redeliveryDelay="10000"', 'redeliveryDelay="10"'))
