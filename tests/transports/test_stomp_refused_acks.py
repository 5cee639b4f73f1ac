"""An ACK that the broker refuses is raised where somebody commits, not to the exception listener alone."""

from __future__ import annotations

import threading

import pytest
from tests.transports.scripted import TIMEOUT, BrokerEnd, Client, ScriptedBroker, lines, text, with_messages

import redelivery
from redelivery import JMSError, RedeliveryPolicy, SharedDeadLetterStrategy
from redelivery.model.errors import InDoubtError, TransactionRolledBackError
from redelivery.model.modes import AckMode

UNEXPECTED = "Unexpected ACK received for message-id [m1]"
COMMITTING = pytest.mark.parametrize("mode", [AckMode.TRANSACTED, AckMode.CLIENT])


@COMMITTING
def test_one_that_is_known_before_the_commit_undoes_all(mode: AckMode) -> None:
    frames: list[str] = []

    def then(end: BrokerEnd) -> None:
        frames.extend((end.take("BEGIN").command, end.take("ACK").command))
        end.send("ERROR", message=UNEXPECTED)
        frames.append(end.take().command)

    with ScriptedBroker(with_messages(2, then)) as broker, Client(broker.port) as client:
        session = client.session(mode)
        session.attach(window=2)
        deliveries = session.receive_many(2)
        session.channel.dispatched(deliveries[0])
        while not client.errors:
            client.transport.wait(session.waiter, 0.05)
        with pytest.raises(TransactionRolledBackError, match="Unexpected ACK received"):
            session.do(session.channel.commit(deliveries))
    assert frames == ["BEGIN", "ACK", "ABORT"]


@COMMITTING
def test_one_that_is_known_with_the_commit_s_answer_leaves_it_in_doubt(mode: AckMode) -> None:
    def then(end: BrokerEnd) -> None:
        end.take("BEGIN"), end.take("ACK"), end.take("ACK")
        end.send("ERROR", message=UNEXPECTED)
        end.answer(end.take("COMMIT"))
        end.take("BEGIN"), end.take("ABORT")
        end.take("BEGIN"), end.take("ACK"), end.take("ACK")
        end.answer(end.take("COMMIT"))

    with ScriptedBroker(with_messages(4, then)) as broker, Client(broker.port) as client:
        session = client.session(mode)
        session.attach()
        deliveries = session.receive_many(4)
        with pytest.raises(InDoubtError, match="the broker has committed, but refused an acknowledgement") as caught:
            session.do(session.channel.commit(deliveries[:2]))
        assert caught.value.transaction_id
        session.do(session.channel.commit(deliveries[2:]))  # what came before is not this one's


def test_one_behind_a_send_undoes_the_send() -> None:
    frames: list[str] = []

    def then(end: BrokerEnd) -> None:
        end.take("BEGIN"), end.take("ACK")
        end.send("ERROR", message=UNEXPECTED)
        end.answer(end.take("SEND"))
        frames.append(end.take().command)

    with ScriptedBroker(with_messages(1, then)) as broker, Client(broker.port) as client:
        session = client.session(AckMode.TRANSACTED)
        session.attach(window=2)
        delivery = session.receive()
        session.channel.dispatched(delivery)
        session.channel.send(text(), transacted=True, pending=None)
        with pytest.raises(TransactionRolledBackError, match="Unexpected ACK received"):
            session.do(session.channel.commit([delivery]))
    assert frames == ["ABORT"]


@pytest.mark.parametrize("server", ["HornetQ/2.4.9", "Strange/1"])
def test_one_of_those_that_follow_the_commit_leaves_it_in_doubt(server: str) -> None:
    def then(end: BrokerEnd) -> None:
        end.take("ACK")
        end.send("ERROR", message="failed to ack because no message with id: 1")
        end.answer(end.take("ACK"))

    with ScriptedBroker(with_messages(2, then, server=server)) as broker, Client(broker.port) as client:
        session = client.session(AckMode.TRANSACTED)
        session.attach()
        with pytest.raises(InDoubtError, match="failed to ack"):
            session.do(session.channel.commit(session.receive_many(2)))


def test_one_of_a_dead_letter_is_reported_and_no_second_copy_is_made() -> None:
    frames: list[list[str]] = []
    reported: list[JMSError] = []
    both = threading.Event()

    def then(end: BrokerEnd) -> None:
        frames.append(lines(end.take("BEGIN")))
        frames.append(lines(end.answer(end.take("SEND"))))
        frames.append(lines(end.take("ACK")))
        end.send("ERROR", message=UNEXPECTED)
        end.answer(end.take("COMMIT"))
        frames.append([end.take("UNSUBSCRIBE").command])

    def listen(error: JMSError) -> None:
        reported.append(error)
        if len(reported) == 2:
            both.set()

    with (
        ScriptedBroker(with_messages(1, then)) as broker,
        redelivery.connect(
            f"stomp://127.0.0.1:{broker.port}",
            redelivery_policy=RedeliveryPolicy(maximum_redeliveries=0),
            dead_letter_strategy=SharedDeadLetterStrategy("dead", process_non_persistent=True),
            exception_listener=listen,
            close_timeout=1.0,
            heartbeat=0,
        ) as connection,
    ):
        session = connection.session("individual")
        consumer = session.consumer("orders")
        assert consumer.receive(TIMEOUT) is not None
        session.recover()
        assert consumer.receive(1.3) is None  # a dead letter that could not be written is tried again after a second
        assert both.wait(TIMEOUT)
    assert [frame[0] for frame in frames] == ["BEGIN", "SEND", "ACK", "UNSUBSCRIBE"]
    assert isinstance(reported[1], InDoubtError)
    assert "refused an acknowledgement" in str(reported[1])
