"""What a session's channel writes to consume, acknowledge and send, frame by frame."""

from __future__ import annotations

import threading

import pytest
from tests.transports.scripted import TIMEOUT, BrokerEnd, Client, ScriptedBroker, lines, with_messages

from redelivery.model.destinations import Topic
from redelivery.model.errors import (
    ConnectionLostError,
    IllegalStateError,
    InvalidDestinationError,
    InvalidSelectorError,
    JMSError,
    ResourceAllocationError,
    SecurityError,
)
from redelivery.model.modes import AckMode


def test_a_subscription_is_client_individual_with_a_window_of_messages() -> None:
    def script(end: BrokerEnd) -> None:
        end.log_in()
        for _ in range(4):
            end.subscribed()
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        session = client.session()
        session.attach()
        session.attach(Topic("news"), window=7, selector="a = 'b:c'", no_local=True)
        session.attach(window=0)
        link = session.attach(window=None)
        assert link.prefetch == 100
        frames = [frame.headers for frame in broker.ends[0].taken[1:5]]
    assert [frame["ack"] for frame in frames] == ["client-individual"] * 4
    assert [frame["activemq.prefetchSize"] for frame in frames] == ["100", "7", "1", "100"]
    assert [frame["destination"] for frame in frames][:2] == ["/queue/orders", "/topic/news"]
    condition, ours = frames[1]["selector"].split(" AND ")
    assert (condition, frames[1]["activemq.noLocal"]) == ("(a = 'b:c')", "true")
    assert ours.startswith("(JMS_redelivery_sender IS NULL OR JMS_redelivery_sender <> '")
    assert len({frame["id"] for frame in frames}) == 4


@pytest.mark.parametrize(
    ("message", "body", "error"),
    [
        ("a = = b", "javax.jms.InvalidSelectorException: a = = b\n\tat org…", InvalidSelectorError),
        ("User ann is not authorized to read from: queue://orders", "", SecurityError),
        ("x", "javax.jms.InvalidDestinationException: x", InvalidDestinationError),
        ("Usage Manager Memory Limit reached", "javax.jms.ResourceAllocationException: …", ResourceAllocationError),
        ("something else", "", JMSError),
    ],
)
def test_a_refused_subscription_is_the_error_that_the_broker_means(
    message: str, body: str, error: type[JMSError]
) -> None:
    def script(end: BrokerEnd) -> None:
        end.log_in()
        end.refuse(end.take("SUBSCRIBE"), message, body)
        end.subscribed()
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        session = client.session()
        with pytest.raises(error, match=f"the broker says: .*{message}"):
            session.attach()
        session.attach()  # the connection lives on
        assert client.errors == []


@pytest.mark.parametrize("batched", [False, True])
def test_an_acknowledgement_names_the_broker_s_id_as_it_was_written(batched: bool) -> None:
    acked: list[list[str]] = []
    done = threading.Event()

    def then(end: BrokerEnd) -> None:
        acked.extend(lines(end.take("ACK")) for _ in range(3))
        done.set()

    with ScriptedBroker(with_messages(3, then)) as broker, Client(broker.port) as client:
        session = client.session(AckMode.INDIVIDUAL)
        session.attach()
        first, *rest = session.receive_many(3)
        session.channel.accept([first], batched=batched)
        session.channel.accept(rest, batched=batched)
        assert done.wait(TIMEOUT)  # batched ones leave without anybody waiting for them
        raw = broker.ends[0].taken[-1].head
    assert acked == [["ACK", "a:1"], ["ACK", "a:2"], ["ACK", "a:3"]]
    assert raw == b"ACK\nid:a\\c3\n"


def test_a_stale_delivery_is_acknowledged_nowhere() -> None:
    with ScriptedBroker(with_messages(2, lambda _: None)) as broker:
        with Client(broker.port) as client:
            session = client.session()
            link = session.attach()
            first, second = session.receive_many(2)
            session.do(session.channel.detach(link))
            with pytest.raises(IllegalStateError, match="consumer is closed"):
                session.channel.accept([first], batched=False)
        with pytest.raises(JMSError, match="cannot be acknowledged any more"):
            session.channel.accept([second], batched=True)
        with Client(broker.port) as again:
            other = again.session()
            other.attach()
            with pytest.raises(JMSError, match="cannot be acknowledged any more"):
                other.channel.accept([second], batched=False)
        assert "ACK" not in [frame.command for end in broker.ends for frame in end.taken]


def test_a_delivery_of_a_lost_connection_is_not_acknowledged_on_the_next() -> None:
    with ScriptedBroker(with_messages(1, lambda _: None)) as broker:
        with Client(broker.port) as client:
            session = client.session()
            session.attach()
            old = session.receive()
            client.transport.abort()
        with Client(broker.port) as again:
            other = again.session()
            other.attach()
            with pytest.raises(ConnectionLostError, match="cannot be acknowledged any more"):
                other.channel.accept([old], batched=False)
            assert other.receive().header("message_id") == old.header("message_id")
        assert "ACK" not in [frame.command for end in broker.ends for frame in end.taken]


@pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.INDIVIDUAL, AckMode.DUPS_OK])
def test_outside_transactions_handing_out_writes_nothing(mode: AckMode) -> None:
    with ScriptedBroker(with_messages(5, lambda _: None)) as broker, Client(broker.port) as client:
        session = client.session(mode)
        session.attach(window=2)
        for delivery in session.receive_many(5):
            session.channel.dispatched(delivery)
        client.close()
        assert [frame.command for frame in broker.ends[0].taken] == ["CONNECT", "SUBSCRIBE", "DISCONNECT"]


def test_an_error_that_answers_nobody_goes_to_the_listener_and_the_connection_lives() -> None:
    def then(end: BrokerEnd) -> None:
        end.take("ACK")
        end.send("ERROR", b"trace", message="Unexpected ACK received for message-id [a:1]")

    with ScriptedBroker(with_messages(1, then)) as broker, Client(broker.port) as client:
        session = client.session()
        session.attach()
        session.channel.accept([session.receive()], batched=False)
        assert session.receive(0.2) is None
        assert client.error_event.wait(TIMEOUT)
        assert "Unexpected ACK" in str(client.errors[0])
        assert client.lost == []
