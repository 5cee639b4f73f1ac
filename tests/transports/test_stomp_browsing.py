"""A browsing subscription, frame by frame: what it says, how its window moves, and what it takes for the end."""

from __future__ import annotations

import threading

import pytest
from tests.transports.scripted import SHARING, TIMEOUT, BrokerEnd, Client, ScriptedBroker, Session, lines

from redelivery.model.errors import (
    ConnectionLostError,
    InvalidSelectorError,
    JMSError,
    RequestTimeoutError,
    UnsupportedError,
)
from redelivery.model.modes import AckMode
from redelivery.transports.seam import Link

EMBEDDED = "redelivery/1.0"


def end_of_queue(end: BrokerEnd, subscription: str) -> None:
    end.send("MESSAGE", subscription=subscription, browser="end", message_id="0", destination="/queue/orders")


def seen(session: Session) -> list[str]:
    found = [str(each.header("message_id")) for each in session.inbox]
    session.inbox.clear()
    return found


def browse(session: Session, link: Link) -> list[str]:
    """All that is shown."""
    found = []
    while session.do(session.channel.browse_more(link)):
        found += seen(session)
    return found + seen(session)


@pytest.mark.parametrize(("server", "ack"), [("ActiveMQ/5.18.3", "auto"), (EMBEDDED, "client-individual")])
def test_it_subscribes_as_a_browser_in_the_window_and_with_the_selector(server: str, ack: str) -> None:
    """Classic closes the connection at some ACKs."""

    def script(end: BrokerEnd) -> None:
        end.log_in(server)
        for _ in range(2):
            end.subscribed()
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        session = client.session()
        session.attach(browse=True, window=7, selector="a = 1")
        assert session.attach(browse=True).prefetch == 100
        frames = [frame.headers for frame in broker.ends[0].taken[1:3]]
    assert [(frame["browser"], frame["ack"]) for frame in frames] == [("true", ack)] * 2
    assert [frame["activemq.prefetchSize"] for frame in frames] == ["7", "100"]
    assert frames[0]["selector"] == "a = 1"


def test_what_was_shown_is_acknowledged_when_more_is_wanted_until_the_end() -> None:
    acknowledged: list[list[str]] = []

    def script(end: BrokerEnd) -> None:
        end.log_in(EMBEDDED)
        subscription = end.subscribed()
        for first in (1, 3):
            for number in (first, first + 1):
                end.message(subscription, number)
            acknowledged.extend(lines(end.take("ACK")) for _ in range(2))
        end.message(subscription, 5)
        end_of_queue(end, subscription)
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        session = client.session(AckMode.TRANSACTED)
        link = session.attach(browse=True, window=2)
        assert browse(session, link) == ["m1", "m2", "m3", "m4", "m5"]
        session.do(session.channel.detach(link))
        assert "UNSUBSCRIBE" in [frame.command for frame in broker.ends[0].taken]
    assert acknowledged == [["ACK", f"a:{number}"] for number in (1, 2, 3, 4)]


def test_what_is_there_already_is_not_waited_for() -> None:
    def script(end: BrokerEnd) -> None:
        end.log_in()
        end.message(end.subscribed(), 1)
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        session = client.session()
        link = session.attach(browse=True)
        for _ in range(2):
            assert session.do(session.channel.browse_more(link))
        assert seen(session) == ["m1"]


def test_an_empty_queue_is_the_end_at_once_even_before_the_subscription_is_answered() -> None:
    def script(end: BrokerEnd) -> None:
        end.log_in()
        frame = end.take("SUBSCRIBE")
        end_of_queue(end, frame.headers["id"])
        end.answer(frame)
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        session = client.session()
        link = session.attach(browse=True)
        assert not session.do(session.channel.browse_more(link))
        assert not session.inbox


def test_a_message_that_pretends_to_be_the_end_is_a_message() -> None:
    def script(end: BrokerEnd) -> None:
        end.log_in()
        subscription = end.subscribed()
        end.message(subscription, 1, browser="end")
        end.send("MESSAGE", b"x", subscription=subscription, message_id="0", ack="a:2", browser="ended")
        end_of_queue(end, subscription)
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        session = client.session()
        assert browse(session, session.attach(browse=True)) == ["m1", "0"]


def test_messages_of_a_consumer_and_of_a_browser_on_one_connection_do_not_mix() -> None:
    def script(end: BrokerEnd) -> None:
        end.log_in(SHARING)
        consuming, browsing = end.subscribed(), end.subscribed()
        end.message(browsing, 1)
        end.message(consuming, 2)
        end_of_queue(end, browsing)
        end.message(consuming, 3)
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        consumer, browser = client.session(), client.session()
        consumer.attach()
        link = browser.attach(browse=True)
        assert browse(browser, link) == ["m1"]
        assert [each.header("message_id") for each in consumer.receive_many(2)] == ["m2", "m3"]


@pytest.mark.parametrize("server", ["ActiveMQ-Artemis/2.44.0", "RabbitMQ/3.10.8", "HornetQ/2.4.9", "Something/1"])
def test_a_broker_that_would_consume_is_not_asked(server: str) -> None:
    def script(end: BrokerEnd) -> None:
        end.log_in(server=server)
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        assert not client.transport.peer.capabilities.browse
        with pytest.raises(UnsupportedError, match="no browsing over STOMP: it would consume"):
            client.session().attach(browse=True)
        assert len(broker.ends[0].taken) == 1


def test_a_refused_selector_is_the_error_that_the_broker_means() -> None:
    def script(end: BrokerEnd) -> None:
        end.log_in()
        end.refuse(end.take("SUBSCRIBE"), "x", "javax.jms.InvalidSelectorException: x")
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client, pytest.raises(InvalidSelectorError):
        client.session().attach(browse=True, selector="= =")


def test_a_broker_that_shows_nothing_and_no_end_is_a_time_out() -> None:
    go = threading.Event()

    def script(end: BrokerEnd) -> None:
        end.log_in()
        subscription = end.subscribed()
        go.wait(TIMEOUT)
        end.message(subscription, 1)
        end_of_queue(end, subscription)
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        session = client.session()
        link = session.attach(browse=True)
        with pytest.raises(RequestTimeoutError):
            session.do(session.channel.browse_more(link), timeout=0.05)
        go.set()
        assert browse(session, link) == ["m1"]  # it may be asked again


def test_a_lost_connection_is_no_end() -> None:
    def script(end: BrokerEnd) -> None:
        end.log_in(EMBEDDED)
        end.message(end.subscribed(), 1)
        end.take("ACK")

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        session = client.session()
        link = session.attach(browse=True)
        assert session.do(session.channel.browse_more(link))
        session.inbox.clear()
        with pytest.raises(ConnectionLostError):
            session.do(session.channel.browse_more(link))


def test_a_look_at_a_queue_that_is_deleted_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """While it waits, and at every later look: the broker has ended the subscription."""
    reported: list[str] = []
    monkeypatch.setattr(Session, "on_link_closed", lambda _, __, error: reported.append(str(error)))

    def script(end: BrokerEnd) -> None:
        end.log_in()
        subscription = end.subscribed()
        end.send("ERROR", subscription=subscription, message="Server cancelled subscription")
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        session = client.session()
        link = session.attach(browse=True)
        for _ in range(2):
            with pytest.raises(JMSError, match="Server cancelled subscription"):
                session.do(session.channel.browse_more(link))
        assert len(reported) == 1
