"""Answers that are lost, late or an error, by an embedded broker that fails on purpose (JMS 3.1, `Session.commit`)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from time import monotonic

import pytest
from tests.conformance.pairs import PAIRS, Pair
from tests.conformance.stage import SOON, Stage, bodies, nothing_comes, receive, receive_all

from redelivery import (
    AckMode,
    ConnectionLostError,
    InDoubtError,
    JMSError,
    RedeliveryPolicy,
    RequestTimeoutError,
    TransactionRolledBackError,
    connect,
)
from redelivery.broker import EmbeddedBroker
from redelivery.broker.faults import Faults


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(name=f"faults-{uuid.uuid4().hex}", stomp_port=0) as broker:
        yield broker


@pytest.fixture
def faults(broker: EmbeddedBroker) -> Faults:
    return broker.faults


@pytest.fixture(params=["vm", "stomp-embedded"])
def stage(request: pytest.FixtureRequest, broker: EmbeddedBroker) -> Iterator[Stage]:
    yield from _stage(request.param, broker)


@pytest.fixture
def stomp(broker: EmbeddedBroker) -> Iterator[Stage]:
    """STOMP only: over vm there is no answer that could be late."""
    yield from _stage("stomp-embedded", broker)


def _stage(kind: str, broker: EmbeddedBroker) -> Iterator[Stage]:
    with ExitStack() as opened:
        url = broker.vm_url if kind == "vm" else broker.stomp_url
        yield Stage(Pair(PAIRS[kind], url), "faults", opened)


def test_r12_commit_executed_and_its_answer_lost_is_in_doubt(stage: Stage, faults: Faults) -> None:
    stage.send("a", "b")
    session, consumer = stage.consuming(AckMode.TRANSACTED)
    receive_all(consumer, 2)
    session.producer("target").send("c")
    faults.drop_after("COMMIT")
    with pytest.raises(InDoubtError) as raised:
        session.commit()
    assert bodies(raised.value.received) == ["a", "b"]
    assert bodies(raised.value.sent) == ["c"]
    assert raised.value.transaction_id
    assert stage.left() == []
    assert stage.left_bodies("target", at_least=1) == ["c"]


def test_r12_commit_lost_on_the_way_is_in_doubt_and_all_comes_again(stage: Stage, faults: Faults) -> None:
    stage.send("a", "b")
    session, consumer = stage.consuming(AckMode.TRANSACTED)
    receive_all(consumer, 2)
    session.producer("target").send("c")
    faults.drop("COMMIT")
    with pytest.raises(InDoubtError):
        session.commit()
    session.close()
    assert stage.left_bodies(at_least=2) == ["a", "b"]
    assert stage.left("target") == []


def test_r12_commit_without_an_answer_in_time_is_in_doubt(stomp: Stage, faults: Faults) -> None:
    stomp.send("a")
    session, consumer = stomp.consuming(AckMode.TRANSACTED, request_timeout=0.5, close_timeout=1)
    receive(consumer)
    faults.swallow("COMMIT")
    began = monotonic()
    with pytest.raises(InDoubtError) as raised:
        session.commit()
    assert 0.4 < monotonic() - began < 3
    assert bodies(raised.value.received) == ["a"]


def test_r12_persistent_send_whose_answer_is_lost_is_in_doubt(stage: Stage, faults: Faults) -> None:
    producer = stage.session(AckMode.AUTO).producer(stage.queue)
    faults.drop_after("SEND")
    with pytest.raises(InDoubtError) as raised:
        producer.send("a")
    assert bodies(raised.value.sent) == ["a"]
    assert stage.left_bodies(at_least=1) == ["a"]


def test_r12_acknowledge_in_client_mode_whose_answer_is_lost_is_in_doubt(stage: Stage, faults: Faults) -> None:
    stage.send("a")
    session, consumer = stage.consuming(AckMode.CLIENT)
    message = receive(consumer)
    faults.drop_after("COMMIT")
    with pytest.raises(InDoubtError, match="answer to the acknowledge") as raised:
        message.acknowledge()
    assert "commit" not in str(raised.value)
    session.close()
    assert stage.left() == []


def test_failed_commit_rolls_back_and_the_deliveries_come_again(stage: Stage, faults: Faults) -> None:
    stage.send("a", "b")
    session, consumer = stage.consuming(AckMode.TRANSACTED)
    receive_all(consumer, 2)
    session.producer("target").send("c")
    faults.error("COMMIT", "disk full")
    with pytest.raises(TransactionRolledBackError, match="disk full"):
        session.commit()
    again = receive_all(consumer, 2)
    assert [(message.body, message.delivery_count) for message in again] == [("a", 2), ("b", 2)]
    session.commit()
    session.close()
    assert stage.left() == []
    assert stage.left("target") == []


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_refused_send_rolls_the_whole_transaction_back(stomp: Stage, faults: Faults, nth: int) -> None:
    stomp.send("a")
    session, consumer = stomp.consuming(AckMode.TRANSACTED)
    producer = session.producer("target")
    receive(consumer)
    faults.error("SEND", "no room", nth=nth)
    for body in ("x", "y", "z"):
        producer.send(body)
    with pytest.raises(TransactionRolledBackError, match="no room"):
        session.commit()
    assert receive(consumer).delivery_count == 2
    session.commit()
    session.close()
    assert stomp.left() == []
    assert stomp.left("target") == []


def test_refused_send_over_vm_is_refused_at_once(broker: EmbeddedBroker, faults: Faults) -> None:
    with connect(broker.vm_url) as connection, connection.session(AckMode.TRANSACTED) as session:
        producer = session.producer("target")
        producer.send("x")
        faults.error("SEND", "no room")
        with pytest.raises(JMSError, match="no room"):
            producer.send("y")
        session.rollback()
    assert broker.queue_depth("target") == 0


def test_refused_send_outside_a_transaction_raises_and_the_connection_lives(stage: Stage, faults: Faults) -> None:
    producer = stage.session(AckMode.AUTO).producer(stage.queue)
    faults.error("SEND", "no room")
    with pytest.raises(JMSError, match="no room"):
        producer.send("a")
    producer.send("b")
    assert stage.left_bodies(at_least=1) == ["b"]


def test_refused_poison_loses_nothing(stage: Stage, faults: Faults) -> None:
    stage.send("bad")
    policy = RedeliveryPolicy(maximum_redeliveries=0, initial_redelivery_delay=0.0, redelivery_delay=0.0)
    session, consumer = stage.consuming(AckMode.TRANSACTED, redelivery_policy=policy)
    receive(consumer)
    faults.error("NACK", "no")
    with suppress(JMSError):
        session.rollback()
    session.close()
    letters = bodies(stage.dead_letters())
    assert sorted(letters + stage.left_bodies()) == ["bad"]


@pytest.mark.parametrize("command", ["SUBSCRIBE", "SEND"])
def test_request_without_an_answer_ends_by_its_time_out(stomp: Stage, faults: Faults, command: str) -> None:
    session = stomp.session(AckMode.AUTO, request_timeout=0.4, close_timeout=1)
    producer = session.producer(stomp.queue)
    faults.swallow(command)
    began = monotonic()
    if command == "SEND":
        with pytest.raises(InDoubtError):
            producer.send("a")
    else:
        with pytest.raises(RequestTimeoutError):
            session.consumer(stomp.queue)
    assert 0.3 < monotonic() - began < 3


def test_silent_server_is_noticed_by_its_missing_heart_beats(stomp: Stage, faults: Faults) -> None:
    _, consumer = stomp.consuming(AckMode.AUTO, heartbeat=0.2, close_timeout=1)
    faults.silence()
    began = monotonic()
    with pytest.raises(ConnectionLostError):
        consumer.receive(timeout=SOON)
    assert monotonic() - began < 5


def test_close_is_bounded_when_nobody_answers(stomp: Stage, faults: Faults) -> None:
    connection = stomp.connect(close_timeout=0.5)
    session = connection.session(AckMode.TRANSACTED)
    session.consumer(stomp.queue)
    faults.silence()
    began = monotonic()
    session.close()
    connection.close()
    assert monotonic() - began < 5


def test_connection_lost_during_a_redelivery_delay_poisons_nothing(stage: Stage, faults: Faults) -> None:
    stage.send("a")
    policy = RedeliveryPolicy(maximum_redeliveries=1, initial_redelivery_delay=0.5, redelivery_delay=0.5)
    session, consumer = stage.consuming(AckMode.TRANSACTED, redelivery_policy=policy)
    receive(consumer)
    session.rollback()
    faults.drop("SUBSCRIBE")
    with pytest.raises(JMSError):
        session.consumer("other")
    with pytest.raises(ConnectionLostError):
        consumer.receive(timeout=SOON)
    session.close()
    assert stage.left_bodies(at_least=1) == ["a"]
    assert stage.dead_letters() == []


@pytest.mark.parametrize("mode", [AckMode.CLIENT, AckMode.INDIVIDUAL])
def test_late_acknowledge_on_a_lost_connection_is_an_error(stage: Stage, faults: Faults, mode: AckMode) -> None:
    stage.send("a")
    session, consumer = stage.consuming(mode)
    message = receive(consumer)
    faults.drop("SUBSCRIBE")
    with pytest.raises(JMSError):
        session.consumer("other")
    with pytest.raises(JMSError):
        message.acknowledge()
    assert stage.left_bodies(at_least=1) == ["a"]


def test_one_refused_consumer_leaves_the_others_alone(stage: Stage, faults: Faults) -> None:
    session, consumer = stage.consuming(AckMode.AUTO)
    faults.error("SUBSCRIBE", "not for you")
    with pytest.raises(JMSError, match="not for you"):
        session.consumer("other")
    assert nothing_comes(consumer)
    stage.send("a")
    assert receive(consumer).body == "a"
