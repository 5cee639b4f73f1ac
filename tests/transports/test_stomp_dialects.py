"""What each broker's table makes of the frames: scripted, so that every order of answers can be had."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from tests.transports.scripted import BrokerEnd, Client, ScriptedBroker, text, with_messages

from redelivery.model.destinations import Queue, Topic
from redelivery.model.errors import (
    ConnectionLostError,
    InDoubtError,
    InvalidDestinationError,
    JMSError,
    ResourceAllocationError,
    SecurityError,
    TransactionRolledBackError,
)
from redelivery.model.messages import Message
from redelivery.model.modes import AckMode
from redelivery.transports.stomp.codec.errors import broker_error
from redelivery.transports.stomp.codec.frames import Frame, encode
from redelivery.transports.stomp.connection.engine import HEARTBEAT, StompEngine

ARTEMIS = "ActiveMQ-Artemis/2.44.0 ActiveMQ Artemis Messaging Engine"
HORNETQ = "HornetQ/2.5.0.SNAPSHOT (Wild Hornet, 124) HornetQ Messaging Engine"
RABBITMQ = "RabbitMQ/3.10.8"
NO_HOST = b"Virtual host '127.0.0.1' access denied"


def refuse_host(end: BrokerEnd) -> None:
    """RabbitMQ, which has one virtual host, named "/"."""
    frame = end.take("CONNECT")
    if frame.headers["host"] == "/":
        end.send("CONNECTED", version="1.2", server=RABBITMQ)
        end.goodbye()
    else:
        end.send("ERROR", NO_HOST, message="Bad CONNECT")


def hosts(broker: ScriptedBroker) -> list[str]:
    return [end.taken[0].headers["host"] for end in broker.ends]


def test_a_virtual_host_that_nobody_named_is_replaced_by_the_default_one() -> None:
    with ScriptedBroker(refuse_host) as broker:
        with Client(broker.port) as client:
            assert client.transport.peer.dialect == "rabbitmq"
        assert hosts(broker) == ["127.0.0.1", "/"]


def test_a_dialect_that_is_named_needs_no_second_try() -> None:
    with ScriptedBroker(refuse_host) as broker:
        with Client(broker.port, dialect="rabbitmq"):
            pass
        assert hosts(broker) == ["/"]


@pytest.mark.parametrize("options", [{"params": {"wireFormat.host": "mine"}}, {"dialect": "activemq"}])
def test_a_virtual_host_that_is_named_or_is_another_brokers_affair_is_not_replaced(options: dict[str, Any]) -> None:
    with ScriptedBroker(refuse_host) as broker:
        with pytest.raises(SecurityError, match="access denied"):
            Client(broker.port, **options)
        assert len(broker.ends) == 1


def test_a_second_refusal_is_the_last() -> None:
    def script(end: BrokerEnd) -> None:
        end.take("CONNECT")
        end.send("ERROR", NO_HOST, message="Bad CONNECT")

    with ScriptedBroker(script) as broker:
        with pytest.raises(SecurityError):
            Client(broker.port)
        assert hosts(broker) == ["127.0.0.1", "/"]


@pytest.mark.parametrize(
    ("server", "target", "expected"),
    [
        (ARTEMIS, Queue("a.b"), {"destination": "a.b", "destination-type": "ANYCAST", "reply-to": "topic://r"}),
        (ARTEMIS, Topic("a.b"), {"destination": "a.b", "destination-type": "MULTICAST", "reply-to": "topic://r"}),
        (HORNETQ, Queue("a.b"), {"destination": "jms.queue.a.b", "reply-to": "jms.topic.r"}),
        (HORNETQ, Topic("a.b"), {"destination": "jms.topic.a.b", "reply-to": "jms.topic.r"}),
        (RABBITMQ, Queue("a/b"), {"destination": "/queue/a%2Fb", "reply-to": "/topic/r"}),
    ],
)
def test_where_a_message_goes(server: str, target: Queue | Topic, expected: dict[str, str]) -> None:
    sent: list[Frame] = []

    def script(end: BrokerEnd) -> None:
        end.log_in(server=server)
        sent.append(end.answer(end.take("SEND")))
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        assert client.session().send(text(Message("x", reply_to=Topic("r")), target)) is None
    assert {name: value for name, value in sent[0].headers.items() if name in expected} == expected


@pytest.mark.parametrize(("server", "header"), [(ARTEMIS, "_AMQ_DUPL_ID"), (HORNETQ, "_HQ_DUPL_ID")])
def test_a_dead_letter_has_an_id_by_which_a_second_one_is_dropped(server: str, header: str) -> None:
    copies: list[Frame] = []
    acks: list[Frame] = []

    def script(end: BrokerEnd) -> None:
        end.log_in(server=server)
        subscription = end.subscribed()
        # the first twice, as after a reconnection: the consumer's number differs, the message's does not
        for consumer, number in ((7, 1), (8, 1), (8, 2)):
            end.send(
                "MESSAGE", b"x", subscription=subscription, ack="evil", message_id=f"{consumer},{number}",
                destination="orders",
            )  # fmt: skip
        for _ in range(3):
            copies.append(end.take("SEND"))
            assert "transaction" not in copies[-1].headers
            end.answer(copies[-1])  # before it no ACK comes
            acks.append(end.take("ACK"))
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        session = client.session(AckMode.TRANSACTED)
        session.attach()
        for delivery in session.receive_many(3):
            session.do(session.channel.poison(delivery, "why", text("copy", "DLQ")))
    first, again, other = (frame.headers[header] for frame in copies)
    assert [frame.headers["id"] for frame in acks] == ["7,1", "8,1", "8,2"]
    assert (first == again) == (server == ARTEMIS)  # HornetQ's ids have no consumer
    assert other not in (first, again)


def test_a_topics_dead_letter_has_none_since_each_subscriber_may_have_one() -> None:
    copies: list[Frame] = []

    def script(end: BrokerEnd) -> None:
        end.log_in(server=ARTEMIS)
        end.message(end.subscribed(), 1, destination="news")
        copies.append(end.answer(end.take("SEND")))
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        session = client.session()
        session.attach(Topic("news"))
        session.do(session.channel.poison(session.receive(), "why", text("copy", "DLQ")))
    assert "_AMQ_DUPL_ID" not in copies[0].headers


def test_an_error_ends_the_connection_and_fails_every_call_that_waits() -> None:
    def script(end: BrokerEnd) -> None:
        end.log_in(server=ARTEMIS)
        end.take("SUBSCRIBE")
        end.send("ERROR", message="no permission to consume")
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        session = client.session()
        with pytest.raises(SecurityError, match="no permission"):
            session.attach()
        assert client.lost_event.wait(5)
        assert "no permission" in str(client.lost[0])
        with pytest.raises(ConnectionLostError, match="no permission"):
            session.receive()


@pytest.mark.parametrize("server", [ARTEMIS, HORNETQ])
def test_sends_are_answered_then_committed_and_then_the_acks_leave(server: str) -> None:
    def then(end: BrokerEnd) -> None:
        end.take("BEGIN")
        first, second = end.take("SEND"), end.take("SEND")
        end.answer(first)
        end.sock.settimeout(0.2)
        with pytest.raises(TimeoutError):  # no COMMIT before both are answered
            end.take()
        end.sock.settimeout(5)
        end.answer(second)
        commit = end.take("COMMIT")
        end.sock.settimeout(0.2)
        with pytest.raises(TimeoutError):  # no ACK before COMMIT is
            end.take()
        end.sock.settimeout(5)
        end.answer(commit)
        assert "transaction" not in end.take("ACK").headers
        end.answer(end.take("ACK"))

    with ScriptedBroker(with_messages(2, then, server=server)) as broker, Client(broker.port) as client:
        session = client.session(AckMode.TRANSACTED)
        session.attach()
        deliveries = session.receive_many(2)
        for _ in deliveries:
            session.channel.send(text(), transacted=True, pending=None)
        session.do(session.channel.commit(deliveries))


def test_rabbitmq_answers_the_sends_of_a_transaction_after_its_commit() -> None:
    def then(end: BrokerEnd) -> None:
        end.take("BEGIN")
        sends = [end.take("SEND") for _ in range(2)]
        end.answer(end.take("COMMIT"))
        end.sock.settimeout(0.2)
        with pytest.raises(TimeoutError):  # COMMIT's answer says nothing of them: no ACK yet
            end.take()
        end.sock.settimeout(5)
        for send in reversed(sends):  # in whatever order
            end.answer(send)
        end.answer(end.take("ACK"))

    with ScriptedBroker(with_messages(1, then, server=RABBITMQ)) as broker, Client(broker.port) as client:
        session = client.session(AckMode.TRANSACTED)
        session.attach()
        delivery = session.receive()
        for _ in range(2):
            session.channel.send(text(), transacted=True, pending=None)
        session.do(session.channel.commit([delivery]))


def test_rabbitmq_may_refuse_a_send_whose_commit_it_has_confirmed() -> None:
    def then(end: BrokerEnd) -> None:
        end.take("BEGIN"), end.take("SEND")
        end.answer(end.take("COMMIT"))
        end.send("ERROR", b"NOT_FOUND - no exchange", message="not_found")
        with pytest.raises(ConnectionError):
            end.take("DISCONNECT"), end.take()

    with ScriptedBroker(with_messages(1, then, server=RABBITMQ)) as broker, Client(broker.port) as client:
        session = client.session(AckMode.TRANSACTED)
        session.attach()
        delivery = session.receive()
        session.channel.send(text(), transacted=True, pending=None)
        with pytest.raises(InDoubtError, match="not all confirmed") as caught:
            session.do(session.channel.commit([delivery]))
        assert isinstance(caught.value.__cause__, InvalidDestinationError)


@pytest.mark.parametrize("server", [ARTEMIS, HORNETQ, RABBITMQ, "Strange/1"])
def test_acks_whose_answer_does_not_come_are_in_doubt(server: str) -> None:
    def then(end: BrokerEnd) -> None:
        end.take("ACK")
        end.sock.close()

    with ScriptedBroker(with_messages(1, then, server=server)) as broker, Client(broker.port) as client:
        session = client.session(AckMode.TRANSACTED)
        session.attach()
        with pytest.raises(InDoubtError, match="not known which deliveries"):
            session.do(session.channel.commit([session.receive()]))


def test_acks_that_never_left_are_rolled_back() -> None:
    with ScriptedBroker(with_messages(1, lambda _: None, server=ARTEMIS)) as broker, Client(broker.port) as client:
        session = client.session(AckMode.TRANSACTED)
        session.attach()
        delivery = session.receive()
        client.transport.abort()
        with pytest.raises(TransactionRolledBackError, match="lost before the commit"):
            session.do(session.channel.commit([delivery]))


def test_acks_that_are_refused_after_the_commit_are_in_doubt_and_say_what_is_done() -> None:
    def then(end: BrokerEnd) -> None:
        end.take("BEGIN"), end.answer(end.take("SEND")), end.answer(end.take("COMMIT"))
        end.refuse(end.take("ACK"), "AMQ339018 Error acknowledging message")

    with ScriptedBroker(with_messages(1, then, server=ARTEMIS)) as broker, Client(broker.port) as client:
        session = client.session(AckMode.TRANSACTED)
        session.attach()
        delivery = session.receive()
        session.channel.send(text(), transacted=True, pending=None)
        with pytest.raises(InDoubtError, match="the sends are committed"):
            session.do(session.channel.commit([delivery]))


def test_an_error_that_names_its_request_answers_nobody_else() -> None:
    """On HornetQ; an ACK without a receipt may be refused while a SEND waits."""

    def then(end: BrokerEnd) -> None:
        end.take("ACK")
        send = end.take("SEND")
        end.send("ERROR", message="HQ339025: failed to ack because no message with id")
        end.answer(send)

    with ScriptedBroker(with_messages(1, then, server=HORNETQ)) as broker, Client(broker.port) as client:
        session = client.session()
        session.attach()
        session.channel.accept([session.receive()], batched=False)
        assert session.send(text()) is None
        assert isinstance(client.errors[0], JMSError)


def test_a_native_dead_letter_says_that_it_must_not_be_requeued() -> None:
    nacks: list[Frame] = []

    def then(end: BrokerEnd) -> None:
        nacks.append(end.answer(end.take("NACK")))

    with ScriptedBroker(with_messages(1, then, server=RABBITMQ)) as broker, Client(broker.port) as client:
        session = client.session()
        session.attach()
        session.do(session.channel.poison(session.receive(), "why", None))
    assert nacks[0].headers["requeue"] == "false"


def test_beats_that_nobody_asked_for_where_silence_is_punished() -> None:
    engine = StompEngine("h", 0.0, 1000)
    engine.connected(b"CONNECTED\nversion:1.2\nheart-beat:0,30000\n\n\0", 0.0)
    assert engine.next_deadline(0.0) is None
    engine.never_silent_for(60.0)
    due = engine.next_deadline(0.0)
    assert due is not None
    assert due < 30
    beats = [at for at in range(0, 121, 10) if engine.tick(float(at), heard=False, wrote=False) == HEARTBEAT]
    assert max(later - earlier for earlier, later in pairwise(beats)) < 30


def test_beats_that_were_agreed_on_stay_as_they_are() -> None:
    engine = StompEngine("h", 5.0, 1000)
    engine.connected(b"CONNECTED\nversion:1.2\nheart-beat:5000,5000\n\n\0", 0.0)
    before = engine.next_deadline(0.0)
    engine.never_silent_for(60.0)
    assert engine.next_deadline(0.0) == before


@pytest.mark.parametrize(
    ("body", "kind", "shown"),
    [
        (b"", ResourceAllocationError, "a message to q (it does not say why: the address is full, or"),
        (b'HQ119102: Address "jms.queue.q" is full.', ResourceAllocationError, "is full"),
        (b"HQ119032: User: joe doesnt have permission=SEND", SecurityError, "User: joe"),
    ],
)
def test_an_error_that_quotes_the_message_does_not_show_it(body: bytes, kind: type[JMSError], shown: str) -> None:
    text = "AMQ339011 Error sending CoreMessage[messageID=1, address=q, properties=[token=secret permission]]@1"
    error = broker_error(Frame(encode("ERROR", {"message": text}).partition(b"\n\n")[0] + b"\n", body))
    assert type(error) is kind
    assert shown in str(error)
    assert "secret" not in str(error)
