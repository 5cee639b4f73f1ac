"""A broker that is not known: the safest meaning of everything."""

from __future__ import annotations

import pytest
from tests.transports.scripted import TIMEOUT, BrokerEnd, Client, ScriptedBroker, lines, text, with_messages

from redelivery.model.destinations import Queue
from redelivery.model.errors import MessageFormatError, SecurityError, TransactionRolledBackError, UnsupportedError
from redelivery.model.messages import Message
from redelivery.model.modes import AckMode


def test_unknown_no_ack_leaves_before_the_commit_is_confirmed() -> None:
    frames: list[list[str]] = []

    def then(end: BrokerEnd) -> None:
        frames.extend(lines(end.take()) for _ in range(2))
        commit = end.take("COMMIT")
        end.sock.settimeout(0.2)
        with pytest.raises(TimeoutError):
            end.take()
        end.sock.settimeout(TIMEOUT)
        end.answer(commit)
        frames.append(lines(end.take("ACK")))
        last = end.take("ACK")
        frames.append(lines(last))
        end.answer(last)

    with ScriptedBroker(with_messages(2, then, server="Strange/1")) as broker, Client(broker.port) as client:
        session = client.session(AckMode.TRANSACTED)
        session.attach(window=2)
        deliveries = session.receive_many(2)
        for delivery in deliveries:
            session.channel.dispatched(delivery)
        session.channel.park(deliveries)
        session.channel.send(text(), transacted=True, pending=None)
        session.do(session.channel.commit(deliveries))
    assert [frame[0] for frame in frames] == ["BEGIN", "SEND", "ACK", "ACK"]
    assert [frame[1:] for frame in frames[2:]] == [["a:1"], ["a:2"]]


def test_unknown_an_error_between_begin_and_commit_undoes_it() -> None:
    def script(end: BrokerEnd) -> None:
        end.log_in(server="Strange/1")
        end.take("BEGIN"), end.take("SEND")
        end.send("ERROR", message="no permission")
        end.take("ABORT")
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        session = client.session(AckMode.TRANSACTED)
        session.channel.send(text(), transacted=True, pending=None)
        client.transport.wait(session.waiter, 0.2)
        with pytest.raises(TransactionRolledBackError, match="no permission"):
            session.do(session.channel.commit([]))


def test_unknown_poison_is_a_confirmed_copy_and_then_the_ack() -> None:
    frames: list[list[str]] = []

    def then(end: BrokerEnd) -> None:
        frames.append(lines(end.answer(end.take("SEND"))))
        frames.append(lines(end.take("ACK")))

    with ScriptedBroker(with_messages(1, then, server="Strange/1")) as broker, Client(broker.port) as client:
        session = client.session(AckMode.AUTO)
        session.attach()
        poisoned = session.receive()
        with pytest.raises(UnsupportedError, match="NACK may delete"):
            session.do(session.channel.poison(poisoned, "why", None))
        session.do(session.channel.poison(poisoned, "why", text("copy", "DLQ")))
    assert frames == [["SEND"], ["ACK", "a:1"]]


@pytest.mark.parametrize("options", [{"selector": "a = 1"}, {"no_local": True}])
def test_unknown_what_brokers_may_ignore_is_refused(options: dict[str, object]) -> None:
    def script(end: BrokerEnd) -> None:
        end.log_in(server="Strange/1")
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client, pytest.raises(UnsupportedError):
        client.session().attach(Queue("q"), **options)


def test_unknown_an_error_that_names_nobody_answers_whoever_asked() -> None:
    def script(end: BrokerEnd) -> None:
        end.log_in(server="Strange/1")
        end.take("SUBSCRIBE")
        end.send("ERROR", message="no permission")
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client, pytest.raises(SecurityError):
        client.session().attach()


def test_unknown_its_facts_are_the_safest_ones() -> None:
    """It may be any of the known brokers under another name: what one of them would obey is not sent."""
    heads: list[dict[str, str]] = []

    def script(end: BrokerEnd) -> None:
        end.log_in(server="Strange/1")
        heads.append(end.take("SEND").headers)
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        assert client.transport.peer.capabilities.transactions
        session = client.session()
        for name in ("scheduledJobId", "destination-type", "x-death", "_AMQ_X", "_HQ_X", "JMS_AMQP_X"):
            with pytest.raises(MessageFormatError, match="the name is STOMP's or the broker's own"):
                session.channel.send(text(Message("x", properties={name: "1"})), transacted=False, pending=None)
        delayed = text(Message("x", properties={"AMQ_SCHEDULED_DELAY": "1"}), persistent=False)
        session.channel.send(delayed, transacted=False, pending=None)
    assert heads[0]["JMS_redelivery_mode"] == "NON_PERSISTENT"
    assert heads[0]["AMQ_SCHEDULED_DELAY"] == "1"
