"""Poison: exactly maximum_redeliveries + 1 deliveries, at the policy's delays, then one dead letter."""

from __future__ import annotations

from time import monotonic

import pytest
from tests.conformance.lives import Lives
from tests.conformance.stage import SOON, Stage, bodies, in_time, nothing_comes, receive, receive_all

from redelivery import (
    AckMode,
    BrokerDeadLetterStrategy,
    DiscardingDeadLetterStrategy,
    IndividualDeadLetterStrategy,
    ReconnectPolicy,
    RedeliveryPolicy,
    RedeliveryPolicyMap,
    SharedDeadLetterStrategy,
    UnsupportedError,
)
from redelivery.events import DeadLettered

FAILING = [AckMode.TRANSACTED, AckMode.CLIENT, AckMode.INDIVIDUAL]
FEW = pytest.mark.everywhere_in_long_form
AT_ONCE = RedeliveryPolicy(maximum_redeliveries=1, initial_redelivery_delay=0.0, redelivery_delay=0.0)


@pytest.mark.parametrize("mode", FAILING)
@pytest.mark.parametrize("maximum", [pytest.param(0, marks=FEW), 1, pytest.param(4, marks=FEW)])
def test_each_message_is_delivered_maximum_plus_one_times(stage: Stage, mode: AckMode, maximum: int) -> None:
    stage.send("bad", "good")
    policy = RedeliveryPolicy(maximum_redeliveries=maximum, initial_redelivery_delay=0.01, redelivery_delay=0.01)
    session, consumer = stage.consuming(mode, redelivery_policy=policy)
    counts = []
    while (message := receive(consumer)).body == "bad":
        counts.append(message.delivery_count)
        session.rollback() if session.transacted else session.recover()
    assert counts == list(range(1, maximum + 2))
    assert message.delivery_count == 1
    message.acknowledge()
    if session.transacted:
        session.commit()
    session.close()
    assert stage.left() == []
    assert bodies(stage.dead_letters(at_least=1)) == ["bad"]


@pytest.mark.everywhere_in_long_form
def test_the_delays_are_the_policys(stage: Stage) -> None:
    policy = RedeliveryPolicy(
        maximum_redeliveries=3,
        initial_redelivery_delay=0.1,
        redelivery_delay=0.1,
        use_exponential_back_off=True,
        back_off_multiplier=2.0,
    )

    def waited() -> list[float]:
        stage.send("bad")
        session, consumer = stage.consuming(AckMode.TRANSACTED, redelivery_policy=policy)
        receive(consumer)
        times = []
        for _ in range(3):
            began = monotonic()  # the delay begins while the rollback runs
            session.rollback()
            receive(consumer)
            times.append(monotonic() - began)
        session.rollback()
        assert nothing_comes(consumer)
        session.close()
        assert bodies(stage.dead_letters(at_least=1)) == ["bad"]
        return times

    in_time((0.1, 0.2, 0.4), waited, early=0.03, late=0.3)


def test_the_brokers_own_dead_letter_stands_once_and_keeps_the_message(stage: Stage) -> None:
    stage.send("bad", properties={"colour": "red"}, correlation_id="c-1", type="order")
    session, consumer = stage.consuming(
        AckMode.TRANSACTED, redelivery_policy=AT_ONCE, dead_letter_strategy=BrokerDeadLetterStrategy()
    )
    for _ in range(2):
        receive(consumer)
        session.rollback()
    (letter,) = stage.dead_letters(at_least=1)
    assert (letter.body, letter.correlation_id, letter.type) == ("bad", "c-1", "order")
    assert letter.properties["colour"] == "red"
    assert letter.persistent


def test_the_shared_strategy_reports_origin_cause_and_count(stage: Stage) -> None:
    stage.send("bad", properties={"colour": "red"})
    session, consumer = stage.consuming(
        AckMode.TRANSACTED, redelivery_policy=AT_ONCE, dead_letter_strategy=SharedDeadLetterStrategy()
    )
    for _ in range(2):
        receive(consumer)
        session.rollback(cause=ValueError("no such account"))
    session.close()
    assert stage.left() == []
    (letter,) = stage.dead_letters(at_least=1)
    cause = str(letter.properties["dlqDeliveryFailureCause"])
    assert "Delivery[2] exceeds redelivery policy limit:" in cause
    assert "no such account" in cause
    assert letter.properties["originalDestination"] == f"queue://{stage.said(stage.queue)}"
    assert str(letter.properties["originalExpiration"]) == "0"
    assert str(letter.properties["dlqDeliveryCount"]) == "2"
    assert letter.properties["colour"] == "red"


def test_the_cause_is_the_exception_that_left_the_transaction_block(stage: Stage) -> None:
    stage.send("bad")
    policy = RedeliveryPolicy(maximum_redeliveries=0)
    session, consumer = stage.consuming(
        AckMode.TRANSACTED, redelivery_policy=policy, dead_letter_strategy=SharedDeadLetterStrategy()
    )
    with pytest.raises(KeyError), session.transaction():
        raise KeyError(receive(consumer).body)
    (letter,) = stage.dead_letters(at_least=1)
    assert "KeyError" in str(letter.properties["dlqDeliveryFailureCause"])


