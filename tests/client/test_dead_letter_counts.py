"""``dlqDeliveryCount``: how often the application had the message; 0 where it never had it."""

from __future__ import annotations

import time

from tests.client.shell import Bench, receive

from redelivery import AckMode, RedeliveryPolicy, SharedDeadLetterStrategy


def count_of_the_dead_letter(bench: Bench) -> object:
    (letter,) = bench.broker.messages("ActiveMQ.DLQ")
    return letter.properties["dlqDeliveryCount"]


def test_the_check_before_a_delivery_counts_those_that_were_made(bench: Bench) -> None:
    """ActiveMQ's pre-dispatch check: the delivery that it refuses is none."""
    policy = RedeliveryPolicy(maximum_redeliveries=1, pre_dispatch_check=True)
    connection = bench.connect(redelivery_policy=policy, dead_letter_strategy=SharedDeadLetterStrategy())
    bench.send("m1")
    for number in (1, 2):
        with connection.session(AckMode.CLIENT) as session:  # closed unacknowledged: the broker counts
            assert receive(session.consumer(bench.queue)).delivery_count == number
    with connection.session(AckMode.TRANSACTED) as session:
        assert session.consumer(bench.queue).receive(0) is None
    assert count_of_the_dead_letter(bench) == 2


def test_an_expired_one_that_nobody_had_counts_none(bench: Bench) -> None:
    """As ActiveMQ's redeliveryCounter, which counts what was delivered."""
    _, consumer = bench.consuming(AckMode.TRANSACTED, dead_letter_strategy=SharedDeadLetterStrategy())
    bench.connect().session().producer(bench.queue).send("m1", ttl=0.05)
    time.sleep(0.06)  # the message's own clock
    assert consumer.receive(0) is None
    assert count_of_the_dead_letter(bench) == 0
