"""A connection that is lost and comes back: what becomes of each kind of work in flight."""

from __future__ import annotations

import re
import threading
from time import monotonic
from typing import Any

import pytest
from tests.conformance.outage import OUTAGE, Outage, until
from tests.conformance.stage import NOTHING, SOON, Stage, receive
from tests.run.again import may_hide

from redelivery import (
    AckMode,
    ConnectionLostError,
    InvalidDestinationError,
    JMSError,
    ReconnectPolicy,
    RedeliveryPolicy,
    TemporaryQueue,
    TransactionRolledBackError,
    UnsupportedError,
)
from redelivery.events import AcknowledgedTooLate, ConnectionLost, DeadLettered, Reconnected, ReconnectFailed

UNCONFIRMED = (AckMode.AUTO, AckMode.DUPS_OK)

pytestmark = may_hide


@pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.DUPS_OK, AckMode.CLIENT, AckMode.INDIVIDUAL])
def test_a_receive_that_waits_gets_what_is_sent_after_the_return(stage: Stage, outage: Outage, mode: AckMode) -> None:
    consumer = outage.connect().session(mode).consumer(stage.queue)
    threading.Timer(0.1, outage.gate.shut, (OUTAGE,)).start()
    threading.Timer(0.2, stage.send, ("after",)).start()
    assert receive(consumer).body == "after"
    assert [type(each) for each in outage.seen(ConnectionLost, Reconnected)] == [ConnectionLost, Reconnected]


@pytest.mark.parametrize("mode", UNCONFIRMED)
def test_auto_and_dups_ok_never_notice_and_lose_nothing(stage: Stage, outage: Outage, mode: AckMode) -> None:
    stage.send(*map(str, range(20)))
    consumer = outage.connect(prefetch=5).session(mode).consumer(stage.queue)
    got = []
    for number in range(10):
        if number == 4:
            outage.gate.shut(OUTAGE)
        got.append(receive(consumer).body)
    while set(got) != set(map(str, range(20))):
        got.append(receive(consumer).body)
    while (message := consumer.receive(timeout=NOTHING)) is not None:
        got.append(message.body)
    assert len(got) <= 20 + 10  # an acknowledgement that was on its way is lost with the connection
    assert not stage.left_bodies()


@pytest.mark.parametrize("mode", [AckMode.CLIENT, AckMode.INDIVIDUAL])
def test_an_acknowledgement_that_comes_too_late_does_nothing_and_is_an_event(
    stage: Stage, outage: Outage, mode: AckMode
) -> None:
    stage.send("one", "two")
    consumer = outage.connect().session(mode).consumer(stage.queue)
    messages = [receive(consumer) for _ in range(2)]
    outage.begin()
    for each in messages[:: -1 if mode == AckMode.CLIENT else 1]:
        each.acknowledge()
    again = [receive(consumer) for _ in range(2)]
    assert sorted(str(each.body) for each in again) == ["one", "two"]
    assert sorted(str(each.message_id) for each in outage.seen(AcknowledgedTooLate)) == sorted(
        str(each.message_id) for each in messages
    )
    for each in again:
        each.acknowledge()
    assert consumer.receive(timeout=NOTHING) is None
    assert not outage.seen(DeadLettered)


def test_a_transaction_that_has_received_is_rolled_back_and_says_so(stage: Stage, outage: Outage) -> None:
    needs_transactions(stage)
    stage.send("one", "two", "three")
    session = outage.connect().session("transacted")
    consumer = session.consumer(stage.queue)
    assert [receive(consumer).body for _ in range(2)] == ["one", "two"]
    outage.begin()
    with pytest.raises(TransactionRolledBackError, match="the connection was lost"):
        session.commit()
    assert sorted(str(receive(consumer).body) for _ in range(3)) == ["one", "three", "two"]
    session.commit()
    assert not stage.left_bodies()
    assert not outage.seen(DeadLettered)


def test_what_comes_before_the_refused_commit_is_rolled_back_with_it(stage: Stage, outage: Outage) -> None:
    needs_transactions(stage)
    stage.send("one", "two", "three")
    session = outage.connect().session("transacted")
    consumer = session.consumer(stage.queue)
    receive(consumer)
    outage.begin()
    assert {receive(consumer).body for _ in range(2)} <= {"one", "two", "three"}
    with pytest.raises(TransactionRolledBackError):
        session.commit()
    got = [str(receive(consumer).body) for _ in range(3)]
    assert sorted(got) == ["one", "three", "two"]  # each once in the transaction that is committed
    session.commit()
    assert not stage.left_bodies()


def test_a_transaction_that_has_sent_is_rolled_back_and_says_so(stage: Stage, outage: Outage) -> None:
    needs_transactions(stage)
    session = outage.connect().session("transacted")
    producer = session.producer(stage.queue)
    producer.send("before")
    outage.begin()
    producer.send("after")
    with pytest.raises(TransactionRolledBackError):
        session.commit()
    producer.send("next")
    session.commit()
    assert stage.left_bodies(at_least=1) == ["next"]


@pytest.mark.everywhere_in_long_form
def test_a_rollback_succeeds_while_the_connection_is_away(stage: Stage, outage: Outage) -> None:
    needs_transactions(stage)
    stage.send("one")
    session = outage.connect().session("transacted")
    consumer = session.consumer(stage.queue)
    receive(consumer)
    outage.begin(60)
    session.rollback(cause=ValueError("of the application's"))
    outage.gate.open()
    assert receive(consumer).body == "one"
    session.commit()


