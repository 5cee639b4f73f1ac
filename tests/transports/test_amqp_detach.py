"""How a consumer's link is given up: what goes back, in which order, and what happens without an answer."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from tests.transports.amqp_peer import PeerEnd, ScriptedPeer
from tests.transports.amqp_sessions import Client, with_messages
from tests.transports.scripted import TIMEOUT, text

from redelivery.model.errors import ConnectionLostError, JMSError, RequestTimeoutError
from redelivery.model.modes import AckMode
from redelivery.transports.wire.clock import monotonic

ARTEMIS = "apache-activemq-artemis"


@pytest.mark.parametrize("product", [ARTEMIS, "Apache Qpid Broker-J Core", "RabbitMQ", "some other"])
def test_a_detach_releases_what_was_seen_as_failed_and_the_rest_as_if_nothing_had_been(product: str) -> None:
    given: list[str] = []

    def then(end: PeerEnd) -> None:
        frame = end.take("disposition", "flow", "detach", "end")
        while frame.name != ("end" if product in ("RabbitMQ", "some other") else "detach"):
            if frame.name == "disposition":
                last = frame["first"] if frame["last"] is None else frame["last"]
                given.extend([f"{each} {frame.outcome}" for each in range(frame["first"], last + 1)])
                assert frame["settled"]
            elif frame.name == "flow" and frame["drain"]:
                link = next(each for each in end.taken if each.name == "attach")
                end.message(link, 4)  # was on its way
                end.drained(link, 100)
            elif frame.name == "detach" and product == "RabbitMQ":
                _was_on_its_way_and_detached(end)
            frame = end.take("disposition", "flow", "detach", "end")
        end.agree_to_end(frame)

    with ScriptedPeer(with_messages(3, then, product)) as peer, Client(peer.port) as client:
        session = client.session(AckMode.CLIENT)
        link = session.attach()
        seen, *_ = session.receive_many(3)
        session.channel.dispatched(seen)
        session.do(session.channel.detach(link))
        with pytest.raises(JMSError, match="is closed"):
            session.channel.accept([seen], batched=True)
    outcomes = {
        "RabbitMQ": [],  # its session's end releases them, at once and in order
        "some other": ["released"] * 3,
    }.get(product, ["modified failed", *["released"] * 3])
    assert given == [f"{number} {outcome}" for number, outcome in enumerate(outcomes)]


def _was_on_its_way_and_detached(end: PeerEnd) -> None:
    """What RabbitMQ does; it calls no detach closed."""
    link = next(each for each in end.taken if each.name == "attach")
    for number in range(4, 10):
        end.message(link, number)
    end.detach(link, closed=False)


def test_rabbitmqs_session_is_ended_when_the_broker_has_written_all_of_it() -> None:
    """It stops the session's writer at the end; what is not written then is lost, the answer to the end, too."""

    def then(end: PeerEnd) -> None:
        end.take("detach")
        end.nothing()
        _was_on_its_way_and_detached(end)
        end.agree_to_end(end.take("end"))

    with ScriptedPeer(with_messages(3, then, "RabbitMQ")) as peer, Client(peer.port) as client:
        session = client.session()
        link = session.attach()
        session.do(session.channel.detach(link))
        transport: Any = client.transport
        protocol = transport._connection.protocol
        assert list(protocol.table.endpoints.values()) == [protocol.nodes._session]  # in which it looks for queues


@pytest.mark.parametrize("product", [ARTEMIS, "RabbitMQ", "ActiveMQ"])
def test_a_detach_that_is_not_answered_is_bounded(product: str) -> None:
    ended = threading.Event()

    def script(end: PeerEnd) -> None:
        end.log_in(product)
        end.attached()
        ended.wait(TIMEOUT)
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session()
        link = session.attach()
        with pytest.raises(RequestTimeoutError):
            session.do(session.channel.detach(link), timeout=0.2)
        session.do(session.channel.detach(link))
        ended.set()


def test_a_connection_that_goes_while_a_detach_is_awaited_is_lost() -> None:
    def then(end: PeerEnd) -> None:
        end.take("flow")
        raise ConnectionError

    with ScriptedPeer(with_messages(0, then, ARTEMIS)) as peer, Client(peer.port) as client:
        session = client.session()
        link = session.attach()
        with pytest.raises(ConnectionLostError):
            session.do(session.channel.detach(link))
        session.do(session.channel.close())  # never raises for it
        assert client.errors == []


def test_what_is_released_cannot_come_to_the_same_link_again() -> None:
    """Neither before the detach, by what the session releases, nor with it: the credit is taken back first."""
    names: list[str] = []

    def then(end: PeerEnd) -> None:
        while "detach" not in names:
            frame = end.take("disposition", "flow", "detach")
            names.append("credit 0" if frame.name == "flow" and not frame["link_credit"] else frame.name)
        end.agree_to_end(frame)

    with ScriptedPeer(with_messages(3, then, "some other")) as peer, Client(peer.port) as client:
        session = client.session()
        link = session.attach()
        unseen = session.receive_many(3)
        session.channel.release(unseen)
        session.do(session.channel.detach(link))
        client.close()
    assert names[names.index("credit 0") :] == ["credit 0", "disposition", "detach"]
    assert "disposition" not in names[: names.index("credit 0")]


@pytest.mark.parametrize(
    ("product", "way"), [("RabbitMQ", "session"), ("RabbitMQ", "consumer"), ("ActiveMQ", "session")]
)
def test_an_end_that_the_broker_does_not_answer_is_waited_for_briefly_where_it_loses_answers(
    product: str, way: str
) -> None:
    """RabbitMQ answers the detach and then, now and then, not the end, which has ended the session all the same."""

    def then(end: PeerEnd) -> None:
        while (frame := end.take("detach", "disposition", "end", "flow")).name != "end":
            if frame.name == "detach":
                end.agree_to_end(frame)
            elif frame.name == "flow" and frame["drain"]:
                end.drained(end.taken[-2], 100)
        ended.wait(TIMEOUT)

    ended = threading.Event()
    with ScriptedPeer(with_messages(0, then, product)) as peer, Client(peer.port) as client:
        session = client.session(AckMode.CLIENT)
        link = session.attach()
        began = monotonic()
        patience = 10 if product == "RabbitMQ" else 2.5
        session.do(session.channel.close() if way == "session" else session.channel.detach(link), timeout=patience)
        took = monotonic() - began
        ended.set()
        if product == "RabbitMQ":
            assert 0.9 < took < 8
            assert client.errors == []
        else:
            assert took > 2.4
            assert isinstance(client.errors[0], RequestTimeoutError)


@pytest.mark.parametrize(("product", "detached"), [(ARTEMIS, 2), ("some other", 0)])
def test_sending_links_are_detached_before_the_end_where_it_would_wait_for_them(product: str, detached: int) -> None:
    """Artemis answers the end of every second session that has some up to two seconds late."""
    last: list[str] = []

    def script(end: PeerEnd) -> None:
        end.log_in(product)
        for _ in range(2):
            end.attached()
            end.settle(end.take("transfer"))
        frame = end.take("detach", "end")
        while frame.name == "detach":
            last.append(frame.name)
            end.agree_to_end(frame)
            frame = end.take("detach", "end")
        end.agree_to_end(frame)
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session()
        for queue in ("one", "two"):
            assert session.send(text(destination=queue)) is None
        session.do(session.channel.close())
    assert last == ["detach"] * detached