def test_the_individual_strategy_has_a_queue_for_each_destination(stage: Stage) -> None:
    stage.send("bad")
    session, consumer = stage.consuming(
        AckMode.TRANSACTED,
        redelivery_policy=AT_ONCE,
        dead_letter_strategy=IndividualDeadLetterStrategy(queue_prefix="DLQ.ours."),
    )
    for _ in range(2):
        receive(consumer)
        session.rollback()
    assert bodies(stage.dead_letters(stage.under("DLQ.ours"), at_least=1)) == ["bad"]
    assert stage.dead_letters() == []


def test_the_discarding_strategy_drops_and_counts(stage: Stage) -> None:
    stage.send("bad", "good")
    connection = stage.connect(redelivery_policy=AT_ONCE, dead_letter_strategy=DiscardingDeadLetterStrategy())
    session = connection.session(AckMode.TRANSACTED)
    consumer = session.consumer(stage.queue)
    for _ in range(2):
        assert receive(consumer).body == "bad"
        session.rollback()
    assert receive(consumer).body == "good"
    session.commit()
    assert connection.dropped_count == 1
    session.close()
    assert stage.left() == []
    assert stage.dead_letters() == []


def test_the_discarding_strategy_drops_only_what_it_names(stage: Stage) -> None:
    stage.send("bad")
    strategy = DiscardingDeadLetterStrategy(drop_only=(r"elsewhere\..*",), otherwise=SharedDeadLetterStrategy())
    session, consumer = stage.consuming(AckMode.TRANSACTED, redelivery_policy=AT_ONCE, dead_letter_strategy=strategy)
    for _ in range(2):
        receive(consumer)
        session.rollback()
    assert bodies(stage.dead_letters(at_least=1)) == ["bad"]


def test_each_message_is_poisoned_by_its_own_count_never_the_batch(stage: Stage) -> None:
    """The Java client poisons all of the batch by the count of its newest message."""
    stage.send("old", "young")
    session, consumer = stage.consuming(AckMode.TRANSACTED, redelivery_policy=AT_ONCE)
    assert receive(consumer).body == "old"
    session.rollback()
    assert bodies(receive_all(consumer, 2)) == ["old", "young"]
    session.rollback()
    message = receive(consumer)
    assert (message.body, message.delivery_count) == ("young", 2)
    session.commit()
    assert bodies(stage.dead_letters(at_least=1)) == ["old"]
    session.close()
    assert stage.left() == []


def test_no_limit_means_no_limit(stage: Stage) -> None:
    stage.send("a")
    policy = RedeliveryPolicy(maximum_redeliveries=-1, initial_redelivery_delay=0.0, redelivery_delay=0.0)
    session, consumer = stage.consuming(AckMode.TRANSACTED, redelivery_policy=policy)
    for count in range(1, 31):
        assert receive(consumer).delivery_count == count
        session.rollback()
    assert receive(consumer).body == "a"
    session.commit()
    assert stage.dead_letters() == []


@pytest.mark.everywhere_in_long_form
def test_the_policy_of_the_queue_wins_over_the_default(stage: Stage) -> None:
    stage.send("bad")
    policies = RedeliveryPolicyMap({stage.queue: RedeliveryPolicy(maximum_redeliveries=0)}, default=AT_ONCE)
    session, consumer = stage.consuming(AckMode.TRANSACTED, redelivery_policies=policies)
    receive(consumer)
    session.rollback()
    assert nothing_comes(consumer)
    assert bodies(stage.dead_letters(at_least=1)) == ["bad"]


@pytest.mark.needs("queue patterns", refused=UnsupportedError)
def test_a_wildcard_consumer_uses_the_policy_of_the_real_queue(stage: Stage) -> None:
    """The Java client uses the entry of the consumer's own pattern."""
    stage.send("bad", queue=stage.under("strict"))
    policies = RedeliveryPolicyMap({stage.under("strict"): RedeliveryPolicy(maximum_redeliveries=0)}, default=AT_ONCE)
    session = stage.session(AckMode.TRANSACTED, redelivery_policies=policies)
    consumer = session.consumer(stage.under("*"))
    receive(consumer)
    session.rollback()
    assert nothing_comes(consumer)
    assert bodies(stage.dead_letters(at_least=1)) == ["bad"]


@pytest.mark.needs("refusals")
def test_a_dead_letter_queue_that_refuses_loses_nothing(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    stage.send("bad")
    seen = Lives()
    session, consumer = stage.consuming(
        AckMode.TRANSACTED if stage.pair.can("transactions") else AckMode.CLIENT,
        **{"username": "restricted", "password": "restricted"},
        redelivery_policy=RedeliveryPolicy(maximum_redeliveries=0),
        dead_letter_strategy=SharedDeadLetterStrategy(stage.under("denied")),
        reconnect=ReconnectPolicy(maximum_delay=0.1),
        exception_listener=lambda _: None,
        observer=seen,
    )

    def said() -> list[str]:
        return [each.getMessage() for each in caplog.records if "dead-lettered after" in each.getMessage()]

    end = monotonic() + 2 * SOON
    while len(said()) < 2 and monotonic() < end:
        # it is tried again after a second; where the broker has closed the connection, that redelivers it
        message = consumer.receive(timeout=0.5)
        if message is not None:
            assert message.body == "bad"
            session.rollback() if session.transacted else session.recover()
    session.close()
    assert len(said()) >= 2
    assert all("not dead-lettered after" in each and "denied." in each for each in said())
    assert not any(isinstance(each, DeadLettered) for each in seen.seen)
    assert stage.left_bodies(at_least=1) == ["bad"]