def test_a_send_waits_for_the_connection(stage: Stage, outage: Outage) -> None:
    producer = outage.connect().session().producer(stage.queue)
    outage.begin()
    for number in range(3):
        producer.send(str(number))
    assert stage.left_bodies(at_least=3) == ["0", "1", "2"]


@pytest.mark.everywhere_in_long_form
def test_a_send_waits_no_longer_than_the_time_out(stage: Stage, outage: Outage) -> None:
    producer = outage.connect(reconnect=ReconnectPolicy(timeout=0.2)).session().producer(stage.queue)
    outage.begin(5)
    with pytest.raises(ConnectionLostError, match="not sent"):
        producer.send("never")
    outage.gate.open()
    until_sent(producer, "later")
    assert stage.left_bodies(at_least=1) == ["later"]


def until_sent(producer: Any, body: str) -> None:
    def sent() -> bool:
        try:
            producer.send(body)
        except ConnectionLostError:
            return False
        return True

    until(sent)


@pytest.mark.everywhere_in_long_form
def test_a_receive_that_may_not_wait_does_not(stage: Stage, outage: Outage) -> None:
    consumer = outage.connect().session().consumer(stage.queue)
    outage.begin(60)
    began = monotonic()
    assert consumer.receive_nowait() is None
    assert consumer.receive(timeout=0.1) is None
    assert monotonic() - began < SOON / 2


def test_a_listener_goes_on(stage: Stage, outage: Outage) -> None:
    got: list[Any] = []
    consumer = outage.connect().session().consumer(stage.queue)
    consumer.listen(lambda message: got.append(message.body))
    stage.send("before")
    until(lambda: "before" in got)
    outage.begin()
    stage.send("meanwhile")
    until(lambda: "meanwhile" in got)


@pytest.mark.everywhere_in_long_form
def test_sessions_and_consumers_are_made_while_it_is_away(stage: Stage, outage: Outage) -> None:
    connection = outage.connect()
    session = connection.session()
    outage.begin()
    first = session.consumer(stage.queue)
    second = connection.session().producer(stage.queue)
    second.send("one")
    assert receive(first).body == "one"


@pytest.mark.everywhere_in_long_form
def test_a_wait_for_a_redelivery_ends_with_its_connection(stage: Stage, outage: Outage) -> None:
    needs_transactions(stage)
    stage.send("one")
    policy = RedeliveryPolicy(initial_redelivery_delay=30, redelivery_delay=30)
    session = outage.connect(redelivery_policy=policy).session("transacted")
    consumer = session.consumer(stage.queue)
    receive(consumer)
    session.rollback()
    outage.begin()
    assert receive(consumer).body == "one"
    session.commit()
    assert consumer.receive(timeout=NOTHING) is None


@pytest.mark.everywhere_in_long_form
def test_it_gives_up_after_the_last_attempt(stage: Stage, outage: Outage) -> None:
    problems: list[JMSError] = []
    connection = outage.connect(reconnect=ReconnectPolicy(maximum_attempts=2), exception_listener=problems.append)
    consumer = connection.session().consumer(stage.queue)
    outage.begin(60)
    with pytest.raises(ConnectionLostError):
        consumer.receive(timeout=SOON)
    assert not connection.connected
    attempts = outage.seen(ReconnectFailed)
    assert [each.attempt for each in attempts] == [1, 2]
    assert [each.again_at is None for each in attempts] == [False, True]
    with pytest.raises(ConnectionLostError):
        connection.session()


@pytest.mark.everywhere_in_long_form
def test_closing_does_not_wait_for_the_connection(stage: Stage, outage: Outage) -> None:
    connection = outage.connect()
    connection.session().consumer(stage.queue)
    outage.begin(60)
    began = monotonic()
    connection.close()
    assert monotonic() - began < 5
    assert connection.closed


def needs_transactions(stage: Stage) -> None:
    if not stage.pair.can("transactions"):
        pytest.skip(stage.pair.kind.cannot["transactions"])


@pytest.mark.needs("temporary destinations", refused=UnsupportedError)
def test_a_temporary_queue_is_made_anew_and_its_consumer_goes_over_to_it(stage: Stage, outage: Outage) -> None:
    connection = outage.connect()
    session = connection.session()
    old = session.temporary_queue()
    consumer = session.consumer(old)
    asking = connection.session()
    producer = asking.producer(stage.queue)
    outage.begin()
    with pytest.raises(InvalidDestinationError, match=r"reply_to: .* was removed by the broker when its connection"):
        producer.send("question", reply_to=old)
    until(lambda: consumer.destination != old)  # its session may come back a little later
    new = consumer.destination
    assert isinstance(new, TemporaryQueue)
    with pytest.raises(InvalidDestinationError, match=re.escape(str(new))):
        asking.producer(old).send("to nobody")
    with pytest.raises(InvalidDestinationError, match="was removed by the broker"):
        asking.consumer(old)
    producer.send("question", reply_to=new)
    answering = stage.session(AckMode.AUTO)
    question = receive(answering.consumer(stage.queue))
    answering.producer().send("answer", question.reply_to)
    assert receive(consumer).body == "answer"
