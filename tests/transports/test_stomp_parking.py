"""Windows, parked messages and the end of consumers on ActiveMQ, frame by frame."""

from __future__ import annotations

import pytest
from tests.transports.scripted import BrokerEnd, Client, ScriptedBroker, lines, text, with_messages

from redelivery.model.destinations import Topic
from redelivery.model.errors import InvalidDestinationError, RequestTimeoutError, SecurityError
from redelivery.model.modes import AckMode
from redelivery.transports.stomp.codec.frames import Frame


def test_parked_messages_are_acknowledged_until_the_abort() -> None:
    frames: list[list[str]] = []

    def then(end: BrokerEnd) -> None:
        frames.extend(lines(end.take()) for _ in range(3 + 4))

    with ScriptedBroker(with_messages(2, then)) as broker, Client(broker.port) as client:
        session = client.session(AckMode.TRANSACTED)
        session.attach(window=2)
        first, second = session.receive_many(2)
        session.channel.park([first, second])
        session.channel.unpark([first])  # the other one is parked anew
        session.channel.unpark([first])
        session.channel.unpark([second])
    one, two = frames[0][-1], frames[4][-1]
    assert frames == [
        ["BEGIN", one], ["ACK", "a:1", one], ["ACK", "a:2", one],
        ["ABORT", one], ["BEGIN", two], ["ACK", "a:2", two], ["ABORT", two],
    ]  # fmt: skip


def test_a_consumer_of_a_pattern_asks_for_its_answer_behind_the_subscribe() -> None:
    """With a receipt of its own Classic would attach it with a window of 0, and wake one queue only."""

    def script(end: BrokerEnd) -> None:
        end.log_in()
        end.subscribed()
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        client.session().attach(Topic("news.#"))
        frames = broker.ends[0].taken[1:4]
    assert [frame.command for frame in frames] == ["SUBSCRIBE", "BEGIN", "ABORT"]
    assert frames[0].headers["destination"] == "/topic/news.>"
    assert ["receipt" in frame.headers for frame in frames] == [False, False, True]


def test_a_refused_consumer_of_a_pattern_is_refused_though_the_answer_names_nobody() -> None:
    def script(end: BrokerEnd) -> None:
        end.log_in()
        end.take("SUBSCRIBE")
        end.take("BEGIN")
        end.send("ERROR", message="User ann is not authorized to read from: queue://orders.>")
        end.answer(end.take("ABORT"))
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client, pytest.raises(SecurityError):
        client.session().attach("orders.>")


def test_a_commit_supersedes_what_is_parked_or_classic_would_forget_it() -> None:
    frames: list[list[str]] = []

    def then(end: BrokerEnd) -> None:
        while len(frames) < 11:
            frame = end.take()
            frames.append(lines(frame))
            if "receipt" in frame.headers:
                end.answer(frame)

    with ScriptedBroker(with_messages(3, then)) as broker, Client(broker.port) as client:
        session = client.session(AckMode.TRANSACTED)
        session.attach(window=2)
        first, second, third = session.receive_many(3)
        session.channel.park([first])
        session.do(session.channel.commit([second, third]))
        session.channel.unpark([first])
    one, own, empty, two = (frames[at][-1] for at in (0, 3, 7, 9))
    assert frames[:11] == [
        ["BEGIN", one], ["ACK", "a:1", one],
        ["ABORT", one], ["BEGIN", own], ["ACK", "a:2", own], ["ACK", "a:3", own], ["COMMIT", own],
        ["BEGIN", empty], ["ABORT", empty],
        ["BEGIN", two], ["ACK", "a:1", two],
    ]  # fmt: skip


def test_a_few_that_wait_are_left_in_the_window() -> None:
    def then(end: BrokerEnd) -> None:
        end.goodbye()

    with ScriptedBroker(with_messages(3, then)) as broker, Client(broker.port) as client:
        session = client.session(AckMode.TRANSACTED)
        session.attach(window=8)  # half of it enters the transaction together; half of that may wait loose
        first, second, third = session.receive_many(3)
        session.channel.park([first])
        session.channel.park([second])
        session.channel.unpark([first])
        session.channel.park([third])
        session.channel.unpark([second, third])
        commands = [frame.command for frame in broker.ends[0].taken]
    assert "BEGIN" not in commands


def test_closing_undoes_and_unsubscribes_and_is_answered() -> None:
    frames: list[str] = []

    def script(end: BrokerEnd) -> None:
        end.log_in()
        one = end.subscribed()
        end.subscribed()
        end.message(one, 1)
        end.message(one, 2)
        while True:
            frame = end.take()
            frames.append(frame.command)
            if "receipt" in frame.headers:
                end.answer(frame)

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        session = client.session(AckMode.TRANSACTED)
        session.attach(window=2)
        session.attach("others")
        first, second = session.receive_many(2)
        session.channel.dispatched(first)
        session.channel.park([second])
        session.do(session.channel.close())
        session.do(session.channel.close())
    undone = ["BEGIN", "ACK", "BEGIN", "ACK", "ABORT", "ABORT", "UNSUBSCRIBE", "UNSUBSCRIBE"]
    # and a last question, before another session may have the wire
    assert frames == [*undone, "BEGIN", "ABORT", "DISCONNECT"]


def test_closing_never_fails_for_a_lost_connection_and_reports_a_silent_broker() -> None:
    def ignore_one(end: BrokerEnd) -> None:
        end.take("UNSUBSCRIBE")

    with ScriptedBroker(with_messages(0, ignore_one)) as broker, Client(broker.port) as client:
        session = client.session()
        session.attach()
        session.do(session.channel.close(), timeout=0.2)
        assert isinstance(client.errors[0], RequestTimeoutError)
        other = client.session()
        client.transport.abort()
        other.do(other.channel.close())
        session.do(session.channel.close())


def test_messages_of_a_closed_consumer_are_dropped_those_of_others_arrive() -> None:
    def script(end: BrokerEnd) -> None:
        end.log_in()
        one, two = end.subscribed(), end.subscribed()
        leave = end.take("UNSUBSCRIBE")
        end.message(one, 1)
        end.message(two, 2)
        end.message(one, 3)
        end.answer(leave)
        end.message(two, 4)
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        session = client.session()
        first = session.attach()
        session.attach("others")
        session.do(session.channel.detach(first))
        assert [each.header("message_id") for each in session.receive_many(2)] == ["m2", "m4"]


def test_a_topic_is_a_topic_and_a_pattern_is_no_target() -> None:
    sent: list[Frame] = []

    def script(end: BrokerEnd) -> None:
        end.log_in()
        sent.append(end.answer(end.take("SEND")))
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        session = client.session()
        with pytest.raises(InvalidDestinationError, match="pattern"):
            session.send(text(destination="a.>"))
        assert session.send(text(destination=Topic("news"))) is None
    assert sent[0].headers["destination"] == "/topic/news"
