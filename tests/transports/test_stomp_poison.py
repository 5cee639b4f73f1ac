"""Dead letters on a broker that behaves as ActiveMQ does, frame by frame."""

from __future__ import annotations

import pytest
from tests.transports.scripted import BrokerEnd, Client, ScriptedBroker, lines, text, with_messages

from redelivery.model.errors import JMSError
from redelivery.model.modes import AckMode


def test_native_poison_is_a_nack_outside_any_transaction() -> None:
    frames: list[list[str]] = []

    def then(end: BrokerEnd) -> None:
        frames.extend(lines(end.take()) for _ in range(4))
        nack = end.take("NACK")
        frames.append(lines(nack))
        end.answer(nack)
        refused = end.take("NACK")
        end.refuse(refused, "no")

    with ScriptedBroker(with_messages(3, then)) as broker, Client(broker.port) as client:
        session = client.session(AckMode.CLIENT)
        session.attach(window=4)
        first, second, third = session.receive_many(3)
        session.channel.dispatched(first)
        session.channel.dispatched(second)
        session.do(session.channel.poison(first, "why", None))
        with pytest.raises(JMSError, match="the broker says: no"):
            session.do(session.channel.poison(third, "why", None))
    assert [frame[:2] for frame in frames if frame[0] != "BEGIN"] == [
        ["ACK", "a:1"], ["ACK", "a:2"], ["ABORT", frames[0][1]], ["NACK", "a:1"],
    ]  # fmt: skip


def test_poison_does_not_abort_a_transaction_that_holds_other_things() -> None:
    def then(end: BrokerEnd) -> None:
        end.take("BEGIN")
        end.answer(end.take("SEND"))
        end.answer(end.take("NACK"))
        end.answer(end.take("COMMIT"))

    with ScriptedBroker(with_messages(1, then)) as broker, Client(broker.port) as client:
        session = client.session(AckMode.TRANSACTED)
        session.attach()
        poisoned = session.receive()
        session.channel.send(text(), transacted=True, pending=None)
        session.do(session.channel.poison(poisoned, "why", None))
        session.do(session.channel.commit([]))


@pytest.mark.parametrize("refused", ["", "SEND", "COMMIT"])
def test_a_dead_letter_and_its_ack_are_one(refused: str) -> None:
    frames: list[list[str]] = []

    def then(end: BrokerEnd) -> None:
        end.take("BEGIN")
        send = end.take("SEND")
        assert send.headers["destination"] == "/queue/DLQ"
        if refused == "SEND":
            end.refuse(send, "full")
            frames.append(lines(end.take("ABORT")))
            return
        end.answer(send)
        frames.append(lines(end.take("ACK")))
        commit = end.take("COMMIT")
        if refused:
            end.refuse(commit, "full")
        else:
            end.answer(commit)
        assert {frame[-1] for frame in frames} == {send.headers["transaction"]}

    with ScriptedBroker(with_messages(1, then)) as broker, Client(broker.port) as client:
        session = client.session(AckMode.AUTO)
        session.attach()
        poisoned = session.receive()
        flow = session.channel.poison(poisoned, "why", text("copy", "DLQ"))
        if refused:
            with pytest.raises(JMSError, match="full"):
                session.do(flow)
        else:
            session.do(flow)
    assert [frame[0] for frame in frames] == ["ABORT" if refused == "SEND" else "ACK"]
