"""The limit holds over lost connections: a message whose handling ends the connection each time is dead-lettered."""

from __future__ import annotations

import pytest
from tests.conformance.outage import Outage, until
from tests.conformance.stage import Stage, receive
from tests.run.again import may_hide

from redelivery import AckMode, Message, RedeliveryPolicy, SharedDeadLetterStrategy, TransactionRolledBackError

ONCE_MORE = RedeliveryPolicy(maximum_redeliveries=1, initial_redelivery_delay=0.02, redelivery_delay=0.02)
MODES = [AckMode.TRANSACTED, AckMode.CLIENT, AckMode.INDIVIDUAL]


@may_hide
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_what_ends_its_connection_each_time_is_dead_lettered(stage: Stage, outage: Outage, mode: AckMode) -> None:
    strategy = SharedDeadLetterStrategy(stage.beside("dead"))
    stage.send("cuts")
    session = outage.connect(prefetch=1, redelivery_policy=ONCE_MORE, dead_letter_strategy=strategy).session(mode)
    consumer = session.consumer(stage.queue)
    counts = []
    for _ in range(2):
        message = receive(consumer)
        counts.append(message.delivery_count)
        outage.begin(0.0)
        try:
            session.commit() if session.transacted else message.acknowledge()  # too late
        except TransactionRolledBackError:
            continue
    stage.send("good")
    message = receive(consumer)
    assert (message.body, counts) == ("good", [1, 2])
    session.commit() if session.transacted else message.acknowledge()
    (letter,) = stage.left(stage.beside("dead"), at_least=1)
    assert letter.dead_letter is not None
    assert (letter.body, letter.dead_letter.count) == ("cuts", 2)


@may_hide
@pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.DUPS_OK, AckMode.CLIENT], ids=lambda mode: mode.name)
def test_a_listener_that_ends_its_connection_gets_a_message_no_more_often(
    stage: Stage, outage: Outage, mode: AckMode
) -> None:
    strategy = SharedDeadLetterStrategy(stage.beside("dead"))
    connection = outage.connect(prefetch=1, redelivery_policy=ONCE_MORE, dead_letter_strategy=strategy)
    stage.send("cuts")
    got: list[tuple[object, int]] = []

    def callback(message: Message) -> None:
        got.append((message.body, message.delivery_count))
        if message.body == "cuts":
            outage.begin(0.0)
        message.acknowledge()

    connection.session(mode).consumer(stage.queue).listen(callback)
    letter = receive(stage.connect().session().consumer(stage.beside("dead")))
    stage.send("good")
    until(lambda: bool(got) and got[-1][0] == "good")
    assert [count for body, count in got if body == "cuts"] == [1, 2]
    assert letter.body == "cuts"
