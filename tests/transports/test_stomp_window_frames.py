"""Frames of a batch that is larger than its window: which further subscriptions are asked for, ended and settled."""

from __future__ import annotations

import pytest
from tests.transports.scripted import BrokerEnd, Client, ScriptedBroker, Session

from redelivery.model.errors import InDoubtError, RequestTimeoutError
from redelivery.model.modes import AckMode
from redelivery.transports.stomp.codec.frames import Frame

RABBITMQ = "RabbitMQ/3.10.8"
ARTEMIS = "ActiveMQ-Artemis/2.44.0"


def serve(end: BrokerEnd, identifier: str, numbers: range) -> None:
    for number in numbers:
        end.message(identifier, number)


def test_the_wire_of_a_batch_where_unsubscribe_keeps() -> None:
    """No ACK leaves before the commit; the full subscription moves aside, so that its messages can be acknowledged."""
    acks: list[Frame] = []

    def script(end: BrokerEnd) -> None:
        end.log_in(server=RABBITMQ)
        first = end.answer(end.take("SUBSCRIBE"))
        identifier = first.headers["id"]
        serve(end, identifier, range(1, 5))
        assert end.take("UNSUBSCRIBE").headers["id"] == identifier
        superseded, second = end.take("SUBSCRIBE"), end.take("SUBSCRIBE")
        assert superseded.headers["id"] == identifier
        assert superseded.headers["destination"] == f"/topic/redelivery.given-back.{identifier}"
        assert "receipt" not in second.headers
        assert second.headers["destination"] == first.headers["destination"] == "/queue/orders"
        assert (first.headers["prefetch-count"], second.headers["prefetch-count"]) == ("4", "4")
        serve(end, second.headers["id"], range(5, 6))
        acks.extend(end.take("ACK") for _ in range(5))
        end.answer(acks[-1])
        assert end.answer(end.take("UNSUBSCRIBE")).headers["id"] == identifier
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        hold_and_commit(client, 5)
    assert [frame.headers["id"] for frame in acks] == [f"a:{number}" for number in range(1, 6)]
    assert ["receipt" in frame.headers for frame in acks] == [False] * 4 + [True]


def test_the_wire_of_a_batch_where_unsubscribe_releases() -> None:
    """The further subscription stands beside the first, and ends when nothing is left."""

    def script(end: BrokerEnd) -> None:
        end.log_in(server=ARTEMIS)
        first = end.answer(end.take("SUBSCRIBE"))
        for number in range(1, 5):
            end.message(first.headers["id"], number, b"x" * 1000)
        second = end.take("SUBSCRIBE")
        assert second.headers["destination"] == first.headers["destination"] == "orders"
        for number in range(5, 6):
            end.message(second.headers["id"], number)
        assert [end.take("ACK").headers["id"] for _ in range(4)] == ["m1", "m2", "m3", "m4"]
        assert end.answer(end.take("ACK")).headers["id"] == "m5"
        assert end.answer(end.take("UNSUBSCRIBE")).headers["id"] == second.headers["id"]
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        hold_and_commit(client, 5)


def hold_and_commit(client: Client, number: int) -> Session:
    session = client.session(AckMode.TRANSACTED)
    session.attach(window=4)
    batch = []
    for _ in range(number):
        batch.append(session.receive())
        session.channel.dispatched(batch[-1])
    session.do(session.channel.commit(batch))
    return session


def test_a_closed_consumer_nacks_under_its_own_id_where_unsubscribe_keeps() -> None:
    frames: list[Frame] = []

    def script(end: BrokerEnd) -> None:
        end.log_in(server=RABBITMQ)
        subscription = end.subscribed()
        serve(end, subscription, range(1, 4))
        end.take("ACK")
        frames.extend((end.take("UNSUBSCRIBE"), end.answer(end.take("SUBSCRIBE"))))
        serve(end, subscription, range(4, 5))  # it was on its way
        end.take("BEGIN")
        end.answer(end.take("ABORT"))
        frames.extend(end.take() for _ in range(4))
        end.answer(frames[-1])
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        session = client.session(AckMode.AUTO)
        link = session.attach()
        session.channel.accept([session.receive()], batched=False)
        session.receive_many(2)
        session.do(session.channel.detach(link))
        assert not session.inbox
    assert [frame.command for frame in frames] == ["UNSUBSCRIBE", "SUBSCRIBE", *["NACK"] * 3, "UNSUBSCRIBE"]
    assert {frame.headers["id"] for frame in (*frames[:2], frames[-1])} == {link.id}
    assert frames[1].headers["destination"] == f"/topic/redelivery.given-back.{link.id}"
    # oldest first: a quorum queue would reverse them otherwise, a classic one knows their places
    assert [frame.headers["id"] for frame in frames[2:5]] == ["a:2", "a:3", "a:4"]


def test_what_an_acknowledge_in_doubt_was_about_is_not_released() -> None:
    """It may be acknowledged: RabbitMQ answers a NACK of it with "unknown delivery tag", and hangs up."""
    frames: list[Frame] = []

    def script(end: BrokerEnd) -> None:
        end.log_in(server=RABBITMQ)
        subscription = end.subscribed()
        serve(end, subscription, range(1, 3))
        end.take("ACK")  # never answered
        end.take("UNSUBSCRIBE")
        end.answer(end.take("SUBSCRIBE"))
        end.take("BEGIN")
        end.answer(end.take("ABORT"))
        frames.extend((end.take(), end.answer(end.take("UNSUBSCRIBE"))))
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        session = client.session(AckMode.CLIENT)
        link = session.attach()
        first, _ = session.receive_many(2)
        session.channel.dispatched(first)
        flow = session.channel.commit([first])
        next(flow)
        with pytest.raises(InDoubtError):
            flow.throw(RequestTimeoutError("no answer"))
        session.do(session.channel.detach(link))
    assert [(frame.command, frame.headers["id"]) for frame in frames] == [("NACK", "a:2"), ("UNSUBSCRIBE", link.id)]


def test_what_is_on_its_way_to_a_further_subscription_that_ends_is_not_dispatched() -> None:
    """UNSUBSCRIBE releases it, so it is redelivered to the first."""

    def script(end: BrokerEnd) -> None:
        end.log_in(server=ARTEMIS)
        first = end.answer(end.take("SUBSCRIBE")).headers["id"]
        for number in range(1, 5):
            end.message(first, number, b"x" * 1000)
        second = end.take("SUBSCRIBE").headers["id"]
        end.message(second, 5)
        for _ in range(4):
            end.take("ACK")
        end.answer(end.take("ACK"))
        frame = end.take("UNSUBSCRIBE")
        end.message(second, 6)
        end.answer(frame)
        end.message(first, 6)
        assert end.answer(end.take("ACK")).headers["id"] == "m6"
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        session = hold_and_commit(client, 5)
        delivery = session.receive()
        session.channel.dispatched(delivery)
        session.do(session.channel.commit([delivery]))
        assert not session.inbox
